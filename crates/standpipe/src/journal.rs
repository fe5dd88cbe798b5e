//! The journal: what happened on this machine's pools, as lines of JSON that every process writes
//! to.
//!
//! Waits, reclaims, pauses and the like go round in a few files of bounded size. Refusals by
//! providers are in a file of their own, where each is kept for at least eight days, and so is what
//! agents used, gathered over ten seconds (`gather.rs`). Writing never slows or breaks a decision:
//! see `writer.rs`.

mod event;
mod files;
mod follow;
mod gather;
mod mark;
mod usage;
mod writer;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use self::event::{Event, Kind, UnknownKind, What};
pub use self::follow::Follow;
pub(crate) use self::gather::{Use, Whose};
pub use self::mark::{InvalidMark, Mark};
pub use self::usage::Usage;
pub(crate) use self::writer::Writer;
use crate::moment::Moment;

/// The journal of a machine, to be read.
///
/// ```
/// # use standpipe::config::{Settings, StoreUrl};
/// # use standpipe::Standpipe;
/// use std::time::{Duration, SystemTime};
/// use standpipe::journal::Kind;
///
/// # fn main() -> Result<(), standpipe::Error> {
/// # let tap = Standpipe::builder().settings(Settings::default());
/// # let tap = tap.store(StoreUrl::Memory).open()?;
/// let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
/// for event in tap.journal().events(Some(an_hour_ago), Some(Kind::Throttle)) {
///     println!("{} {}", event.at, event.pool);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Journal {
    place: Option<Place>,
}

/// Where a journal is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    directory: PathBuf,
}

impl Place {
    pub(crate) const fn new(directory: PathBuf) -> Self {
        Self { directory }
    }
}

impl Journal {
    pub(crate) const fn new(place: Option<Place>) -> Self {
        Self { place }
    }

    /// The journal that is kept in this directory, whoever writes it.
    #[must_use]
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self::new(Some(Place::new(directory.into())))
    }

    /// Where it is kept; none if no journal is kept.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.directory.as_path())
    }

    /// The events since a moment, of one kind or all, oldest first. Lines that cannot be read are
    /// left out. [`Kind::Usage`] has to be asked for: it is a record, many lines that say little
    /// one by one.
    #[must_use]
    pub fn events(
        &self,
        since: Option<SystemTime>,
        kind: Option<Kind>,
    ) -> std::vec::IntoIter<Event> {
        let files = self.place.iter().flat_map(|place| place.all_files(kind));
        let texts = files.filter_map(|path| std::fs::read(path).ok());
        let choice = Choice { since: since.map(Moment::of), kind };
        let mut events: Vec<Event> = texts.flat_map(|text| choice.read(&text)).collect();
        events.sort_by_key(|event| event.at);
        events.into_iter()
    }

    /// The same, and then whatever comes, whenever it is asked. Without a moment it begins with
    /// what comes from now on.
    #[must_use]
    pub fn follow(&self, since: Option<SystemTime>, kind: Option<Kind>) -> Follow {
        Follow::new(self.place.as_ref(), Choice { since: since.map(Moment::of), kind })
    }

    /// What was written behind a mark, and then whatever comes: nothing twice, and nothing missing
    /// that is still kept.
    #[must_use]
    pub fn follow_from(&self, mark: &Mark, kind: Option<Kind>) -> Follow {
        Follow::new(self.place.as_ref(), Choice { since: None, kind }).from(mark)
    }
}

/// Which events are wanted.
#[derive(Clone, Copy, Debug)]
struct Choice {
    since: Option<Moment>,
    kind: Option<Kind>,
}

impl Choice {
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
