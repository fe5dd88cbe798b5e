//! What was left behind: unsettled leases, ended sessions, damaged files, unused pools.

use standpipe_store::PoolName;

use super::{DAY_MS, Scene, length, or_ok};
use crate::finding::Finding;
use crate::status::PoolOverview;
use crate::status::{LeaseHolder, LeaseStatus};

const NAME: &str = "stale state";

/// A call without a process behind it that is this old is forgotten rather than slow.
const OLD_MS: u64 = DAY_MS / 24;
/// A pool that was not used for so long is probably abandoned.
const UNUSED_MS: u64 = 14 * DAY_MS;

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, pool) in scene.readable() {
        found.extend(leases(name, pool));
        found.extend(dead(name, pool));
        found.extend(unused(name, pool));
    }
    found.extend(quarantine(scene));
    or_ok(found, NAME, || "no abandoned leases, sessions or pools".to_owned())
}

/// Leases with a time to live that no caller seems to settle.
fn leases(name: &PoolName, pool: &PoolOverview) -> Vec<Finding> {
    let alone = pool.status.leases.iter().filter(|lease| lease.holder == LeaseHolder::Ttl);
    alone
        .filter_map(|lease| forgotten(lease).or_else(|| ending(lease)))
        .map(|f| f.on(name.as_str()))
        .collect()
}

fn forgotten(lease: &LeaseStatus) -> Option<Finding> {
    let (agent, age) = (&lease.agent, length(lease.age_ms));
    (lease.age_ms > OLD_MS).then(|| {
        let what = format!("{agent} has held a lease without a process for {age}");
        let remedy = format!("if its call is over: standpipe commit {}", lease.id);
        Finding::warning(NAME, what).remedy(remedy).by(agent)
    })
}

/// The last tenth of its time.
fn ending(lease: &LeaseStatus) -> Option<Finding> {
    let left = lease.expires_ms?;
    let (agent, shown) = (&lease.agent, length(left));
    (left < lease.age_ms.saturating_add(left) / 10).then(|| {
        let what =
            format!("a lease of {agent} expires in {shown} and is then settled at its estimate");
        let remedy = format!("if its call is still running: standpipe heartbeat {}", lease.id);
        Finding::note(NAME, what).remedy(remedy).by(agent)
    })
}

/// Sessions and owners that ended and still hold something.
fn dead(name: &PoolName, pool: &PoolOverview) -> Option<Finding> {
    let dead = pool.dead;
    (dead > 0).then(|| {
        let what =
            format!("`{name}` has {dead} sessions or owners that ended and are not cleaned up");
        let remedy = format!(
            "none needed: the next waiting call cleans up, and so does standpipe status {name}"
        );
        Finding::note(NAME, what).remedy(remedy).on(name.as_str())
    })
}

fn unused(name: &PoolName, pool: &PoolOverview) -> Option<Finding> {
    let since = length(pool.unused_ms.filter(|since| *since > UNUSED_MS)?);
    let what = format!("`{name}` has not been used for {since}");
    let remedy = format!("if it is no longer needed: standpipe store reset {name} --yes");
    Some(Finding::note(NAME, what).remedy(remedy).on(name.as_str()))
}

/// Ledgers that were damaged, or of an older version, and kept for people to look at.
fn quarantine(scene: &Scene) -> Vec<Finding> {
    let each = scene.store.iter().flat_map(|store| &store.quarantined);
    let finding = |path: &std::path::PathBuf| {
        let shown = path.display().to_string();
        let damaged = shown.contains(".damaged-");
        let why = if damaged { "damaged ledger" } else { "ledger of an older version" };
        let what = format!("a {why} was quarantined: {shown}");
        let remedy = "find the cause (a full disk, a file copied over it), then delete it";
        if damaged {
            Finding::warning(NAME, what).remedy(remedy)
        } else {
            Finding::note(NAME, what).remedy("delete it once you do not need the older version")
        }
    };
    each.map(finding).collect()
}
