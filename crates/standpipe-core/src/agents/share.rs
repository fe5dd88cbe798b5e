//! Read-only views for people: what an agent uses of each limit, and what floors keep from a call.
//!
//! Nothing here decides. The figures come from the views that floors and caps are judged by.

use alloc::vec::Vec;

use crate::config::LimitId;
use crate::config::compiled::{AgentUsage, Constraint, ConstraintKind, UsageOf};
use crate::event::Reserve;
use crate::id::{AgentId, ConstraintId};
use crate::name::AgentName;
use crate::state::State;
use crate::time::Instant;

/// An agent's use of one limit, with its floor and its cap there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentShare {
    /// The limit. A cap with a period of its own is listed as a window of that period.
    pub limit: LimitId,
    /// What the agent used in the period, with what its calls in flight hold.
    pub used: u64,
    /// What is kept for the agent, in units.
    pub floor: Option<u64>,
    /// The most that the agent may use, in units.
    pub cap: Option<u64>,
}

/// Units of a limit that a floor keeps from a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFloor {
    /// The limit.
    pub limit: LimitId,
    /// The owner of the floor.
    pub agent: AgentName,
    /// The units that are kept now.
    pub units: u64,
}

impl State {
    /// Returns what an agent uses of each limit. Rates are left out for an agent whose use is not
    /// counted, see [`crate::bounds::AGENT_HISTORIES`].
    #[must_use]
    pub fn agent_shares(&self, agent: AgentId, now: Instant) -> Vec<AgentShare> {
        let now = now.max(self.facts.clock);
        let Some(record) = self.facts.agents.row(agent) else { return Vec::new() };
        let is_counted = !record.units.is_empty();
        let usages = self.usages_of(self.index.agent_loads[agent].rule);
        let limits = self.index.compiled.constraints.rows();
        let limits = limits.filter(|(_, constraint)| match constraint.kind {
            ConstraintKind::Rate => is_counted,
            ConstraintKind::Slots => true,
            ConstraintKind::Gate => false,
        });
        let of_limits = limits.map(|(at, constraint)| {
            let declared = usages.iter().find(|usage| usage.is_of_constraint(at));
            let used = match declared {
                Some(usage) => self.agent_usage(Some(agent), usage).taken_at(now),
                None => self.agent_usage(Some(agent), &undeclared(at, constraint)).taken_at(now),
            };
            share(constraint.id.clone(), used, declared)
        });
        let own = usages.iter().filter(|usage| matches!(usage.measures, UsageOf::Unit(_)));
        let of_caps = own.filter_map(|usage| {
            let used = self.agent_usage(Some(agent), usage).taken_at(now);
            Some(share(self.limit_of(usage)?, used, Some(usage)))
        });
        of_limits.chain(of_caps).collect()
    }

    /// Returns what floors of other agents keep from a new call, or from the ticket it names.
    #[must_use]
    pub fn floors_kept_from(&self, reserve: &Reserve, now: Instant) -> Vec<KeptFloor> {
        let now = now.max(self.facts.clock);
        let cost = self.completed_cost(reserve);
        let ticket = reserve
            .ticket
            .and_then(|key| self.facts.tickets.iter().find(|(_, ticket)| ticket.key == key));
        let candidate = match ticket {
            Some((queue_key, ticket)) => self.candidate_of(*queue_key, ticket),
            None => self.newcomer(reserve, &cost, now),
        };
        let limits = self.index.compiled.constraints.rows();
        let needed = limits.filter(|(_, constraint)| constraint.need(candidate.cost) > 0);
        let kept = needed.flat_map(|(at, constraint)| {
            let each = self.kept_from_each(&candidate, at, now, false);
            let each = each.filter(|(_, units)| *units > 0);
            each.map(|(owner, units)| KeptFloor {
                limit: constraint.id.clone(),
                agent: self.facts.agents[owner].name.clone(),
                units,
            })
        });
        kept.collect()
    }
}

/// The use of a limit by an agent that has neither a floor nor a cap on it.
fn undeclared(at: ConstraintId, constraint: &Constraint) -> AgentUsage {
    let mut spec = constraint.spec.clone();
    // The use of a bucket is counted in a window of its period.
    spec.refill = 0;
    AgentUsage {
        measures: UsageOf::Constraint(at),
        unit_index: constraint.unit,
        spec,
        floor: 0,
        owned: false,
        capped: false,
    }
}

fn share(limit: LimitId, used: u64, declared: Option<&AgentUsage>) -> AgentShare {
    AgentShare {
        limit,
        used,
        floor: declared.filter(|usage| usage.owned).map(|usage| usage.floor),
        cap: declared.filter(|usage| usage.capped).map(|usage| usage.spec.effective),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AgentRule, Limit, LimitSelector, PoolConfig, Portion, Rule, Share};
    use crate::event::{Action, Configure, Event, Key, Source};
    use crate::time::Span;
    use crate::unit::{Amounts, Unit};
    use alloc::boxed::Box;
    use alloc::vec;

    fn agent(name: &str) -> AgentName {
        AgentName::new(name).unwrap()
    }

    fn call(name: &str, units: u64) -> Reserve {
        Reserve::new(agent(name), Amounts::cost([(Unit::Tokens, units)]).unwrap())
    }

    /// 100 tokens in 10 s and three slots; `release` keeps a quarter, `crawler` may use a fifth.
    fn state() -> State {
        let period = Span::secs(10);
        let rate = Limit::new(Rule::Window { unit: Unit::Tokens, amount: 100, period });
        let mut config = PoolConfig::new(vec![rate, Limit::new(Rule::Parallel { amount: 3 })]);
        config.margin = crate::config::Margin::Fixed(0);
        let tokens = |share: u16| {
            vec![Share { of: LimitSelector::Unit(Unit::Tokens), portion: Portion::PerMille(share) }]
        };
        let rule = |name: &str, floors: Vec<Share>, caps: Vec<Share>| AgentRule {
            name: agent(name),
            priority: None,
            floors,
            caps,
            weight: 1,
        };
        config.agents =
            vec![rule("release", tokens(250), vec![]), rule("crawler", vec![], tokens(200))];
        let configure = Configure { source: Source::Code, config };
        let actions = [
            Action::Configure(Box::new(configure)),
            Action::from(call("release", 5)),
            Action::from(call("blog", 40)),
            Action::from(call("crawler", 3)),
        ];
        let mut state = State::new();
        for (number, action) in (1..).zip(actions) {
            let _ = state.apply(&Event { key: Key { session: 7, number }, action }, Instant(0));
        }
        state
    }

    #[test]
    fn each_agent_has_its_use_floor_and_cap() {
        let state = state();
        let shares = |name: &str, at: u64| {
            let found = state.facts().agents.rows().find(|(_, one)| one.name == agent(name));
            let shares = state.agent_shares(found.unwrap().0, Instant(at));
            shares.iter().map(|own| (own.used, own.floor, own.cap)).collect::<Vec<_>>()
        };
        assert_eq!(shares("blog", 1), [(40, None, None), (1, None, None)]);
        assert_eq!(shares("release", 1), [(5, Some(25), None), (1, None, None)]);
        assert_eq!(shares("crawler", 1), [(3, None, Some(20)), (1, None, None)]);
        assert_eq!(shares("blog", 10_000_000)[0], (0, None, None), "the period is over");
        assert!(state.agent_shares(AgentId(9), Instant(1)).is_empty());
    }

    #[test]
    fn floors_of_others_are_named_with_what_they_keep() {
        let kept = |name: &str| state().floors_kept_from(&call(name, 1), Instant(1));
        let [floor] = &kept("blog")[..] else { panic!("one floor") };
        assert_eq!((floor.agent.as_str(), floor.units), ("release", 20));
        assert!(kept("release").is_empty(), "its own floor keeps nothing from it");
    }
}
