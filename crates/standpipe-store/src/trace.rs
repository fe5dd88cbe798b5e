//! Golden traces: stories about a pool, one per file, that every ledger must tell the same way.
//!
//! A trace is JSON lines. The first line says what the story is about; every other one is an event
//! at a time, or a look that changes nothing, with what must come of it:
//!
//! ```text
//! {"story": "one sentence", "why": "what it guards", "slack": "0s", "claim": "2s"}
//! {"at": "0s", "session": "one", "configure": {"requests": "2/10s"}, "answer": "applied"}
//! {"at": "1s", "session": "one", "reserve": {"as": "blog"}, "label": "a", "admit": true}
//! {"at": "2s", "session": "two", "reserve": {"as": "news", "requests": 2}, "label": "b",
//!  "wait": {"reason": "limit", "limit": "requests/10s", "short_by": 1, "until": "11s"}}
//! {"at": "10.999999s", "peek": {"ticket": "b"}, "wait": {"until": "11s"}}
//! {"at": "11s", "session": "two", "claim": "b", "admit": true}
//! ```
//!
//! What a line states must be so; what it does not state is not looked at, but goes into the
//! story's digest with everything else. `spec/traces/README.md` lists all words. The runner numbers
//! the events of each session by itself and owns the clock. It does not know how a store works: see
//! [`Ledger`].

mod config;
mod digests;
mod ledger;
mod line;
mod run;
mod show;
mod text;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

pub use self::digests::Digests;
pub use self::ledger::{Bare, Ledger, OnLog, Time};
pub use self::line::Story;
pub use self::run::run;

/// Something that is not as it should be, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The trace.
    pub file: String,
    /// Its line, from 1.
    pub line: usize,
    /// What was expected there and what was found.
    pub what: String,
}

/// All stories of this repository, in the order of their names.
///
/// # Errors
/// The first file that cannot be read, or line that cannot be understood.
pub fn stories() -> Result<Vec<Story>, Mistake> {
    stories_in(&directory())
}

/// Where the stories of this repository are.
#[must_use]
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/traces")
}

/// All stories in a directory, in the order of their names.
///
/// # Errors
/// As [`stories`].
pub fn stories_in(directory: &Path) -> Result<Vec<Story>, Mistake> {
    let unreadable = |path: &Path, error: std::io::Error| Mistake {
        file: path.display().to_string(),
        line: 0,
        what: format!("cannot be read: {error}"),
    };
    let listing = fs::read_dir(directory).map_err(|error| unreadable(directory, error))?;
    let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Story::read(&name, &text)
    };
    paths.iter().map(read).collect()
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

impl std::error::Error for Mistake {}
