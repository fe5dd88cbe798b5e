//! Handles a reserve: it repeats an earlier one, claims a ticket, or is a newcomer; then it is
//! admitted, queued or refused.

use crate::bounds;
use crate::config::Priority;
use crate::event::{Key, Reserve};
use crate::facts::IdRecord;
use crate::id::{AgentId, ConstraintSet};
use crate::lease::LeaseOwner;
use crate::lease::admission::Candidate;
use crate::lease::call::{Call, CallId};
use crate::outcome::{Decision, Grant, Notice, Queued, Reason, Refusal};
use crate::queue::fair::FairPlace;
use crate::queue::ticket::{Phase, QueueKey, Ticket};
use crate::rules::Effect;
use crate::state::{Found, State};
use crate::time::{Instant, Span};
use crate::unit::Amounts;

/// What a reserve comes to, before anything changes.
enum Verdict<'a> {
    /// The same id was admitted before: answer with that call.
    Repeat(Grant),
    /// It claims the ticket at this key.
    Claim(QueueKey),
    /// Admit it. In shadow mode, the refusal it would have got.
    Admit(Candidate<'a>, Option<Refusal>),
    /// Queue it.
    Queue(Candidate<'a>, Refusal),
    /// Refuse it.
    Refuse(Candidate<'a>, Refusal),
}

impl State {
    /// Returns the answer to a reserve without side effects. No session counts as its sender.
    pub(crate) fn decide(&self, reserve: &Reserve, now: Instant) -> Decision {
        let cost = &*self.completed_cost(reserve);
        match self.verdict(None, reserve, cost, now) {
            Verdict::Repeat(grant) => Decision::Admit(grant),
            Verdict::Claim(queue_key) => {
                let holds = reserve.hold.map(|_| hold_ends(reserve, now));
                self.ticket_decision(queue_key, holds, now)
            }
            Verdict::Admit(candidate, instead_of) => {
                let instead_of =
                    instead_of.map(|refusal| self.with_until(refusal, &candidate, now));
                let expires_at = self.expires(reserve.ttl, now);
                let lease = Key::default();
                Decision::Admit(Grant { lease, expires_at, settled: false, instead_of })
            }
            Verdict::Queue(candidate, refusal) => {
                let candidate = self.as_queued(&candidate);
                let position = self.position(candidate.queue_key);
                let refusal = self.with_until(refusal, &candidate, now);
                Decision::Wait(Queued { ticket: Key::default(), position, refusal })
            }
            Verdict::Refuse(candidate, refusal) => {
                Decision::Refuse(self.with_until(refusal, &candidate, now))
            }
        }
    }

    pub(crate) fn reserve(&mut self, key: Key, reserve: &Reserve, now: Instant) -> Decision {
        if self.find(key) != Found::Absent {
            // Only a recovered event of another number can have left something with this key.
            return Decision::Refuse(queue_full());
        }
        let cost = self.completed_cost(reserve);
        match self.verdict(Some(key.session), reserve, &cost, now) {
            Verdict::Repeat(grant) => Decision::Admit(grant),
            Verdict::Claim(queue_key) => self.claim(queue_key, key.session, reserve, now),
            Verdict::Admit(candidate, instead_of) => {
                let instead_of =
                    instead_of.map(|refusal| self.with_until(refusal, &candidate, now));
                let agent = self.agent_of(&candidate, reserve, now);
                let owner = LeaseOwner::of(reserve.ttl, key.session, now);
                self.look_ahead(&candidate, now);
                self.draw_retry(reserve, now);
                let (tier, place) = (candidate.tier(), Self::place_of(&candidate));
                let call = Call::of(reserve, cost.into_owned());
                let grant = self.admit(key, agent, (tier, place), owner, call, now);
                Decision::Admit(Grant { instead_of, ..grant })
            }
            Verdict::Queue(candidate, _) => {
                self.look_ahead(&candidate, now);
                self.draw_retry(reserve, now);
                let agent = self.agent_of(&candidate, reserve, now);
                let (tier, place) = (candidate.tier(), Self::place_of(&candidate));
                self.queue(key, agent, (tier, place), (reserve, cost.into_owned()), now)
            }
            Verdict::Refuse(candidate, refusal) => {
                // Record first: the instant of an agent that is denied from now on includes the end
                // of that.
                let candidate = match self.record_refusal(reserve, &cost, now) {
                    true => self.newcomer(reserve, &cost, now),
                    false => candidate,
                };
                Decision::Refuse(self.with_until(refusal, &candidate, now))
            }
        }
    }

    /// The record of a candidate's agent. A new agent gets one.
    fn agent_of(&mut self, candidate: &Candidate<'_>, reserve: &Reserve, now: Instant) -> AgentId {
        candidate.agent.unwrap_or_else(|| self.agent_for(&reserve.agent, now))
    }

    fn verdict<'a>(
        &self,
        session: Option<u64>,
        reserve: &Reserve,
        cost: &'a Amounts,
        now: Instant,
    ) -> Verdict<'a> {
        let by_id = self.known(CallId::of(reserve).as_ref(), now);
        let by_ticket = reserve.ticket.map(|first| IdRecord { first, ended: None });
        for known in by_id.into_iter().chain(by_ticket) {
            if let Some(grant) = self.repeat(known) {
                return Verdict::Repeat(grant);
            }
            if let Some(queue_key) = self.index.queue_key_of.get(&known.first) {
                return Verdict::Claim(*queue_key);
            }
        }
        let candidate = self.newcomer(reserve, cost, now);
        let full = self.is_full(session) || !self.has_record_for(&reserve.agent, now);
        match self.admission_refusal(&candidate, now) {
            None if full => Verdict::Refuse(candidate, queue_full()),
            None => Verdict::Admit(candidate, None),
            Some(refusal) if self.is_shadow() && !full => Verdict::Admit(candidate, Some(refusal)),
            Some(refusal) if !self.waits(&candidate, reserve, &refusal, now) => {
                Verdict::Refuse(candidate, refusal)
            }
            Some(_) if full || self.facts.tickets.len() >= bounds::TICKETS => {
                Verdict::Refuse(candidate, queue_full())
            }
            Some(refusal) => Verdict::Queue(candidate, refusal),
        }
    }

    /// A reserve without a ticket, with its completed cost.
    pub(crate) fn newcomer<'a>(
        &self,
        reserve: &Reserve,
        cost: &'a Amounts,
        now: Instant,
    ) -> Candidate<'a> {
        let agent = self.record_of(&reserve.agent, now);
        let rule = match agent {
            Some(agent) => self.index.agent_loads[agent].rule,
            None => self.rule_of(&reserve.agent),
        };
        let (tier, promoted) = self.tier_served(self.tier_asked(reserve, rule), agent, now);
        let place = self.fair_place(tier, agent, rule, cost);
        let new = QueueKey { tier, tag: place.tag, arrival: u64::MAX };
        let queue_key = promoted.map_or(new, |known| known.queue_key());
        let start = place.start.min(queue_key.tag);
        let returns = self.facts.returning.newcomers[tier as usize];
        let holds = hold_ends(reserve, now);
        let is_retry = reserve.retry_of.is_some();
        let since = None;
        let passes = true;
        Candidate {
            agent,
            rule,
            cost,
            queue_key,
            passes,
            returns,
            holds,
            is_retry,
            since,
            start,
            ignores_gate: false,
        }
    }

    /// The candidate with the ticket it would get.
    fn as_queued<'a>(&self, candidate: &Candidate<'a>) -> Candidate<'a> {
        // A retry is drawn from the budget when the call is queued.
        let queued = Candidate { is_retry: false, ..*candidate };
        if queued.queue_key.arrival != u64::MAX {
            return queued;
        }
        let arrival = self.facts.arrivals.saturating_add(1);
        Candidate { queue_key: QueueKey { arrival, ..candidate.queue_key }, ..queued }
    }

    /// Whether a refused call waits. It waits for limits, because units can return; a fixed instant
    /// beyond its deadline refuses it at once.
    fn waits(
        &self,
        candidate: &Candidate<'_>,
        reserve: &Reserve,
        no: &Refusal,
        now: Instant,
    ) -> bool {
        let deadline = now + reserve.patience.min(bounds::SPAN);
        let is_final = Effect::of(no.reason) == Some(Effect::Refuse);
        let waits = !is_final && deadline > now;
        waits && self.held_until(&self.as_queued(candidate), now) <= deadline
    }

    pub(crate) fn is_shadow(&self) -> bool {
        !self.index.compiled.enforce && !self.index.compiled.constraints.is_empty()
    }

    /// Whether there is no room for another lease, or for another session with something in flight.
    fn is_full(&self, session: Option<u64>) -> bool {
        let new =
            session.is_none_or(|session| !self.index.in_flight_by_session.contains_key(&session));
        let sessions_full = self.index.in_flight_by_session.len() >= bounds::SESSIONS && new;
        self.facts.leases.len() >= bounds::LEASES || sessions_full
    }

    /// Creates a ticket for a call that cannot be made now.
    fn queue(
        &mut self,
        key: Key,
        agent: AgentId,
        (tier, place): (Priority, FairPlace),
        (reserve, cost): (&Reserve, Amounts),
        now: Instant,
    ) -> Decision {
        self.record_ask(agent, &cost);
        let asked = self.tier_asked(reserve, self.index.agent_loads[agent].rule);
        let queue_key = if asked == tier {
            self.facts.arrivals = self.facts.arrivals.saturating_add(1);
            QueueKey { tier, tag: place.tag, arrival: self.facts.arrivals }
        } else {
            self.promote_to_standard(agent, Some(key), place.tag)
        };
        let ticket = Ticket {
            key,
            session: Some(key.session),
            agent,
            call: Call::of(reserve, cost),
            start: place.start,
            since: now,
            deadline: now + reserve.patience.min(bounds::SPAN),
            phase: Phase::Lapsed,
            earmarked: ConstraintSet::default(),
            returns: self.facts.returning.newcomers[tier as usize],
            holds: hold_ends(reserve, now),
            ttl: reserve.ttl,
        };
        if ticket.returns > now {
            self.space_newcomers(tier, ticket.returns);
        }
        self.insert_ticket(queue_key, ticket);
        self.record_id(CallId::of(reserve).as_ref(), key);
        if tier == Priority::Background {
            self.note_denied(agent, true, now);
        }
        self.facts.used = now;
        self.enqueue(queue_key, now);
        self.serve(now);
        let answer = self.answer_ticket(queue_key, now);
        self.lower_tags(tier);
        answer
    }

    /// Handles a waiter that asks again with its ticket or id.
    ///
    /// A ticket in a line stays in it until room comes, even if another limit now frees later: the
    /// tickets behind it were given a forecast of this line, and a large call that changed lines
    /// with every look would never be first in any.
    fn claim(
        &mut self,
        queue_key: QueueKey,
        session: u64,
        reserve: &Reserve,
        now: Instant,
    ) -> Decision {
        self.take_over(queue_key, session, reserve, now);
        if let (Some(ticket), Some(_)) = (self.facts.tickets.get_mut(&queue_key), reserve.hold) {
            ticket.holds = hold_ends(reserve, now);
        }
        match self.facts.tickets.get(&queue_key).map(|ticket| ticket.phase) {
            Some(Phase::Due(_) | Phase::Line(_)) => {}
            _ => self.enqueue(queue_key, now),
        }
        self.serve(now);
        self.answer_ticket(queue_key, now)
    }

    /// A reserve with the id of a waiting ticket takes the ticket over, with its own timeout.
    fn take_over(&mut self, queue_key: QueueKey, session: u64, reserve: &Reserve, now: Instant) {
        let Some(ticket) = self.facts.tickets.get(&queue_key) else { return };
        let anew = reserve.ticket.is_none();
        if ticket.session == Some(session) && !anew {
            return;
        }
        self.update_ticket(queue_key, |ticket| {
            ticket.session = Some(session);
            if anew {
                ticket.deadline = ticket.deadline.max(now + reserve.patience.min(bounds::SPAN));
            }
        });
    }

    /// Turns a due ticket into a lease; otherwise returns why it waits and until when.
    fn answer_ticket(&mut self, queue_key: QueueKey, now: Instant) -> Decision {
        let instead_of = match self.ticket_decision(queue_key, None, now) {
            Decision::Admit(grant) => grant.instead_of,
            waits => return waits,
        };
        self.dequeue(queue_key);
        let Some(ticket) = self.remove_ticket(queue_key) else {
            return Decision::Refuse(queue_full());
        };
        self.effects.wake.retain(|woken| *woken != ticket.key);
        let agent = self.facts.agents[ticket.agent].name.clone();
        let waited = now.since(ticket.since);
        self.effects.notices.push(Notice::Waited { ticket: ticket.key, agent, waited });
        let session = ticket.session.unwrap_or(ticket.key.session);
        let owner = LeaseOwner::of(ticket.ttl, session, now);
        let place = FairPlace { start: ticket.start, tag: queue_key.tag };
        let rank = (queue_key.tier, place);
        let grant = self.admit(ticket.key, ticket.agent, rank, owner, ticket.call, now);
        Decision::Admit(Grant { instead_of, ..grant })
    }

    fn is_out_of_leases(&self) -> bool {
        self.facts.leases.len() >= bounds::LEASES
    }

    /// What the claim of a waiting ticket would be answered. `holds` overrides its workflow hold.
    fn ticket_decision(
        &self,
        queue_key: QueueKey,
        holds: Option<Instant>,
        now: Instant,
    ) -> Decision {
        let Some(ticket) = self.facts.tickets.get(&queue_key) else {
            return Decision::Refuse(queue_full());
        };
        let mut candidate = self.candidate_of(queue_key, ticket);
        candidate.holds = holds.unwrap_or(candidate.holds);
        let due = matches!(ticket.phase, Phase::Due(_));
        let full = self.is_out_of_leases().then(queue_full);
        let no = || {
            self.admission_refusal(&candidate, now)
                .map(|refusal| self.with_until(refusal, &candidate, now))
        };
        let refusal = full.or_else(|| if due { None } else { no() });
        let admitted = |instead_of| {
            let (lease, expires_at) = (ticket.key, self.expires(ticket.ttl, now));
            Decision::Admit(Grant { lease, expires_at, settled: false, instead_of })
        };
        match refusal {
            None => admitted(None),
            Some(no) if self.is_shadow() && no.reason != Reason::QueueFull => admitted(Some(no)),
            Some(refusal) => {
                let position = self.position(queue_key);
                Decision::Wait(Queued { ticket: ticket.key, position, refusal })
            }
        }
    }

    fn expires(&self, ttl: Option<Span>, now: Instant) -> Instant {
        let alone = ttl.map_or(Instant::NEVER, |ttl| now + ttl.min(bounds::SPAN));
        self.index.compiled.longest_lease.map_or(alone, |longest| alone.min(now + longest))
    }
}

const fn queue_full() -> Refusal {
    Refusal::new(Reason::QueueFull, None, 0)
}

fn hold_ends(reserve: &Reserve, now: Instant) -> Instant {
    reserve.hold.map_or(Instant(0), |hold| now + hold.min(bounds::SPAN))
}
