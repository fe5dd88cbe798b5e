//! What can fail in a store. A refusal is not among it: that is a decision.
//!
//! Opaque, with questions to ask: a driver sets the kind where it knows, callers only need to know
//! whether trying again can help.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use crate::entry::Damaged;

/// The machinery of a store failed. Clones are for several who wait for the same answer.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: Kind,
    message: String,
    unsent: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Transient,
    Damaged,
    Foreign,
    Unusable,
}

impl StoreError {
    /// The store did not answer. What was asked may have been done or not: sending it again is
    /// safe.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(Kind::Transient, message)
    }

    /// What the store holds is not what was written, or contradicts itself.
    pub fn damaged(message: impl Into<String>) -> Self {
        Self::new(Kind::Damaged, message)
    }

    /// The pool was written by a program that understands it differently.
    pub fn foreign(message: impl Into<String>) -> Self {
        Self::new(Kind::Foreign, message)
    }

    /// It cannot work like this, now or later.
    pub fn unusable(message: impl Into<String>) -> Self {
        Self::new(Kind::Unusable, message)
    }

    /// The same, caused by something below.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The same, and what was asked has certainly not been done: it never left this process.
    #[must_use]
    pub const fn unsent(mut self) -> Self {
        self.unsent = true;
        self
    }

    /// Whether what was asked has certainly not been done.
    #[must_use]
    pub const fn is_unsent(&self) -> bool {
        self.unsent
    }

    /// Trying again can help.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.kind == Kind::Transient
    }

    /// The store must be set aside and begun anew; nothing may be decided on it.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.kind == Kind::Damaged
    }

    /// Another version of the program is needed.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.kind == Kind::Foreign
    }

    fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), unsent: false, source: None }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<Damaged> for StoreError {
    fn from(damaged: Damaged) -> Self {
        Self::damaged(format!("{damaged}; the pool's log has to be set aside")).caused_by(damaged)
    }
}
