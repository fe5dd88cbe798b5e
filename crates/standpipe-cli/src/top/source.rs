//! The sources of the view: the ledger itself, or a daemon. Both deliver the same JSON.

pub(crate) mod daemon;
pub(crate) mod ledger;

use std::fmt;

use serde_json::Value;
use standpipe::{LeaseId, PoolName};

use crate::show::duration::length;

/// The most calls and agents that are fetched per pool.
pub(super) const ROWS: usize = 500;

/// Delivers data and performs actions. Errors are one line each.
pub(crate) trait Source: Send {
    /// Names the source, for the header of the view.
    fn location(&self) -> String;

    /// Returns the only pool of the view; `None` if it shows all.
    fn wanted(&self) -> Option<&PoolName>;

    /// Returns the object that `status --json` prints.
    fn snapshot(&mut self) -> Result<Value, String>;

    /// Returns the events since the last call, oldest first; the first call covers an hour.
    fn events(&mut self) -> Result<Vec<Value>, String>;

    /// Returns what `GET /v1/proxied` returns; `None` if no daemon answers.
    fn proxied(&mut self) -> Option<Value>;

    fn perform(&mut self, action: &Action) -> Result<(), String>;
}

/// An action of the view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Pause { pool: String, ms: u64 },
    Resume { pool: String },
    Settle { lease: LeaseId, agent: String },
}

/// An action that was performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done(pub(crate) Action);

impl Action {
    pub(super) const fn done(self) -> Done {
        Done(self)
    }
}

impl fmt::Display for Done {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Action::Pause { pool, ms } => {
                write!(f, "`{pool}` admits no calls for {}", length(*ms))
            }
            Action::Resume { pool } => write!(f, "`{pool}` admits calls again"),
            Action::Settle { lease, agent } => {
                write!(f, "the lease of {agent} on `{}` is settled at its estimate", lease.pool())
            }
        }
    }
}
