//! The ledger as the source, through the library.
//!
//! Fetching changes a pool no more than `status` does: the configuration file is applied once to
//! the pools it describes.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use standpipe::observe::journal::Follow;
use standpipe::{Error, LeaseHandle, Pool, PoolName, Snapshot, Standpipe};

use super::{Action, ROWS, Source};
use crate::caller;
use crate::daemon::DaemonClient;
use crate::failure::Failure;

/// The age of the oldest event of the first fetch.
const AN_HOUR: Duration = Duration::from_secs(3_600);

/// Fetches from the ledger.
pub(crate) struct LedgerSource {
    tap: Standpipe,
    wanted: Option<PoolName>,
    follow: Option<Follow>,
    /// The daemon of this machine, which knows the calls through its proxy.
    daemon: Option<DaemonClient>,
    /// Whether that daemon answers and uses this ledger.
    is_ours: bool,
    /// The process of the daemon of this store, if one runs.
    daemon_pid: Option<u32>,
}

impl LedgerSource {
    pub(crate) const fn new(
        tap: Standpipe,
        wanted: Option<PoolName>,
        daemon: Option<DaemonClient>,
        daemon_pid: Option<u32>,
    ) -> Self {
        Self { tap, wanted, follow: None, daemon, is_ours: false, daemon_pid }
    }

    fn pools(&self) -> Result<Vec<Pool>, Error> {
        let names = match &self.wanted {
            Some(wanted) => vec![wanted.clone()],
            None => self.tap.pools().blocking()?,
        };
        Ok(names.iter().map(|name| self.tap.existing_pool(name)).collect())
    }

    fn pool(&self, name: &str) -> Result<Pool, String> {
        let name = name.parse().map_err(|_| format!("there is no pool `{name}`"))?;
        Ok(self.tap.existing_pool(&name))
    }

    /// Returns what the daemon shows, if it uses this ledger: another user or state directory may
    /// have a daemon at the usual address.
    fn daemon_view(&self) -> Option<Snapshot> {
        let view = self.daemon.as_ref()?.get("/v1/pools?rows=1").ok()?;
        let view = serde_json::from_value::<Snapshot>(view).ok()?;
        (view.store == self.tap.store_location()).then_some(view)
    }

    fn wants(&self, pool: &str) -> bool {
        pool == "*" || self.wanted.as_ref().is_none_or(|wanted| wanted.as_str() == pool)
    }
}

impl Source for LedgerSource {
    fn location(&self) -> String {
        format!("ledger {}", self.tap.store_location())
    }

    fn wanted(&self) -> Option<&PoolName> {
        self.wanted.as_ref()
    }

    fn snapshot(&mut self) -> Result<Value, String> {
        let pools = self.pools().map_err(line)?;
        let mut snapshot = self.tap.snapshot(&pools).blocking().map_err(line)?;
        self.daemon_pid.into_iter().for_each(|pid| snapshot.mark_daemon(pid));
        let view = self.daemon_view();
        self.is_ours = view.is_some();
        snapshot.config_rejected = view.and_then(|view| view.config_rejected);
        match snapshot.unreadable.first() {
            // No pool can be read: the store is unavailable, not a pool.
            Some(first) if snapshot.pools.is_empty() => Err(first.detail.clone()),
            _ => Ok(json!(snapshot.at_most(ROWS))),
        }
    }

    fn events(&mut self) -> Result<Vec<Value>, String> {
        let follow = self.follow.get_or_insert_with(|| {
            let since = SystemTime::now().checked_sub(AN_HOUR);
            self.tap.journal().follow(since, None)
        });
        let more = follow.more();
        Ok(more.iter().filter(|event| self.wants(&event.pool)).map(|event| json!(event)).collect())
    }

    fn proxied(&mut self) -> Option<Value> {
        self.daemon.as_ref().filter(|_| self.is_ours)?.get("/v1/proxied").ok()
    }

    fn perform(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Pause { pool, ms } => {
                let length = Duration::from_millis(*ms);
                self.pool(pool)?.pause_by(caller::user(), length).blocking()
            }
            Action::Resume { pool } => self.pool(pool)?.resume_by(caller::user()).blocking(),
            Action::Settle { lease, agent } => {
                self.tap.lease(lease).and_then(|lease| settle(&lease, agent))
            }
        }
        .map_err(line)
    }
}

/// Settles a lease. Its process does not learn of it and goes on, so the journal has who did it.
fn settle(lease: &LeaseHandle, agent: &str) -> Result<(), Error> {
    let holder = lease.holder()?;
    lease.commit([]).blocking()?;
    let note = |holder| lease.note_settled(&caller::user(), Some(agent), holder);
    holder.map_or(Ok(()), note)
}

fn line(error: Error) -> String {
    Failure::from(error).joined()
}
