//! How a command ends: the codes that scripts rely on.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Ok,
    /// The command line cannot be read.
    Usage,
    /// The call is larger than the pool: it can never be admitted.
    NeverFits,
    /// There is no such lease, or no longer.
    NoLease,
    /// The store cannot be reached.
    Store,
    /// Our own fault.
    Internal,
    /// The output cannot be written.
    Output,
    /// Not admitted within the time given.
    NotInTime,
    /// The provider said stop.
    Stopped,
    /// The configuration cannot be used.
    Config,
    /// What a program that was run ended with, or another code the caller asked for.
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
