//! Read-only views for people: the use of each limit, and every reason against a call.
//!
//! Nothing here decides; it asks the functions that do.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::agents::share::KeptFloor;
use crate::config::compiled::ConstraintKind;
use crate::config::{Limit, Priority};
use crate::event::Reserve;
use crate::id::{AgentId, ConstraintId};
use crate::lease::admission::Candidate;
use crate::outcome::{Reason, Refusal};
use crate::provider::learn::limits_in_force;
use crate::provider::reconcile::believed;
use crate::queue::ticket::QueueKey;
use crate::rules::breaker;
use crate::state::State;
use crate::time::Instant;
use crate::unit::Amounts;
use crate::usage::counter::Count;
use crate::usage::view::Counted;

/// How much of one limit is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitUsage {
    /// The limit as configured or learned.
    pub limit: Limit,
    /// What is usable of it, after outside use and margin.
    pub effective: u64,
    /// What is charged.
    pub used: u64,
    /// Units that calls in flight hold and that are not charged yet.
    pub held: u64,
    /// What is left of `effective`.
    pub left: u64,
    /// What others are believed to use of a window, also from before the ledger began to look.
    pub by_others: u64,
    /// When nothing of it is charged any more if only time passes; `None` if nothing is charged or
    /// if time alone frees nothing.
    pub clear_at: Option<Instant>,
    /// When its pace admits the next call; `None` if that is now.
    pub next_grant: Option<Instant>,
    /// What a bucket regains per period; `None` for other limits.
    pub refill: Option<u64>,
    /// What was charged in the last period. A bucket may pass more than it holds.
    pub last_period: u64,
    /// What was charged in the interval over which the breaker measures the burn rate.
    pub burnt: u64,
    /// The step of a ramp that applies now.
    pub ramp: Option<RampUsage>,
    /// What floors keep from a standard call of an agent without a floor.
    pub kept: Vec<KeptFloor>,
}

/// How much of the step of a ramp is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RampUsage {
    /// The units that the step admits.
    pub usable: u64,
    /// The units that were charged since it began.
    pub used: u64,
    /// When the step ends.
    pub step_ends: Instant,
    /// When the last step ends, and everything is usable again.
    pub ends: Instant,
}

/// How much of one limit one agent uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentLimitUsage {
    /// What is charged to the agent in the limit's period.
    pub used: u64,
    /// Units that its calls in flight hold and that are not charged yet.
    pub held: u64,
}

/// Everything that refuses a call at an instant, in the order of the admission rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdmissionSteps {
    /// The tier in which the call is judged.
    pub tier: Priority,
    /// Its cost, completed by estimates.
    pub cost: Amounts,
    /// The rules that refuse it, each with the instant from which it alone would admit; then limits
    /// for which an earlier ticket waits; then limits and gates without room.
    pub refusals: Vec<Refusal>,
}

impl State {
    /// Returns the ledger as it will be at an instant if only time passes.
    #[must_use]
    pub fn at(&self, now: Instant) -> Cow<'_, Self> {
        if self.next.is_none_or(|next| next > now) {
            return Cow::Borrowed(self);
        }
        let mut ahead = self.clone();
        ahead.advance(now);
        ahead.effects = crate::state::Effects::default();
        ahead.next = ahead.next_change(now);
        Cow::Owned(ahead)
    }

    /// Returns until when calls in flight are unknown because the store lost them.
    #[must_use]
    pub fn learning_until(&self) -> Option<Instant> {
        let constraints = self.index.compiled.constraints.ids();
        let until = constraints.filter_map(|at| self.usage(at).unknown_until()).max();
        until.filter(|until| *until > self.facts.clock)
    }

    /// Returns the use of each limit at an instant, in the configuration's order.
    #[must_use]
    pub fn figures(&self, now: Instant) -> Vec<LimitUsage> {
        let now = now.max(self.facts.clock);
        let Some(config) = &self.facts.config else { return Vec::new() };
        let mut limits = limits_in_force(config, &self.facts);
        // Show declared limits as declared; `effective` shows what is usable of them.
        limits[..config.limits.len()].clone_from_slice(&config.limits);
        let constraints = self.index.compiled.constraints.ids().zip(&limits);
        constraints.map(|(constraint, limit)| self.figures_of(constraint, limit, now)).collect()
    }

    /// Returns an agent's own use of each limit, in the order of [`State::figures`]. For a bucket
    /// that is the use in the last period. Rates are 0 for agents without a history of their own,
    /// see [`crate::Agent::units`].
    #[must_use]
    pub fn agent_figures(&self, agent: AgentId, now: Instant) -> Vec<AgentLimitUsage> {
        let now = now.max(self.facts.clock);
        let Some(config) = &self.facts.config else { return Vec::new() };
        let limits = limits_in_force(config, &self.facts).len();
        let constraints = self.index.compiled.constraints.ids().take(limits);
        let own = |constraint| {
            let usage = self.agent_limit_usage(agent, constraint);
            AgentLimitUsage { used: usage.charged_at(now), held: usage.held }
        };
        constraints.map(own).collect()
    }

    /// Evaluates every step of the admission rule for a call, also those behind a refusal. A
    /// reserve that names a ticket asks about the queued call.
    #[must_use]
    pub fn admission_steps(&self, reserve: &Reserve, now: Instant) -> AdmissionSteps {
        let now = now.max(self.facts.clock);
        let queue_key = reserve.ticket.and_then(|ticket| self.index.queue_key_of.get(&ticket));
        let queued = queue_key.and_then(|key| Some((*key, self.facts.tickets.get(key)?)));
        let cost = match queued {
            Some((_, ticket)) => Cow::Borrowed(&ticket.call.cost),
            None => self.completed_cost(reserve),
        };
        let candidate = match queued {
            Some((queue_key, ticket)) => self.candidate_of(queue_key, ticket),
            None => self.newcomer(reserve, &cost, now),
        };
        let (order, room): (Vec<_>, Vec<_>) = self
            .shortfalls(&candidate, now)
            .into_iter()
            .partition(|refusal| refusal.reason == Reason::Order);
        let refusals = self.rule_refusals(&candidate, now).chain(order).chain(room).collect();
        let tier = candidate.tier();
        AdmissionSteps { tier, cost: cost.into_owned(), refusals }
    }

    fn shortfalls(&self, candidate: &Candidate<'_>, now: Instant) -> Vec<Refusal> {
        let constraints = self.index.compiled.constraints.ids();
        let shortfalls = constraints.filter_map(|constraint| {
            let shortfall = self.shortfall(candidate, constraint, now)?;
            let fits = (shortfall.reason != Reason::Order)
                .then(|| self.constraint_fits(candidate, constraint, now));
            let until = fits.filter(|until| *until != Instant::NEVER);
            let exact = until.is_some() && shortfall.reason.has_exact_end();
            let limit = self.index.compiled.constraints[constraint].limit();
            let refusal = Refusal::new(shortfall.reason, limit, shortfall.short_by);
            let behind = self.behind(candidate, constraint, shortfall.reason);
            Some(Refusal { until, exact, behind, ..refusal })
        });
        let mut shortfalls: Vec<Refusal> = shortfalls.collect();
        // An earlier ticket also takes what is free, so show the lack of room as well.
        for (at, constraint) in self.index.compiled.constraints.rows() {
            let free = self.usage(at).free_at(now);
            let short_by = constraint.need(candidate.cost).saturating_sub(free);
            let limit = constraint.limit().filter(|_| constraint.kind != ConstraintKind::Gate);
            let named = |no: &Refusal| no.limit == limit && no.reason != Reason::Order;
            if short_by > 0 && limit.is_some() && !shortfalls.iter().any(named) {
                let until = Some(self.constraint_fits(candidate, at, now));
                let until = until.filter(|until| *until != Instant::NEVER);
                let refusal = Refusal::new(Reason::Limit, limit, short_by);
                shortfalls.push(Refusal { exact: until.is_some(), until, ..refusal });
            }
        }
        shortfalls
    }

    fn figures_of(&self, constraint: ConstraintId, limit: &Limit, now: Instant) -> LimitUsage {
        let usage = self.usage(constraint);
        let used = usage.charged_at(now);
        let rate = self.index.compiled.constraints[constraint].kind == ConstraintKind::Rate;
        let since = |length| if rate { usage.history.charged_since(now - length) } else { 0 };
        let cleared = (rate && used > 0).then(|| usage.charged_falls_to(0, now));
        LimitUsage {
            limit: limit.clone(),
            effective: usage.spec.effective,
            used,
            held: usage.held,
            left: usage.free_at(now),
            by_others: believed(&self.facts.external, &limit.id()),
            clear_at: cleared.filter(|at| *at != Instant::NEVER),
            next_grant: self.pace_opens(limit, now),
            refill: matches!(usage.counted, Counted::Bucket(_)).then_some(usage.spec.refill),
            last_period: since(usage.spec.period),
            burnt: since(breaker::HORIZON),
            ramp: self.ramp_usage(constraint, now),
            kept: self.kept_on(constraint, now),
        }
    }

    fn ramp_usage(&self, constraint: ConstraintId, now: Instant) -> Option<RampUsage> {
        let step = self.ramp_step(constraint, now).filter(|step| step.began <= now)?;
        let mut ends = step.ends;
        while let Some(next) = self.ramp_step(constraint, ends) {
            ends = next.ends;
        }
        let used = self.usage(constraint).history.charged_since(step.began);
        Some(RampUsage { usable: step.budget, used, step_ends: step.ends, ends })
    }

    /// What floors keep of a constraint from the smallest standard call of an agent without one.
    fn kept_on(&self, constraint: ConstraintId, now: Instant) -> Vec<KeptFloor> {
        let declared = &self.index.compiled.constraints[constraint];
        if !declared.floored {
            return Vec::new();
        }
        let queue_key = QueueKey { tier: Priority::Standard, tag: u64::MAX, arrival: u64::MAX };
        let cost = &Amounts::default();
        let candidate = Candidate {
            agent: None,
            rule: None,
            cost,
            queue_key,
            passes: true,
            returns: now,
            holds: now,
            is_retry: false,
            since: None,
            start: 0,
            ignores_gate: false,
        };
        let each = self.kept_from_each(&candidate, constraint, now, false);
        let each = each.filter(|(_, units)| *units > 0).map(|(owner, units)| KeptFloor {
            limit: declared.id.clone(),
            agent: self.facts.agents[owner].name.clone(),
            units,
        });
        each.collect()
    }

    fn pace_opens(&self, limit: &Limit, now: Instant) -> Option<Instant> {
        let id = limit.id();
        let constraints = self.index.compiled.constraints.iter().zip(&self.facts.counters);
        let mut gates = constraints.filter(|(constraint, _)| {
            constraint.kind == ConstraintKind::Gate && constraint.id == id
        });
        let (gate, counter) = gates.next()?;
        let Count::Pace { last: Some(last) } = counter.count else { return None };
        Some(last + gate.spec.period).filter(|opens| *opens > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{PoolConfig, Rule};
    use crate::event::{Action, Configure, Event, Key, Source};
    use crate::id::Id as _;
    use crate::name::AgentName;
    use crate::time::Span;
    use crate::unit::{Amounts, Unit};
    use alloc::boxed::Box;
    use alloc::vec;

    fn tokens(amount: u64) -> Reserve {
        let cost = Amounts::cost([(Unit::Tokens, amount)]).unwrap();
        Reserve::new(AgentName::new("blog").unwrap(), cost)
    }

    /// 100 tokens in 10 s with 1 s between grants, two calls in flight; 40 are charged.
    fn state() -> State {
        let period = Span::secs(10);
        let mut rate = Limit::new(Rule::Window { unit: Unit::Tokens, amount: 100, period });
        rate.pace = Some(Span::secs(1));
        let limits = vec![rate, Limit::new(Rule::Parallel { amount: 2 })];
        let configure = Configure { source: Source::Code, config: PoolConfig::new(limits) };
        let mut state = State::new();
        for (number, action) in
            (1..).zip([Action::Configure(Box::new(configure)), Action::from(tokens(40))])
        {
            let _ = state.apply(&Event { key: Key { session: 7, number }, action }, Instant(0));
        }
        state
    }

    #[test]
    fn an_agent_has_its_own_figures() {
        let mut state = state();
        let cost = Amounts::cost([(Unit::Tokens, 30)]).unwrap();
        let other = Reserve::new(AgentName::new("data").unwrap(), cost);
        let event = Event { key: Key { session: 8, number: 1 }, action: other.into() };
        let _ = state.apply(&event, Instant(2_000_000));
        let of = |agent, at| {
            let all = state.agent_figures(AgentId::of(agent), Instant(at));
            all.iter().map(|own| (own.used, own.held)).collect::<Vec<_>>()
        };
        assert_eq!(of(0, 2_000_000), [(40, 0), (0, 1)]);
        assert_eq!(of(1, 2_000_000), [(30, 0), (0, 1)]);
        // Each charge leaves the window after 10 s.
        assert_eq!(of(0, 10_000_000), [(0, 0), (0, 1)]);
        assert_eq!(of(1, 10_000_000), [(30, 0), (0, 1)]);
    }

    #[test]
    fn figures_are_those_of_the_moment() {
        let figures = state().figures(Instant(500_000));
        let rate = &figures[0];
        assert_eq!((rate.effective, rate.used, rate.held, rate.left), (100, 40, 0, 60));
        assert_eq!(rate.clear_at, Some(Instant(10_000_000)));
        assert_eq!(rate.next_grant, Some(Instant(1_000_000)));
        let slots = &figures[1];
        assert_eq!((slots.used, slots.held, slots.left, slots.clear_at), (0, 1, 1, None));
        let later = state().figures(Instant(10_000_000));
        assert_eq!((later[0].used, later[0].clear_at, later[0].next_grant), (0, None, None));
    }

    #[test]
    fn every_step_is_asked_and_dated() {
        let refusals = |tokens: u64| {
            let steps = state().admission_steps(&self::tokens(tokens), Instant(500_000));
            let each = steps.refusals.into_iter();
            each.map(|no| (no.reason, no.short_by, no.until)).collect::<Vec<_>>()
        };
        assert_eq!(refusals(101)[0], (Reason::Never, 1, None));
        let (rate, gate) = (Some(Instant(10_000_000)), Some(Instant(1_000_000)));
        assert_eq!(refusals(70), [(Reason::Limit, 10, rate), (Reason::Pace, 1, gate)]);
    }

    #[test]
    fn looking_ahead_changes_nothing() {
        let state = state();
        assert!(matches!(state.at(Instant(1)), Cow::Borrowed(_)));
        let ahead = state.at(Instant(500_000_000));
        assert_eq!(ahead.facts().leases.len(), 1, "no session ends by time");
        let ahead = state.at(Instant(3_600_000_000));
        assert!(ahead.facts().leases.is_empty(), "no lease is longer than that");
        assert_eq!(state.facts().leases.len(), 1);
    }
}
