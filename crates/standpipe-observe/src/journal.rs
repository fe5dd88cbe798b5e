//! The journal: what happened on this machine's pools, as lines of JSON that every process writes
//! to.
//!
//! Waits, reclaims, pauses and the like go round in a few files of bounded size. Refusals by
//! providers are in a file of their own, where each is kept for at least eight days, and so is what
//! agents used, gathered over ten seconds (`gather.rs`). Writing never slows or breaks a decision:
//! see `writer.rs`.

mod batch;
mod cursor;
mod event;
mod files;
mod follow;
mod notices;
mod refusals;
mod usage;
mod writer;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use self::batch::{UsageChange, UsageKey};
pub use self::cursor::{InvalidCursor, JournalCursor};
pub use self::event::{Event, EventData, EventKind, LOG_POOL, UnknownEventKind, WaitPart};
pub use self::files::UnwritableFile;
pub use self::follow::Follow;
pub use self::notices::{event_of_notice, instant_of_notice};
pub use self::usage::Usage;
pub use self::writer::Writer;
use crate::time::Timestamp;

/// The journal of a machine, to be read.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use standpipe_observe::journal::{Journal, EventKind};
///
/// # let directory = std::env::temp_dir().join("standpipe-no-journal");
/// let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
/// for event in Journal::at(directory).events(Some(an_hour_ago), Some(EventKind::Throttle)) {
///     println!("{} {}", event.at, event.pool);
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Journal {
    place: Option<JournalDirectory>,
}

/// Where a journal is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalDirectory {
    directory: PathBuf,
}

impl JournalDirectory {
    /// The directory of a journal's files.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self { directory }
    }
}

impl Journal {
    /// The journal that is kept there; an empty one if none is kept.
    #[must_use]
    pub const fn new(place: Option<JournalDirectory>) -> Self {
        Self { place }
    }

    /// Opens the journal in a directory for reading.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self::new(Some(JournalDirectory::new(directory.into())))
    }

    /// Where it is kept; none if no journal is kept.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.directory.as_path())
    }

    /// The files that no line can be added to. Each process writes on its own behalf: what is
    /// writable for this user may not be for another.
    #[must_use]
    pub fn unwritable_files(&self) -> Vec<UnwritableFile> {
        self.place.as_ref().map(JournalDirectory::unwritable).unwrap_or_default()
    }

    /// The events since a moment, of one kind or all, oldest first. Lines that cannot be read are
    /// skipped. [`EventKind::Usage`] is included only if it is requested: it has many lines that
    /// are useful only in sum.
    #[must_use]
    pub fn events(
        &self,
        since: Option<SystemTime>,
        kind: Option<EventKind>,
    ) -> std::vec::IntoIter<Event> {
        let files = self.place.iter().flat_map(|place| place.all_files(kind));
        let texts = files.filter_map(|path| std::fs::read(path).ok());
        let choice = EventFilter { since: since.map(Timestamp::of), kind };
        let mut events: Vec<Event> = texts.flat_map(|text| choice.read(&text)).collect();
        events.sort_by_key(Event::order);
        events.into_iter()
    }

    /// The same, and then whatever comes, whenever it is asked. Without a moment it begins with
    /// what comes from now on.
    #[must_use]
    pub fn follow(&self, since: Option<SystemTime>, kind: Option<EventKind>) -> Follow {
        Follow::new(self.place.as_ref(), EventFilter { since: since.map(Timestamp::of), kind })
    }

    /// What was written behind a mark, and then whatever comes: nothing twice, and nothing missing
    /// that is still kept.
    #[must_use]
    pub fn follow_from(&self, mark: &JournalCursor, kind: Option<EventKind>) -> Follow {
        Follow::new(self.place.as_ref(), EventFilter { since: None, kind }).from(mark)
    }
}

/// Which events are wanted.
#[derive(Clone, Copy, Debug)]
struct EventFilter {
    since: Option<Timestamp>,
    kind: Option<EventKind>,
}

impl EventFilter {
    /// The events in a text that are wanted.
    fn read(self, text: &[u8]) -> Vec<Event> {
        let lines = text.split(|byte| *byte == b'\n');
        lines.filter_map(|line| self.one(line)).collect()
    }

    /// The event of a line, if it is wanted.
    fn one(self, line: &[u8]) -> Option<Event> {
        let event = serde_json::from_slice::<Event>(line).ok();
        event.filter(|event| self.wants(event))
    }

    fn wants(self, event: &Event) -> bool {
        self.since.is_none_or(|since| event.at >= since)
            && self.kind.is_none_or(|kind| event.what.kind() == kind)
    }
}
