//! Counting what the journal tells: by pool, and in it by agent and tier.
//!
//! Only adds up. Bounded by design: what is beyond a bound counts as `other`, so sums stay true.

use std::collections::BTreeMap;

use standpipe::journal::{Event, Kind, Usage, What};

use super::words::{Counts, KINDS, PRIORITIES, REASONS, RECLAIMS, place};

/// How many pools are told apart.
pub(super) const MOST_POOLS: usize = 256;
/// How many agents of a pool are told apart.
pub(super) const MOST_AGENTS: usize = 100;
/// How many agents are told apart on all pools together.
pub(super) const MOST_AGENTS_IN_ALL: usize = 2_048;
/// How many units of an agent, and limits of a pool, are told apart.
const MOST_NAMES: usize = 16;
/// How long a name may be. Those of pools, agents and units are shorter by themselves.
const LONGEST: usize = 300;

/// Who is not told apart.
pub(super) const OTHER: &str = "other";

/// Counters since the daemon began, fed from the journal.
#[derive(Debug, Default)]
pub struct Tally {
    pools: BTreeMap<String, PoolTally>,
    agents: usize,
    kinds: [u64; Kind::ALL.len()],
    lost: u64,
}

/// What was counted of a pool.
#[derive(Debug)]
pub(super) struct PoolTally {
    pub(super) agents: BTreeMap<String, AgentTally>,
    pub(super) throttled: Counts<{ KINDS.len() }>,
    pub(super) shadowed: Counts<{ REASONS.len() }>,
    pub(super) reclaimed: Counts<{ RECLAIMS.len() }>,
    pub(super) pauses: u64,
    pub(super) stops: u64,
    pub(super) sessions_ended: u64,
    pub(super) promoted: u64,
    pub(super) doubts: u64,
    pub(super) store_notices: u64,
    /// By limit.
    pub(super) outside: Named,
}

/// What was counted of an agent.
#[derive(Debug)]
pub(super) struct AgentTally {
    /// By tier, as in [`PRIORITIES`].
    tiers: [Option<Box<Row>>; PRIORITIES.len()],
    pub(super) throttled: Counts<{ KINDS.len() }>,
}

/// What was counted of an agent's calls of one tier.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) admitted: u64,
    pub(super) retries: u64,
    pub(super) cancelled: u64,
    /// By reason: calls that waited, and calls that were refused.
    pub(super) waited: Counts<{ REASONS.len() }>,
    pub(super) refused: Counts<{ REASONS.len() }>,
    /// How many waited how long, as in [`Usage::waits`].
    pub(super) waits: [u64; Usage::WAITS_MS.len() + 1],
    pub(super) waited_ms: u64,
    /// By unit.
    pub(super) units: Named,
}

/// Figures by name, the first ones apart.
#[derive(Debug, Default)]
pub(super) struct Named(BTreeMap<String, u64>);

impl Tally {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one line of the journal.
    pub fn add(&mut self, event: &Event) {
        let kind = event.what.kind();
        let at = Kind::ALL.iter().position(|known| *known == kind);
        if let Some(count) = at.and_then(|at| self.kinds.get_mut(at)) {
            *count += 1;
        }
        match &event.what {
            What::Lost { lines } => self.lost = self.lost.saturating_add(*lines),
            What::Usage(usage) => self.used(&event.pool, usage),
            What::Wait { agent, priority, reason, count, .. } => {
                self.row(&event.pool, agent, priority.as_deref()).waited.add(reason, *count);
            }
            What::Throttle { agent, about, .. } => {
                self.agent(&event.pool, agent.as_deref().unwrap_or(OTHER)).throttled.add(about, 1);
                self.pool(&event.pool).throttled.add(about, 1);
            }
            what => self.pool(&event.pool).count(what),
        }
    }

    pub(super) fn pools(&self) -> impl Iterator<Item = (&str, &PoolTally)> {
        self.pools.iter().map(|(name, pool)| (name.as_str(), pool))
    }

    /// How many lines there were of each kind.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        Kind::ALL.iter().map(|kind| kind.as_str()).zip(self.kinds)
    }

    /// How many lines processes could not write.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }

    fn used(&mut self, pool: &str, usage: &Usage) {
        let row = self.row(pool, &usage.agent, usage.priority.as_deref());
        let counts = [
            (&mut row.admitted, usage.calls),
            (&mut row.retries, usage.retries),
            (&mut row.cancelled, usage.cancelled),
            (&mut row.waited_ms, usage.waited_ms),
        ];
        let waits = row.waits.iter_mut().zip(usage.waits.iter().copied());
        for (count, more) in counts.into_iter().chain(waits) {
            *count = count.saturating_add(more);
        }
        for (reason, times) in &usage.refusals {
            row.refused.add(reason, *times);
        }
        for (unit, amount) in &usage.units {
            row.units.add(unit, *amount);
        }
    }

    fn pool(&mut self, name: &str) -> &mut PoolTally {
        let apart = self.pools.contains_key(name) || self.pools.len() < MOST_POOLS - 1;
        let name = if apart && name.len() <= LONGEST { name } else { OTHER };
        self.pools.entry(name.to_owned()).or_default()
    }

    fn agent(&mut self, pool: &str, name: &str) -> &mut AgentTally {
        let in_all = self.agents < MOST_AGENTS_IN_ALL;
        let agents = &mut self.pool(pool).agents;
        let known = agents.contains_key(name);
        let new = in_all && agents.len() < MOST_AGENTS && name.len() <= LONGEST;
        let name = if known || new { name } else { OTHER };
        let more = usize::from(!agents.contains_key(name));
        self.agents += more;
        self.pool(pool).agents.entry(name.to_owned()).or_default()
    }

    fn row(&mut self, pool: &str, agent: &str, priority: Option<&str>) -> &mut Row {
        let tier = place(&PRIORITIES, priority.unwrap_or_default());
        self.agent(pool, agent).tiers[tier].get_or_insert_default()
    }
}

impl PoolTally {
    /// Counts what is about the pool as a whole.
    fn count(&mut self, what: &What) {
        match what {
            What::Shadow { reason, .. } => self.shadowed.add(reason, 1),
            What::Reclaim { why, .. } => self.reclaimed.add(why, 1),
            What::Outside { limit, units, .. } => self.outside.add(limit, *units),
            What::Pause { .. } => self.pauses += 1,
            What::Stop { .. } => self.stops += 1,
            What::SessionEnd { .. } => self.sessions_ended += 1,
            What::Promote { .. } => self.promoted += 1,
            What::Doubt { .. } => self.doubts += 1,
            What::Store { .. } => self.store_notices += 1,
            _ => {}
        }
    }
}

impl AgentTally {
    /// What was counted, by tier.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'static str, &Row)> {
        let tiers = PRIORITIES.into_iter().zip(&self.tiers);
        tiers.filter_map(|(priority, row)| Some((priority, row.as_deref()?)))
    }
}

impl Named {
    fn add(&mut self, name: &str, more: u64) {
        let apart = self.0.contains_key(name) || self.0.len() < MOST_NAMES - 1;
        let name = if apart && name.len() <= LONGEST { name } else { OTHER };
        let count = self.0.entry(name.to_owned()).or_default();
        *count = count.saturating_add(more);
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }
}

impl Default for PoolTally {
    fn default() -> Self {
        Self {
            agents: BTreeMap::new(),
            throttled: Counts::of(&KINDS),
            shadowed: Counts::of(&REASONS),
            reclaimed: Counts::of(&RECLAIMS),
            pauses: 0,
            stops: 0,
            sessions_ended: 0,
            promoted: 0,
            doubts: 0,
            store_notices: 0,
            outside: Named::default(),
        }
    }
}

impl Default for AgentTally {
    fn default() -> Self {
        Self { tiers: Default::default(), throttled: Counts::of(&KINDS) }
    }
}

impl Default for Row {
    fn default() -> Self {
        Self {
            admitted: 0,
            retries: 0,
            cancelled: 0,
            waited: Counts::of(&REASONS),
            refused: Counts::of(&REASONS),
            waits: Default::default(),
            waited_ms: 0,
            units: Named::default(),
        }
    }
}
