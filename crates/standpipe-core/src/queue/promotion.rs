//! Promotion: prevents starvation of background agents.
//!
//! A background agent that keeps requesting for five minutes without an admission is served once as
//! standard. Pauses do not count, because nobody is admitted then: denials are measured on a clock
//! that stops during pauses.

use crate::agents::agent::{Agent, Denied, Promoted};
use crate::bounds;
use crate::config::Priority;
use crate::event::{Key, Reserve};
use crate::id::{AgentId, RuleId};
use crate::lease::admission::Candidate;
use crate::name::AgentName;
use crate::outcome::Notice;
use crate::queue::fair::FairPlace;
use crate::queue::ticket::QueueKey;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::Amounts;

/// The time without an admission after which an agent is promoted.
const PROMOTE_AFTER: Span = Span::secs(300);
/// The time without a request after which a denial is over: the agent gave up.
const GIVEN_UP: Span = Span::secs(600);

impl Promoted {
    /// Returns its place in the queue.
    pub(crate) const fn queue_key(self) -> QueueKey {
        QueueKey { tier: Priority::Standard, tag: self.tag, arrival: self.arrival }
    }
}

impl State {
    /// Converts an instant of the store's clock to the clock that stops during pauses.
    fn without_pauses(&self, now: Instant) -> Instant {
        let paused =
            self.facts.pause.and(self.facts.throttling.pause_began).map(|began| now.since(began));
        now - self.facts.paused_total - paused.unwrap_or(Span::ZERO)
    }

    /// Converts back to the store's clock, if a running pause ends as it is known now.
    fn with_pauses(&self, at: Instant) -> Instant {
        let pause = self.facts.pause.zip(self.facts.throttling.pause_began);
        let paused = pause.map_or(Span::ZERO, |(end, began)| end.since(began));
        at + self.facts.paused_total + paused
    }

    /// Returns the time for which a background agent has been denied, without pauses.
    #[must_use]
    pub fn denied_for(&self, agent: &AgentName, now: Instant) -> Option<Span> {
        let now = now.max(self.facts.clock);
        let agent = *self.index.agent_of.get(agent)?;
        let denied = self.facts.agents[agent].denied?;
        self.keeps_requesting(agent, denied, now)
            .then(|| self.without_pauses(now).since(denied.since))
    }

    /// Whether a denied agent has a ticket or requested recently.
    fn keeps_requesting(&self, agent: AgentId, denied: Denied, now: Instant) -> bool {
        let waits = self.index.agent_loads[agent].tickets > 0;
        waits || now.since(denied.last) < GIVEN_UP
    }

    /// Adds a pause that is over to the sum of pauses.
    pub(crate) fn count_pause(&mut self, end: Instant) {
        if let Some(began) =
            self.facts.throttling.pause_began.filter(|_| self.index.compiled.promotes)
        {
            self.facts.paused_total = self.facts.paused_total + end.since(began);
        }
    }

    /// The tier of a reserve: its own priority, else the agent's, else the default.
    pub(crate) fn tier_asked(&self, reserve: &Reserve, rule: Option<RuleId>) -> Priority {
        let own = rule.map(|rule| self.index.compiled.agents[rule].tier);
        reserve.priority.or(own).unwrap_or_default()
    }

    /// The tier in which a new reserve is served, and the promotion whose place it takes.
    pub(crate) fn tier_served(
        &self,
        asked: Priority,
        agent: Option<AgentId>,
        now: Instant,
    ) -> (Priority, Option<Promoted>) {
        let promoted = agent.filter(|_| asked == Priority::Background);
        let promoted =
            promoted.filter(|agent| self.promotion_at(*agent, now).is_some_and(|at| at <= now));
        let Some(agent) = promoted else { return (asked, None) };
        (Priority::Standard, self.facts.agents[agent].promoted)
    }

    /// The instant at which a denied agent is promoted; `None` while one of its tickets is.
    fn promotion_at(&self, agent: AgentId, now: Instant) -> Option<Instant> {
        let record = &self.facts.agents[agent];
        let has_ticket = record.promoted.is_some_and(|promoted| promoted.ticket.is_some());
        let denied = record.denied.filter(|_| !has_ticket)?;
        let requesting = self.keeps_requesting(agent, denied, now);
        requesting.then(|| self.with_pauses(denied.since + PROMOTE_AFTER))
    }

    /// The instant from which a background candidate is served as standard.
    pub(crate) fn promoted_from(&self, candidate: &Candidate<'_>, now: Instant) -> Option<Instant> {
        let agent = candidate.agent.filter(|_| candidate.tier() == Priority::Background)?;
        let record = &self.facts.agents[agent];
        // A lower bound: an earlier ticket of the agent that is promoted counts as served now.
        let next = record.promoted.and(record.denied).map(|_| now + PROMOTE_AFTER);
        self.promotion_at(agent, now).or(next).map(|at| at.max(now))
    }

    /// Records that a background reserve was not admitted. An agent that had given up starts a new
    /// denial. `queued` is set if the reserve got a ticket, which does not count as earlier
    /// waiting.
    pub(crate) fn note_denied(&mut self, agent: AgentId, queued: bool, now: Instant) {
        if !self.index.compiled.promotes {
            return;
        }
        let since = self.without_pauses(now);
        let waited = self.index.agent_loads[agent].tickets > u32::from(queued);
        let before = self.facts.agents[agent].denied;
        let before = before.filter(|denied| waited || now.since(denied.last) < GIVEN_UP);
        let since = before.map_or(since, |denied| denied.since);
        self.update_denial(agent, |record| {
            // A promotion belongs to the denial that earned it.
            if before.is_none() {
                record.promoted = None;
            }
            record.denied = Some(Denied { since, last: now });
        });
    }

    /// Ends the denial of an agent that was admitted. If it still has background tickets, a new
    /// denial starts now.
    pub(crate) fn no_longer_denied(&mut self, agent: AgentId, now: Instant) {
        let record = &self.facts.agents[agent];
        if record.denied.is_none() && record.promoted.is_none() {
            return;
        }
        let waits = self.index.agent_loads[agent].background > 0;
        let since = self.without_pauses(now);
        self.update_denial(agent, |record| {
            record.denied = waits.then_some(Denied { since, last: now });
            record.promoted = None;
        });
    }

    /// Records that a ticket of a denied agent ended without a lease: the agent requested until
    /// now.
    pub(crate) fn denied_ticket_ended(&mut self, agent: AgentId, ticket: Key, now: Instant) {
        if self.facts.agents[agent].denied.is_none() {
            return;
        }
        self.update_denial(agent, |record| {
            if let Some(denied) = &mut record.denied {
                denied.last = now;
            }
            if let Some(promoted) = record.promoted.as_mut()
                && promoted.ticket == Some(ticket)
            {
                // The promotion outlives its ticket: the next reserve takes the same arrival.
                promoted.ticket = None;
            }
        });
    }

    /// Records a refused background reserve. An agent whose promotion is due gets its arrival now,
    /// so that its next reserve is queued there.
    pub(crate) fn record_denial(&mut self, agent: AgentId, cost: &Amounts, now: Instant) {
        if self.promotion_at(agent, now).is_some_and(|at| at <= now) {
            let place = self.place_in_standard(agent, cost);
            let _ = self.promote_to_standard(agent, None, place.tag);
        }
        self.note_denied(agent, false, now);
    }

    /// Whether a refused background reserve changes the state: once per [`bounds::DENIAL_EVERY`],
    /// and when a promotion is due.
    pub(crate) fn denial_counts(&self, reserve: &Reserve, now: Instant) -> bool {
        let tier = || self.tier_asked(reserve, self.rule_of(&reserve.agent));
        if !self.index.compiled.promotes || tier() != Priority::Background {
            return false;
        }
        // The first refusal of a new agent starts its denial.
        let Some(agent) = self.index.agent_of.get(&reserve.agent) else { return true };
        let record = &self.facts.agents[*agent];
        let promotion_due =
            record.promoted.is_none() && self.promotion_at(*agent, now).is_some_and(|at| at <= now);
        let record_due = |denied: Denied| now >= denied.last + bounds::DENIAL_EVERY;
        promotion_due || record.denied.is_none_or(record_due)
    }

    /// The next instant at which a waiting agent is promoted.
    pub(crate) fn promotion_next_event(&self) -> Option<Instant> {
        let (since, _) = self.index.denied.first()?;
        Some(self.with_pauses(*since + PROMOTE_AFTER))
    }

    /// Promotes every agent whose time has come, with its oldest background ticket.
    pub(crate) fn promote_all(&mut self, now: Instant) {
        while let Some((since, agent)) = self.index.denied.first().copied() {
            if self.with_pauses(since + PROMOTE_AFTER) > now {
                return;
            }
            // Removing the agent first guarantees progress, even if it has no ticket to promote.
            self.index.denied.pop_first();
            self.promote(agent, now);
        }
    }

    fn promote(&mut self, agent: AgentId, now: Instant) {
        let Some(queue_key) = self.oldest_in_background(agent) else { return };
        // The queue key changes with the tier, so the ticket leaves every index and enters again.
        self.dequeue(queue_key);
        let Some(mut ticket) = self.remove_ticket(queue_key) else { return };
        let key = ticket.key;
        let place = self.place_in_standard(agent, &ticket.call.cost);
        let queue_key = self.promote_to_standard(agent, Some(key), place.tag);
        ticket.start = place.start.min(queue_key.tag);
        self.insert_ticket(queue_key, ticket);
        self.effects.wake.push(key);
        self.enqueue(queue_key, now);
    }

    /// Promotes an agent and returns its queue key in standard. The key stays the same until the
    /// agent is admitted, so that repeated requests do not lose the position.
    pub(crate) fn promote_to_standard(
        &mut self,
        agent: AgentId,
        ticket: Option<Key>,
        tag: u64,
    ) -> QueueKey {
        let record = &self.facts.agents[agent];
        let (arrival, tag) = match record.promoted {
            Some(promoted) => (promoted.arrival, promoted.tag),
            None => {
                self.facts.arrivals = self.facts.arrivals.saturating_add(1);
                let agent = record.name.clone();
                self.effects.notices.push(Notice::Promoted { agent });
                (self.facts.arrivals, tag)
            }
        };
        let promoted = Promoted { arrival, tag, ticket };
        self.update_denial(agent, |record| record.promoted = Some(promoted));
        promoted.queue_key()
    }

    /// The place that a promoted call gets in the virtual time of standard: as of now.
    fn place_in_standard(&self, agent: AgentId, cost: &Amounts) -> FairPlace {
        let rule = self.index.agent_loads[agent].rule;
        self.fair_place(Priority::Standard, Some(agent), rule, cost)
    }

    /// The oldest background ticket of an agent.
    fn oldest_in_background(&self, agent: AgentId) -> Option<QueueKey> {
        let (first, last) =
            (QueueKey::first_of(Priority::Background), QueueKey::last_of(Priority::Background));
        let mut its = self.facts.tickets.range(first..=last);
        its.find(|(_, ticket)| ticket.agent == agent).map(|(queue_key, _)| *queue_key)
    }

    /// Changes an agent's denial or promotion, and the index of pending promotions with it. Only
    /// agents that wait are in the index: others are promoted when they request again.
    fn update_denial(&mut self, agent: AgentId, change: impl FnOnce(&mut Agent)) {
        let record = &mut self.facts.agents[agent];
        if let Some(denied) = record.denied {
            self.index.denied.remove(&(denied.since, agent));
        }
        change(record);
        let waits = self.index.agent_loads[agent].background > 0;
        let has_ticket = record.promoted.is_some_and(|promoted| promoted.ticket.is_some());
        if let (Some(denied), true) = (record.denied, waits && !has_ticket) {
            self.index.denied.insert((denied.since, agent));
        }
    }
}
