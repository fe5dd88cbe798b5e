//! Where a view looks and acts: the ledger itself, or a daemon. Both answer the same JSON.

pub(crate) mod daemon;
pub(crate) mod ledger;

use std::fmt;

use serde_json::Value;
use standpipe::LeaseId;

use crate::show::length::length;

/// How many calls and agents of each pool are looked at.
pub(super) const ROWS: usize = 500;

/// Where a view looks and acts. What goes wrong is told in one line.
pub(crate) trait Source: Send {
    /// Which one it is, for the head of the view.
    fn place(&self) -> String;

    /// The object that `status --json` prints.
    fn look(&mut self) -> Result<Value, String>;

    /// What happened since it was last asked, oldest first; the first time, of the last hour.
    fn events(&mut self) -> Result<Vec<Value>, String>;

    fn act(&mut self, act: &Act) -> Result<(), String>;
}

/// What can be done from a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Pause { pool: String, ms: u64 },
    Resume { pool: String },
    Settle { lease: LeaseId, agent: String },
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done(pub(crate) Act);

impl Act {
    pub(super) const fn done(self) -> Done {
        Done(self)
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Act::Pause { pool, ms } => {
                write!(f, "nobody is admitted to `{pool}` for {}", length(*ms))
            }
            Act::Resume { pool } => write!(f, "`{pool}` admits calls again"),
            Act::Settle { lease, agent } => {
                write!(f, "the lease of {agent} on `{}` is settled at its estimate", lease.pool())
            }
        }
    }
}
