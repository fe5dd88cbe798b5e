//! Reading the journal as it grows.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{Choice, Event, Place};

/// The journal as it grows. See [`super::Journal::follow`].
#[derive(Debug)]
pub struct Follow {
    choice: Choice,
    earlier: Vec<Event>,
    files: Vec<Followed>,
}

/// A file that is written to, under its present name or the one it went round to.
#[derive(Debug)]
struct Followed {
    path: PathBuf,
    file: Option<File>,
    /// What was read and is not a whole line yet.
    rest: Vec<u8>,
}

impl Follow {
    pub(super) fn new(place: Option<&Place>, choice: Choice) -> Self {
        let mut earlier = Vec::new();
        if choice.since.is_some() {
            let files = place.into_iter().flat_map(|place| place.earlier_files(choice.kind));
            let texts = files.filter_map(|path| fs::read(path).ok());
            earlier.extend(texts.flat_map(|text| choice.read(&text)));
        }
        let files = place.into_iter().flat_map(|place| place.present_files(choice.kind));
        let from_end = choice.since.is_none();
        let files = files.map(|path| Followed::new(path, from_end)).collect();
        Self { choice, earlier, files }
    }

    /// What came since it was last asked, oldest first. It does not wait: ask again after a while.
    pub fn more(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.earlier);
        for file in &mut self.files {
            events.extend(self.choice.read(&file.more()));
        }
        events.sort_by_key(|event| event.at);
        events
    }
}

impl Followed {
    fn new(path: PathBuf, from_end: bool) -> Self {
        let mut file = File::open(&path).ok();
        if let Some(file) = file.as_mut().filter(|_| from_end) {
            let _ = file.seek(SeekFrom::End(0));
        }
        Self { path, file, rest: Vec::new() }
    }

    /// The whole lines that came.
    fn more(&mut self) -> Vec<u8> {
        let moved = self.file.as_ref().is_none_or(|file| !is_at(file, &self.path));
        self.read();
        if moved {
            // What was written to the old file before it went round has just been read.
            self.file = File::open(&self.path).ok();
            self.read();
        }
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let rest = self.rest.split_off(whole);
        std::mem::replace(&mut self.rest, rest)
    }

    fn read(&mut self) {
        if let Some(file) = &mut self.file {
            // What cannot be read now is read the next time.
            let _ = file.read_to_end(&mut self.rest);
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = |one: fs::Metadata, other: fs::Metadata| {
        one.ino() == other.ino() && one.dev() == other.dev()
    };
    file.metadata().is_ok_and(|open| fs::metadata(path).is_ok_and(|named| same(open, named)))
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}
