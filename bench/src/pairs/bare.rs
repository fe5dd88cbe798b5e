//! The floor of the embedded store: the system calls of two steps and nothing between them.
//!
//! A step locks a file, reads both heads, writes an entry, writes a head and unlocks. Sizes and
//! offsets are those of a pool's file in its first format. In the present one a head carries the
//! entry, which saves a write; the loop stays as it was, so that results remain comparable. Nothing
//! of Standpipe is called.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation, Mode, OFlags};

/// The bytes of a reserve and of a commit as the log has them.
const ENTRIES: [usize; 2] = [56, 47];
/// Both heads are read together and written in turns; one lies on each side of a page's edge.
const HEAD: usize = 320;
const HEADS_AT: u64 = 4_096 - HEAD as u64;
const LOG_AT: u64 = 8_192;
const LOG: u64 = 512 << 10;
const FILE: u64 = 6 << 20;

pub(super) fn pairs(directory: &Path) -> Result<impl FnMut(), String> {
    let wrong = |error: io::Error| format!("the bare file: {error}");
    let mut bare = Bare::create(&directory.join("bare")).map_err(wrong)?;
    Ok(move || {
        let done = ENTRIES.iter().try_for_each(|length| bare.step(*length));
        assert!(done.is_ok(), "the bare file: {done:?}");
    })
}

struct Bare {
    file: File,
    steps: u64,
    end: u64,
}

impl Bare {
    fn create(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOATIME;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, FILE)?;
        Ok(Self { file: File::from(file), steps: 0, end: 0 })
    }

    fn step(&mut self, length: usize) -> io::Result<()> {
        let (mut heads, entry, head) = ([0; 2 * HEAD], [1; 64], [2; HEAD]);
        rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive)?;
        self.file.read_at(&mut heads, HEADS_AT)?;
        self.file.write_all_at(&entry[..length], LOG_AT + self.end % (LOG - 64))?;
        self.file.write_all_at(&head, HEADS_AT + self.steps % 2 * HEAD as u64)?;
        rustix::fs::flock(&self.file, FlockOperation::Unlock)?;
        (self.steps, self.end) = (self.steps + 1, self.end + length as u64);
        Ok(())
    }
}
