//! The journal's files: which there are, how lines are appended, and how they are rotated.
//!
//! A process opens the files anew for every batch of lines, so that none keeps writing to a file
//! that was rotated. The process that rotates holds a lock; one that does not get it leaves the
//! rotation to the other.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Event, EventKind, JournalDirectory};
use crate::time::Timestamp;

/// How large a file may grow before the next begins.
const LARGEST: u64 = 4 << 20;
/// How many earlier files are kept.
const EARLIER: u32 = 3;
/// How many of them of what was used: a day and a half of ten agents that are never idle, or of a
/// call a second by a process each.
const EARLIER_USAGE: u32 = 7;
/// How long a refusal by a provider is kept at least, in milliseconds.
const KEPT: u64 = 8 * 86_400_000;
/// How much of them is kept at most: more than a hundred thousand in eight days add no information.
const MOST_THROTTLES: u64 = 16 << 20;

/// A file, or the directory, that no line can be added to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnwritableFile {
    /// Which.
    pub path: PathBuf,
    /// The error of the system.
    pub why: String,
    /// A directory is in its place.
    pub is_directory: bool,
    /// The file system is mounted read-only.
    pub is_read_only: bool,
    /// The user id of its owner, where the system has one.
    pub owner: Option<u32>,
}

impl UnwritableFile {
    fn of(path: &Path, error: &io::Error) -> Self {
        let meta = fs::metadata(path).ok();
        let text = error.to_string();
        Self {
            path: path.to_owned(),
            why: text.split(" (os error").next().unwrap_or_default().to_lowercase(),
            is_directory: error.kind() == io::ErrorKind::IsADirectory,
            is_read_only: error.kind() == io::ErrorKind::ReadOnlyFilesystem,
            owner: meta.as_ref().and_then(owner),
        }
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no owner")]
fn owner(meta: &fs::Metadata) -> Option<u32> {
    Some(std::os::unix::fs::MetadataExt::uid(meta))
}

#[cfg(not(unix))]
const fn owner(_: &fs::Metadata) -> Option<u32> {
    None
}

const JOURNAL: &str = "journal";
const THROTTLES: &str = "throttles";
const USAGE: &str = "usage";

impl JournalDirectory {
    /// All files there may be with events of a kind, earlier ones first. Without a kind: of all but
    /// what was used, see [`super::Journal::events`].
    pub(super) fn all_files(&self, kind: Option<EventKind>) -> Vec<PathBuf> {
        self.rotated_files(kind)
            .into_iter()
            .flat_map(|(_, files)| files.into_iter().rev())
            .collect()
    }

    /// The files of each name, identified by its first letter: the one that is written to, then the
    /// rotated ones, the youngest first.
    pub(super) fn rotated_files(&self, kind: Option<EventKind>) -> Vec<(char, Vec<PathBuf>)> {
        let all = |(name, earlier): &(&'static str, u32)| {
            let files = (0..=*earlier).map(|age| self.file(name, age)).collect();
            Some((name.chars().next()?, files))
        };
        names(kind).iter().filter_map(all).collect()
    }

    /// Adds these events. `now` is when that is.
    pub(super) fn add(&self, events: &[Event], now: Timestamp) -> io::Result<()> {
        make_directory(&self.directory)?;
        let (mut throttles, mut usage, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for event in events {
            let lines = match event.what.kind() {
                EventKind::Throttle => &mut throttles,
                EventKind::Usage => &mut usage,
                _ => &mut others,
            };
            serde_json::to_writer(&mut *lines, event)?;
            lines.push(b'\n');
        }
        for (name, earlier, lines) in [(JOURNAL, EARLIER, others), (USAGE, EARLIER_USAGE, usage)] {
            if !lines.is_empty() {
                let is_large = |place: &Self| place.is_large(name, lines.len());
                self.rotate_if(is_large, |place| place.shift(name, earlier))?;
                append(&self.file(name, 0), &lines)?;
            }
        }
        if !throttles.is_empty() {
            self.rotate_if(|place| place.are_old(now), Self::shift_throttles)?;
            if size(&self.file(THROTTLES, 0)) > MOST_THROTTLES {
                return Err(io::Error::other("more refusals than are kept"));
            }
            append(&self.file(THROTTLES, 0), &throttles)?;
        }
        Ok(())
    }

    /// The files that no line can be added to, and why. Nothing is written, but a file is created
    /// and removed where a file of the journal does not exist yet.
    pub(super) fn unwritable(&self) -> Vec<UnwritableFile> {
        let files = [JOURNAL, USAGE, THROTTLES].map(|name| self.file(name, 0));
        let mut found = Vec::new();
        for path in files {
            match OpenOptions::new().read(true).append(true).open(&path) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    found.extend(
                        self.denies_files().map(|e| UnwritableFile::of(&self.directory, &e)),
                    );
                }
                Err(error) => found.push(UnwritableFile::of(&path, &error)),
            }
        }
        found.dedup();
        found
    }

    /// Why no file can be created in the directory; a directory that does not exist is created with
    /// the first line.
    fn denies_files(&self) -> Option<io::Error> {
        let path = self.directory.join(format!("journal-{}.probe", std::process::id()));
        let created = OpenOptions::new().write(true).create_new(true).open(&path);
        let _ = fs::remove_file(path);
        created.err().filter(|error| {
            !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists)
        })
    }

    fn file(&self, name: &str, age: u32) -> PathBuf {
        self.directory.join(match age {
            0 => format!("{name}.jsonl"),
            _ => format!("{name}.{age}.jsonl"),
        })
    }

    /// Shifts files if it is time, unless another process does so just now.
    fn rotate_if(
        &self,
        is_time: impl Fn(&Self) -> bool,
        shift: impl Fn(&Self) -> io::Result<()>,
    ) -> io::Result<()> {
        if !is_time(self) {
            return Ok(());
        }
        let lock = open(&self.directory.join("journal.lock"))?;
        if lock.try_lock().is_ok() && is_time(self) {
            shift(self)?;
        }
        Ok(())
    }

    fn is_large(&self, name: &str, more: usize) -> bool {
        let size = size(&self.file(name, 0));
        size > 0 && size.saturating_add(more as u64) > LARGEST
    }

    fn shift(&self, name: &str, earlier: u32) -> io::Result<()> {
        for age in (0..earlier).rev() {
            match fs::rename(self.file(name, age), self.file(name, age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The first refusal in the file is old: so all in the file before are older, and may go.
    fn are_old(&self, now: Timestamp) -> bool {
        let Ok(file) = File::open(self.file(THROTTLES, 0)) else { return false };
        let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
        let mut events = lines.filter_map(|line| serde_json::from_slice::<Event>(&line).ok());
        events.next().is_some_and(|first| first.at.millis.saturating_add(KEPT) < now.millis)
    }

    fn shift_throttles(&self) -> io::Result<()> {
        fs::rename(self.file(THROTTLES, 0), self.file(THROTTLES, 1))
    }
}

/// The files that have events of a kind, and how many earlier ones there may be.
const fn names(kind: Option<EventKind>) -> &'static [(&'static str, u32)] {
    match kind {
        Some(EventKind::Usage) => &[(USAGE, EARLIER_USAGE)],
        Some(EventKind::Throttle) => &[(THROTTLES, 1)],
        Some(_) => &[(JOURNAL, EARLIER)],
        None => &[(JOURNAL, EARLIER), (THROTTLES, 1)],
    }
}

/// How large a file is; nothing if it is not there.
fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// One write for all lines, so that those of two processes do not mix. A line that was cut off
/// by a kill is ended first.
fn append(path: &Path, lines: &[u8]) -> io::Result<()> {
    let mut file = open(path)?;
    if file.metadata()?.len() > 0 {
        let mut last = [b'\n'];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != [b'\n'] {
            file.write_all(b"\n")?;
        }
    }
    file.write_all(lines)
}

/// Opens a file to add to. A new one is as open to others as its directory.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(path, options),
        opened => opened,
    }
}

#[cfg(unix)]
fn make(path: &Path, mut options: OpenOptions) -> io::Result<File> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let directory = path.parent().map(fs::metadata).transpose()?;
    let writes = |directory: &fs::Metadata| directory.permissions().mode() & 0o020 != 0;
    let group = directory.as_ref().is_some_and(writes);
    let mode = if group { 0o660 } else { 0o600 };
    let file = options.create(true).mode(mode).open(path)?;
    hand_over(&file, directory.as_ref());
    if group {
        // A process that lost the race to create it may not change the mode, and need not.
        let _ = file.set_permissions(fs::Permissions::from_mode(mode));
    }
    Ok(file)
}

#[cfg(not(unix))]
fn make(path: &Path, mut options: OpenOptions) -> io::Result<File> {
    options.create(true).open(path)
}

#[cfg(unix)]
fn make_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    if path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let above = path.parent().and_then(|above| fs::metadata(above).ok());
    hand_over(&File::open(path)?, above.as_ref());
    Ok(())
}

/// What the superuser makes in a user's directory belongs to that user, who could not add to it
/// otherwise. Other users cannot change owners, and need not.
#[cfg(unix)]
fn hand_over(made: &File, directory: Option<&fs::Metadata>) {
    use std::os::unix::fs::{MetadataExt, fchown};
    let owner = made.metadata().map(|meta| meta.uid()).ok();
    if let Some(directory) = directory.filter(|directory| Some(directory.uid()) != owner) {
        let _ = fchown(made, Some(directory.uid()), Some(directory.gid()));
    }
}

#[cfg(not(unix))]
fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

#[cfg(test)]
mod tests;
