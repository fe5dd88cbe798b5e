//! Sessions: who is alive on this machine, and how they are woken.
//!
//! Each session holds a record lock on a small file of its own. The kernel drops it at any death,
//! and a child of the process does not inherit it. Whether a process id, a start time or a host
//! name looks alive is never asked.
//!
//! A record lock has a trap: it is dropped when its process closes *any* opening of the file. So
//! this module never opens the file of a session of its own process, and the ids tell which those
//! are: they carry a mark of the process.
//!
//! Beside it lies a named pipe: a byte in it wakes the session.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use standpipe_store::member::random_session;
use standpipe_store::{Process, StoreError, hash};

use crate::directory::{Directory, cannot};
use crate::point;
use crate::sys;

/// The sessions of this process, and how to look at the others'.
#[derive(Debug)]
pub(crate) struct Sessions {
    directory: Directory,
    folder: PathBuf,
    /// The process they belong to, and its mark in their ids.
    pid: u32,
    mark: u64,
    own: Mutex<BTreeMap<u64, Own>>,
    /// What [`Sessions::listen`] listens at: the bells, and one to interrupt it with.
    bells: Mutex<Vec<Arc<OwnedFd>>>,
}

/// A session of this process. The lock lives as long as the file is open.
#[derive(Debug)]
struct Own {
    _locked: File,
}

impl Sessions {
    pub(crate) fn new(directory: Directory) -> Result<Self, StoreError> {
        let folder = directory.inner("sessions")?;
        let pid = std::process::id();
        let started = sys::process_started(pid).unwrap_or(0);
        let who = [sys::boot_id(), u64::from(pid), started].map(u64::to_le_bytes).concat();
        let (own, bells) = (Mutex::default(), Mutex::default());
        Ok(Self { directory, folder, pid, mark: hash(2, &who) >> (64 - MARK_BITS), own, bells })
    }

    /// Begins a session.
    pub(crate) fn begin(&self) -> Result<u64, StoreError> {
        let random = random_session() & ((1 << RANDOM_BITS) - 1);
        let session = self.mark << RANDOM_BITS | random;
        let failed = |path: PathBuf| move |error| cannot("make the session", &path, error);
        let (draft, path) = (self.draft(session), self.lock_path(session));
        let file = self.directory.create(&draft).map_err(failed(draft.clone()))?;
        point::reach("session made");
        sys::lock_record(&file).map_err(failed(draft.clone()))?;
        point::reach("session locked");
        // Under its name only once it is locked, so that nobody finds it dead before it lives.
        fs::rename(&draft, &path).map_err(failed(path.clone()))?;
        point::reach("session named");
        let bell = self.bell_path(session);
        // Without a bell a waiter only looks a little less often.
        if sys::make_fifo(&bell, self.directory.mode()).is_ok()
            && let Ok(open) = sys::open_fifo(&bell)
        {
            lock(&self.bells).push(Arc::new(open));
        }
        lock(&self.own).insert(session, Own { _locked: file });
        if random.is_multiple_of(SWEEP_EVERY) {
            self.sweep();
        }
        Ok(session)
    }

    /// Ends a session of this process.
    pub(crate) fn end(&self, session: u64) {
        if lock(&self.own).remove(&session).is_some() && self.is_mine() {
            self.forget(session);
        }
    }

    /// Whether these are this process's sessions, and not those of one it was forked from.
    pub(crate) fn is_mine(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Whether a session is known to be gone. Its traces are removed then.
    pub(crate) fn is_gone(&self, session: u64) -> bool {
        match self.holder(session) {
            Ok(Some(_)) | Err(Unknown::CannotTell) => false,
            Ok(None) => {
                self.forget(session);
                true
            }
            Err(Unknown::NoFile) => true,
        }
    }

    /// The process behind a session.
    pub(crate) fn process(&self, session: u64) -> Option<Process> {
        let seen = |pid: &u32| *pid != 0;
        self.holder(session).ok().flatten().filter(seen).map(|pid| Process { pid })
    }

    /// The processes of all other living sessions.
    pub(crate) fn living(&self) -> Vec<u32> {
        let others = self.named().filter(|session| !self.is_own(*session));
        let mut pids: Vec<u32> =
            others.filter_map(|session| self.holder(session).ok().flatten()).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Wakes sessions, if they listen.
    pub(crate) fn wake(&self, sessions: &[u64]) {
        for session in sessions {
            sys::ring(&self.bell_path(*session));
        }
    }

    /// Waits for a bell of this process, at most so long.
    pub(crate) fn listen(&self, at_most: Duration) {
        let bells = lock(&self.bells).clone();
        if bells.is_empty() {
            std::thread::sleep(at_most.min(LOOK_WITHOUT_BELL));
            return;
        }
        sys::listen(&bells, at_most);
    }

    /// Rings a bell of this process.
    pub(crate) fn interrupt(&self) {
        if let Some(bell) = lock(&self.bells).first() {
            sys::ring_open(bell);
        }
    }

    /// The process that holds a session's lock; zero is one that cannot be seen from here.
    fn holder(&self, session: u64) -> Result<Option<u32>, Unknown> {
        if self.is_own(session) {
            return Ok(Some(self.pid));
        }
        let open = OpenOptions::new().read(true).write(true).open(self.lock_path(session));
        match open {
            Ok(file) => sys::record_holder(&file).map_err(|_| Unknown::CannotTell),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Unknown::NoFile),
            Err(_) => Err(Unknown::CannotTell),
        }
    }

    /// Of this process, by whichever copy of this library in it. Its file must not be opened.
    fn is_own(&self, session: u64) -> bool {
        session >> RANDOM_BITS == self.mark
    }

    /// Removes what dead sessions left that nobody asks about.
    fn sweep(&self) {
        for session in self.named().filter(|session| !self.is_own(*session)) {
            self.is_gone(session);
        }
    }

    fn named(&self) -> impl Iterator<Item = u64> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            u64::from_str_radix(name.strip_suffix(".lock")?, 16).ok()
        })
    }

    fn forget(&self, session: u64) {
        let _ = fs::remove_file(self.bell_path(session));
        let _ = fs::remove_file(self.lock_path(session));
    }

    fn lock_path(&self, session: u64) -> PathBuf {
        self.folder.join(format!("{session:014x}.lock"))
    }

    fn draft(&self, session: u64) -> PathBuf {
        self.folder.join(format!("{session:014x}.new"))
    }

    fn bell_path(&self, session: u64) -> PathBuf {
        self.folder.join(format!("{session:014x}.bell"))
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        let own: Vec<u64> = lock(&self.own).keys().copied().collect();
        for session in own {
            self.end(session);
        }
    }
}

/// Why it is not known who holds a lock.
enum Unknown {
    NoFile,
    CannotTell,
}

/// Every change under these locks is a single push or removal, so a panic leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A session's id: the mark of its process, then random bits. Together they fit 56 bits, which the
/// byte layout writes in eight.
const MARK_BITS: u32 = 24;
const RANDOM_BITS: u32 = 32;
/// How often, on the average, a new session looks for what dead ones left.
const SWEEP_EVERY: u64 = 64;
/// How often a waiter without a bell looks.
const LOOK_WITHOUT_BELL: Duration = Duration::from_millis(50);
