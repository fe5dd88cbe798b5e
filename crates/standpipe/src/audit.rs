//! The audit of pools and their comparison, gathered from the journal and the ledger.
//!
//! Both only read. The findings and their texts are in `standpipe-observe`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use standpipe_observe::audit::{Audit, Comparison};
use standpipe_store::PoolName;

use crate::error::Error;
use crate::journal::{Event, EventKind, LOG_POOL};
use crate::moment::Timestamp;
use crate::tap::Standpipe;

impl Standpipe {
    /// Returns what agents did on a pool, or on all pools, during this long until now. What a
    /// process did in its last ten seconds may be missing.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::Standpipe;
    /// # fn main() -> Result<(), standpipe::Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// let audit = tap.audit(None, std::time::Duration::from_secs(86_400))?;
    /// for finding in audit.pools.iter().flat_map(|pool| &pool.findings) {
    ///     println!("{}: {}", finding.level.as_str(), finding.what);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the store cannot be read. A single pool that cannot be read is one of the findings.
    pub fn audit(&self, pool: Option<&PoolName>, back: Duration) -> Result<Audit, Error> {
        let now = SystemTime::now();
        let since = now.checked_sub(back).unwrap_or(SystemTime::UNIX_EPOCH);
        let priced = self.settings().pools.iter().filter(|(_, pool)| !pool.price.is_empty());
        let prices: BTreeMap<_, _> =
            priced.map(|(name, pool)| (name.to_string(), pool.price.clone())).collect();
        let handle = self.store_handle()?;
        let there = self.pools_in_store()?;
        let journal = |kind| self.journal().events(Some(since), Some(kind));
        let events: Vec<Event> = Audit::KINDS.into_iter().flat_map(journal).collect();
        let mut names: BTreeSet<PoolName> = there.iter().cloned().collect();
        names.extend(events.iter().filter_map(|event| event.pool.parse::<PoolName>().ok()));
        names.retain(|name| pool.map_or(name.as_str() != LOG_POOL, |wanted| wanted == name));
        let status = |name: PoolName| {
            let known =
                there.contains(&name).then(|| handle.store_client().overview(&name)).transpose();
            let status = known.map(|known| known.map(|known| known.status));
            (name, status.map_err(|error| error.to_string()))
        };
        let pools = names.into_iter().map(status).collect();
        Ok(Audit::of(Timestamp::of(since), Timestamp::of(now), prices, events, pools))
    }

    /// Returns the last run of a pool, or of each pool, in shadow mode beside its last run with
    /// limits enforced. A run ends when the pool changes its mode. Without a length it reads the
    /// whole journal.
    #[must_use]
    pub fn compare(&self, pool: Option<&PoolName>, back: Option<Duration>) -> Vec<Comparison> {
        let since = back.and_then(|back| SystemTime::now().checked_sub(back));
        let events = self.journal().events(since, Some(EventKind::Usage));
        let wanted = events.filter(|event| pool.is_none_or(|pool| pool.as_str() == event.pool));
        Comparison::of(wanted)
    }
}
