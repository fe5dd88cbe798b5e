//! What the operating system offers only through `unsafe` calls: files whose locks a forked child
//! does not keep, and children that die with their parent.
//!
//! [`UnsharedFile`]: a `flock` belongs to the open file description, which a forked child shares:
//! if the parent is killed while it holds the lock and the child lives, the lock stays. A record
//! lock (`fcntl`) is not shared with a child, but it does not exclude two copies of this library in
//! one process, and the kernel drops it when the process closes any descriptor of the file. So the
//! lock is a `flock`, and a fork hook takes the description away from the child: each
//! [`UnsharedFile`] of the parent becomes an empty pipe in the child, under the same descriptor
//! number.
//!
//! Guarantee: when `fork` has returned in the child, the child does not keep the description of any
//! [`UnsharedFile`]. A child that starts another program never keeps one, because the descriptors
//! are close-on-exec. A child made by a bare `clone` system call is not covered.
//!
//! [`die_with_parent()`]: the kernel kills the child when the thread that started it ends.
//!
//! This is the only crate of the product with `unsafe`. The tests of whole processes that fork are
//! in `standpipe-forks`.

mod die_with_parent;

pub use die_with_parent::die_with_parent;

use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// An open file whose description a forked child does not share.
#[derive(Debug)]
pub struct UnsharedFile {
    /// The entry of the descriptor in [`SLOTS`], where the fork hook finds it.
    slot: &'static AtomicI32,
    file: File,
}

impl UnsharedFile {
    /// Opens a file by `open`.
    ///
    /// A fork in another thread waits until `open` has returned, so `open` must not block.
    ///
    /// # Errors
    /// Those of `open`, or when the fork hook cannot be installed.
    pub fn open(open: impl FnOnce() -> io::Result<File>) -> io::Result<Self> {
        install_hook()?;
        let _guard = ForkLock::acquire();
        let file = open()?;
        let slot = free_slot().ok_or_else(|| io::Error::other("too many open files"))?;
        slot.store(file.as_raw_fd(), Ordering::Release);
        Ok(Self { slot, file })
    }
}

impl Deref for UnsharedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for UnsharedFile {
    fn drop(&mut self) {
        // Closing releases the lock only when no other process has the file open, and a child that
        // another thread is just starting has it until it executes its program.
        let _ = self.file.unlock();
        // Before the file closes: afterwards the descriptor number may belong to another file.
        self.slot.store(EMPTY, Ordering::Release);
    }
}

/// Marks a free slot.
const EMPTY: i32 = -1;
/// Slots per chunk, and the most chunks. Chunks are allocated when needed and never freed, so that
/// the hook can read them at any time.
const CHUNK: usize = 256;
const CHUNKS: usize = 4_096;

/// The descriptors of all unshared files. The hook only loads atomics, which is safe in a child
/// whatever the other threads of the parent were doing.
static SLOTS: [OnceLock<Box<[AtomicI32; CHUNK]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// Held while a thread opens a file and while the process forks. It is not a mutex, because the
/// hooks take and release it in different functions.
static FORK_LOCK: AtomicBool = AtomicBool::new(false);

/// What replaces an unshared file in a child: the read end of a pipe without a writer. Every read
/// or write at an offset fails on it.
static EMPTY_PIPE: AtomicI32 = AtomicI32::new(EMPTY);

fn free_slot() -> Option<&'static AtomicI32> {
    let chunk = |chunk: &'static OnceLock<Box<[AtomicI32; CHUNK]>>| {
        chunk.get_or_init(|| Box::new([const { AtomicI32::new(EMPTY) }; CHUNK]))
    };
    let is_free = |slot: &&AtomicI32| slot.load(Ordering::Acquire) == EMPTY;
    SLOTS.iter().find_map(|slots| chunk(slots).iter().find(is_free))
}

/// Holds [`FORK_LOCK`] until it is dropped.
struct ForkLock;

impl ForkLock {
    fn acquire() -> Self {
        acquire_fork_lock();
        Self
    }
}

impl Drop for ForkLock {
    fn drop(&mut self) {
        release_fork_lock();
    }
}

fn acquire_fork_lock() {
    while FORK_LOCK
        .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
        .is_err()
    {
        std::thread::yield_now();
    }
}

fn release_fork_lock() {
    FORK_LOCK.store(false, Ordering::Release);
}

/// Installs the fork hook, once per process and copy of this library.
fn install_hook() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        let errno = |error: io::Error| error.raw_os_error().unwrap_or(libc::ENOMEM);
        let (reader, _) = io::pipe().map_err(errno)?;
        EMPTY_PIPE.store(reader.into_raw_fd(), Ordering::Release);
        // SAFETY: the three functions live as long as the program and do only what is allowed
        // between a fork and an exec: atomic operations and system calls.
        match unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(in_child)) } {
            0 => Ok(()),
            error => Err(error),
        }
    });
    installed.map_err(io::Error::from_raw_os_error)
}

/// Runs in the parent before a fork. It waits for threads that open a file, so that every open
/// description is in [`SLOTS`] when the process forks.
extern "C" fn before_fork() {
    acquire_fork_lock();
}

/// Runs in the parent after a fork.
extern "C" fn after_fork() {
    release_fork_lock();
}

/// Runs in the child, before `fork` returns there.
extern "C" fn in_child() {
    let empty_pipe = EMPTY_PIPE.load(Ordering::Acquire);
    for slot in SLOTS.iter().filter_map(OnceLock::get).flat_map(|chunk| chunk.iter()) {
        let descriptor = slot.load(Ordering::Acquire);
        if descriptor != EMPTY {
            replace(descriptor, empty_pipe);
        }
    }
    release_fork_lock();
}

/// Makes a descriptor refer to the file of another one, closing what it referred to.
fn replace(descriptor: i32, with: i32) {
    // SAFETY: dup2 and fcntl are async-signal-safe. `descriptor` is owned by an `UnsharedFile`, so
    // it is open and only that value uses it; it stays open and owned.
    unsafe {
        libc::dup2(with, descriptor);
        libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::TryLockError;
    use std::sync::{Mutex, PoisonError};

    /// A child forked by one test shares the files of another until its hook has run.
    pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("standpipe-sys-{name}-{}", std::process::id()))
    }

    /// Forks; the child runs `act` and reports whether it returned `true`.
    fn in_a_child(act: impl FnOnce() -> bool) -> bool {
        // SAFETY: the child only makes system calls and ends without running destructors.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let code = i32::from(!act());
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: waits for the child that was just made.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }

    #[test]
    fn a_forked_child_does_not_keep_the_lock() -> io::Result<()> {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let path = scratch("lock");
        let held = UnsharedFile::open(|| File::create(&path))?;
        held.lock()?;
        let other = File::open(&path)?;
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
        assert!(in_a_child(|| held.write_all_at_start().is_err()), "the child shares the file");
        assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)), "the parent holds it");
        drop(held);
        assert!(other.try_lock().is_ok());
        std::fs::remove_file(&path)
    }

    /// `Command` starts a child without running fork hooks, so until the child executes its program
    /// it has the description open. So does a duplicate of the descriptor.
    #[test]
    fn b92_a_dropped_file_is_unlocked_while_a_child_is_being_started() -> io::Result<()> {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let path = scratch("starting");
        let held = UnsharedFile::open(|| File::create(&path))?;
        held.lock()?;
        let of_the_child = held.try_clone()?;
        drop(held);
        assert!(File::open(&path)?.try_lock().is_ok(), "the lock outlives its holder");
        drop(of_the_child);
        std::fs::remove_file(&path)
    }

    #[test]
    fn a_descriptor_that_was_closed_and_used_again_is_left_alone() -> io::Result<()> {
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let path = scratch("again");
        let closed = UnsharedFile::open(|| File::create(&path))?;
        drop(closed);
        // It may get the same descriptor number.
        let plain = File::create(&path)?;
        let writes = || std::os::unix::fs::FileExt::write_all_at(&plain, b"x", 0).is_ok();
        assert!(in_a_child(writes));
        std::fs::remove_file(&path)
    }

    impl UnsharedFile {
        fn write_all_at_start(&self) -> io::Result<()> {
            std::os::unix::fs::FileExt::write_all_at(&**self, b"x", 0)
        }
    }
}
