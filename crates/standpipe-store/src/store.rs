//! The contract of a store: which pools exist, which sessions are alive, and how a process waits.
//!
//! One process opens one store and shares it between its threads. [`crate::log`] defines what a
//! single pool's log does.

use std::fmt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::engine::Message;
use crate::error::StoreError;
use crate::log::Log;
use crate::pool::PoolName;

/// The logs of all pools of one store, and the sessions of the processes that use them.
pub trait Store: fmt::Debug + Send + Sync {
    /// Opens the log of a pool, and creates the pool if it does not exist.
    ///
    /// # Errors
    /// When the store cannot be reached, or rejects this version of the program.
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError>;

    /// Lists the pools of the store in order.
    ///
    /// # Errors
    /// When the store cannot be reached.
    fn pools(&self) -> Result<Vec<PoolName>, StoreError>;

    /// Begins a session and returns its unique id. The session lives until [`Store::end_session`]
    /// or until its process dies.
    ///
    /// # Errors
    /// When the store cannot create a session.
    fn begin_session(&self) -> Result<u64, StoreError>;

    /// Ends a session of this process that holds nothing on any pool.
    ///
    /// Do not call this for a session that still holds leases or tickets. Other processes detect
    /// that it is dead and reclaim what it holds.
    fn end_session(&self, session: u64);

    /// Keeps a session of this process testable by others. The owner calls this with every
    /// heartbeat.
    fn renew_session(&self, _session: u64) {}

    /// Returns whether the process of a session is alive.
    ///
    /// A session whose liveness is [`Liveness::Unknown`] counts as ended after a long silence.
    fn liveness(&self, _session: u64) -> Liveness {
        Liveness::Unknown
    }

    /// Claims the next liveness check of a pool's sessions for this process.
    ///
    /// Returns `false` when no check is due or another process of this machine has claimed it.
    fn try_begin_liveness_check(&self, _pool: &PoolName) -> bool {
        true
    }

    /// Returns what is known about the process of a session, for display only.
    fn process_of(&self, _session: u64) -> Option<Process> {
        None
    }

    /// Blocks until a session of this process is woken, [`Store::interrupt`] is called, or
    /// `at_most` has passed. It may return early. Only one thread waits at a time.
    fn wait_for_wake(&self, at_most: Duration);

    /// Makes the current [`Store::wait_for_wake`], or else the next one, return.
    fn interrupt(&self);

    /// Returns `true` in a child process after a fork. Nothing here belongs to the child, which
    /// must open the store again.
    fn was_forked(&self) -> bool {
        false
    }

    /// Returns whether calls cross a network. Such calls may take long and must not run on a thread
    /// that must not block.
    fn is_remote(&self) -> bool {
        false
    }

    /// Returns the time since a fixed instant of this process.
    ///
    /// This clock works while the store is unavailable. A test that controls time overrides it.
    fn uptime(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    /// Returns the messages for people that the store has produced since the last call.
    fn take_messages(&self) -> Vec<Message> {
        Vec::new()
    }

    /// Returns the store's location for display: a path, or an address without secrets.
    fn location(&self) -> String;
}

/// Whether the process of a session is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The process is alive. This includes a stopped process.
    Alive,
    /// The process is dead.
    Dead,
    /// Liveness cannot be tested: the process is on another machine, or its session file is gone.
    Unknown,
}

/// What is known about a process, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// The process id. In another container the same id may belong to another process.
    pub pid: u32,
    /// Whether the process is stopped (`SIGSTOP`). It keeps its leases.
    pub stopped: bool,
}

impl Log for Box<dyn Log + Send> {
    fn append(
        &mut self,
        from: crate::Position,
        bodies: &[Vec<u8>],
    ) -> Result<crate::LogRead, StoreError> {
        (**self).append(from, bodies)
    }

    fn read(&mut self, from: crate::Position) -> Result<crate::LogRead, StoreError> {
        (**self).read(from)
    }

    fn write_snapshot(&mut self, snapshot: &crate::Snapshot) -> Result<(), StoreError> {
        (**self).write_snapshot(snapshot)
    }

    fn quarantine(&mut self) -> Result<bool, StoreError> {
        (**self).quarantine()
    }

    fn is_current(&self) -> Option<bool> {
        (**self).is_current()
    }

    fn set_deadline(&mut self, deadline: Option<Instant>) {
        (**self).set_deadline(deadline);
    }

    fn set_lifetime(&mut self, idle: standpipe_core::Span) {
        (**self).set_lifetime(idle);
    }

    fn wake_sessions(&self, sessions: &[u64]) {
        (**self).wake_sessions(sessions);
    }

    fn chain(&self, chain: u64, stamp: standpipe_core::Instant, body: &[u8]) -> u64 {
        (**self).chain(chain, stamp, body)
    }
}
