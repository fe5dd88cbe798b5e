//! Testing whether sessions are alive, and removing the files of dead ones.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::time::Duration;

use standpipe_store::{Liveness, Process};

use super::Sessions;
use crate::sys;

impl Sessions {
    /// Whether the process of a session is alive.
    pub(crate) fn liveness(&self, session: u64) -> Liveness {
        if self.is_own(session) {
            return Liveness::Alive;
        }
        File::open(self.lock_path(session)).map_or(Liveness::Unknown, |file| probe(&file))
    }

    /// Returns the process of a living session.
    pub(crate) fn process(&self, session: u64) -> Option<Process> {
        if self.is_own(session) {
            return Some(Process { pid: self.pid, stopped: false });
        }
        let mut file = File::open(self.lock_path(session)).ok()?;
        if probe(&file) != Liveness::Alive {
            return None;
        }
        let mut line = String::new();
        let info = file.read_to_string(&mut line).ok().and_then(|_| ProcessInfo::parse(&line));
        let here = ProcessInfo::of_pid(self.pid).namespace;
        // A pid means something only in its own namespace.
        let visible = info.filter(|info| info.namespace != 0 && info.namespace == here);
        let pid = visible.map(|info| info.pid).or_else(|| sys::file::flock_holder(&file))?;
        Some(Process { pid, stopped: sys::process::is_stopped(pid) })
    }

    /// Returns the pids of all other living sessions; 0 for those that cannot be shown.
    pub(crate) fn living_pids(&self) -> Vec<u32> {
        let others = self.listed().filter(|session| !self.is_own(*session));
        let alive = others.filter(|session| self.liveness(*session) == Liveness::Alive);
        let pid = |session| self.process(session).map_or(0, |process| process.pid);
        let mut pids: Vec<u32> = alive.map(pid).filter(|pid| *pid != self.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Cleans up after all dead sessions.
    pub(super) fn sweep(&self) {
        let dead = |session: &u64| self.liveness(*session) == Liveness::Dead;
        for session in self.listed().filter(dead) {
            self.clean_up(session);
        }
    }

    /// Removes the wake pipe of a dead session at once and its lock file [`KEEP_PROOF`] later.
    ///
    /// The first sweep that finds a session dead empties its lock file, which also sets the
    /// modification time: an empty file records since when the death is known.
    fn clean_up(&self, session: u64) {
        let _ = fs::remove_file(self.wake_pipe_path(session));
        let Ok(file) = OpenOptions::new().write(true).open(self.lock_path(session)) else {
            return;
        };
        let Ok(meta) = file.metadata() else { return };
        let age = || meta.modified().ok()?.elapsed().ok();
        match meta.len() {
            0 if age().is_some_and(|age| age > KEEP_PROOF) => self.remove_files(session),
            0 => {}
            _ => drop(file.set_len(0)),
        }
    }

    /// Returns all sessions that have a lock file.
    fn listed(&self) -> impl Iterator<Item = u64> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            u64::from_str_radix(name.strip_suffix(".lock")?, 16).ok()
        })
    }
}

/// What a lock file says about its process, to be shown and nothing else.
#[derive(Clone, Copy)]
pub(super) struct ProcessInfo {
    pid: u32,
    /// The id of its pid namespace; 0 where the system does not show it.
    namespace: u64,
}

impl ProcessInfo {
    /// Describes a process in this namespace.
    pub(super) fn of_pid(pid: u32) -> Self {
        Self { pid, namespace: sys::process::pid_namespace().unwrap_or(0) }
    }

    pub(super) fn to_line(self) -> String {
        format!("{} {}\n", self.pid, self.namespace)
    }

    fn parse(line: &str) -> Option<Self> {
        let (pid, namespace) = line.trim_end().split_once(' ')?;
        Some(Self { pid: pid.parse().ok()?, namespace: namespace.parse().ok()? })
    }
}

/// Tests whether a process holds the lock of a session's file.
///
/// It also tests for a record lock, which earlier versions held.
fn probe(file: &File) -> Liveness {
    let free = match sys::file::try_lock_shared(file) {
        Ok(true) => sys::file::record_lock_holder(file).map(|holder| holder.is_none()),
        other => other,
    };
    match free {
        Ok(true) => Liveness::Dead,
        Ok(false) => Liveness::Alive,
        Err(_) => Liveness::Unknown,
    }
}

/// How long the proof of a death is kept: longer than any ledger waits for a silent session.
const KEEP_PROOF: Duration = Duration::from_secs(600);

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::SystemTime;

    use super::*;
    use crate::store::directory::{Audience, Directory};

    #[test]
    fn the_proof_of_a_death_is_kept_for_a_while() {
        let name = format!("standpipe-proof-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let sessions = Sessions::new(Directory::open(&path, Audience::User).unwrap()).unwrap();
        let dead = 7;
        let mut proof = sessions.directory.create(&sessions.lock_path(dead)).unwrap();
        proof.write_all(ProcessInfo::of_pid(1).to_line().as_bytes()).unwrap();
        sessions.sweep();
        assert_eq!(sessions.liveness(dead), Liveness::Dead, "emptied, and still there");
        sessions.sweep();
        assert_eq!(sessions.liveness(dead), Liveness::Dead, "emptied too recently");
        proof.set_modified(SystemTime::now() - KEEP_PROOF - Duration::from_secs(1)).unwrap();
        sessions.sweep();
        assert!(!sessions.lock_path(dead).exists());
        assert_eq!(sessions.liveness(dead), Liveness::Unknown, "a missing file proves nothing");
        fs::remove_dir_all(&path).unwrap();
    }
}
