//! The log of one pool: the order of reads and writes on its file.
//!
//! An append takes the lock, checks that the open file is still the one at its path, reads and
//! verifies the head, stamps the records, writes them with the next head and releases the lock.
//! Reading what others appended, and applying it, happens outside the lock. The caller's own
//! entries are not read back. A read takes no lock at all: if the latest head afterwards no longer
//! covers what was read, it is repeated with the lock.
//!
//! Looking up a path costs half as much as all other calls of a step together, so a step asks for
//! less: see [`FileLog::is_still_at_path`].
//!
//! Reading order: [`FileLog::with_lock`], `impl Log`, then [`lookup`] (finding a position in the
//! file) and [`crate::file::append`] (writing).

pub(crate) mod lookup;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use standpipe_core::SEMANTICS;
use standpipe_store::log::snapshot_due;
use standpipe_store::{
    Appended, Log, LogRead, PoolName, Position, Snapshot, StoreError, Tail, plain_io,
};

use self::lookup::{Lookup, ReadRange};
use crate::file::head::{Head, LogOffset, SnapshotSlot};
use crate::file::lock::{self, LockWait, LockWaiter};
use crate::file::pool_file::{Heads, PoolFile, entries_of};
use crate::store::StoreShared;
use crate::testing::failpoint;
use crate::time::ClockOrigin;

/// The log of one pool on its file.
pub struct FileLog {
    pub(crate) store: Arc<StoreShared>,
    pub(crate) pool: PoolName,
    pub(crate) path: PathBuf,
    pub(crate) open: Option<Arc<PoolFile>>,
    /// The end of the log at the last read. The next read usually starts there.
    last_end: Option<LogOffset>,
    lock_waiter: LockWaiter,
    /// The last attempt to take the lock timed out.
    lock_timed_out: bool,
    /// When the caller of the next steps stops waiting, see [`Log::set_deadline`].
    deadline: Option<Instant>,
    /// Quarantine damaged files; otherwise damage is only an error.
    pub(crate) recover_if_damaged: bool,
    /// The clock origin with which the open file was verified, see [`crate::recovery`].
    pub(crate) verified_origin: Option<ClockOrigin>,
    /// Appends since this log last yielded the processor.
    appends: u32,
    /// Whether another process appended in the meantime.
    contended: bool,
    /// Whether another process appended since the latest snapshot that this one wrote.
    shared: bool,
    /// The file at the path was replaced since the last answer: positions are not comparable.
    replaced: bool,
    /// The last time that the open file was seen at the path.
    seen_at_path: Option<SeenAtPath>,
}

/// When the open file was seen at its path, and how many names it had then.
struct SeenAtPath {
    at: Instant,
    links: Option<u64>,
}

/// What an append did with the lock held.
struct Appending {
    file: Arc<PoolFile>,
    head: Arc<Head>,
    found: Lookup,
    /// The end of the log before the caller's own entries.
    after: LogOffset,
}

impl FileLog {
    pub(crate) fn new(
        store: Arc<StoreShared>,
        pool: PoolName,
        path: PathBuf,
        recover_if_damaged: bool,
    ) -> Self {
        Self {
            store,
            pool,
            path,
            open: None,
            last_end: None,
            lock_waiter: LockWaiter::default(),
            lock_timed_out: false,
            deadline: None,
            recover_if_damaged,
            verified_origin: None,
            appends: 0,
            contended: false,
            shared: false,
            replaced: false,
            seen_at_path: None,
        }
    }

    /// Runs `act` with the lock held, on the file that is at the path, with its verified head.
    pub(crate) fn with_lock<T>(
        &mut self,
        act: impl FnOnce(&mut Self, &Arc<PoolFile>, Arc<Head>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        for _ in 0..ATTEMPTS {
            // Nothing of the caller's is written before `act`.
            let file = self.ensure_open().map_err(StoreError::unsent)?;
            let guard = lock::acquire(&file.file, &self.path, &self.pool, &self.lock_wait());
            self.lock_timed_out = guard.as_ref().is_err_and(|not_locked| not_locked.timed_out);
            let guard = guard?;
            failpoint::reach("lock taken");
            // The file can have been replaced before this process got the lock.
            let read = file.read_heads().map_err(|error| self.io_error("read", error));
            let regular = matches!(read, Ok((Heads::Consecutive(_), false)));
            if !self.is_still_at_path(&file, regular) {
                self.close_replaced();
                continue;
            }
            let (heads, retired) = read?;
            if retired {
                // Somebody put a file back that was once renamed.
                file.mark_retired(false).map_err(|error| self.io_error("write", error))?;
            }
            let Some(head) = self.verified_head(&file, heads)? else {
                self.close_replaced();
                continue;
            };
            let done = act(self, &file, head);
            drop(guard);
            failpoint::reach("lock released");
            return done;
        }
        Err(StoreError::transient(format!(
            "the file of `{}` is replaced repeatedly; see which process writes to {}",
            self.pool,
            self.path.display()
        ))
        .unsent())
    }

    /// Returns how long to wait for the lock of the pool's file.
    pub(crate) fn lock_wait(&self) -> LockWait<'_> {
        let timeout = self.lock_timeout();
        LockWait { waiter: &self.lock_waiter, timeout, deadline: self.deadline }
    }

    /// Returns how long to wait for the lock, whatever the caller's deadline.
    ///
    /// After a timeout the next attempts are short: the caller already has the error that names the
    /// holder, and a full wait for each further call would only delay it.
    fn lock_timeout(&self) -> Duration {
        let full = self.store.lock_timeout;
        if self.lock_timed_out { full.min(RETRY_TIMEOUT) } else { full }
    }

    /// Returns the file, opening it if necessary.
    pub(crate) fn ensure_open(&mut self) -> Result<Arc<PoolFile>, StoreError> {
        if let Some(open) = &self.open {
            return Ok(Arc::clone(open));
        }
        let file = Arc::new(self.open_or_create()?);
        (self.last_end, self.verified_origin, self.seen_at_path) = (None, None, None);
        self.open = Some(Arc::clone(&file));
        Ok(file)
    }

    /// Whether the open file is still the one at the path.
    ///
    /// A file that is deleted, or replaced by renaming another one to its path, has one name less;
    /// so the number of names is asked for each time. A file that a process quarantines is marked,
    /// which shows in the heads. What neither shows, a file or a directory that somebody renames by
    /// hand, is looked for at the path itself: every [`PATH_CHECK_EVERY`], and before anything but
    /// two consecutive heads leads to a conclusion (`regular` is unset).
    fn is_still_at_path(&mut self, file: &PoolFile, regular: bool) -> bool {
        let links = file.link_count();
        let recently = |seen: &SeenAtPath| {
            links.is_some() && seen.links == links && seen.at.elapsed() < PATH_CHECK_EVERY
        };
        if regular && self.seen_at_path.as_ref().is_some_and(recently) {
            return true;
        }
        let at = Instant::now();
        let is_there = file.is_at(&self.path);
        self.seen_at_path = is_there.then_some(SeenAtPath { at, links });
        is_there
    }

    /// Yields the processor after every [`APPENDS_PER_TURN`] appends if others append too.
    ///
    /// Each process yields after the same work, so all get the same work done, whatever time slices
    /// the system gives them. A turn is long enough to pay for what begins it: loading what others
    /// appended meanwhile.
    fn yield_if_contended(&mut self) {
        self.appends += 1;
        if self.appends >= APPENDS_PER_TURN {
            if std::mem::take(&mut self.contended) {
                thread::yield_now();
            }
            self.appends = 0;
        }
    }

    /// Closes a file that is no longer the pool's.
    fn close_replaced(&mut self) {
        (self.open, self.replaced) = (None, true);
    }

    /// Reads a range of the file, up to the caller's own entries if it appended some at `own`.
    fn read_range(
        &mut self,
        file: &PoolFile,
        head: &Head,
        range: &ReadRange,
        own: Option<LogOffset>,
    ) -> Result<Tail, StoreError> {
        let latest = head.snapshot();
        let since_snapshot = head.end.bytes - latest.map_or(0, |slot| slot.taken_at.bytes);
        let size = latest.map_or(0, |slot| slot.length);
        let failed = |error| self.io_error("read", error);
        let slot = range.snapshot.map(|slot| &head.slots[slot]);
        let snapshot = slot.map(|slot| file.snapshot(slot).map_err(failed)).transpose()?;
        let until = own.unwrap_or(head.end).bytes;
        let entries = match range.begin.bytes < until {
            true => entries_of(&file.read_log(head, range.begin.bytes, until).map_err(failed)?),
            false => Vec::new(),
        };
        self.last_end = Some(head.end);
        // Only others read a snapshot, so alone a process writes them more rarely.
        let long = since_snapshot > head.log_size / 4;
        let short = !self.shared && since_snapshot < TAIL_OF_ONE.min(head.log_size / 4);
        let now = || head.stamp.max(self.store.time.now(head.origin));
        Ok(Tail {
            snapshot,
            entries,
            appended: own.map(|own| Appended { after: own.position, stamp: head.stamp }),
            head: head.end.position,
            now: own.map_or_else(now, |_| head.stamp),
            latest_snapshot: latest.map(SnapshotSlot::id),
            snapshot_due: long || !short && snapshot_due(as_size(since_snapshot), as_size(size)),
        })
    }

    /// Reads what came since a position with the lock held, so that nobody writes meanwhile.
    fn read_locked(&mut self, from: Position) -> Result<LogRead, StoreError> {
        self.with_lock(|log, file, head| match log.locate_from(file, &head, from)? {
            Lookup::Forked => log.pause_for_restore(file, head).map(|_| LogRead::Forked),
            Lookup::Replaced => Ok(LogRead::Forked),
            found => {
                let range = ReadRange::choose(&head, &found);
                log.read_range(file, &head, &range, None).map(LogRead::Tail)
            }
        })
    }

    /// Turns an error of the file system while the lock is held into a transient one.
    pub(crate) fn io_error(&self, what: &str, error: io::Error) -> StoreError {
        let shown = self.path.display();
        let why = plain_io(&error);
        StoreError::transient(format!("cannot {what} {shown}: {why}")).caused_by(error)
    }
}

impl Log for FileLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        if bodies.is_empty() {
            return self.read(from);
        }
        let appending = self.with_lock(|log, file, head| {
            let others = from != head.end.position;
            (log.contended, log.shared) = (log.contended | others, log.shared | others);
            match log.locate_from(file, &head, from)? {
                Lookup::Forked => log.pause_for_restore(file, head).map(|_| None),
                Lookup::Replaced => Ok(None),
                found => {
                    let (file, after) = (Arc::clone(file), head.end);
                    let head = log.append_entries(&file, &head, bodies)?;
                    Ok(Some(Appending { file, head, found, after }))
                }
            }
        })?;
        self.yield_if_contended();
        let Some(Appending { file, head, found, after }) = appending else {
            return Ok(LogRead::Forked);
        };
        let range = ReadRange::choose(&head, &found);
        let tail = self.read_range(&file, &head, &range, Some(after))?;
        let nothing_read = range.snapshot.is_none() && range.begin.bytes == after.bytes;
        if nothing_read || range.is_in_head(&head) || range.is_still_covered(&file, &head) {
            return Ok(LogRead::Tail(tail));
        }
        // The entries are written, whatever becomes of this read.
        self.read_locked(from).map_err(StoreError::maybe_sent)
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        let file = self.ensure_open()?;
        let (heads, retired) = file.read_heads().map_err(|error| self.io_error("read", error))?;
        if !self.is_still_at_path(&file, !retired) {
            self.close_replaced();
        }
        // If the heads are not consecutive, another process may be writing one right now.
        let Heads::Consecutive(head) = heads else { return self.read_locked(from) };
        if self.replaced {
            return self.read_locked(from);
        }
        let same_boot = self.verified_origin == Some(head.origin)
            || self.store.time.is_same_boot(head.last_stamp());
        if head.semantics != SEMANTICS || !same_boot {
            return self.read_locked(from);
        }
        match self.locate(&file, &head, from) {
            Ok(found @ (Lookup::At(_) | Lookup::Trimmed)) => {
                let range = ReadRange::choose(&head, &found);
                let tail = self.read_range(&file, &head, &range, None)?;
                match range.is_in_head(&head) || range.is_still_covered(&file, &head) {
                    true => Ok(LogRead::Tail(tail)),
                    false => self.read_locked(from),
                }
            }
            Ok(Lookup::Forked | Lookup::Replaced) | Err(_) => self.read_locked(from),
        }
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.shared = false;
        self.with_lock(|log, file, head| {
            let at = snapshot.id.at;
            let outdated =
                head.snapshot().is_some_and(|slot| at.number <= slot.taken_at.position.number);
            if outdated {
                return Ok(());
            }
            match log.locate(file, &head, at)? {
                Lookup::At(offset) => log.store_snapshot(file, &head, offset, snapshot).map(drop),
                Lookup::Trimmed | Lookup::Forked | Lookup::Replaced => Ok(()),
            }
        })
    }

    fn is_current(&self) -> Option<bool> {
        Some(self.open.as_ref().is_some_and(|file| file.is_at(&self.path)))
    }

    fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    fn wake_sessions(&self, sessions: &[u64]) {
        self.store.sessions.wake_sessions(sessions);
    }

    fn quarantine(&mut self) -> Result<bool, StoreError> {
        if !self.recover_if_damaged {
            return Ok(false);
        }
        let before = self.open.clone();
        self.with_lock(|log, file, head| {
            // Another process may have quarantined the file already.
            let replaced = before.is_some_and(|before| !Arc::ptr_eq(&before, file));
            if replaced {
                return Ok(true);
            }
            let Some(reason) = log.find_damage(file, &head)? else { return Ok(false) };
            log.quarantine_file(file, &reason)?;
            log.close_replaced();
            Ok(true)
        })
    }
}

impl fmt::Debug for FileLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileLog").field("path", &self.path).finish_non_exhaustive()
    }
}

fn as_size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// How long to wait for the lock after an attempt that timed out.
const RETRY_TIMEOUT: Duration = Duration::from_millis(50);
/// The bytes of entries behind a snapshot up to which a process that is alone writes no other one:
/// a new process applies them in a third of a millisecond.
const TAIL_OF_ONE: u64 = 16 << 10;
/// How many appends in a row a process makes before it yields to others.
const APPENDS_PER_TURN: u32 = 256;
/// How long the open file counts as the one at the path while the number of its names is the same.
const PATH_CHECK_EVERY: Duration = Duration::from_micros(100);
/// How often an operation starts again because the file was replaced meanwhile.
const ATTEMPTS: usize = 8;

#[cfg(test)]
mod tests;
