//! What a process writes down about its calls: one line each, appended by one write.
//!
//! Times are microseconds of the machine's monotonic clock, which all processes share. The referee
//! reads these lines and the provider's log, nothing else.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// The monotonic clock, in microseconds.
#[must_use]
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default() / 1_000
}

/// A file that lines are appended to.
#[derive(Debug)]
pub struct Recorder(File);

impl Recorder {
    /// Opens or creates the file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, String> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(Self).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Appends a line with the present time, and returns that time.
    pub fn write(&self, kind: &str, number: u64, pool: &str, rest: &str) -> u64 {
        let at = now();
        let rest = rest.replace(['\n', '\r'], " ");
        let line = format!("{at} {kind} {number} {pool} {rest}\n");
        // A process that cannot write its record has no other way to report that.
        let _written = (&self.0).write_all(line.as_bytes());
        at
    }
}

/// One line of a record.
#[derive(Clone, Debug)]
pub struct Line {
    /// When it was written.
    pub at: u64,
    /// What happened.
    pub kind: String,
    /// The number of the call, per process.
    pub number: u64,
    /// The pool.
    pub pool: String,
    /// The rest.
    pub rest: String,
}

/// The lines of a file. A last line that was cut off by a kill is left out.
#[must_use]
pub fn read(path: &Path) -> Vec<Line> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().filter_map(parse).collect()
}

fn parse(line: &str) -> Option<Line> {
    let mut words = line.splitn(5, ' ');
    let at = words.next()?.parse().ok()?;
    let kind = words.next()?.to_owned();
    let number = words.next()?.parse().ok()?;
    let pool = words.next()?.to_owned();
    Some(Line { at, kind, number, pool, rest: words.next().unwrap_or_default().to_owned() })
}
