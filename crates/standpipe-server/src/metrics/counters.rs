//! Counters fed from the journal: by pool, and within it by agent and priority.
//!
//! Counters only grow, until their pool is reset. What is beyond a bound counts as `other`, so sums
//! stay correct.

use std::collections::{BTreeMap, BTreeSet};

use standpipe::Snapshot;
use standpipe::observe::journal::{Event, EventData, EventKind, Usage};

use super::labels::{KINDS, LabelCounts, PRIORITIES, REASONS, RECLAIMS, index_of};

/// The most pools with series of their own.
pub(super) const MAX_POOLS: usize = 256;
/// The most agents of a pool with series of their own.
pub(super) const MAX_AGENTS: usize = 100;
/// The most agents with series of their own on all pools together.
pub(super) const MAX_AGENTS_TOTAL: usize = 2_048;
/// The most units of an agent, and limits of a pool, with series of their own.
const MAX_NAMES: usize = 16;
/// The longest name. Valid names of pools, agents and units are shorter.
const MAX_NAME_LENGTH: usize = 300;

/// The label of everything beyond a bound.
pub(super) const OTHER: &str = "other";

/// Counters since the daemon started, fed from the journal.
#[derive(Debug, Default)]
pub struct JournalCounters {
    pools: BTreeMap<String, PoolCounters>,
    agents: usize,
    kinds: [u64; EventKind::ALL.len()],
    lost: u64,
}

/// Counters of a pool.
#[derive(Debug)]
pub(super) struct PoolCounters {
    pub(super) agents: BTreeMap<String, AgentCounters>,
    pub(super) throttled: LabelCounts<{ KINDS.len() }>,
    pub(super) shadowed: LabelCounts<{ REASONS.len() }>,
    pub(super) reclaimed: LabelCounts<{ RECLAIMS.len() }>,
    pub(super) pauses: u64,
    pub(super) stops: u64,
    pub(super) sessions_ended: u64,
    pub(super) promoted: u64,
    pub(super) anomalies: u64,
    pub(super) store_notices: u64,
    /// By limit.
    pub(super) outside: NamedCounts,
    /// Whether the last snapshot lacked the pool.
    is_missing: bool,
}

/// Counters of an agent.
#[derive(Debug)]
pub(super) struct AgentCounters {
    /// By priority, as in [`PRIORITIES`].
    tiers: [Option<Box<TierCounters>>; PRIORITIES.len()],
    pub(super) throttled: LabelCounts<{ KINDS.len() }>,
}

/// Counters of an agent's calls of one priority.
#[derive(Debug)]
pub(super) struct TierCounters {
    pub(super) admitted: u64,
    pub(super) retries: u64,
    pub(super) cancelled: u64,
    /// Calls that waited and calls that were refused, by reason.
    pub(super) waited: LabelCounts<{ REASONS.len() }>,
    pub(super) refused: LabelCounts<{ REASONS.len() }>,
    /// The histogram of waits, as in [`Usage::waits`].
    pub(super) waits: [u64; Usage::WAITS_MS.len() + 1],
    pub(super) waited_ms: u64,
    /// By unit.
    pub(super) units: NamedCounts,
}

/// Counts by name, bounded by [`MAX_NAMES`].
#[derive(Debug, Default)]
pub(super) struct NamedCounts(BTreeMap<String, u64>);

impl JournalCounters {
    /// All counters at 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts one event of the journal.
    pub fn add(&mut self, event: &Event) {
        let kind = event.what.kind();
        let at = EventKind::ALL.iter().position(|known| *known == kind);
        if let Some(count) = at.and_then(|at| self.kinds.get_mut(at)) {
            *count += 1;
        }
        match &event.what {
            EventData::Lost { lines } => self.lost = self.lost.saturating_add(*lines),
            EventData::Usage(usage) => self.used(&event.pool, usage),
            EventData::Wait { agent, priority, reason, count, .. } => {
                self.row(&event.pool, agent, priority.as_deref()).waited.add(reason, *count);
            }
            EventData::Throttle { agent, about, .. } => {
                self.agent(&event.pool, agent.as_deref().unwrap_or(OTHER)).throttled.add(about, 1);
                self.pool(&event.pool).throttled.add(about, 1);
            }
            what => self.pool(&event.pool).count(what),
        }
    }

    /// Hides the counters of pools that a snapshot lacks, because they were reset, and forgets them
    /// if the next one lacks them too.
    ///
    /// A pool may be created after the snapshot and have events already. Events from before a reset
    /// may be read after it.
    pub fn forget_reset(&mut self, snapshot: &Snapshot) {
        let read = snapshot.pools.iter().map(|status| status.pool.as_str());
        let unreadable = snapshot.unreadable.iter().map(|pool| pool.pool.as_str());
        let present: BTreeSet<&str> = read.chain(unreadable).chain([OTHER]).collect();
        self.pools.retain(|name, pool| {
            let was_missing = pool.is_missing;
            pool.is_missing = !present.contains(name.as_str());
            !(was_missing && pool.is_missing)
        });
        self.agents = self.pools.values().map(|pool| pool.agents.len()).sum();
    }

    pub(super) fn pools(&self) -> impl Iterator<Item = (&str, &PoolCounters)> {
        let shown = self.pools.iter().filter(|(_, pool)| !pool.is_missing);
        shown.map(|(name, pool)| (name.as_str(), pool))
    }

    /// The number of events of each kind.
    pub(super) fn kinds(&self) -> impl Iterator<Item = (&'static str, u64)> {
        EventKind::ALL.iter().map(|kind| kind.as_str()).zip(self.kinds)
    }

    /// The number of events that processes could not write.
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

    fn pool(&mut self, name: &str) -> &mut PoolCounters {
        let apart = self.pools.contains_key(name) || self.pools.len() < MAX_POOLS - 1;
        let name = if apart && name.len() <= MAX_NAME_LENGTH { name } else { OTHER };
        self.pools.entry(name.to_owned()).or_default()
    }

    fn agent(&mut self, pool: &str, name: &str) -> &mut AgentCounters {
        let in_all = self.agents < MAX_AGENTS_TOTAL;
        let agents = &mut self.pool(pool).agents;
        let known = agents.contains_key(name);
        let new = in_all && agents.len() < MAX_AGENTS && name.len() <= MAX_NAME_LENGTH;
        let name = if known || new { name } else { OTHER };
        let more = usize::from(!agents.contains_key(name));
        self.agents += more;
        self.pool(pool).agents.entry(name.to_owned()).or_default()
    }

    fn row(&mut self, pool: &str, agent: &str, priority: Option<&str>) -> &mut TierCounters {
        let tier = index_of(&PRIORITIES, priority.unwrap_or_default());
        self.agent(pool, agent).tiers[tier].get_or_insert_default()
    }
}

impl PoolCounters {
    /// Counts an event about the pool as a whole.
    fn count(&mut self, what: &EventData) {
        match what {
            EventData::Shadow { reason, .. } => self.shadowed.add(reason, 1),
            EventData::Reclaim { why, .. } => self.reclaimed.add(why, 1),
            EventData::Outside { limit, units, .. } => self.outside.add(limit, *units),
            EventData::Pause { .. } => self.pauses += 1,
            EventData::Stop { .. } => self.stops += 1,
            EventData::SessionEnd { .. } => self.sessions_ended += 1,
            EventData::Promote { .. } => self.promoted += 1,
            EventData::Anomaly { .. } => self.anomalies += 1,
            EventData::Store { .. } => self.store_notices += 1,
            _ => {}
        }
    }
}

impl AgentCounters {
    /// The counters by priority.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'static str, &TierCounters)> {
        let tiers = PRIORITIES.into_iter().zip(&self.tiers);
        tiers.filter_map(|(priority, row)| Some((priority, row.as_deref()?)))
    }
}

impl NamedCounts {
    fn add(&mut self, name: &str, more: u64) {
        let apart = self.0.contains_key(name) || self.0.len() < MAX_NAMES - 1;
        let name = if apart && name.len() <= MAX_NAME_LENGTH { name } else { OTHER };
        let count = self.0.entry(name.to_owned()).or_default();
        *count = count.saturating_add(more);
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }
}

impl Default for PoolCounters {
    fn default() -> Self {
        Self {
            agents: BTreeMap::new(),
            throttled: LabelCounts::of(&KINDS),
            shadowed: LabelCounts::of(&REASONS),
            reclaimed: LabelCounts::of(&RECLAIMS),
            pauses: 0,
            stops: 0,
            sessions_ended: 0,
            promoted: 0,
            anomalies: 0,
            store_notices: 0,
            outside: NamedCounts::default(),
            is_missing: false,
        }
    }
}

impl Default for AgentCounters {
    fn default() -> Self {
        Self { tiers: Default::default(), throttled: LabelCounts::of(&KINDS) }
    }
}

impl Default for TierCounters {
    fn default() -> Self {
        Self {
            admitted: 0,
            retries: 0,
            cancelled: 0,
            waited: LabelCounts::of(&REASONS),
            refused: LabelCounts::of(&REASONS),
            waits: Default::default(),
            waited_ms: 0,
            units: NamedCounts::default(),
        }
    }
}
