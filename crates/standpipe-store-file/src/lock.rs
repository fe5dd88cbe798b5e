//! The lock of a pool's file: one process at a time is inside a step.
//!
//! The kernel gives it back at any death. Only a *stopped* process keeps it: then the others wait
//! as long as they were told to, and name it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
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

/// A thread that waits for the lock on behalf of whoever asks next.
pub(crate) type Waiting = Option<Receiver<io::Result<File>>>;

/// Takes the lock, waiting at most so long.
///
/// It is usually free within microseconds, so at first we look again and again, letting others run.
/// The kernel's own wait cannot be given up, so a long one is left to a thread; if it comes too
/// late, the thread stays in `waiting` for the next attempt.
pub(crate) fn take<'a>(
    file: &'a File,
    path: &Path,
    pool: &PoolName,
    waiting: &mut Waiting,
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
        let arrives = match waiting.take() {
            Some(arrives) => arrives,
            None => wait_elsewhere(path)?,
        };
        match arrives.recv_timeout(at_most.saturating_sub(begun.elapsed())) {
            Ok(Ok(other)) if is_same(&other, file) => {
                return Ok(Locked { held: Held::Other(other), contended: true });
            }
            // Of a file that was there before this one.
            Ok(Ok(_)) | Err(RecvTimeoutError::Disconnected) => {}
            Ok(Err(error)) => return Err(cannot("lock", path, error)),
            Err(RecvTimeoutError::Timeout) => {
                *waiting = Some(arrives);
                return Err(stuck(file, pool));
            }
        }
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

fn wait_elsewhere(path: &Path) -> Result<Receiver<io::Result<File>>, StoreError> {
    let (arrived, arrives) = channel();
    let path = path.to_owned();
    let wait = move || {
        let locked = OpenOptions::new().read(true).write(true).open(&path);
        // If nobody wants it any more, the file is closed at once, and with it the lock given back.
        let _ = arrived.send(locked.and_then(|file| file.lock().map(|()| file)));
    };
    let spawned = thread::Builder::new().name("standpipe-lock".to_owned()).spawn(wait);
    let no_thread = |error| StoreError::transient("cannot start a thread").caused_by(error);
    spawned.map(|_| arrives).map_err(no_thread)
}

fn is_same(one: &File, other: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |file: &File| file.metadata().map(|meta| (meta.dev(), meta.ino())).ok();
    identity(one) == identity(other)
}

fn stuck(file: &File, pool: &PoolName) -> StoreError {
    StoreError::transient(match sys::lock_holder(file) {
        Some(pid) if sys::is_stopped(pid) => format!(
            "process {pid} is stopped in the middle of a step on `{pool}` and everybody waits for \
             it; let it go on (kill -CONT {pid}) or end it (kill -9 {pid})"
        ),
        Some(pid) => format!("process {pid} has been inside a step on `{pool}` for too long"),
        None => format!("another process has been inside a step on `{pool}` for too long"),
    })
}

/// How often the lock is looked at before a thread waits for it: at first at once, then with pauses.
const LOOKS: u32 = 200;
const PAUSE: Duration = Duration::from_micros(50);
