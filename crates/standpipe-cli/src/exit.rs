//! The exit codes, which scripts rely on.

use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Ok,
    /// The command line is invalid.
    Usage,
    /// The call is larger than the pool: it can never be admitted.
    NeverFits,
    /// The lease does not exist or has ended.
    NoLease,
    /// The store cannot be reached.
    Store,
    /// An internal error.
    Internal,
    /// The output cannot be written.
    Output,
    /// Not admitted within the time given.
    NotInTime,
    /// Stopped by the provider.
    Stopped,
    /// The configuration cannot be used.
    Config,
    /// The exit code of a program that was run, or one that a flag gives.
    Code(u8),
}

impl Exit {
    /// The number the shell sees.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Usage => 2,
            Self::NeverFits => 65,
            Self::NoLease => 66,
            Self::Store => 69,
            Self::Internal => 70,
            Self::Output => 74,
            Self::NotInTime => 75,
            Self::Stopped => 77,
            Self::Config => 78,
            Self::Code(number) => number,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.number())
    }
}
