//! What was left behind: unsettled leases, ended sessions, damaged files, unused pools.

use standpipe_store::PoolName;

use super::blocked::{slots_are_full, waiting};
use super::{DAY_MS, Scene, length, or_ok};
use crate::finding::{Finding, counted};
use crate::journal::EventData;
use crate::status::PoolOverview;
use crate::status::{LeaseHolder, LeaseStatus};

pub(super) const NAME: &str = "stale state";

/// A call without a process behind it that is this old is forgotten rather than slow.
const OLD_MS: u64 = DAY_MS / 24;
/// A pool that was not used for so long is probably abandoned.
const UNUSED_MS: u64 = 14 * DAY_MS;

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, pool) in scene.readable() {
        found.extend(leases(scene, name, pool));
        found.extend(dead(name, pool));
        found.extend(unused(name, pool));
    }
    found.extend(quarantine(scene));
    or_ok(found, NAME, || "no abandoned leases, sessions or pools".to_owned())
}

/// Leases with a time to live that no caller seems to settle.
fn leases(scene: &Scene, name: &PoolName, pool: &PoolOverview) -> Vec<Finding> {
    let alone = pool.status.leases.iter().filter(|lease| lease.holder == LeaseHolder::Ttl);
    let finding = |lease: &LeaseStatus| {
        let blocking = || blocking(scene, name, pool, lease);
        forgotten(lease).or_else(blocking).or_else(|| ending(lease))
    };
    alone.filter_map(finding).map(|f| f.on(name.as_str())).collect()
}

fn forgotten(lease: &LeaseStatus) -> Option<Finding> {
    let (agent, age) = (&lease.agent, length(lease.age_ms));
    (lease.age_ms > OLD_MS).then(|| {
        let what = format!("{agent} has held a lease without a process for {age}");
        let remedy = format!("if its call is over: standpipe commit {}", lease.id);
        Finding::warning(NAME, what).remedy(remedy).by(agent)
    })
}

/// A lease that no process owns keeps a slot from calls that wait or have waited in vain. Nothing
/// can tell whether its call is still running.
fn blocking(
    scene: &Scene,
    name: &PoolName,
    pool: &PoolOverview,
    lease: &LeaseStatus,
) -> Option<Finding> {
    let status = &pool.status;
    if !lease.may_be_leaked() || !slots_are_full(status) {
        return None;
    }
    let denied = waiting(status).or_else(|| timed_out(scene, name, lease))?;
    let (agent, age, id) = (&lease.agent, length(lease.age_ms), &lease.id);
    let what =
        format!("{agent} has held a slot of `{name}` without a process for {age}, and {denied}");
    let ends = lease.expires_ms.map(|ms| format!("; it ends by itself in {}", length(ms)));
    let remedy = format!(
        "if its call is over: standpipe commit {id}; if it was never sent: standpipe cancel \
         {id}{}; `reserve --owner PID` ties a lease to a process",
        ends.unwrap_or_default()
    );
    Some(Finding::warning(NAME, what).remedy(remedy).by(agent))
}

/// `2 calls were not admitted in time` since the lease began, for want of a slot.
fn timed_out(scene: &Scene, name: &PoolName, lease: &LeaseStatus) -> Option<String> {
    let began = scene.now.millis.saturating_sub(lease.age_ms);
    let since = scene.week.iter().filter(|e| e.at.millis >= began && e.pool == name.as_str());
    let late = since.map(|event| match &event.what {
        EventData::Wait { limit, ended, count, .. }
            if ended == "refused" && limit.as_deref() == Some("parallel") =>
        {
            *count
        }
        _ => 0,
    });
    match late.fold(0, u64::saturating_add) {
        0 => None,
        1 => Some("1 call was not admitted in time".to_owned()),
        count => Some(format!("{} were not admitted in time", counted(count, "call"))),
    }
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
        let what = format!(
            "`{name}` has {dead} sessions or owners that ended and are not cleaned up; the next \
             waiting call does that"
        );
        let remedy = format!("to clean up now: standpipe status {name}");
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
