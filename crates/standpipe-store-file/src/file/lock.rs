//! The lock of a pool's file: one process at a time reads the head, appends and writes the head.
//!
//! It is a `flock`. The kernel releases it when its process dies, and a forked child does not keep
//! it (`standpipe-sys`). Only a *stopped* process keeps it: then the others wait until their
//! timeout, and the error names that process.

use std::fs::{File, OpenOptions, TryLockError};
use std::hint;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use standpipe_store::{PoolName, StoreError};
use standpipe_sys::UnsharedFile;

use crate::store::directory::fs_error;
use crate::sys;

/// Holds the lock until it is dropped.
pub(crate) enum LockGuard<'a> {
    /// The open file that is read and written.
    Own(&'a UnsharedFile),
    /// Another descriptor of the same file, opened by the waiting thread.
    OfWaiter(UnsharedFile),
}

/// A thread that blocks in `flock` on behalf of a caller, so that the caller can time out.
#[derive(Clone, Default)]
pub(crate) struct LockWaiter(Arc<(Mutex<WaiterState>, Condvar)>);

#[derive(Default)]
struct WaiterState {
    /// The thread is running.
    running: bool,
    /// A caller waits for the lock.
    wanted: bool,
    /// The locked file, or why it could not be locked.
    result: Option<io::Result<UnsharedFile>>,
}

/// How long to wait for the lock, and the thread that does it.
pub(crate) struct LockWait<'a> {
    pub(crate) waiter: &'a LockWaiter,
    /// The longest wait of this store.
    pub(crate) timeout: Duration,
    /// When the caller stops waiting, if that is earlier. After it the lock is only tried.
    pub(crate) deadline: Option<Instant>,
}

/// Why the lock was not taken. Nothing was read or written, so the error is unsent.
#[derive(Debug)]
pub(crate) struct NotLocked {
    pub(crate) error: StoreError,
    /// The store's own timeout passed, not the caller's deadline.
    pub(crate) timed_out: bool,
}

/// Takes the lock, waiting as long as `wait` allows.
///
/// The lock is usually free within microseconds, so it is polled first, see [`SPINS`]. A
/// blocking `flock` cannot be cancelled, so a longer wait is left to a thread. If that thread gets
/// the lock when no caller wants it any more, it releases it at once. The clock is not read unless
/// the lock is in use.
pub(crate) fn acquire<'a>(
    file: &'a UnsharedFile,
    path: &Path,
    pool: &PoolName,
    wait: &LockWait<'_>,
) -> Result<LockGuard<'a>, NotLocked> {
    acquire_while(file, path, pool, wait, || is_written_within(file, wait.timeout))
}

/// Takes the lock. At the store's timeout it continues while `others_write`: then many processes
/// compete for the lock on a busy machine, and none of them is stuck.
fn acquire_while<'a>(
    file: &'a UnsharedFile,
    path: &Path,
    pool: &PoolName,
    wait: &LockWait<'_>,
    mut others_write: impl FnMut() -> bool,
) -> Result<LockGuard<'a>, NotLocked> {
    if try_lock(file, path)? {
        return Ok(LockGuard::Own(file));
    }
    let begun = Instant::now();
    loop {
        let timeout = Instant::now() + wait.timeout;
        let until = wait.deadline.map_or(timeout, |deadline| deadline.min(timeout));
        if let Some(guard) = acquire_contended(file, path, wait.waiter, until)? {
            return Ok(guard);
        }
        let timed_out = until == timeout;
        if !timed_out || begun.elapsed() >= LONGEST_CONTENTION || !others_write() {
            return Err(NotLocked { error: still_locked(file, path, pool).unsent(), timed_out });
        }
    }
}

/// Whether somebody has written to the file in the last `length`, by the wall clock. A jump of that
/// clock makes a wait longer or shorter, up to [`LONGEST_CONTENTION`].
fn is_written_within(file: &File, length: Duration) -> bool {
    let written = file.metadata().and_then(|meta| meta.modified());
    written.is_ok_and(|at| at.elapsed().is_ok_and(|ago| ago < length))
}

/// Takes the lock of a file that is in use; `None` if it is still in use at `until`.
fn acquire_contended<'a>(
    file: &'a UnsharedFile,
    path: &Path,
    waiter: &LockWaiter,
    until: Instant,
) -> Result<Option<LockGuard<'a>>, NotLocked> {
    for attempt in 0..SPINS + YIELDS + PAUSES {
        if Instant::now() >= until {
            return Ok(None);
        }
        match attempt {
            0..SPINS => (0..SPIN_LENGTH).for_each(|_| hint::spin_loop()),
            SPINS..YIELDING => thread::yield_now(),
            _ => thread::sleep(PAUSE),
        }
        if try_lock(file, path)? {
            return Ok(Some(LockGuard::Own(file)));
        }
    }
    loop {
        let result = match waiter.wait(path, until.saturating_duration_since(Instant::now())) {
            Ok(result) => result,
            // The process is at its limit of threads.
            Err(_) => return poll(file, path, until),
        };
        match result {
            Some(Ok(other)) if is_same(&other, file) => {
                return Ok(Some(LockGuard::OfWaiter(other)));
            }
            // The thread opened a file that was at the path before this one; wait again.
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(NotLocked::failed(path, error)),
            None => return Ok(None),
        }
    }
}

/// Takes the lock by polling, without a thread; `None` if it is still in use at `until`.
fn poll<'a>(
    file: &'a UnsharedFile,
    path: &Path,
    until: Instant,
) -> Result<Option<LockGuard<'a>>, NotLocked> {
    loop {
        if try_lock(file, path)? {
            return Ok(Some(LockGuard::Own(file)));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        thread::sleep(POLL_PAUSE);
    }
}

/// Takes the lock if it is free.
fn try_lock(file: &UnsharedFile, path: &Path) -> Result<bool, NotLocked> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(NotLocked::failed(path, error)),
    }
}

impl NotLocked {
    fn failed(path: &Path, error: io::Error) -> Self {
        Self { error: fs_error("lock", path, error).unsent(), timed_out: false }
    }
}

impl From<NotLocked> for StoreError {
    fn from(not_locked: NotLocked) -> Self {
        not_locked.error
    }
}

impl LockWaiter {
    /// Returns the locked file, or `None` after `timeout`. Fails when no thread can be started.
    fn wait(&self, path: &Path, timeout: Duration) -> io::Result<Option<io::Result<UnsharedFile>>> {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.wanted = true;
        if !state.running {
            self.start(path)?;
            state.running = true;
        }
        let pending = |state: &mut WaiterState| state.result.is_none();
        let waited = changed.wait_timeout_while(state, timeout, pending);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.wanted = false;
        Ok(state.result.take())
    }

    fn start(&self, path: &Path) -> io::Result<()> {
        let (waiter, path) = (self.clone(), path.to_owned());
        let wait = move || {
            let open = || OpenOptions::new().read(true).write(true).open(&path);
            let opened = UnsharedFile::open(open);
            let locked = opened.and_then(|file| file.lock().map(|()| file));
            let (state, changed) = &*waiter.0;
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.running = false;
            // If nobody wants it, `locked` is dropped here, which releases the lock.
            if state.wanted {
                state.result = Some(locked);
                changed.notify_all();
            }
        };
        thread::Builder::new().name("standpipe-lock".to_owned()).spawn(wait).map(drop)
    }
}

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        let _ = match self {
            Self::Own(file) => file.unlock(),
            Self::OfWaiter(file) => file.unlock(),
        };
    }
}

fn is_same(one: &File, other: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    identity(one) == identity(other)
}

fn still_locked(file: &File, path: &Path, pool: &PoolName) -> StoreError {
    StoreError::transient(match sys::file::flock_holder(file) {
        Some(pid) if sys::process::is_stopped(pid) => format!(
            "process {pid} is stopped while it holds the lock of `{pool}`, and everybody waits for \
             it; resume it (kill -CONT {pid}) or end it (kill -9 {pid})"
        ),
        _ if is_written_within(file, RECENTLY) => format!(
            "many processes use `{pool}` at once, and its lock did not become free in time; try \
             again, or let them call through one daemon (standpipe up)"
        ),
        Some(pid) => format!(
            "process {pid} has held the lock of `{pool}` for too long; see what it does (`ps \
             {pid}`), and if it hangs, end it (kill -9 {pid}): the ledger stays intact"
        ),
        None => format!(
            "another process has held the lock of `{pool}` for too long; see which one has {} open \
             (`fuser`), and if it hangs, end it (kill -9): the ledger stays intact",
            path.display()
        ),
    })
}

/// The longest wait for a lock that others take and release.
const LONGEST_CONTENTION: Duration = Duration::from_secs(10);

/// A file that was written this lately is in use by processes that make progress.
const RECENTLY: Duration = Duration::from_secs(1);

/// How often the lock is tried before a thread waits for it, and what happens in between.
///
/// First the processor spins: the holder usually runs on another one and has finished within two
/// microseconds. Yielding at once would hand this processor to a process that first has to load
/// what it missed, and that then meets the same holder after a step or two. A holder that takes
/// longer was most likely interrupted inside the step, so it needs a processor: the next attempts
/// yield. They are few, because a yield can cost a whole time slice (Linux 6.18), and a process
/// that got nothing done must not pay for it. The rest sleep.
const SPINS: u32 = 12;
const YIELDS: u32 = 2;
const PAUSES: u32 = 100;
const YIELDING: u32 = SPINS + YIELDS;
/// The length of a spin: a bit more than half a microsecond.
const SPIN_LENGTH: u32 = 40;
const PAUSE: Duration = Duration::from_micros(50);
/// The time between two attempts when no thread can wait for the lock.
const POLL_PAUSE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::time::SystemTime;

    use super::*;

    /// A file that another descriptor has locked.
    fn locked(name: &str) -> (PathBuf, UnsharedFile, File) {
        let path = std::env::temp_dir().join(format!("standpipe-{name}-{}", std::process::id()));
        let holder = File::create(&path).unwrap();
        holder.lock().unwrap();
        let open = || OpenOptions::new().read(true).write(true).open(&path);
        (path.clone(), UnsharedFile::open(open).unwrap(), holder)
    }

    #[test]
    fn a_wait_continues_while_others_write() {
        let (path, file, holder) = locked("contended");
        let pool = "test/pool".parse().unwrap();
        let (waiter, timeout) = (LockWaiter::default(), Duration::from_millis(1));
        let wait = LockWait { waiter: &waiter, timeout, deadline: None };
        let stuck = acquire_while(&file, &path, &pool, &wait, || false).err().unwrap();
        assert!(stuck.timed_out, "{stuck:?}");
        let passed = LockWait { deadline: Some(Instant::now()), ..wait };
        let late = acquire_while(&file, &path, &pool, &passed, || true).err().unwrap();
        assert!(!late.timed_out, "{late:?}");
        let mut timeouts = 0;
        let others_write = || {
            timeouts += 1;
            if timeouts == 3 {
                holder.unlock().unwrap();
            }
            true
        };
        let wait = LockWait { waiter: &waiter, timeout, deadline: None };
        assert!(acquire_while(&file, &path, &pool, &wait, others_write).is_ok());
        assert_eq!(timeouts, 3);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_write_counts_for_a_while() {
        let (path, file, _holder) = locked("written");
        let hour = Duration::from_secs(3_600);
        assert!(is_written_within(&file, hour));
        file.set_modified(SystemTime::now() - hour).unwrap();
        assert!(!is_written_within(&file, hour));
        // The wall clock was set back.
        file.set_modified(SystemTime::now() + hour).unwrap();
        assert!(!is_written_within(&file, hour));
        std::fs::remove_file(path).unwrap();
    }
}
