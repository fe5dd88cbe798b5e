//! The journal: whether it is kept, and whether all of it was written.

use super::{Scene, or_ok};
use crate::finding::{Finding, counted};
use crate::journal::EventData;

pub(super) const NAME: &str = "journal";

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let Ok(store) = &scene.store else { return Vec::new() };
    let Some(directory) = &store.journal else {
        let what = "no journal is kept for this store, so 429s and retries cannot be checked";
        return vec![Finding::note(NAME, what).remedy("a file store keeps one")];
    };
    let found = lost(scene).into_iter().collect();
    or_ok(found, NAME, || format!("kept in {}, no lines lost in 7 days", directory.display()))
}

/// Lines that could not be written.
fn lost(scene: &Scene) -> Option<Finding> {
    let lost = scene.week.iter().map(|event| match event.what {
        EventData::Lost { lines } => lines,
        _ => 0,
    });
    let lines = lost.fold(0_u64, u64::saturating_add);
    (lines > 0).then(|| {
        let what = format!("{} could not be written in 7 days", counted(lines, "line"));
        let remedy = "check that the disk has room and the directory is writable";
        Finding::warning(NAME, what).remedy(remedy)
    })
}
