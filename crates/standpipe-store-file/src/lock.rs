//! The lock of a pool's file: one process at a time is inside a step.
//!
//! The kernel gives it back at any death. Only a *stopped* process keeps it: then the others wait
//! as long as they were told to, and name it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use standpipe_store::{PoolName, StoreError};

use crate::directory::cannot;
use crate::sys;

/// The lock is held while this lives.
pub(crate) struct Locked<'a> {
    held: Held<'a>,
    contended: bool,
}

enum Held<'a> {
    /// By the file that is read and written.
    Own(&'a File),
    /// By another opening of it, made by the thread that waited.
    Other(File),
}

/// A thread that waits for the lock on behalf of whoever wants it.
#[derive(Clone, Default)]
pub(crate) struct Waiter(Arc<(Mutex<Waiting>, Condvar)>);

#[derive(Default)]
struct Waiting {
    /// There is a thread.
    waits: bool,
    /// Somebody wants what it waits for.
    wanted: bool,
    /// What it got.
    arrived: Option<io::Result<File>>,
}

/// Takes the lock, waiting at most so long.
///
/// It is usually free within microseconds, so at first we look again and again, letting others run.
/// The kernel's own wait cannot be given up, so a long one is left to a thread; if the lock comes
/// when nobody wants it any more, the thread gives it back at once.
pub(crate) fn take<'a>(
    file: &'a File,
    path: &Path,
    pool: &PoolName,
    waiter: &Waiter,
    at_most: Duration,
) -> Result<Locked<'a>, StoreError> {
    for attempt in 0..LOOKS {
        match file.try_lock() {
            Ok(()) => return Ok(Locked { held: Held::Own(file), contended: attempt > 0 }),
            Err(TryLockError::WouldBlock) if attempt < LOOKS / 2 => sys::give_way(),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) => return Err(cannot("lock", path, error)),
        }
    }
    let begun = Instant::now();
    loop {
        match waiter.wait(path, at_most.saturating_sub(begun.elapsed()))? {
            Some(Ok(other)) if is_same(&other, file) => {
                return Ok(Locked { held: Held::Other(other), contended: true });
            }
            // Of a file that was there before this one.
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(cannot("lock", path, error)),
            None => return Err(stuck(file, path, pool)),
        }
    }
}

impl Waiter {
    /// The lock, if it comes in time.
    fn wait(&self, path: &Path, at_most: Duration) -> Result<Option<io::Result<File>>, StoreError> {
        let (waiting, changed) = &*self.0;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.wanted = true;
        if !waiting.waits {
            self.start(path)?;
            waiting.waits = true;
        }
        let nothing = |waiting: &mut Waiting| waiting.arrived.is_none();
        let waited = changed.wait_timeout_while(waiting, at_most, nothing);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.wanted = false;
        Ok(waiting.arrived.take())
    }

    fn start(&self, path: &Path) -> Result<(), StoreError> {
        let (waiter, path) = (self.clone(), path.to_owned());
        let wait = move || {
            let opened = OpenOptions::new().read(true).write(true).open(&path);
            let locked = opened.and_then(|file| file.lock().map(|()| file));
            let (waiting, changed) = &*waiter.0;
            let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.waits = false;
            if waiting.wanted {
                waiting.arrived = Some(locked);
                changed.notify_all();
            }
        };
        let spawned = thread::Builder::new().name("standpipe-lock".to_owned()).spawn(wait);
        let no_thread = |error| StoreError::transient("cannot start a thread").caused_by(error);
        spawned.map(drop).map_err(no_thread)
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        let file = match &self.held {
            Held::Own(file) => file,
            Held::Other(file) => file,
        };
        let _ = file.unlock();
        if self.contended {
            // Whoever gives back a lock that others want would else be first to take it again.
            sys::give_way();
        }
    }
}

fn is_same(one: &File, other: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    identity(one) == identity(other)
}

fn stuck(file: &File, path: &Path, pool: &PoolName) -> StoreError {
    StoreError::transient(match sys::lock_holder(file) {
        Some(pid) if sys::is_stopped(pid) => format!(
            "process {pid} is stopped in the middle of a step on `{pool}` and everybody waits for \
             it; let it go on (kill -CONT {pid}) or end it (kill -9 {pid})"
        ),
        Some(pid) => format!(
            "process {pid} has been inside a step on `{pool}` for too long; see what keeps it \
             (`ps {pid}`), and if it hangs, end it (kill -9 {pid}): the ledger stays whole"
        ),
        None => format!(
            "another process has been inside a step on `{pool}` for too long; see who has {} open \
             (`fuser`), and if it hangs, end it (kill -9): the ledger stays whole",
            path.display()
        ),
    })
}

/// How often the lock is looked at before a thread waits for it: at once at first, then pausing.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_micros(50);
