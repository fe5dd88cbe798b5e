//! The sessions of this machine, for engines on other machines.

use std::fmt;

use crate::error::StoreError;
use crate::store::{Liveness, Process};

/// The sessions of this machine. A server cannot see that a process ended, this machine can.
pub trait SessionRegistry: fmt::Debug + Send + Sync {
    /// Begins a session and returns its id; see [`crate::Store::begin_session`].
    ///
    /// # Errors
    /// When the session cannot be registered.
    fn begin(&self) -> Result<u64, StoreError>;

    /// Ends a session.
    fn end(&self, session: u64);

    /// Makes sure that others can still test whether the session lives; see
    /// [`crate::Store::renew_session`].
    fn renew(&self, session: u64);

    /// Whether the process of a session of this machine lives.
    fn liveness(&self, session: u64) -> Liveness;

    /// Returns what is known about the process of a session.
    fn process_of(&self, session: u64) -> Option<Process>;
}
