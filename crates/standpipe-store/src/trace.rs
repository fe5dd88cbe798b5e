//! The runner of golden traces: recorded sequences of events with the outcomes they must have.
//!
//! A trace is a file of JSON lines. The first line describes it. Every other line is an event at an
//! instant, or a peek that changes nothing, with the expected outcome:
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
//! The runner compares only the fields that a line states. All fields enter the trace's digest.
//! `spec/traces/README.md` lists the keys. The runner numbers the events of each session and
//! controls the clock. [`Ledger`] is what it runs a trace on: the core alone, or a replica on a
//! log.

mod config;
mod digests;
mod ledger;
mod parse;
mod render;
mod run;
mod values;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

pub use self::digests::Digests;
pub use self::ledger::{CoreLedger, Ledger, LogLedger, ManualClock};
pub use self::parse::Trace;
pub use self::run::run;

/// A trace that cannot be read or whose outcome is not the expected one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What was expected there and what was found.
    pub message: String,
}

/// Loads all traces of this repository, sorted by name.
///
/// # Errors
/// The first file that cannot be read, or the first line that cannot be parsed.
pub fn load_all() -> Result<Vec<Trace>, TraceError> {
    load_dir(&directory())
}

/// Returns the directory of the traces of this repository.
#[must_use]
pub fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/traces")
}

/// Loads all traces of a directory, sorted by name.
///
/// # Errors
/// As [`load_all`].
pub fn load_dir(directory: &Path) -> Result<Vec<Trace>, TraceError> {
    let unreadable = |path: &Path, error: std::io::Error| TraceError {
        file: path.display().to_string(),
        line: 0,
        message: format!("cannot be read: {error}"),
    };
    let listing = fs::read_dir(directory).map_err(|error| unreadable(directory, error))?;
    let mut paths: Vec<PathBuf> = listing.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Trace::parse(&name, &text)
    };
    paths.iter().map(read).collect()
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for TraceError {}
