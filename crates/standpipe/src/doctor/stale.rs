//! What was left behind: leases nobody settles, the dead, damaged files, pools nobody uses.

use standpipe_store::PoolName;

use super::{DAY_MS, Scene, length, or_ok};
use crate::finding::Finding;
use crate::shared::glance::Glance;
use crate::status::LeaseStatus;

const NAME: &str = "stale state";

/// A call without a process behind it that is this old is forgotten rather than slow.
const OLD_MS: u64 = DAY_MS / 24;
/// After this long nobody misses a pool.
const UNUSED_MS: u64 = 14 * DAY_MS;

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, pool) in scene.readable() {
        found.extend(leases(name, pool));
        found.extend(dead(name, pool));
        found.extend(unused(name, pool));
    }
    found.extend(quarantine(scene));
    or_ok(found, NAME, || "nothing was left behind".to_owned())
}

/// Leases that live by themselves, and that nobody seems to settle.
fn leases(name: &PoolName, pool: &Glance) -> Vec<Finding> {
    let alone = pool.status.leases.iter().filter(|lease| lease.holder == "ttl");
    alone
        .filter_map(|lease| forgotten(lease).or_else(|| ending(lease)))
        .map(|f| f.on(name.as_str()))
        .collect()
}

fn forgotten(lease: &LeaseStatus) -> Option<Finding> {
    let (agent, age) = (&lease.agent, length(lease.age_ms));
    (lease.age_ms > OLD_MS).then(|| {
        let what = format!("{agent} holds a lease without a process for {age}");
        let remedy = format!("if its call is over: standpipe commit {}", lease.id);
        Finding::warning(NAME, what).remedy(remedy).by(agent)
    })
}

/// The last tenth of its time.
fn ending(lease: &LeaseStatus) -> Option<Finding> {
    let left = lease.expires_ms?;
    let (agent, shown) = (&lease.agent, length(left));
    (left < lease.age_ms.saturating_add(left) / 10).then(|| {
        let what = format!("a lease of {agent} ends by itself in {shown}, at its estimate");
        let remedy = format!("if its call goes on: standpipe heartbeat {}", lease.id);
        Finding::note(NAME, what).remedy(remedy).by(agent)
    })
}

/// Those who died and still hold something.
fn dead(name: &PoolName, pool: &Glance) -> Option<Finding> {
    let dead = pool.dead;
    (dead > 0).then(|| {
        let what = format!("on `{name}` {dead} dead still hold something or wait");
        let remedy =
            format!("nothing: who waits there buries them, and so does standpipe status {name}");
        Finding::note(NAME, what).remedy(remedy).on(name.as_str())
    })
}

fn unused(name: &PoolName, pool: &Glance) -> Option<Finding> {
    let since = length(pool.unused_ms.filter(|since| *since > UNUSED_MS)?);
    let what = format!("nobody has used `{name}` for {since}");
    let remedy = format!("if nobody will: standpipe store reset {name} --yes");
    Some(Finding::note(NAME, what).remedy(remedy).on(name.as_str()))
}

/// Ledgers that were damaged, or of an older version, and kept for people to look at.
fn quarantine(scene: &Scene) -> Vec<Finding> {
    let guard = scene.tap.as_ref().ok().and_then(|tap| tap.guard().ok());
    let paths =
        guard.as_ref().and_then(|guard| Some(guard.shared().engine().file()?.quarantined_files()));
    let each = paths.into_iter().flatten();
    let tell = |path: std::path::PathBuf| {
        let shown = path.display().to_string();
        let damaged = shown.contains(".damaged-");
        let why = if damaged { "was damaged" } else { "is of an older version" };
        let what = format!("a ledger that {why} was set aside: {shown}");
        let remedy = "look why if you can (a full disk, a copy put in its place), then delete it";
        if damaged {
            Finding::warning(NAME, what).remedy(remedy)
        } else {
            Finding::note(NAME, what).remedy("delete it when you do not want to go back")
        }
    };
    each.map(tell).collect()
}
