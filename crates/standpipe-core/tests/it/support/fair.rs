//! Fair order by a second hand: the tags of calls on a pool of one limit, where whoever waits waits
//! for that limit. A list, searched from end to end.

use std::collections::BTreeMap;

use standpipe_core::{Key, PoolConfig, Priority};

/// A limit as a whole, in virtual time.
const WHOLE: u128 = 1 << 40;

/// Where a call begins and ends in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) start: u64,
    pub(crate) tag: u64,
}

/// A call that waits.
#[derive(Clone, Debug)]
struct Waiting {
    ticket: Key,
    agent: &'static str,
    tier: Priority,
    place: usize,
    stretch: Stretch,
}

/// Who waits where in virtual time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fair {
    weights: BTreeMap<String, u64>,
    /// Units that are a whole limit.
    whole: u128,
    time: [u64; 3],
    last: BTreeMap<(&'static str, Priority), u64>,
    waiting: Vec<Waiting>,
}

impl Fair {
    pub(crate) fn new(config: &PoolConfig, whole: u64) -> Self {
        let weight = |rule: &standpipe_core::AgentRule| {
            (rule.name.as_str().to_owned(), u64::from(rule.weight))
        };
        let weights = config.agents.iter().map(weight).collect();
        Self { weights, whole: u128::from(whole), ..Self::default() }
    }

    /// Where a call that takes `need` of the limit stands if it comes now.
    pub(crate) fn place(&self, agent: &'static str, tier: Priority, need: u64) -> Stretch {
        let own = self.waiting.iter().filter(|other| other.agent == agent && other.tier == tier);
        let own = own.map(|other| other.stretch.tag).max().unwrap_or(0);
        let last = self.last.get(&(agent, tier)).copied().unwrap_or(0);
        let now = self.time[tier as usize];
        let now = self.first(tier).map_or(now, |first| now.min(first));
        let start = now.max(own).max(last);
        let weight = self.weights.get(agent).copied().unwrap_or(1);
        let share = (u128::from(need) * WHOLE).div_ceil(self.whole).min(WHOLE);
        let length = u64::try_from(share).expect("at most a whole").div_ceil(weight);
        Stretch { start, tag: start + length }
    }

    pub(crate) fn wait(
        &mut self,
        ticket: Key,
        agent: &'static str,
        tier: Priority,
        place: usize,
        stretch: Stretch,
    ) {
        self.waiting.push(Waiting { ticket, agent, tier, place, stretch });
    }

    /// Admits a call, whether it has waited or not.
    pub(crate) fn admit(
        &mut self,
        lease: Key,
        agent: &'static str,
        tier: Priority,
        stretch: Stretch,
    ) {
        self.waiting.retain(|other| other.ticket != lease);
        let others = self.waiting.iter().any(|other| other.tier == tier && other.agent != agent);
        if others {
            let last = self.last.entry((agent, tier)).or_default();
            *last = stretch.tag.max(*last);
        }
        let passed = self.first(tier).map_or(stretch.start, |first| first.min(stretch.start));
        let now = &mut self.time[tier as usize];
        *now = passed.max(*now);
    }

    /// Where a ticket stands.
    pub(crate) fn of(&self, ticket: Key) -> Option<Stretch> {
        self.waiting.iter().find(|other| other.ticket == ticket).map(|other| other.stretch)
    }

    /// The start of whoever is first in a tier.
    fn first(&self, tier: Priority) -> Option<u64> {
        let own = self.waiting.iter().filter(|other| other.tier == tier);
        own.min_by_key(|other| (other.stretch.tag, other.place)).map(|other| other.stretch.start)
    }
}
