//! The state of all pools as views show it, also while the store is unavailable.
//!
//! A view never fails once the pools have been read: without the store it is the last known state
//! with its age, and the current state of the pools that the daemon serves offline.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use standpipe::config::StoreFailure;
use standpipe::{Pool, PoolName, PoolStatus, Snapshot, Standpipe};

use super::shared::SharedReading;
use crate::http::problem::Problem;
use crate::state::{AppState, lock};

/// How long a view waits for the store before it shows the last known state.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// A snapshot, and whether the store answered.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) outage: Option<Outage>,
}

/// The store did not answer, and the snapshot is the last known one.
#[derive(Clone, Debug)]
pub(crate) struct Outage {
    /// How old the snapshot is.
    pub(crate) age: Duration,
    /// Why the store could not be read.
    pub(crate) detail: String,
}

/// What was read last.
#[derive(Debug, Default)]
pub(crate) struct Views {
    reading: SharedReading<Result<Arc<Snapshot>, Problem>>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The last complete reading.
    last: Option<(Instant, Arc<Snapshot>)>,
    /// Pools that the daemon serves without the store, as of the last failed reading.
    offline: Vec<PoolStatus>,
}

impl Views {
    /// The state of all pools.
    pub(crate) async fn all(state: &Arc<AppState>) -> Result<View, Problem> {
        let shared = Arc::clone(state);
        let reading = state.views.reading.join(|| async move { read(&shared).await });
        match tokio::time::timeout(STORE_TIMEOUT, reading).await {
            Ok(Ok(Ok(snapshot))) => Ok(View { snapshot, outage: None }),
            Ok(Ok(Err(problem))) => state.views.last_known(problem),
            Ok(Err(_)) => Err(Problem::internal("the pools could not be read")),
            Err(_) => state.views.last_known(timed_out()),
        }
    }

    /// The state of one pool.
    pub(crate) async fn one(
        state: &Arc<AppState>,
        name: PoolName,
        find: impl FnOnce(&Standpipe, &PoolName) -> Result<Pool, Problem> + Send + 'static,
    ) -> Result<View, Problem> {
        let wanted = name.clone();
        let step = state.on_store(move |tap| complete(tap, &[find(tap, &name)?]));
        let problem = match tokio::time::timeout(STORE_TIMEOUT, step).await {
            Ok(Ok(snapshot)) => return Ok(View { snapshot: Arc::new(snapshot), outage: None }),
            Ok(Err(problem)) if problem.r#type != "store" => return Err(problem),
            Ok(Err(problem)) => problem,
            Err(_) => timed_out(),
        };
        let known = state.views.last_known(problem.clone())?;
        let mut snapshot = Arc::unwrap_or_clone(known.snapshot);
        snapshot.pools.retain(|pool| pool.pool == wanted);
        if snapshot.pools.is_empty() {
            return Err(problem);
        }
        Ok(View { snapshot: Arc::new(snapshot), outage: known.outage })
    }

    /// The last known state, with the pools that are served offline as they are now.
    fn last_known(&self, problem: Problem) -> Result<View, Problem> {
        if problem.r#type != "store" {
            return Err(problem);
        }
        let known = lock(&self.known);
        let Some((at, last)) = &known.last else { return Err(problem) };
        let outage = Some(Outage { age: at.elapsed(), detail: problem.detail });
        if known.offline.is_empty() {
            return Ok(View { snapshot: Arc::clone(last), outage });
        }
        let mut snapshot = Snapshot::clone(last);
        for offline in &known.offline {
            match snapshot.pools.iter_mut().find(|pool| pool.pool == offline.pool) {
                Some(pool) => pool.clone_from(offline),
                None => snapshot.pools.push(offline.clone()),
            }
        }
        Ok(View { snapshot: Arc::new(snapshot), outage })
    }
}

/// Whether the daemon can admit calls without the store.
pub(crate) fn serves_offline(tap: &Standpipe) -> bool {
    offline_pools(tap).next().is_some()
}

/// The pools that admit calls without the store, and how. One that the provider stopped admits
/// none.
pub(crate) fn admitting_offline(
    tap: &Standpipe,
    known: &Snapshot,
) -> BTreeMap<PoolName, &'static str> {
    let settings = &tap.settings().pools;
    let mode = |pool: &PoolStatus| match settings.get(&pool.pool)?.on_store_failure {
        StoreFailure::Open => Some("open"),
        StoreFailure::Share => Some("share"),
        StoreFailure::Closed => None,
    };
    let admitting = known.pools.iter().filter(|pool| pool.terminal.is_none());
    admitting.filter_map(|pool| Some((pool.pool.clone(), mode(pool)?))).collect()
}

fn offline_pools(tap: &Standpipe) -> impl Iterator<Item = &PoolName> {
    let pools = tap.settings().pools.iter();
    pools.filter(|(_, pool)| pool.on_store_failure != StoreFailure::Closed).map(|(name, _)| name)
}

/// Reads all pools and remembers the result.
async fn read(state: &Arc<AppState>) -> Result<Arc<Snapshot>, Problem> {
    let step = |tap: &Standpipe| {
        let names = tap.pools().blocking()?;
        let pools: Vec<Pool> = names.iter().map(|name| tap.existing_pool(name)).collect();
        complete(tap, &pools).map(Arc::new)
    };
    let result = state.on_store(step).await;
    match &result {
        Ok(snapshot) => {
            let last = Some((Instant::now(), Arc::clone(snapshot)));
            *lock(&state.views.known) = Known { last, offline: Vec::new() };
        }
        Err(problem) if problem.r#type == "store" => {
            let step = |tap: &Standpipe| Ok((read_offline(tap), tap.snapshot(&[]).blocking()?));
            let Ok((offline, empty)) = state.on_store(step).await else { return result };
            let mut known = lock(&state.views.known);
            // The store never answered, but there are pools to show.
            if known.last.is_none() && !offline.is_empty() {
                known.last = Some((Instant::now(), Arc::new(empty)));
            }
            known.offline = offline;
        }
        Err(_) => {}
    }
    result
}

/// Reads these pools. Without the store that is an error, not a list of unreadable pools.
fn complete(tap: &Standpipe, pools: &[Pool]) -> Result<Snapshot, Problem> {
    let snapshot = tap.snapshot(pools).blocking()?;
    if !snapshot.unreadable.is_empty() {
        tap.ping().blocking()?;
    }
    // Such a pool shows figures of the daemon's own: those of its offline ledger, or old ones.
    let stale = |pool: &PoolStatus| pool.cut_off.is_some() || pool.unavailable.is_some();
    match snapshot.pools.iter().any(stale) {
        true => tap.ping().blocking().map(|_| snapshot).map_err(Problem::from),
        false => Ok(snapshot),
    }
}

/// Reads the pools on which this daemon decides itself. Of the others nothing is known since the
/// last complete reading.
fn read_offline(tap: &Standpipe) -> Vec<PoolStatus> {
    let pools = offline_pools(tap).map(|name| tap.existing_pool(name));
    let read = pools.filter_map(|pool| pool.status().blocking().ok());
    read.filter(|status| status.cut_off.is_some()).collect()
}

fn timed_out() -> Problem {
    Problem::store(format!("the store did not respond within {} s", STORE_TIMEOUT.as_secs()))
}
