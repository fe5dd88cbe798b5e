//! The errors of the public API.
//!
//! A refusal is an error, because a caller that was refused must not make its call.

use std::error::Error as StdError;
use std::fmt;

use standpipe_store::{PoolName, StoreError};

use crate::config::ConfigError;
use crate::lease_id::LeaseId;
use crate::refused::Refused;

/// Why an operation failed, and what to do about it.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The call may not be made: not in time, never, or because an answer of the provider was
    /// terminal.
    Refused(Box<Refused>),
    /// The lease has ended: it was settled before, or it expired. Nothing changed.
    LeaseGone {
        /// The lease.
        lease: LeaseId,
    },
    /// The pool has no limits, so nothing can be decided.
    NoLimits {
        /// The pool.
        pool: PoolName,
    },
    /// The configuration file is invalid.
    Config(ConfigError),
    /// An argument of the caller is invalid.
    Invalid {
        /// What is wrong.
        what: String,
        /// How to fix it.
        remedy: String,
    },
    /// The store is unavailable or unusable.
    Store(StoreError),
}

impl Error {
    /// Returns the refusal, if the error is one.
    #[must_use]
    pub const fn as_refused(&self) -> Option<&Refused> {
        match self {
            Self::Refused(refused) => Some(refused),
            _ => None,
        }
    }

    /// Marks the refusal of one of the pools that a call draws on: its instant is a lower bound,
    /// because the others decide as well.
    pub(crate) fn of_one_pool(mut self) -> Self {
        if let Self::Refused(refused) = &mut self {
            refused.exact = false;
        }
        self
    }

    /// Returns the refusal of a call that the provider answered with a terminal error.
    pub(crate) fn stopped(pool: &PoolName) -> Self {
        Self::Refused(Box::new(Refused::stopped(pool)))
    }

    pub(crate) fn invalid(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Invalid { what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refused) => refused.fmt(f),
            Self::LeaseGone { lease } => write!(
                f,
                "the lease {lease} on `{}` has ended: it was settled, or it expired; nothing \
                 changed; reserve again for another call",
                lease.pool()
            ),
            Self::NoLimits { pool } => write!(
                f,
                "the pool `{pool}` has no limits; give it some in standpipe.toml, in code, or \
                 with --limit, for example requests=60/min or parallel=5"
            ),
            Self::Config(error) => error.fmt(f),
            Self::Invalid { what, remedy } => write!(f, "{what}; {remedy}"),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::Store(error) => error.source(),
            _ => None,
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::Refused(Box::new(refused))
    }
}
