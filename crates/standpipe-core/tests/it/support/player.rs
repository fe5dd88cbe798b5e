//! Acts out a random scene: turns its steps into events of processes that keep their books right,
//! and shows each to the oracle.

use standpipe_core::{
    Action, Amounts, Answer, Commit, Configure, Decision, Event, Instant, Key, Margin, Observed,
    Outcome, Reading, Reserve, Rule, Source, Span, ThrottleKind, Throttled, Unit,
};

use super::book::{Book, Guarantee};
use super::scene::{CAST, Figure, Jump, Scene, Step, UNITS, Usage};
use super::words::{agent, text};
use super::world::{World, why};

/// A scene under way.
#[derive(Clone)]
pub(crate) struct Player {
    pub(crate) world: World,
    pub(crate) book: Book,
    pub(crate) leases: Vec<Key>,
    pub(crate) tickets: Vec<(Key, String, Reserve)>,
    /// Instants that answers named.
    pub(crate) named: Vec<Instant>,
    /// Critical calls may wait, too.
    pub(crate) critical_waits: bool,
}

impl Player {
    pub(crate) fn new(scene: &Scene) -> Self {
        let world = World::new(scene.config.clone());
        let mut book = Book::new(scene.config.clone(), world.now);
        book.hear(Key { session: world.session("operator"), number: 1 });
        Self {
            world,
            book,
            leases: Vec::new(),
            tickets: Vec::new(),
            named: Vec::new(),
            critical_waits: false,
        }
    }

    /// Does one step. Nothing may come of it when there is nothing to do it to.
    pub(crate) fn step(&mut self, step: &Step) -> Option<(Event, Outcome)> {
        match step {
            Step::Pass(jump) => {
                self.pass(jump);
                None
            }
            Step::Again(which) => {
                let (log, now) = (&self.world.log, self.world.now);
                let event = log[which % log.len()].0.clone();
                // A first event that comes again when its session is long forgotten begins a new
                // one; no process of these scenes is that slow.
                let first = event.key.number == 1 && !self.book.knows_at(event.key.session, now);
                (!first).then(|| self.apply("", event))
            }
            _ => {
                let (session, action) = self.action(step)?;
                let event = self.world.event(&session, action);
                Some(self.apply(&session, event))
            }
        }
    }

    /// Complaints of the oracle about one guarantee.
    pub(crate) fn complaint(&self, about: Guarantee) -> Option<&str> {
        let mut complaints = self.book.complaints.iter();
        complaints.find(|(what, _)| *what == about).map(|(_, told)| told.as_str())
    }

    /// A reserve of somebody's, with this cost, that does not wait.
    pub(crate) fn reserve(who: &str, cost: Amounts) -> Reserve {
        Reserve::new(agent(who), cost)
    }

    /// The cost that a step's figures stand for.
    pub(crate) fn cost(&self, figures: &[Figure; 3]) -> Amounts {
        let mut list = Vec::new();
        for (unit, figure) in UNITS.iter().zip(figures) {
            let counts = |at: &usize| self.book.config.limits[*at].id().unit() == Some(unit);
            let limits: Vec<usize> = (0..self.book.config.limits.len()).filter(counts).collect();
            let effective = limits.iter().map(|at| self.book.effective(*at)).min().unwrap_or(1);
            let stated = limits.iter().map(|at| self.book.config.limits[*at].stated()).min();
            match figure {
                Figure::None => {}
                Figure::Of(amount) => list.push((unit.clone(), *amount)),
                Figure::Effective => list.push((unit.clone(), effective)),
                Figure::Stated => list.push((unit.clone(), stated.unwrap_or(1))),
                Figure::Above => list.push((unit.clone(), stated.unwrap_or(1) + 1)),
            }
        }
        Amounts::cost(list).expect("each unit once and small")
    }

    fn apply(&mut self, session: &str, event: Event) -> (Event, Outcome) {
        let outcome = self.world.apply(&event);
        self.book.record(&event, self.world.now, &outcome);
        if outcome.answer == Answer::SessionEnded && !session.is_empty() {
            self.world.forget_session(session);
        }
        if let Answer::Decided(decision) = &outcome.answer {
            self.note(session, &event, decision);
        }
        (event, outcome)
    }

    fn note(&mut self, session: &str, event: &Event, decision: &Decision) {
        let Action::Reserve(reserve) = &event.action else { return };
        self.named.extend(why(decision).and_then(|refusal| refusal.until));
        let claimed = reserve.ticket;
        match decision {
            Decision::Admit(grant) => self.leases.push(grant.lease),
            Decision::Wait(hold) if claimed == Some(hold.ticket) => return,
            Decision::Wait(hold) => {
                let mut claim = (**reserve).clone();
                claim.ticket = Some(hold.ticket);
                self.tickets.push((hold.ticket, session.to_owned(), claim));
            }
            Decision::Refuse(_) => {}
        }
        self.tickets.retain(|(ticket, _, _)| Some(*ticket) != claimed);
    }

    fn action(&self, step: &Step) -> Option<(String, Action)> {
        match step {
            Step::Ask { who, figures, patience, ttl, id } => {
                let (session, name, tier) = CAST[who % CAST.len()];
                let cost = with_slots(&self.cost(figures), *who);
                let mut reserve = Self::reserve(name, cost);
                reserve.priority = Some(tier);
                let waits = self.critical_waits || tier > standpipe_core::Priority::Critical;
                reserve.patience = if waits { *patience } else { Span::ZERO };
                reserve.ttl = *ttl;
                reserve.id = id.map(|id| text(&format!("call {id}")));
                Some((session.to_owned(), Action::Reserve(Box::new(reserve))))
            }
            Step::Claim(which) => {
                let (_, session, claim) = pick(&self.tickets, *which)?;
                Some((session.clone(), Action::Reserve(Box::new(claim.clone()))))
            }
            Step::Commit { lease, figures, progress, refused } => {
                let lease = *pick(&self.leases, *lease)?;
                let commit = self.commit(lease, figures, *progress, *refused);
                Some((self.sender(lease), Action::Commit(commit)))
            }
            Step::Cancel(which) => {
                let lease = *pick(&self.leases, *which)?;
                Some((self.sender(lease), Action::Cancel { lease }))
            }
            Step::Redate(which) => {
                let lease = *pick(&self.leases, *which)?;
                Some((self.sender(lease), Action::Redate { lease }))
            }
            Step::Withdraw(which) => {
                let lease = *pick(&self.leases, *which)?;
                Some((self.sender(lease), Action::Withdraw { lease }))
            }
            Step::GiveUp(which) => {
                let (ticket, session, _) = pick(&self.tickets, *which)?;
                let action = match which % 2 {
                    0 => Action::Cancel { lease: *ticket },
                    _ => Action::Leave { ticket: *ticket },
                };
                Some((session.clone(), action))
            }
            Step::Throttle { lease, retry_after } => self.throttle(*lease, *retry_after),
            Step::Beat { process, lease, ttl } => {
                let lease = lease.and_then(|which| pick(&self.leases, which)).copied();
                let session = ["p1", "p2", "p3", "p4"][process % 4].to_owned();
                Some((session, Action::Heartbeat { lease, ttl: *ttl }))
            }
            Step::Die(process) => {
                let session = self.world.session(["p1", "p2", "p3", "p4"][process % 4]);
                Some(("undertaker".to_owned(), Action::SessionEnded { session }))
            }
            Step::Pause(length) => {
                Some(("operator".into(), Action::Pause { length: *length, by: None }))
            }
            Step::Change(amounts, margin) => Some(self.change(amounts, *margin)),
            Step::Resume => Some(("operator".into(), Action::Resume { by: None })),
            Step::Stray(key) => {
                let known = self.leases.contains(key)
                    || self.tickets.iter().any(|(ticket, _, _)| ticket == key);
                let commit = Commit {
                    lease: *key,
                    used: Amounts::default(),
                    progress: false,
                    refused: false,
                };
                (!known).then(|| ("stranger".to_owned(), Action::Commit(commit)))
            }
            Step::Refusal { .. } | Step::Told(..) | Step::Retry(..) | Step::Held(..) => {
                self.trouble(step)
            }
            Step::Pass(_) | Step::Again(_) => None,
        }
    }

    /// A commit as an honest process would send it: totals grow, and what was final stays.
    fn commit(&self, lease: Key, figures: &[Usage; 3], progress: bool, refused: bool) -> Commit {
        let mut list = Vec::new();
        let call = self.book.call(lease);
        for (unit, usage) in UNITS.iter().zip(figures) {
            let estimate = call.and_then(|call| call.cost.of(unit)).unwrap_or(0);
            let said = call.map_or(0, |call| call.said(unit, &self.book.config));
            // After the first word on a unit that is charged at the start there is no second.
            if call.is_some_and(|call| call.has_said(unit, &self.book.config)) {
                continue;
            }
            match usage {
                Usage::Unsaid => {}
                Usage::Thousandths(share) => {
                    list.push((unit.clone(), said.max(estimate * share / 1_000)));
                }
                Usage::More(more) => list.push((unit.clone(), said.max(estimate) + more)),
            }
        }
        let refused = refused && !progress;
        let used = Amounts::new(if refused { Vec::new() } else { list });
        Commit { lease, used: used.expect("each unit once and small"), progress, refused }
    }

    /// What only happens where the provider says no.
    fn trouble(&self, step: &Step) -> Option<(String, Action)> {
        let ask = |who: &usize| {
            let (session, name, tier) = CAST[who % CAST.len()];
            let mut reserve = Self::reserve(name, Amounts::cost([]).expect("a request"));
            reserve.priority = Some(tier);
            (session.to_owned(), reserve)
        };
        match step {
            Step::Refusal { lease, who, kind, retry_after, hit } => {
                let lease = lease.and_then(|which| pick(&self.leases, which)).copied();
                let sender = lease.map_or("reporter".to_owned(), |lease| self.sender(lease));
                let name = Some(agent(CAST[who % CAST.len()].1));
                let (kind, retry_after, hit) = (*kind, *retry_after, hit.clone());
                let throttled = Throttled { lease, agent: name, kind, retry_after, hit };
                Some((sender, Action::Throttled(throttled)))
            }
            Step::Told(unit, period, limit) => {
                // Some of them also say what is left: half of it, or nearly all.
                let remaining = match limit % 3 {
                    0 => Some(*limit / 2),
                    1 => Some(limit.saturating_sub(1 + limit / 8)),
                    _ => None,
                };
                let reading = Reading {
                    unit: unit.clone(),
                    period: *period,
                    limit: Some(*limit),
                    remaining,
                    coarse: 1 + limit % 2,
                    reset_in: (limit % 7 == 3).then_some(Span(limit * 400_000)),
                    full_in: (limit % 5 < 3).then_some(Span(limit * 100_000)),
                };
                let observed = Observed { lease: None, readings: vec![reading] };
                Some(("reporter".to_owned(), Action::Observed(observed)))
            }
            Step::Retry(who, of) => {
                let (session, mut reserve) = ask(who);
                reserve.retry_of = Some(pick(&self.leases, *of).copied().unwrap_or_default());
                Some((session, Action::Reserve(Box::new(reserve))))
            }
            Step::Held(who, hold, patience) => {
                let (session, mut reserve) = ask(who);
                (reserve.hold, reserve.patience) = (Some(*hold), *patience);
                Some((session, Action::Reserve(Box::new(reserve))))
            }
            _ => None,
        }
    }

    /// The same limits with other amounts.
    fn change(&self, amounts: &[u64; 4], margin: u16) -> (String, Action) {
        let mut config = self.book.config.clone();
        config.margin = Margin::Fixed(margin);
        for (limit, new) in config.limits.iter_mut().zip(amounts) {
            match &mut limit.rule {
                Rule::Window { amount, .. } | Rule::Parallel { amount } => *amount = *new,
                Rule::Bucket { amount, burst, .. } => (*amount, *burst) = (*new, *new),
            }
        }
        let configure = Configure { source: Source::Change, config };
        ("operator".to_owned(), Action::Configure(Box::new(configure)))
    }

    fn throttle(&self, which: Option<usize>, after: Option<Span>) -> Option<(String, Action)> {
        let lease = which.and_then(|which| pick(&self.leases, which)).copied();
        let sender = lease.map_or("reporter".to_owned(), |lease| self.sender(lease));
        let kind = ThrottleKind::Quota;
        let throttled = Throttled { lease, agent: None, kind, retry_after: after, hit: None };
        Some((sender, Action::Throttled(throttled)))
    }

    /// The process that a lease belongs to, or whoever has taken it over.
    fn sender(&self, lease: Key) -> String {
        let names = ["p1", "p2", "p3", "p4"];
        let owner = names.into_iter().find(|name| self.world.session(name) == lease.session);
        owner.unwrap_or("p4").to_owned()
    }

    fn pass(&mut self, jump: &Jump) {
        let now = self.world.now;
        let near = |instants: &[Instant], which: usize, offset: i64| {
            let later: Vec<_> = instants.iter().filter(|at| **at >= now).collect();
            pick(&later, which).map(|at| Instant(at.0.saturating_add_signed(offset)))
        };
        let to = match jump {
            Jump::For(span) => Some(now + Span(*span)),
            Jump::Periods { limit, thousandths } => {
                let limit = &self.book.config.limits[limit % self.book.config.limits.len()];
                let period = limit.id().period().unwrap_or(Span::secs(1));
                Some(now + Span(period.0 * thousandths / 1_000))
            }
            Jump::Named { which, offset } => {
                let recent: Vec<_> = self.named.iter().rev().copied().collect();
                near(&recent, *which, *offset)
            }
            Jump::Edge { which, offset } => near(&self.book.edges(), *which, *offset),
            Jump::Expiry { which, offset } => {
                let ends = self.book.living().map(|call| self.book.ends_at(call));
                let ends: Vec<_> = ends.filter(|ends| *ends != Instant::NEVER).collect();
                near(&ends, *which, *offset)
            }
        };
        self.world.now = to.unwrap_or(now).max(now);
    }
}

/// One of them, whatever the number.
pub(crate) fn pick<T>(list: &[T], which: usize) -> Option<&T> {
    list.get(which.checked_rem(list.len())?)
}

/// The same cost; some name their slots: none, two or three.
fn with_slots(cost: &Amounts, who: usize) -> Amounts {
    let drawn = cost.iter().map(|(_, n)| n).sum::<u64>() + who as u64;
    let amounts = cost.iter().map(|(unit, n)| (unit.clone(), n));
    let slots = [None, None, Some(2), None, Some(3), Some(0), None, None][drawn as usize % 8];
    let slots = slots.map(|slots| (Unit::Parallel, slots));
    Amounts::cost(amounts.chain(slots)).expect("each unit once and small")
}
