//! The lock of a pool's file: one process at a time reads the head, appends and writes the head.
//!
//! It is a `flock`. The kernel releases it when its process dies, and a forked child does not keep
//! it (`standpipe-sys`). Only a *stopped* process keeps it: then the others wait until their
//! timeout, and the error names that process.

use std::fs::{File, OpenOptions, TryLockError};
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
pub(crate) struct LockGuard<'a> {
    file: LockedFile<'a>,
    contended: bool,
}

enum LockedFile<'a> {
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

/// Takes the lock, waiting at most `timeout`.
///
/// The lock is usually free within microseconds, so it is polled first, yielding the processor. A
/// blocking `flock` cannot be cancelled, so a longer wait is left to a thread. If that thread gets
/// the lock when no caller wants it any more, it releases it at once.
pub(crate) fn acquire<'a>(
    file: &'a UnsharedFile,
    path: &Path,
    pool: &PoolName,
    waiter: &LockWaiter,
    timeout: Duration,
) -> Result<LockGuard<'a>, StoreError> {
    for attempt in 0..FAST_ATTEMPTS {
        match file.try_lock() {
            Ok(()) => {
                return Ok(LockGuard { file: LockedFile::Own(file), contended: attempt > 0 });
            }
            Err(TryLockError::WouldBlock) if attempt < FAST_ATTEMPTS / 2 => thread::yield_now(),
            Err(TryLockError::WouldBlock) => thread::sleep(FAST_PAUSE),
            Err(TryLockError::Error(error)) => return Err(fs_error("lock", path, error)),
        }
    }
    let begun = Instant::now();
    loop {
        let left = timeout.saturating_sub(begun.elapsed());
        let result = match waiter.wait(path, left) {
            Ok(result) => result,
            // The process is at its limit of threads.
            Err(_) => return poll(file, path, pool, left),
        };
        match result {
            Some(Ok(other)) if is_same(&other, file) => {
                return Ok(LockGuard { file: LockedFile::OfWaiter(other), contended: true });
            }
            // The thread opened a file that was at the path before this one; wait again.
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(fs_error("lock", path, error)),
            None => return Err(timed_out(file, path, pool)),
        }
    }
}

/// Takes the lock by polling, without a thread.
fn poll<'a>(
    file: &'a UnsharedFile,
    path: &Path,
    pool: &PoolName,
    timeout: Duration,
) -> Result<LockGuard<'a>, StoreError> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(LockGuard { file: LockedFile::Own(file), contended: true }),
            Err(TryLockError::WouldBlock) if begun.elapsed() < timeout => {
                thread::sleep(POLL_PAUSE);
            }
            Err(TryLockError::WouldBlock) => return Err(timed_out(file, path, pool)),
            Err(TryLockError::Error(error)) => return Err(fs_error("lock", path, error)),
        }
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
        let file = match &self.file {
            LockedFile::Own(file) => file,
            LockedFile::OfWaiter(file) => file,
        };
        let _ = file.unlock();
        if self.contended {
            // Without this the process that releases a contended lock is the first to take it
            // again.
            thread::yield_now();
        }
    }
}

fn is_same(one: &File, other: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    identity(one) == identity(other)
}

fn timed_out(file: &File, path: &Path, pool: &PoolName) -> StoreError {
    StoreError::transient(match sys::file::flock_holder(file) {
        Some(pid) if sys::process::is_stopped(pid) => format!(
            "process {pid} is stopped while it holds the lock of `{pool}`, and everybody waits for \
             it; resume it (kill -CONT {pid}) or end it (kill -9 {pid})"
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

/// How often the lock is tried before a thread waits for it: the first half yields, the second half
/// sleeps in between.
const FAST_ATTEMPTS: u32 = 200;
const FAST_PAUSE: Duration = Duration::from_micros(50);
/// The time between two attempts when no thread can wait for the lock.
const POLL_PAUSE: Duration = Duration::from_millis(1);
