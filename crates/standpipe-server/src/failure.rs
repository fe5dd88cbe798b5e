//! Why the daemon could not start.
//!
//! Every failure states what is wrong and what to do.

use std::fmt;

use standpipe::Error;
use standpipe::config::ConfigError;

/// Why the daemon could not start.
#[derive(Debug)]
pub enum Failure {
    /// The state directory or a socket cannot be used.
    Place {
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// The configuration cannot be used.
    Config {
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// An error of the library.
    Tap(Error),
}

impl Failure {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Place { what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn config(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Config { what: what.into(), remedy: remedy.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Tap(error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Tap(error.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place { what, remedy } | Self::Config { what, remedy } => {
                write!(f, "{what}; {remedy}")
            }
            Self::Tap(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failure {}
