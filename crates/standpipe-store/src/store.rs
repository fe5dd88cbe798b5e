//! A store: where the logs of pools are kept, and who on it is alive.
//!
//! One process has one value of it, shared by all its threads. What a pool's log does is in
//! [`crate::log`]; this is everything around it: which pools there are, sessions that others can
//! see the end of, and waiting for a hint that somebody should look.

use std::fmt;
use std::time::Duration;

use crate::error::StoreError;
use crate::log::Log;
use crate::pool::PoolName;

/// Where the logs of pools are kept.
pub trait Store: fmt::Debug + Send + Sync {
    /// The log of a pool. A pool that nobody has used is made.
    ///
    /// # Errors
    /// When the store cannot be reached, or will not have this program.
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError>;

    /// The pools there are, in order.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn pools(&self) -> Result<Vec<PoolName>, StoreError>;

    /// Begins a session and answers its id, which no other session has. It lives until it is ended
    /// here or its process is gone.
    ///
    /// # Errors
    /// When the store cannot make one.
    fn begin_session(&self) -> Result<u64, StoreError>;

    /// Ends a session of this process that has nothing on any pool any more. One that has is left
    /// to be seen to be gone.
    fn end_session(&self, session: u64);

    /// Whether a session is known to be gone. A store that cannot see deaths never knows.
    fn is_gone(&self, _session: u64) -> bool {
        false
    }

    /// What can be shown of the process behind a session.
    fn process_of(&self, _session: u64) -> Option<Process> {
        None
    }

    /// Waits until somebody wakes a session of this process, or [`Store::interrupt`] is called, or
    /// so long. It may come back early. One thread waits at a time.
    fn wait_for_wake(&self, at_most: Duration);

    /// Ends the present, or else the next, [`Store::wait_for_wake`].
    fn interrupt(&self);

    /// In a child process after a fork this is `true`: nothing here belongs to the child. It opens
    /// the store anew.
    fn belongs_to_a_parent(&self) -> bool {
        false
    }

    /// Whether a call crosses a network: it may take long, and is not made on a thread that must
    /// not block.
    fn is_remote(&self) -> bool {
        false
    }

    /// What happened to the store since this was last asked that people should know: sentences.
    fn news(&self) -> Vec<String> {
        Vec::new()
    }

    /// What a person would call the store: a path, an address without secrets.
    fn place(&self) -> String;
}

/// A process as far as it can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id; across containers it may be somebody else's.
    pub pid: u32,
}

impl Log for Box<dyn Log + Send> {
    fn append(
        &mut self,
        from: crate::Position,
        bodies: &[Vec<u8>],
    ) -> Result<crate::Since, StoreError> {
        (**self).append(from, bodies)
    }

    fn read(&mut self, from: crate::Position) -> Result<crate::Since, StoreError> {
        (**self).read(from)
    }

    fn write_snapshot(&mut self, snapshot: &crate::Snapshot) -> Result<(), StoreError> {
        (**self).write_snapshot(snapshot)
    }

    fn set_aside(&mut self) -> Result<bool, StoreError> {
        (**self).set_aside()
    }

    fn is_current(&self) -> Option<bool> {
        (**self).is_current()
    }

    fn lasts(&mut self, silent: standpipe_core::Span) {
        (**self).lasts(silent);
    }

    fn wake(&self, sessions: &[u64]) {
        (**self).wake(sessions);
    }

    fn chain(&self, chain: u64, stamp: standpipe_core::Instant, body: &[u8]) -> u64 {
        (**self).chain(chain, stamp, body)
    }
}
