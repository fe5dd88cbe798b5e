//! Nobody is starved for ever: a background agent that keeps asking without an admission for five
//! minutes is served as a standard one, once.
//!
//! Pauses do not count: then nobody is served. So the time is taken by a clock that stands still
//! while the pool pauses.

use crate::agent::{AgentId, Denied, Promoted};
use crate::bounds;
use crate::config::Priority;
use crate::event::{Key, Reserve};
use crate::judge::Asker;
use crate::name::AgentName;
use crate::outcome::Notice;
use crate::state::State;
use crate::ticket::Place;
use crate::time::{Instant, Span};

/// So long without an admission.
const PATIENCE: Span = Span::secs(300);
/// Who does not ask for so long has given up.
const GIVEN_UP: Span = Span::secs(600);

impl State {
    /// The time without the pauses.
    fn unpaused(&self, now: Instant) -> Instant {
        let paused = self.facts.pause.and(self.facts.trouble.began).map(|began| now.since(began));
        now - self.facts.outlook.paused - paused.unwrap_or(Span::ZERO)
    }

    /// When that clock will show this, if the pause ends as it is known now.
    fn paused_again(&self, at: Instant) -> Instant {
        let pause = self.facts.pause.zip(self.facts.trouble.began);
        let paused = pause.map_or(Span::ZERO, |(end, began)| end.since(began));
        at + self.facts.outlook.paused + paused
    }

    /// How long an agent that keeps asking in the background has been denied, pauses not counted.
    #[must_use]
    pub fn denied_for(&self, agent: &AgentName, now: Instant) -> Option<Span> {
        let now = now.max(self.facts.clock);
        let agent = *self.index.agent_of.get(agent)?;
        let denied = self.facts.agents[usize::from(agent)].denied?;
        self.keeps_asking(agent, denied, now).then(|| self.unpaused(now).since(denied.since))
    }

    fn keeps_asking(&self, agent: AgentId, denied: Denied, now: Instant) -> bool {
        let waits = self.index.loads[usize::from(agent)].tickets > 0;
        waits || now.since(denied.last) < GIVEN_UP
    }

    /// A pause is over.
    pub(crate) fn count_pause(&mut self, end: Instant) {
        if let Some(began) = self.facts.trouble.began.filter(|_| self.index.plan.promotes) {
            self.facts.outlook.paused = self.facts.outlook.paused + end.since(began);
        }
    }

    /// The tier a call says it is of.
    pub(crate) fn tier_asked(&self, reserve: &Reserve, rule: Option<u16>) -> Priority {
        let own = rule.map(|rule| self.index.plan.agents[usize::from(rule)].tier);
        reserve.priority.or(own).unwrap_or_default()
    }

    /// Where a newcomer stands: behind everybody of its tier; one that was denied for long, as of
    /// when it was promoted.
    pub(crate) fn place_served(
        &self,
        asked: Priority,
        agent: Option<AgentId>,
        now: Instant,
    ) -> Place {
        let lifted = agent.filter(|_| asked == Priority::Background);
        let lifted =
            lifted.filter(|agent| self.promotes_from(*agent, now).is_some_and(|at| at <= now));
        let Some(agent) = lifted else { return Place::last_of(asked) };
        let tier = Priority::Standard;
        let promoted = self.facts.agents[usize::from(agent)].promoted;
        promoted.map_or(Place::last_of(tier), |known| Place { tier, arrival: known.arrival })
    }

    /// When an agent that is denied is promoted; not while one of its tickets already is.
    fn promotes_from(&self, agent: AgentId, now: Instant) -> Option<Instant> {
        let record = &self.facts.agents[usize::from(agent)];
        let stands = record.promoted.is_some_and(|promoted| promoted.ticket.is_some());
        let denied = record.denied.filter(|_| !stands)?;
        let asks = self.keeps_asking(agent, denied, now);
        asks.then(|| self.paused_again(denied.since + PATIENCE))
    }

    /// When an asker is served as a standard one, though it is none.
    pub(crate) fn lifted_from(&self, asker: &Asker<'_>, now: Instant) -> Option<Instant> {
        let agent = asker.agent.filter(|_| asker.tier() == Priority::Background)?;
        self.promotes_from(agent, now).map(|at| at.max(now))
    }

    /// It asked in the background and was not admitted.
    pub(crate) fn note_denied(&mut self, agent: AgentId, now: Instant) {
        if !self.index.plan.promotes {
            return;
        }
        let since = self.unpaused(now);
        self.unwatch_denied(agent);
        let before = self.facts.agents[usize::from(agent)].denied;
        let before = before.filter(|denied| self.keeps_asking(agent, *denied, now));
        let since = before.map_or(since, |denied| denied.since);
        let record = &mut self.facts.agents[usize::from(agent)];
        if before.is_none() {
            record.promoted = None;
        }
        record.denied = Some(Denied { since, last: now });
        self.watch_denied(agent);
    }

    /// One admission ends it. What it has waiting begins anew.
    pub(crate) fn no_longer_denied(&mut self, agent: AgentId, now: Instant) {
        let record = &self.facts.agents[usize::from(agent)];
        if record.denied.is_none() && record.promoted.is_none() {
            return;
        }
        self.unwatch_denied(agent);
        let waits = self.index.loads[usize::from(agent)].background > 0;
        let since = self.unpaused(now);
        let record = &mut self.facts.agents[usize::from(agent)];
        record.denied = waits.then_some(Denied { since, last: now });
        record.promoted = None;
        self.watch_denied(agent);
    }

    /// A ticket of its ended without a lease: it asked until now.
    pub(crate) fn denied_ticket_ended(&mut self, agent: AgentId, ticket: Key, now: Instant) {
        if self.facts.agents[usize::from(agent)].denied.is_none() {
            return;
        }
        self.unwatch_denied(agent);
        let record = &mut self.facts.agents[usize::from(agent)];
        if let Some(denied) = &mut record.denied {
            denied.last = now;
        }
        if let Some(promoted) = record.promoted.as_mut()
            && promoted.ticket == Some(ticket)
        {
            promoted.ticket = None;
        }
        self.watch_denied(agent);
    }

    /// A refusal in the background is recorded. One that was denied for long has its place from now
    /// on.
    pub(crate) fn record_denial(&mut self, agent: AgentId, now: Instant) {
        if self.promotes_from(agent, now).is_some_and(|at| at <= now) {
            let _ = self.lift_up(agent, None);
        }
        self.note_denied(agent, now);
    }

    /// Whether a refusal in the background is worth a record: once a minute.
    pub(crate) fn denial_counts(&self, reserve: &Reserve, now: Instant) -> bool {
        let tier = || self.tier_asked(reserve, self.rule_of(&reserve.agent));
        if !self.index.plan.promotes || tier() != Priority::Background {
            return false;
        }
        let Some(agent) = self.index.agent_of.get(&reserve.agent) else { return true };
        let record = &self.facts.agents[usize::from(*agent)];
        let lifted = record.promoted.is_none()
            && self.promotes_from(*agent, now).is_some_and(|at| at <= now);
        let due = |denied: Denied| now >= denied.last + bounds::DENIAL_EVERY;
        lifted || record.denied.is_none_or(due)
    }

    /// The next instant at which somebody who waits is promoted.
    pub(crate) fn promotion_stirs(&self) -> Option<Instant> {
        let (since, _) = self.index.denied.first()?;
        Some(self.paused_again(*since + PATIENCE))
    }

    /// Whoever waited long enough stands in standard from now on, with its oldest ticket.
    pub(crate) fn promote_all(&mut self, now: Instant) {
        while let Some((since, agent)) = self.index.denied.first().copied() {
            if self.paused_again(since + PATIENCE) > now {
                return;
            }
            self.index.denied.pop_first();
            self.promote(agent, now);
        }
    }

    fn promote(&mut self, agent: AgentId, now: Instant) {
        let Some(place) = self.oldest_in_background(agent) else { return };
        self.step_out(place);
        let Some(ticket) = self.facts.tickets.remove(&place) else { return };
        self.index.remove_ticket(place, &ticket);
        let key = ticket.key;
        let place = self.lift_up(agent, Some(key));
        self.index.add_ticket(place, &ticket);
        self.facts.tickets.insert(place, ticket);
        self.news.wake.push(key);
        self.stand(place, now);
    }

    /// The place in standard of an agent that was denied for long: the same until it is admitted.
    pub(crate) fn lift_up(&mut self, agent: AgentId, ticket: Option<Key>) -> Place {
        self.unwatch_denied(agent);
        let record = &mut self.facts.agents[usize::from(agent)];
        let arrival = match record.promoted {
            Some(promoted) => promoted.arrival,
            None => {
                self.facts.arrivals = self.facts.arrivals.saturating_add(1);
                let agent = record.name.clone();
                self.news.notices.push(Notice::Promoted { agent });
                self.facts.arrivals
            }
        };
        record.promoted = Some(Promoted { arrival, ticket });
        Place { tier: Priority::Standard, arrival }
    }

    fn oldest_in_background(&self, agent: AgentId) -> Option<Place> {
        let (first, last) =
            (Place::first_of(Priority::Background), Place::last_of(Priority::Background));
        let mut its = self.facts.tickets.range(first..=last);
        its.find(|(_, ticket)| ticket.agent == agent).map(|(place, _)| *place)
    }

    fn watch_denied(&mut self, agent: AgentId) {
        let record = &self.facts.agents[usize::from(agent)];
        let waits = self.index.loads[usize::from(agent)].background > 0;
        let stands = record.promoted.is_some_and(|promoted| promoted.ticket.is_some());
        if let (Some(denied), true) = (record.denied, waits && !stands) {
            self.index.denied.insert((denied.since, agent));
        }
    }

    fn unwatch_denied(&mut self, agent: AgentId) {
        if let Some(denied) = self.facts.agents[usize::from(agent)].denied {
            self.index.denied.remove(&(denied.since, agent));
        }
    }
}
