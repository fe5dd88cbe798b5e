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
//! A file that is there and not locked is the proof of a death, and stays so for a while: a session
//! has something in several pools, and whoever waits there looks at it too. A file that is missing
//! proves nothing, somebody may have deleted it; silence decides then.
//!
//! Beside it lies a named pipe: a byte in it wakes the session.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
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

    /// Ends a session of this process that has nothing anywhere any more.
    pub(crate) fn end(&self, session: u64) {
        if lock(&self.own).remove(&session).is_some() && self.is_mine() {
            self.forget(session);
        }
    }

    /// Whether these are this process's sessions, and not those of one it was forked from.
    pub(crate) fn is_mine(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Whether a session is known to be gone.
    pub(crate) fn is_gone(&self, session: u64) -> bool {
        self.holder(session).is_some_and(|holder| holder.is_none())
    }

    /// The process behind a session.
    pub(crate) fn process(&self, session: u64) -> Option<Process> {
        let seen = |pid: &u32| *pid != 0;
        self.holder(session).flatten().filter(seen).map(|pid| Process { pid })
    }

    /// The processes of all other living sessions.
    pub(crate) fn living(&self) -> Vec<u32> {
        let others = self.named().filter(|session| !self.is_own(*session));
        let mut pids: Vec<u32> =
            others.filter_map(|session| self.holder(session).flatten()).collect();
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

    /// The process that holds a session's lock, if that can be told; zero is one that cannot be
    /// seen from here.
    fn holder(&self, session: u64) -> Option<Option<u32>> {
        if self.is_own(session) {
            return Some(Some(self.pid));
        }
        let open = OpenOptions::new().read(true).write(true).open(self.lock_path(session));
        sys::record_holder(&open.ok()?).ok()
    }

    /// Of this process, by whichever copy of this library in it. Its file must not be opened.
    fn is_own(&self, session: u64) -> bool {
        session >> RANDOM_BITS == self.mark
    }

    /// Removes what dead sessions left that nobody asks about.
    fn sweep(&self) {
        for session in self.named().filter(|session| self.is_gone(*session)) {
            self.retire(session);
        }
    }

    /// The proof of a death is marked when it is first come by, and removed when no ledger can have
    /// anything of the dead any more.
    fn retire(&self, session: u64) {
        let _ = fs::remove_file(self.bell_path(session));
        let Ok(mut file) = OpenOptions::new().write(true).open(self.lock_path(session)) else {
            return;
        };
        let marked = file.metadata().ok().filter(|meta| meta.len() > 0);
        let since = marked.as_ref().and_then(|meta| meta.modified().ok()?.elapsed().ok());
        match (marked, since) {
            (None, _) => drop(file.write_all(b"gone\n")),
            (_, Some(since)) if since > PROOF => self.forget(session),
            _ => {}
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
/// How long the proof of a death is kept: longer than any ledger waits for a silent session.
const PROOF: Duration = Duration::from_secs(600);
/// How often a waiter without a bell looks.
const LOOK_WITHOUT_BELL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::For;
    use std::time::SystemTime;

    #[test]
    fn the_proof_of_a_death_is_kept_for_a_while() {
        let name = format!("standpipe-proof-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let sessions = Sessions::new(Directory::open(&path, For::User).unwrap()).unwrap();
        let dead = (sessions.mark ^ 1) << RANDOM_BITS | 7;
        let proof = sessions.directory.create(&sessions.lock_path(dead)).unwrap();
        sessions.sweep();
        assert!(sessions.is_gone(dead), "marked, and still there");
        sessions.sweep();
        assert!(sessions.is_gone(dead), "not marked long ago");
        proof.set_modified(SystemTime::now() - PROOF - Duration::from_secs(1)).unwrap();
        sessions.sweep();
        assert!(!sessions.lock_path(dead).exists());
        assert!(!sessions.is_gone(dead), "a missing file proves nothing");
        fs::remove_dir_all(&path).unwrap();
    }
}
