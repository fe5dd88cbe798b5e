//! A call asks: it repeats an earlier ask, claims a ticket, or is a newcomer; then it is admitted,
//! queued or refused.

use crate::agent::AgentId;
use crate::bounds;
use crate::call::Call;
use crate::config::Priority;
use crate::event::{Key, Reserve};
use crate::facts::Known;
use crate::judge::Asker;
use crate::lease::Holder;
use crate::outcome::{Decision, Grant, Hold, Notice, Reason, Refusal};
use crate::state::{Found, State};
use crate::ticket::{Phase, Place, Ticket};
use crate::time::{Instant, Span};

/// What an ask comes to, before anything is done about it.
enum Verdict {
    /// It is answered with an earlier call of the same id.
    Repeat(Grant),
    /// It is the claim of the ticket at this place.
    Claim(Place),
    /// It may be made; in shadow mode instead of this.
    Admit(Priority, Option<Refusal>),
    /// It waits.
    Queue(Priority, Refusal),
    /// It does not.
    Refuse(Refusal),
}

impl State {
    /// What a reserve is answered, without doing it. No session stands for any.
    pub(crate) fn decide(&self, reserve: &Reserve, now: Instant) -> Decision {
        let reserve = &*self.completed(reserve);
        match self.verdict(None, reserve, now) {
            Verdict::Repeat(grant) => Decision::Admit(grant),
            Verdict::Claim(place) => {
                let holds = reserve.hold.map(|_| held_until(reserve, now));
                self.look(place, holds, now)
            }
            Verdict::Admit(_, instead_of) => {
                let instead_of = instead_of.map(|refusal| self.date(refusal, reserve, now));
                let expires_at = self.expires(reserve.ttl, now);
                let lease = Key::default();
                Decision::Admit(Grant { lease, expires_at, settled: false, instead_of })
            }
            Verdict::Queue(tier, refusal) => {
                let position = self.position(Place::last_of(tier));
                let agent = self.index.agent_of.get(&reserve.agent).copied();
                let asker = self.queued(&self.newcomer(reserve, agent, now));
                let refusal = self.dated(refusal, &asker, now);
                Decision::Wait(Hold { ticket: Key::default(), position, refusal })
            }
            Verdict::Refuse(refusal) => Decision::Refuse(self.date(refusal, reserve, now)),
        }
    }

    fn date(&self, refusal: Refusal, reserve: &Reserve, now: Instant) -> Refusal {
        let agent = self.index.agent_of.get(&reserve.agent).copied();
        let asker = self.newcomer(reserve, agent, now);
        let mut refusal = self.dated(refusal, &asker, now);
        // A second try needs a retry as well when its time has come.
        while let Some(until) = refusal.until {
            let retry = self.retry_left_from(reserve, until);
            if retry == Some(until) {
                break;
            }
            refusal.until = retry.and_then(|at| self.admitted_at(&asker, at));
        }
        refusal
    }

    pub(crate) fn reserve(&mut self, key: Key, reserve: &Reserve, now: Instant) -> Decision {
        if self.find(key) != Found::Neither {
            // Only a recovered event of another number can have left something of this name.
            return Decision::Refuse(queue_full());
        }
        let asked = reserve;
        let completed = self.completed(reserve).into_owned();
        let reserve = &completed;
        match self.verdict(Some(key.session), reserve, now) {
            Verdict::Repeat(grant) => Decision::Admit(grant),
            Verdict::Claim(place) => self.claim(place, key.session, reserve, now),
            Verdict::Admit(tier, instead_of) => {
                let instead_of = instead_of.map(|refusal| self.date(refusal, reserve, now));
                let agent = self.agent_for(&reserve.agent, now);
                let holder = Holder::of(reserve.ttl, key.session, now);
                self.look_ahead(reserve, now);
                self.draw_retry(reserve, now);
                let grant = self.admit(key, agent, tier, holder, Call::of(asked, reserve), now);
                Decision::Admit(Grant { instead_of, ..grant })
            }
            Verdict::Queue(tier, _) => {
                self.look_ahead(reserve, now);
                self.draw_retry(reserve, now);
                self.queue(key, tier, (asked, reserve), now)
            }
            Verdict::Refuse(refusal) => {
                // First: whoever is denied from now on is told when that ends.
                self.record_refusal(reserve, now);
                let refusal = self.date(refusal, reserve, now);
                Decision::Refuse(refusal)
            }
        }
    }

    fn verdict(&self, session: Option<u64>, reserve: &Reserve, now: Instant) -> Verdict {
        let agent = self.index.agent_of.get(&reserve.agent).copied();
        let by_id = agent.and_then(|agent| self.known(agent, reserve.id.as_ref(), now));
        let by_ticket = reserve.ticket.map(|first| Known { first, ended: None });
        for known in by_id.into_iter().chain(by_ticket) {
            if let Some(grant) = self.repeat(known) {
                return Verdict::Repeat(grant);
            }
            if let Some(place) = self.index.place_of.get(&known.first) {
                return Verdict::Claim(*place);
            }
        }
        let asker = self.newcomer(reserve, agent, now);
        let tier = asker.tier();
        let full = self.is_full(session);
        let no = match self.judge(&asker, now) {
            Some(no) if no.reason <= Reason::Never => Some(no),
            no => self.out_of_retries(reserve, now).or(no),
        };
        match no {
            None if full => Verdict::Refuse(queue_full()),
            None => Verdict::Admit(tier, None),
            Some(refusal) if self.is_shadow() && !full => Verdict::Admit(tier, Some(refusal)),
            Some(refusal) if !self.waits(&asker, reserve, &refusal, now) => {
                Verdict::Refuse(refusal)
            }
            Some(_) if full || self.facts.tickets.len() >= bounds::TICKETS => {
                Verdict::Refuse(queue_full())
            }
            Some(refusal) => Verdict::Queue(tier, refusal),
        }
    }

    pub(crate) fn newcomer<'a>(
        &self,
        reserve: &'a Reserve,
        agent: Option<AgentId>,
        now: Instant,
    ) -> Asker<'a> {
        let rule = match agent {
            Some(agent) => self.index.loads[usize::from(agent)].rule,
            None => self.rule_of(&reserve.agent),
        };
        let place = self.place_served(self.tier_asked(reserve, rule), agent, now);
        let tier = place.tier;
        let (cost, returns) = (&reserve.cost, self.facts.trouble.behind[tier as usize]);
        let holds = held_until(reserve, now);
        Asker { agent, rule, cost, place, passes: true, returns, holds }
    }

    /// The same asker with the ticket it would get.
    fn queued<'a>(&self, asker: &Asker<'a>) -> Asker<'a> {
        if asker.place.arrival != u64::MAX {
            return *asker;
        }
        let place = Place { tier: asker.tier(), arrival: self.facts.arrivals.saturating_add(1) };
        Asker { place, ..*asker }
    }

    /// Whether a call that cannot be made now waits. For a limit it does, since units can come
    /// back; a pause or return instant beyond its deadline is told at once.
    fn waits(&self, asker: &Asker<'_>, reserve: &Reserve, no: &Refusal, now: Instant) -> bool {
        let deadline = now + reserve.patience.min(bounds::SPAN);
        let final_word =
            matches!(no.reason, Reason::Terminal | Reason::Never | Reason::RetryBudget);
        let waits = !final_word && deadline > now;
        waits && self.own_reasons_end(&self.queued(asker), now) <= deadline
    }

    fn is_shadow(&self) -> bool {
        !self.index.plan.enforce && !self.index.plan.lanes.is_empty()
    }

    /// No room for another lease, or for another session that holds something.
    fn is_full(&self, session: Option<u64>) -> bool {
        let new = session.is_none_or(|session| !self.index.holdings.contains_key(&session));
        let sessions_full = self.index.holdings.len() >= bounds::SESSIONS && new;
        self.facts.leases.len() >= bounds::LEASES || sessions_full
    }

    /// A place in the queue for a call that cannot be made now.
    fn queue(
        &mut self,
        key: Key,
        tier: Priority,
        (asked_for, reserve): (&Reserve, &Reserve),
        now: Instant,
    ) -> Decision {
        let agent = self.agent_for(&reserve.agent, now);
        let asked = self.tier_asked(reserve, self.index.loads[usize::from(agent)].rule);
        let place = if asked == tier {
            self.facts.arrivals = self.facts.arrivals.saturating_add(1);
            Place { tier, arrival: self.facts.arrivals }
        } else {
            self.lift_up(agent, Some(key))
        };
        let ticket = Ticket {
            key,
            session: Some(key.session),
            agent,
            call: Call::of(asked_for, reserve),
            since: now,
            deadline: now + reserve.patience.min(bounds::SPAN),
            phase: Phase::Lapsed,
            aside: 0,
            returns: self.facts.trouble.behind[tier as usize],
            holds: held_until(reserve, now),
            ttl: reserve.ttl,
        };
        if ticket.returns > now {
            self.keep_distance(tier, ticket.returns);
        }
        self.index.add_ticket(place, &ticket);
        self.facts.tickets.insert(place, ticket);
        self.know_id(agent, reserve.id.as_ref(), key);
        if tier == Priority::Background {
            self.note_denied(agent, now);
        }
        self.facts.used = now;
        self.stand(place, now);
        self.serve(now);
        self.answer_ticket(place, now)
    }

    /// A waiter asks again with its ticket, or somebody with its id.
    ///
    /// One that stands in a line stays there until room comes, even if another limit's room now
    /// comes later: those behind were told when this line moves, and a large call that changed
    /// lines with every look would never be first to anything.
    fn claim(&mut self, place: Place, session: u64, reserve: &Reserve, now: Instant) -> Decision {
        self.take_over(place, session, reserve, now);
        if let (Some(ticket), Some(_)) = (self.facts.tickets.get_mut(&place), reserve.hold) {
            ticket.holds = held_until(reserve, now);
        }
        match self.facts.tickets.get(&place).map(|ticket| ticket.phase) {
            Some(Phase::Due(_) | Phase::Line(_)) => {}
            _ => self.stand(place, now),
        }
        self.serve(now);
        self.answer_ticket(place, now)
    }

    /// The next ask with an id takes the place over, with the patience it brings.
    fn take_over(&mut self, place: Place, session: u64, reserve: &Reserve, now: Instant) {
        let Some(ticket) = self.facts.tickets.get(&place) else { return };
        let anew = reserve.ticket.is_none();
        if ticket.session == Some(session) && !anew {
            return;
        }
        let mut ticket = ticket.clone();
        self.index.remove_ticket(place, &ticket);
        ticket.session = Some(session);
        if anew {
            ticket.deadline = ticket.deadline.max(now + reserve.patience.min(bounds::SPAN));
        }
        self.index.add_ticket(place, &ticket);
        self.facts.tickets.insert(place, ticket);
    }

    /// Due: it becomes a lease. Else: why not, and until when.
    fn answer_ticket(&mut self, place: Place, now: Instant) -> Decision {
        let due = |ticket: &Ticket| matches!(ticket.phase, Phase::Due(_));
        if !self.facts.tickets.get(&place).is_some_and(due) || self.is_out_of_leases() {
            return self.look(place, None, now);
        }
        self.step_out(place);
        let Some(ticket) = self.facts.tickets.remove(&place) else {
            return Decision::Refuse(queue_full());
        };
        self.index.remove_ticket(place, &ticket);
        self.news.wake.retain(|woken| *woken != ticket.key);
        let agent = self.facts.agents[usize::from(ticket.agent)].name.clone();
        let waited = now.since(ticket.since);
        self.news.notices.push(Notice::Waited { ticket: ticket.key, agent, waited });
        let session = ticket.session.unwrap_or(ticket.key.session);
        let holder = Holder::of(ticket.ttl, session, now);
        let grant = self.admit(ticket.key, ticket.agent, place.tier, holder, ticket.call, now);
        Decision::Admit(grant)
    }

    fn is_out_of_leases(&self) -> bool {
        self.facts.leases.len() >= bounds::LEASES
    }

    /// How a waiting ticket stands: what its claim would be answered. `holds` is what the claim
    /// says of how long it is held, if it does.
    fn look(&self, place: Place, holds: Option<Instant>, now: Instant) -> Decision {
        let Some(ticket) = self.facts.tickets.get(&place) else {
            return Decision::Refuse(queue_full());
        };
        let mut asker = self.asker_of(place, ticket);
        asker.holds = holds.unwrap_or(asker.holds);
        let due = matches!(ticket.phase, Phase::Due(_));
        let refusal = if self.is_out_of_leases() {
            Some(queue_full())
        } else if due {
            None
        } else {
            self.judge(&asker, now).map(|refusal| self.dated(refusal, &asker, now))
        };
        match refusal {
            None => {
                let (lease, expires_at) = (ticket.key, self.expires(ticket.ttl, now));
                Decision::Admit(Grant { lease, expires_at, settled: false, instead_of: None })
            }
            Some(refusal) => {
                let position = self.position(place);
                Decision::Wait(Hold { ticket: ticket.key, position, refusal })
            }
        }
    }

    fn expires(&self, ttl: Option<Span>, now: Instant) -> Instant {
        let alone = now + ttl.unwrap_or(bounds::SILENCE).min(bounds::SPAN);
        self.index.plan.longest_lease.map_or(alone, |longest| alone.min(now + longest))
    }
}

const fn queue_full() -> Refusal {
    Refusal { reason: Reason::QueueFull, limit: None, short_by: 0, until: None }
}

fn held_until(reserve: &Reserve, now: Instant) -> Instant {
    reserve.hold.map_or(Instant(0), |hold| now + hold.min(bounds::SPAN))
}
