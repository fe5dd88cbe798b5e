//! Reads the journal as it grows, a bounded piece at a time, and from a cursor onwards.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use standpipe_store::hash;

use super::cursor::{JournalCursor, Part};
use super::{Event, EventFilter, JournalDirectory};

/// How much of a file is read at a time.
const PIECE: u64 = 1 << 20;

/// The journal as it grows. See [`super::Journal::follow`].
#[derive(Debug)]
pub struct Follow {
    choice: EventFilter,
    rolls: Vec<RotatedFile>,
}

/// The files of one name, which go round: one is read, others may follow it.
#[derive(Debug)]
struct RotatedFile {
    /// Present file first, then those that went round, the youngest first.
    paths: Vec<PathBuf>,
    letter: char,
    file: Option<OpenFile>,
    next: VecDeque<OpenFile>,
}

/// A file, under its present name or the one it went round to.
#[derive(Debug)]
struct OpenFile {
    file: File,
    /// Identifies it among the files of its name; `None` while it has no line.
    origin: Option<u64>,
    /// Up to where its lines were handed out.
    at: u64,
    /// What was read and is not a whole line yet.
    rest: Vec<u8>,
}

/// What was read of one roll: the events that are wanted, and where each ends.
type Lines = VecDeque<(Event, u64)>;

impl Follow {
    pub(super) fn new(place: Option<&JournalDirectory>, choice: EventFilter) -> Self {
        let rolls = place.into_iter().flat_map(|place| place.rotated_files(choice.kind));
        let mut rolls: Vec<RotatedFile> =
            rolls.map(|(letter, paths)| RotatedFile::new(letter, paths)).collect();
        for roll in &mut rolls {
            match choice.since {
                Some(_) => roll.next = roll.pages(),
                None => roll.file = OpenFile::open(&roll.paths[0]).map(OpenFile::at_its_end),
            }
        }
        Self { choice, rolls }
    }

    /// Continues behind the event of this cursor. Lines that were rotated away since are skipped.
    pub(super) fn from(mut self, mark: &JournalCursor) -> Self {
        for roll in &mut self.rolls {
            (roll.file, roll.next) = (None, roll.pages());
            let Some(part) = mark.part(roll.letter) else { continue };
            let known = roll.next.iter().position(|page| page.origin == Some(part.origin));
            let Some(known) = known else { continue };
            roll.next.drain(..known);
            roll.file = roll.next.pop_front().map(|page| page.from(part.at));
        }
        self
    }

    /// What came since it was last asked, oldest first. It does not wait: ask again after a while.
    pub fn more(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(some) = self.read() {
            events.extend(some.into_iter().map(|(event, _)| event));
        }
        events.sort_by_key(Event::order);
        events
    }

    /// Returns the next events, those of one read, each with the cursor behind it. Empty if there
    /// is nothing to read now.
    pub fn some(&mut self) -> Vec<(Event, JournalCursor)> {
        while let Some(some) = self.read() {
            if !some.is_empty() {
                return some;
            }
        }
        Vec::new()
    }

    /// From where what has not been handed out can be read.
    #[must_use]
    pub fn mark(&self) -> JournalCursor {
        JournalCursor::new(self.rolls.iter().filter_map(RotatedFile::part))
    }

    /// A piece of each roll. None if there was nothing to read.
    fn read(&mut self) -> Option<Vec<(Event, JournalCursor)>> {
        let before: Vec<Option<Part>> = self.rolls.iter().map(RotatedFile::part).collect();
        let mut pieces = Vec::new();
        let mut any = false;
        for roll in &mut self.rolls {
            let lines = roll.read(self.choice);
            any |= lines.is_some();
            pieces.push(lines.unwrap_or_default());
        }
        any.then(|| self.merge(before, pieces))
    }

    /// By their time, but never against the order in which a roll has them.
    fn merge(
        &self,
        mut at: Vec<Option<Part>>,
        mut pieces: Vec<Lines>,
    ) -> Vec<(Event, JournalCursor)> {
        let mut events = Vec::new();
        for (part, roll) in at.iter_mut().zip(&self.rolls) {
            // It may have begun another file; that begins at its beginning.
            let now = roll.part();
            let moved = part.map(|part| part.origin) != now.map(|now| now.origin);
            *part = if moved { now.map(|now| Part { at: 0, ..now }) } else { *part };
        }
        loop {
            let fronts = pieces.iter().enumerate();
            let fronts = fronts.filter_map(|(roll, lines)| Some((lines.front()?.0.at, roll)));
            let Some((_, roll)) = fronts.min() else { break };
            let Some((event, end)) = pieces[roll].pop_front() else { break };
            if let Some(part) = &mut at[roll] {
                part.at = end;
            }
            events.push((event, JournalCursor::new(at.iter().flatten().copied())));
        }
        events
    }
}

impl RotatedFile {
    const fn new(letter: char, paths: Vec<PathBuf>) -> Self {
        Self { paths, letter, file: None, next: VecDeque::new() }
    }

    fn part(&self) -> Option<Part> {
        let page = self.file.as_ref()?;
        Some(Part { letter: self.letter, origin: page.origin?, at: page.at })
    }

    /// All files there are, the oldest first.
    fn pages(&self) -> VecDeque<OpenFile> {
        self.paths.iter().rev().filter_map(|path| OpenFile::open(path)).collect()
    }

    /// A piece of it: the events that are wanted and where each ends. None if there is nothing.
    fn read(&mut self, choice: EventFilter) -> Option<Lines> {
        loop {
            if let Some(lines) = self.file.as_mut().and_then(|page| page.read(choice)) {
                return Some(lines);
            }
            if self.next.is_empty() {
                self.look_for_more();
            }
            self.file = Some(self.next.pop_front()?);
        }
    }

    /// The present file, if it is another one than was read; and those between.
    fn look_for_more(&mut self) {
        let Some(page) = &self.file else {
            self.next.extend(OpenFile::open(&self.paths[0]));
            return;
        };
        if is_at(&page.file, &self.paths[0]) {
            return;
        }
        let mut pages = self.pages();
        let ours = pages.iter().position(|other| is_same(&other.file, &page.file));
        pages.drain(..ours.map_or(0, |ours| ours + 1));
        self.next = pages;
    }
}

impl OpenFile {
    fn open(path: &Path) -> Option<Self> {
        let mut page = Self { file: File::open(path).ok()?, origin: None, at: 0, rest: Vec::new() };
        page.find_origin();
        Some(page)
    }

    fn at_its_end(mut self) -> Self {
        self.at = self.file.seek(SeekFrom::End(0)).unwrap_or(0);
        self
    }

    fn from(mut self, at: u64) -> Self {
        self.at = self.file.seek(SeekFrom::Start(at)).unwrap_or(0);
        self
    }

    /// The whole lines of the next piece. None if nothing came.
    fn read(&mut self, choice: EventFilter) -> Option<Lines> {
        // What cannot be read now is read the next time.
        let came = (&mut self.file).take(PIECE).read_to_end(&mut self.rest).unwrap_or(0);
        if came == 0 {
            return None;
        }
        self.find_origin();
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let rest = self.rest.split_off(whole);
        let whole = std::mem::replace(&mut self.rest, rest);
        let mut lines = Lines::new();
        for line in whole.split_inclusive(|byte| *byte == b'\n') {
            self.at += line.len() as u64;
            lines.extend(choice.one(line).map(|event| (event, self.at)));
        }
        Some(lines)
    }

    /// The first line identifies a file: no two files begin with the same one.
    fn find_origin(&mut self) {
        if self.origin.is_some() {
            return;
        }
        let Ok(back) = self.file.stream_position() else { return };
        let mut first = Vec::new();
        let read =
            self.file.rewind().and_then(|()| (&mut self.file).take(FIRST).read_to_end(&mut first));
        if read.is_ok() {
            let end = first.iter().position(|byte| *byte == b'\n');
            let end = end.or_else(|| (first.len() as u64 == FIRST).then_some(first.len()));
            self.origin = end.map(|end| hash(0, &first[..end]));
        }
        let _ = self.file.seek(SeekFrom::Start(back));
    }
}

/// How much of a first line identifies a file.
const FIRST: u64 = 512;

#[cfg(unix)]
fn is_same(one: &File, other: &File) -> bool {
    let (Ok(one), Ok(other)) = (one.metadata(), other.metadata()) else { return false };
    same(&one, &other)
}

#[cfg(unix)]
fn same(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.ino() == other.ino() && one.dev() == other.dev()
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    file.metadata().is_ok_and(|open| fs::metadata(path).is_ok_and(|named| same(&open, &named)))
}

#[cfg(not(unix))]
fn is_same(_one: &File, _other: &File) -> bool {
    false
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}
