//! The oracle: a second ledger, slow and obvious, kept from the outside.
//!
//! It reads each event with its stamp and its answer, believes the core only in who was admitted,
//! and works out by itself what every call counts, which leases have ended and which sessions live.
//! What does not fit goes to `complaints`. It knows pools whose limits stay the same but for their
//! amounts, and are not reset by the provider; of tickets it knows only what they were asked with.

use std::collections::{BTreeMap, BTreeSet};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, Charged, Commit, Configured, Decision, Event, Grant,
    Instant, Key, LeaseAnswer, Limit, Margin, Notice, Outcome, PoolConfig, Reserve, Rule, Span,
    Text, Throttled, Unit, bounds,
};

use super::mark::{Change, Flow, Mark, Tank};
use super::recall::Recall;

/// Everything that happened, as the oracle understands it.
#[derive(Clone, Debug)]
pub(crate) struct Book {
    pub(crate) config: PoolConfig,
    pub(crate) now: Instant,
    /// Every call that was ever admitted, in order.
    pub(crate) calls: Vec<Call>,
    pub(crate) paused_until: Instant,
    /// Of each limit, when a call was last granted that takes from it.
    pub(crate) granted_at: Vec<Option<Instant>>,
    /// Of each limit that is a bucket, what is missing.
    pub(crate) tanks: Vec<Tank>,
    pub(crate) complaints: Vec<(Guarantee, String)>,
    /// Calls in flight do not end by themselves: what is foreseen knows nothing of their ends.
    pub(crate) frozen: bool,
    pub(crate) recall: Recall,
    sessions: BTreeMap<u64, Session>,
    /// The most that each agent ever asked for of each limit.
    pub(crate) most_asked: BTreeMap<AgentName, Vec<u64>>,
    /// The first reserve of whoever waits, or has waited: that one counts.
    /// With the instant that the last answer stated.
    asked: BTreeMap<Key, (Option<Instant>, Reserve)>,
}

/// What a complaint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarantee {
    Window,
    Bucket,
    Parallel,
    Pace,
    Pause,
    Leases,
    Sessions,
    Ids,
    Cap,
    Floor,
}

/// A call that was admitted.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) lease: Key,
    /// Whose it is: that of the reserve or the claim it was granted to.
    pub(crate) session: u64,
    pub(crate) agent: AgentName,
    pub(crate) id: Option<Text>,
    pub(crate) cost: Amounts,
    pub(crate) granted_at: Instant,
    pub(crate) ended: Option<Instant>,
    /// What it counts, one mark per limit.
    pub(crate) marks: Vec<Mark>,
    /// It lives by itself for so long; otherwise with its session.
    ttl: Option<Span>,
    pub(super) heard_at: Instant,
    pub(super) moved_at: Instant,
    pub(super) moved: bool,
}

impl Call {
    /// All that it counts, on whatever limit.
    pub(crate) fn weight(&self) -> u64 {
        self.marks.iter().map(Mark::weight).sum()
    }

    /// Whether it has said the last word on a unit that is charged at the start.
    pub(crate) fn has_said(&self, unit: &Unit, config: &PoolConfig) -> bool {
        let marks = config.limits.iter().zip(&self.marks);
        marks.into_iter().any(|(limit, mark)| mark.said && limit.id().unit() == Some(unit))
    }

    /// What it has said so far of a unit that is charged at the end.
    pub(crate) fn said(&self, unit: &Unit, config: &PoolConfig) -> u64 {
        let counts =
            |limit: &Limit| limit.id().unit() == Some(unit) && limit.charged == Charged::End;
        let marks = config.limits.iter().zip(&self.marks).filter(|(limit, _)| counts(limit));
        marks.map(|(_, mark)| mark.total()).max().unwrap_or(0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Session {
    number: u64,
    heard_at: Instant,
}

impl Book {
    pub(crate) fn new(config: PoolConfig, now: Instant) -> Self {
        let mut book = Self {
            now,
            calls: Vec::new(),
            paused_until: Instant(0),
            granted_at: vec![None; config.limits.len()],
            tanks: vec![Tank::default(); config.limits.len()],
            complaints: Vec::new(),
            frozen: false,
            recall: Recall::default(),
            sessions: BTreeMap::new(),
            most_asked: BTreeMap::new(),
            asked: BTreeMap::new(),
            config,
        };
        book.recall = Recall::of(&book);
        book
    }

    /// Reads what happened.
    pub(crate) fn record(&mut self, event: &Event, now: Instant, outcome: &Outcome) {
        let mut gone = self.advance(now.max(self.now));
        let Key { session, number } = event.key;
        // One that holds nothing is forgotten after a silence; whether it waits is not known here.
        let silent = self.sessions.get(&session).is_some_and(|known| {
            self.now >= known.heard_at + bounds::SILENCE && !self.holds_something(session)
        });
        if silent && outcome.answer == Answer::SessionEnded {
            self.sessions.remove(&session);
        }
        let ignored = match self.sessions.get(&session) {
            Some(known) if number <= known.number => Some([Answer::Duplicate, Answer::Duplicate]),
            // Of a session that has ended: whether it is a copy besides does not matter.
            None if number > 1 => Some([Answer::SessionEnded, Answer::Duplicate]),
            _ => None,
        };
        if let Some(ignored) = ignored {
            if !ignored.contains(&outcome.answer) {
                let told =
                    format!("{event:?} should be {:?}, was {:?}", ignored[0], outcome.answer);
                self.complain(Guarantee::Sessions, told);
            }
        } else {
            self.sessions.insert(session, Session { number, heard_at: self.now });
            gone.extend(self.act(event, outcome));
        }
        self.compare_reclaimed(&gone, outcome);
    }

    /// Lets time alone do what it does. Answers the leases it ended.
    pub(crate) fn advance(&mut self, now: Instant) -> BTreeSet<Key> {
        let mut gone = BTreeSet::new();
        loop {
            let living = self.calls.iter().filter(|call| call.ended.is_none());
            let first = living.map(|call| (self.ends_at(call), call.lease)).min();
            let Some((at, lease)) = first.filter(|(at, _)| *at <= now) else { break };
            self.end(lease, at, |mark| mark.settle(None, at));
            gone.insert(lease);
        }
        self.now = now;
        for limit in 0..self.config.limits.len() {
            let flow = self.flow(limit);
            self.tanks[limit].advance(now, flow);
        }
        gone
    }

    fn holds_something(&self, session: u64) -> bool {
        self.living().any(|call| call.session == session && call.ttl.is_none())
    }

    /// Whether a session that says nothing more is certainly still known then.
    pub(crate) fn knows_at(&self, session: u64, then: Instant) -> bool {
        let known = self.sessions.get(&session);
        known.is_some_and(|known| then < known.heard_at + bounds::SILENCE)
    }

    /// A session spoke before this book was opened.
    pub(crate) fn hear(&mut self, key: Key) {
        self.sessions.insert(key.session, Session { number: key.number, heard_at: self.now });
    }

    /// The instants at which units stop counting on windows.
    pub(crate) fn edges(&self) -> Vec<Instant> {
        let mut edges = Vec::new();
        for (at, limit) in self.config.limits.iter().enumerate() {
            let length = limit.id().period().unwrap_or_default() + self.config.slack;
            let charges = self.calls.iter().flat_map(|call| &call.marks[at].charges);
            edges.extend(charges.map(|charge| charge.at + length));
        }
        edges
    }

    pub(crate) fn living(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.ended.is_none())
    }

    /// The leases that live.
    pub(crate) fn leases(&self) -> Vec<Key> {
        self.living().map(|call| call.lease).collect()
    }

    pub(crate) fn call(&self, lease: Key) -> Option<&Call> {
        self.calls.iter().find(|call| call.lease == lease)
    }

    /// When a lease ends by itself; one that lives with its session does not.
    pub(crate) fn ends_at(&self, call: &Call) -> Instant {
        if self.frozen {
            return Instant::NEVER;
        }
        let alone = call.ttl.map_or(Instant::NEVER, |ttl| call.heard_at + ttl);
        let longest = self.config.longest_lease.map(|longest| call.moved_at + longest);
        longest.map_or(alone, |longest| longest.min(alone))
    }

    /// The same without the call that was admitted last.
    pub(crate) fn without_last(&self) -> Self {
        let mut book = self.clone();
        if let Some(call) = book.calls.len().checked_sub(1) {
            for limit in 0..book.config.limits.len() {
                let change = book.calls[call].marks[limit].erase();
                book.change_tank(limit, call, change);
            }
            book.calls.pop();
        }
        book
    }

    /// What a call takes of a limit.
    pub(crate) fn need(&self, limit: usize, cost: &Amounts) -> u64 {
        match &self.config.limits[limit].rule {
            Rule::Window { unit, .. } | Rule::Bucket { unit, .. } => cost.of(unit).unwrap_or(0),
            Rule::Parallel { .. } => cost.slots(),
        }
    }

    /// How a bucket refills.
    pub(crate) fn flow(&self, limit: usize) -> Flow {
        let Rule::Bucket { amount, period, .. } = self.config.limits[limit].rule else {
            return Flow { units: 0, per: 1 };
        };
        let per = i128::from((period + self.config.slack).0);
        Flow { units: i128::from(self.share(amount)), per }
    }

    /// The part of a stated rate that is used.
    pub(crate) fn share(&self, stated: u64) -> u64 {
        // One that tunes itself may come to use everything.
        let used = match self.config.margin {
            Margin::Auto => 1_000,
            Margin::Fixed(per_mille) => 1_000 - per_mille,
        };
        let share = u128::from(stated) * u128::from(used) / 1_000;
        u64::try_from(share).expect("a share is below the whole").max(1)
    }

    pub(crate) fn complain(&mut self, about: Guarantee, what: String) {
        self.complaints.push((about, what));
    }

    fn act(&mut self, event: &Event, outcome: &Outcome) -> Vec<Key> {
        match (&event.action, &outcome.answer) {
            (Action::Reserve(reserve), Answer::Decided(decision)) => {
                self.decided(event.key.session, reserve, decision);
            }
            (Action::Commit(commit), answer) => self.commit(commit, answer),
            (Action::Cancel { lease }, answer) => {
                let living = self.end(*lease, self.now, Mark::undo);
                // What is not a lease may be a ticket, of which this book knows nothing.
                if living || self.call(*lease).is_some() {
                    self.expect_end(*lease, living, answer);
                }
            }
            (Action::Redate { lease }, answer) => self.redate(*lease, answer),
            (Action::Withdraw { lease }, answer) => self.withdraw(*lease, answer),
            // It is about tickets, of which this book knows nothing.
            (Action::Leave { .. }, Answer::Done) => {}
            (Action::Throttled(throttled), answer) => self.throttle(throttled, answer),
            (Action::Heartbeat { lease, ttl }, answer) => self.beat(*lease, *ttl, answer),
            (Action::SessionEnded { session }, _) => return self.session_ended(*session),
            (Action::Pause { length, .. }, _) => {
                self.paused_until = self.paused_until.max(self.now + *length);
            }
            (Action::Resume { .. }, _) => self.paused_until = self.now,
            (Action::Configure(_), Answer::Configured(Configured::Same)) => {}
            (Action::Configure(configure), Answer::Configured(Configured::Applied)) => {
                self.reconfigure(configure.config.clone());
            }
            // What the provider teaches only takes away.
            (Action::Observed(_), Answer::Done) => {}
            (action, answer) => panic!("the book does not know {action:?} with {answer:?}"),
        }
        for notice in &outcome.notices {
            if let Notice::Paused { until, .. } = notice {
                self.paused_until = self.paused_until.max(*until);
            }
        }
        Vec::new()
    }

    fn decided(&mut self, session: u64, reserve: &Reserve, decision: &Decision) {
        let limits = 0..self.config.limits.len();
        let needs: Vec<u64> = limits.map(|limit| self.need(limit, &reserve.cost)).collect();
        let most = self.most_asked.entry(reserve.agent.clone()).or_default();
        most.resize(needs.len(), 0);
        most.iter_mut().zip(needs).for_each(|(most, need)| *most = need.max(*most));
        match decision {
            Decision::Admit(grant) => {
                let asked = self.asked.get(&grant.lease).cloned();
                let (told, first) = asked.unwrap_or((None, reserve.clone()));
                let may_be_due = told.is_some_and(|told| told <= self.now);
                self.admit(session, &first, (grant, may_be_due));
            }
            Decision::Wait(hold) => {
                let asked = self.asked.entry(hold.ticket);
                asked.or_insert_with(|| (None, reserve.clone())).0 = hold.refusal.until;
            }
            Decision::Refuse(_) => {}
        }
    }

    fn admit(&mut self, session: u64, reserve: &Reserve, (grant, may_be_due): (&Grant, bool)) {
        if self.repeats(reserve, grant) {
            return;
        }
        let mut objections = self.objections(&reserve.cost);
        objections.extend(self.share_objections(reserve, may_be_due));
        for (about, what) in objections {
            self.complain(about, format!("{:?} admitted at {:?}: {what}", grant.lease, self.now));
        }
        self.recall.forget(self.now);
        let number = self.calls.len();
        let mut marks = Vec::new();
        for limit in 0..self.config.limits.len() {
            let need = self.need(limit, &reserve.cost);
            let mark = Mark::new(need, self.charged(limit), self.now);
            let change = Change { charged: mark.total(), back: 0 };
            self.change_tank(limit, number, change);
            marks.push(mark);
            if need > 0 {
                self.granted_at[limit] = Some(self.now);
            }
        }
        let lease = grant.lease;
        let call = Call {
            lease,
            session,
            agent: reserve.agent.clone(),
            id: reserve.id.clone(),
            cost: reserve.cost.clone(),
            granted_at: self.now,
            ended: None,
            marks,
            ttl: reserve.ttl,
            heard_at: self.now,
            moved_at: self.now,
            moved: false,
        };
        if grant.expires_at != self.ends_at(&call) {
            let told = format!("{lease:?} should end at {:?}: {grant:?}", self.ends_at(&call));
            self.complain(Guarantee::Leases, told);
        }
        self.calls.push(call);
    }

    /// Whether this answers with an earlier call of the same id, which must be so exactly while
    /// that is in flight or has ended not long ago.
    fn repeats(&mut self, reserve: &Reserve, grant: &Grant) -> bool {
        let known = |ended: Instant| self.now < ended + self.config.lease_ttl;
        let same = |call: &&Call| call.id == reserve.id && call.agent == reserve.agent;
        let first = self.calls.iter().rev().find(same).filter(|_| reserve.id.is_some());
        let first = first.filter(|call| call.ended.is_none_or(known));
        let expected = first.map(|call| (call.lease, call.ended.is_some()));
        let repeats = grant.settled || self.call(grant.lease).is_some();
        let told = repeats.then_some((grant.lease, grant.settled));
        if told != expected {
            let told = format!("{reserve:?} at {:?}: {grant:?}, not {expected:?}", self.now);
            self.complain(Guarantee::Ids, told);
        }
        repeats
    }

    fn commit(&mut self, commit: &Commit, answer: &Answer) {
        let (lease, now) = (commit.lease, self.now);
        let figure = |book: &Self, limit: usize| {
            let unit = book.config.limits[limit].id().unit().cloned();
            unit.and_then(|unit| commit.used.of(&unit))
        };
        if !commit.progress {
            let figures: Vec<_> = (0..self.granted_at.len()).map(|at| figure(self, at)).collect();
            let mut figures = figures.into_iter();
            let living = self.end(lease, now, |mark| {
                let figure = figures.next().expect("one figure per limit");
                if commit.refused { mark.refuse() } else { mark.settle(figure, now) }
            });
            return self.expect_end(lease, living, answer);
        }
        let Some(number) = self.calls.iter().position(|c| c.lease == lease && c.ended.is_none())
        else {
            return self.expect_end(lease, false, answer);
        };
        for limit in 0..self.config.limits.len() {
            let figure = figure(self, limit);
            let change = self.calls[number].marks[limit].progress(figure, now);
            self.change_tank(limit, number, change);
        }
        self.calls[number].moved_at = now;
        self.calls[number].moved = true;
        self.calls[number].heard_at = now;
        self.expect_life(number, answer);
    }

    fn throttle(&mut self, throttled: &Throttled, answer: &Answer) {
        if let Some(lease) = throttled.lease {
            let living = self.end(lease, self.now, Mark::refuse);
            self.expect_end(lease, living, answer);
        }
    }

    fn beat(&mut self, lease: Option<Key>, ttl: Option<Span>, answer: &Answer) {
        let Some(lease) = lease else { return };
        let now = self.now;
        let Some(number) = self.calls.iter().position(|c| c.lease == lease && c.ended.is_none())
        else {
            return self.expect_end(lease, false, answer);
        };
        let call = &mut self.calls[number];
        call.heard_at = now;
        call.ttl = ttl.or(call.ttl);
        self.expect_life(number, answer);
    }

    fn session_ended(&mut self, session: u64) -> Vec<Key> {
        let now = self.now;
        let ends = |call: &&Call| call.session == session && call.ttl.is_none();
        let gone: Vec<Key> = self.living().filter(ends).map(|call| call.lease).collect();
        for lease in &gone {
            self.end(*lease, now, |mark| mark.settle(None, now));
            self.release_id(*lease, true);
        }
        self.sessions.remove(&session);
        gone
    }

    /// Ends a lease, if it lives, and says whether it did.
    pub(super) fn end(
        &mut self,
        lease: Key,
        at: Instant,
        mut how: impl FnMut(&mut Mark) -> Change,
    ) -> bool {
        let living = |call: &Call| call.lease == lease && call.ended.is_none();
        let Some(number) = self.calls.iter().position(living) else { return false };
        for limit in 0..self.config.limits.len() {
            let flow = self.flow(limit);
            self.tanks[limit].advance(at, flow);
            let change = how(&mut self.calls[number].marks[limit]);
            self.change_tank(limit, number, change);
        }
        self.calls[number].ended = Some(at);
        true
    }

    pub(super) fn change_tank(&mut self, limit: usize, call: usize, change: Change) {
        let flow = self.flow(limit);
        self.tanks[limit].change(call, change, flow);
    }

    pub(super) fn charged(&self, limit: usize) -> Charged {
        self.config.limits[limit].charged
    }

    pub(super) fn expect_end(&mut self, lease: Key, living: bool, answer: &Answer) {
        let expected = if living { LeaseAnswer::Ended } else { LeaseAnswer::Gone };
        if *answer != Answer::Lease(expected) {
            let told = format!("about {lease:?}: should be {expected:?}, was {answer:?}");
            self.complain(Guarantee::Leases, told);
        }
    }

    pub(super) fn expect_life(&mut self, call: usize, answer: &Answer) {
        let ends_at = self.ends_at(&self.calls[call]);
        if *answer != Answer::Lease(LeaseAnswer::Lives(ends_at)) {
            let lease = self.calls[call].lease;
            let told = format!("{lease:?} lives until {ends_at:?}, was told {answer:?}");
            self.complain(Guarantee::Leases, told);
        }
    }

    fn compare_reclaimed(&mut self, gone: &BTreeSet<Key>, outcome: &Outcome) {
        let mut told = BTreeSet::new();
        for notice in &outcome.notices {
            if let Notice::Reclaimed { lease, .. } = notice
                && !told.insert(*lease)
            {
                self.complain(Guarantee::Leases, format!("{lease:?} reclaimed twice"));
            }
        }
        if told != *gone {
            let told = format!("at {:?} ended {gone:?}, reclaimed {told:?}", self.now);
            self.complain(Guarantee::Leases, told);
        }
    }
}
