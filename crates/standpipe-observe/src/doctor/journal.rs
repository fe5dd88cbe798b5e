//! The journal: whether it is kept, and whether all of it was written.

use super::{Scene, or_ok};
use crate::finding::{Finding, counted};
use crate::journal::{EventData, UnwritableFile};

pub(super) const NAME: &str = "journal";

pub(super) fn check(scene: &Scene) -> Vec<Finding> {
    let Ok(store) = &scene.store else { return Vec::new() };
    let Some(directory) = &store.journal else {
        let what = "no journal is kept for this store, so 429s and retries cannot be checked";
        return vec![Finding::note(NAME, what).remedy("use a file store if you need one")];
    };
    let user = scene.survey.as_ref().map(|survey| survey.user);
    let unwritable = store.unwritable.iter().map(|file| unwritable(file, user));
    let found = unwritable.chain(full(scene)).chain(lost(scene)).collect();
    or_ok(found, NAME, || {
        format!("kept in {}, writable, no lines lost in 7 days", directory.display())
    })
}

/// A file that cannot be added to loses the lines of every process of this user, without a `lost`
/// line if it is the journal itself.
fn unwritable(file: &UnwritableFile, user: Option<u32>) -> Finding {
    let (path, why) = (file.path.display(), &file.why);
    let what = format!(
        "no line can be added to {path}: {why}; `audit` and `events` miss what happens meanwhile"
    );
    let remedy = match file.owner {
        _ if file.is_directory => format!("move the directory {path} away"),
        _ if file.is_read_only => {
            "mount its file system writable, or set STANDPIPE_HOME to another directory".to_owned()
        }
        Some(owner) if user.is_some_and(|user| user != owner) => {
            format!("it belongs to user {owner}: sudo chown $(id -u) {path}, or run as that user")
        }
        _ => format!("chmod u+rwX {path}"),
    };
    Finding::warning(NAME, what).remedy(remedy)
}

/// A full disk: a file can be opened, and no line fits.
fn full(scene: &Scene) -> Option<Finding> {
    scene.survey.as_ref().filter(|survey| survey.exists && survey.free < MIN_FREE)?;
    let what = "its disk is full; `audit` and `events` miss what happens meanwhile".to_owned();
    Some(Finding::warning(NAME, what).remedy("free space on it"))
}

/// What a line of the journal needs at most.
const MIN_FREE: u64 = 4_096;

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
