//! The clocks: the ledger goes by the boot-time clock, people and the journal by the calendar.

use standpipe_store::PoolName;

use super::{DAY_MS, Scene, length, or_ok};
use crate::finding::Finding;
use crate::time::Timestamp;

pub(super) const NAME: &str = "clocks";

/// Closer than this they agree.
const AGREE_MS: u64 = 5_000;
/// A calendar that was set by more than this will be wrong about a restart, too.
const FAR_MS: u64 = DAY_MS / 24;

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let found: Vec<Finding> =
        stepped(scene).into_iter().chain(journal_from_the_future(scene)).collect();
    or_ok(found, NAME, || match scene.readable().next() {
        Some(_) if scene.survey.is_some() => {
            "the wall clock agrees with the boot-time clock".to_owned()
        }
        _ => "no pool to compare the clocks with".to_owned(),
    })
}

/// A pool's clock began near the calendar. Since then only the calendar can have been set.
fn stepped(scene: &Scene) -> Option<Finding> {
    // Other stores have clocks that never were near it.
    scene.survey.as_ref()?;
    let apart = |clock: Timestamp| clock.millis.abs_diff(scene.now.millis);
    let pools = scene.readable().map(|(name, pool)| (apart(pool.clock), name, pool.clock));
    let (apart, name, clock) = pools.max_by_key(|(apart, ..)| *apart)?;
    (apart > AGREE_MS).then(|| finding(apart, name, clock < scene.now))
}

fn finding(apart: u64, name: &PoolName, ahead: bool) -> Finding {
    let way = if ahead { "ahead" } else { "back" };
    let by = length(apart);
    let what = format!("the wall clock was set {way} by {by} since `{name}` was created");
    if apart > FAR_MS {
        let remedy =
            "keep it correct (NTP): after a restart it determines how much time has passed";
        return Finding::warning(NAME, what).remedy(remedy);
    }
    let harmless = "the ledger uses the boot-time clock, only times in the journal jump";
    Finding::note(NAME, format!("{what}; {harmless}"))
}

/// Lines of the journal that lie ahead.
fn journal_from_the_future(scene: &Scene) -> Option<Finding> {
    let last = scene.week.last()?.at;
    let ahead = last.millis.saturating_sub(scene.now.millis);
    (ahead > AGREE_MS).then(|| {
        let what = format!(
            "the journal has lines from {} in the future: the clock was set back",
            length(ahead)
        );
        Finding::warning(NAME, what).remedy("check that the wall clock is correct now")
    })
}
