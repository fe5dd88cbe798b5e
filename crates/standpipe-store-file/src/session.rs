//! Sessions: which processes of this machine are alive, and how they are woken.
//!
//! Each session has two files in `sessions/`: `ID.lock`, which its process holds a lock on, and
//! `ID.bell`, a named pipe in which a byte wakes the process. The kernel releases the lock when the
//! process dies or calls `exec`, and a forked child does not keep it (`standpipe-sys`). Liveness is
//! decided by that lock alone: process ids, start times and host names are only shown.
//!
//! A lock file that exists and is not locked proves that the session is dead. The proof is kept for
//! ten minutes: a session may hold something in several pools, and each of them tests it. A lock
//! file that is missing or unreadable proves nothing, because somebody may have deleted it; then
//! the ledger ends the session after a long silence. A living process creates its missing file
//! again.
//!
//! Reading order: this file (begin, renew, end), [`liveness`], [`wake`].

pub(crate) mod liveness;
pub(crate) mod wake;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use standpipe_store::StoreError;
use standpipe_store::participant::random_session;
use standpipe_sys::UnsharedFile;

use self::liveness::ProcessInfo;
use crate::store::directory::{Directory, fs_error, is_full};
use crate::sys;
use crate::testing::failpoint;

/// The sessions of this process, with access to those of others.
#[derive(Debug)]
pub(crate) struct Sessions {
    directory: Directory,
    folder: PathBuf,
    /// The process that opened the store.
    pid: u32,
    /// The sessions begun here. Each lock is held while its file is open.
    own: Mutex<BTreeMap<u64, UnsharedFile>>,
    /// The wake pipes of the sessions begun here.
    wake_pipes: Mutex<Vec<Arc<OwnedFd>>>,
}

impl Sessions {
    pub(crate) fn new(directory: Directory) -> Result<Self, StoreError> {
        let folder = directory.subdirectory("sessions")?;
        let (own, wake_pipes) = (Mutex::default(), Mutex::default());
        Ok(Self { directory, folder, pid: std::process::id(), own, wake_pipes })
    }

    /// Begins a session.
    pub(crate) fn begin(&self) -> Result<u64, StoreError> {
        let session = random_session();
        let failed = |error| fs_error("create the session", &self.lock_path(session), error);
        let locked = self.create_lock_file(session).map_err(failed)?;
        self.create_wake_pipe(session);
        lock(&self.own).insert(session, locked);
        if session.is_multiple_of(SWEEP_EVERY) {
            self.sweep();
        }
        Ok(session)
    }

    /// Creates the files of a session of this process again if somebody removed them.
    pub(crate) fn renew(&self, session: u64) {
        let mut own = lock(&self.own);
        let Some(locked) = own.get_mut(&session).filter(|_| self.is_same_process()) else { return };
        if sys::file::is_at(locked, &self.lock_path(session)) {
            return;
        }
        if let Ok(created) = self.create_lock_file(session) {
            *locked = created;
            if !self.wake_pipe_path(session).exists() {
                self.create_wake_pipe(session);
            }
        }
    }

    /// Ends a session of this process that holds nothing in any pool.
    pub(crate) fn end(&self, session: u64) {
        if lock(&self.own).remove(&session).is_some() && self.is_same_process() {
            self.remove_files(session);
        }
    }

    /// Whether this process opened the store, and not one that it was forked from.
    pub(crate) fn is_same_process(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Creates and locks a session's lock file.
    ///
    /// It is locked under a temporary name and then renamed: a lock file that is visible and not
    /// locked would prove the session dead before it began.
    fn create_lock_file(&self, session: u64) -> io::Result<UnsharedFile> {
        let draft = self.draft_path(session);
        let file = UnsharedFile::open(|| self.directory.create(&draft))?;
        failpoint::reach("session created");
        file.lock()?;
        self.describe(&file)?;
        failpoint::reach("session locked");
        fs::rename(&draft, self.lock_path(session))?;
        failpoint::reach("session published");
        Ok(file)
    }

    /// Writes what is shown of a session's process.
    ///
    /// A full disk has no room for it, but the lock is what counts. The file gets a length, which
    /// takes no room: an empty one is that of a session that is known to have ended.
    fn describe(&self, mut file: &File) -> io::Result<()> {
        let line = ProcessInfo::of_pid(self.pid).to_line();
        match file.write_all(line.as_bytes()) {
            Err(error) if is_full(&error) => file.set_len(1),
            written => written,
        }
    }

    /// Creates a session's wake pipe. Without one its waiters only poll.
    fn create_wake_pipe(&self, session: u64) {
        if let Ok(pipe) = self.directory.create_fifo(&self.wake_pipe_path(session)) {
            lock(&self.wake_pipes).push(Arc::new(OwnedFd::from(pipe)));
        }
    }

    /// Whether this value began the session.
    fn is_own(&self, session: u64) -> bool {
        lock(&self.own).contains_key(&session)
    }

    fn remove_files(&self, session: u64) {
        let _ = fs::remove_file(self.wake_pipe_path(session));
        let _ = fs::remove_file(self.lock_path(session));
    }

    fn lock_path(&self, session: u64) -> PathBuf {
        self.folder.join(format!("{session:014x}.lock"))
    }

    fn draft_path(&self, session: u64) -> PathBuf {
        self.folder.join(format!("{session:014x}.new"))
    }

    fn wake_pipe_path(&self, session: u64) -> PathBuf {
        self.folder.join(format!("{session:014x}.bell"))
    }
}

/// Locks a mutex even if it is poisoned: every change under these mutexes is a single insertion or
/// removal, so a panic leaves no half-made change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of so many new sessions, on average, removes the files of dead ones.
const SWEEP_EVERY: u64 = 64;
