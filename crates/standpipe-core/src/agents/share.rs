//! Read-only views for people: the floors and caps of an agent, and what floors keep from a call.
//!
//! Nothing here decides. The figures come from the views that floors and caps are judged by.

use alloc::vec::Vec;

use crate::config::LimitId;
use crate::event::Reserve;
use crate::name::AgentName;
use crate::state::State;
use crate::time::Instant;

/// An agent's floor and cap on one limit, in units, and its use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentShare {
    /// The limit. A cap with a period of its own is listed as a window of that period.
    pub limit: LimitId,
    /// What the agent used in the period, with what its calls in flight hold.
    pub used: u64,
    /// What is kept for the agent.
    pub floor: Option<u64>,
    /// The most that the agent may use.
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
    /// Returns the floors and caps of an agent, in units, with what it uses.
    #[must_use]
    pub fn agent_shares(&self, agent: &AgentName, now: Instant) -> Vec<AgentShare> {
        let now = now.max(self.facts.clock);
        let record = self.index.agent_of.get(agent).copied();
        let usages = self.usages_of(self.rule_of(agent)).iter();
        let shares = usages.filter_map(|usage| {
            Some(AgentShare {
                limit: self.limit_of(usage)?,
                used: self.agent_usage(record, usage).taken_at(now),
                floor: usage.owned.then_some(usage.floor),
                cap: usage.capped.then_some(usage.spec.effective),
            })
        });
        shares.collect()
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
    fn floors_and_caps_are_units_with_their_use() {
        let state = state();
        let shares = |name: &str, at: u64| {
            let shares = state.agent_shares(&agent(name), Instant(at));
            shares.iter().map(|own| (own.used, own.floor, own.cap)).collect::<Vec<_>>()
        };
        assert_eq!(shares("blog", 1), []);
        assert_eq!(shares("release", 1), [(5, Some(25), None)]);
        assert_eq!(shares("crawler", 1), [(3, None, Some(20))]);
        assert_eq!(shares("crawler", 10_000_000), [(0, None, Some(20))], "the period is over");
    }

    #[test]
    fn floors_of_others_are_named_with_what_they_keep() {
        let kept = |name: &str| state().floors_kept_from(&call(name, 1), Instant(1));
        let [floor] = &kept("blog")[..] else { panic!("one floor") };
        assert_eq!((floor.agent.as_str(), floor.units), ("release", 20));
        assert!(kept("release").is_empty(), "its own floor keeps nothing from it");
    }
}
