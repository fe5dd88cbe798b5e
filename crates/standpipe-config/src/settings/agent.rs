//! The settings of an agent: its priority, its floor, its cap and its weight.

use std::collections::BTreeMap;

use standpipe_core::{Priority, Share};
use standpipe_store::PoolName;

#[cfg(feature = "file")]
use crate::keys::shares::{PriorityForm, SharesForm, WeightForm};

settings! {
    /// The settings of an agent.
    pub struct AgentSettings, "in an agent" => {
        /// Order in which calls are served.
        pub priority: Option<Priority> = None, "priority" as PriorityForm;
        /// Part of every period that is reserved for the agent; others may use it while it is idle.
        pub floor: Shares = Shares::default(), "floor" as SharesForm;
        /// Maximum that the agent may use.
        pub cap: Shares = Shares::default(), "cap" as SharesForm;
        /// Share relative to other agents, in pools with `order = "fair"`.
        pub weight: u16 = 1, "weight" as WeightForm;
    }
}

/// Shares of the limits of one pool, several, or all. Each pool counts by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Shares of every pool that is not in `by_pool`.
    pub everywhere: Vec<Share>,
    /// Shares of single pools.
    pub by_pool: BTreeMap<PoolName, Vec<Share>>,
}

impl Shares {
    /// Returns the shares that apply to a pool.
    #[must_use]
    pub fn on(&self, pool: &PoolName) -> &[Share] {
        self.by_pool.get(pool).unwrap_or(&self.everywhere)
    }
}
