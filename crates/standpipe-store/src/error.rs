//! The error of a store. A refused reserve is not an error: it is a decision.
//!
//! The kind is private. An engine sets it where the failure happens; callers ask what they may do
//! next, mostly whether a retry can help.

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::entry::Damaged;

/// Returns why an operation of the system failed, without the number of the error.
///
/// ```
/// use std::io::{Error, ErrorKind};
/// use standpipe_store::plain_io;
///
/// assert_eq!(plain_io(&Error::from_raw_os_error(28)), "no space is left on the device");
/// assert_eq!(plain_io(&Error::from(ErrorKind::AlreadyExists)), "it exists already");
/// ```
#[must_use]
pub fn plain_io(error: &io::Error) -> String {
    let known = match error.kind() {
        io::ErrorKind::NotFound => "it does not exist",
        io::ErrorKind::PermissionDenied => "permission denied",
        io::ErrorKind::AlreadyExists => "it exists already",
        io::ErrorKind::NotADirectory => "a part of the path is a file",
        io::ErrorKind::IsADirectory => "it is a directory",
        io::ErrorKind::StorageFull => "no space is left on the device",
        io::ErrorKind::QuotaExceeded => "the disk quota is used up",
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        io::ErrorKind::ConnectionRefused => "the connection was refused",
        io::ErrorKind::TimedOut => "it took too long",
        _ => {
            let text = error.to_string();
            let plain = text.split(" (os error").next().unwrap_or_default();
            let mut letters = plain.chars();
            let first = letters.next().map(|first| first.to_ascii_lowercase());
            return first.into_iter().chain(letters).collect();
        }
    };
    known.to_owned()
}

/// A failure of a store. It can be cloned, so that every caller of one append receives it.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: Kind,
    message: String,
    unsent: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Transient,
    Damaged,
    Incompatible,
    Unusable,
}

impl StoreError {
    /// The store did not answer. The call may or may not have taken effect; sending it again is
    /// safe.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(Kind::Transient, message)
    }

    /// The stored data differs from what was written, or contradicts itself.
    pub fn damaged(message: impl Into<String>) -> Self {
        Self::new(Kind::Damaged, message)
    }

    /// The pool was written by a version of the program with other semantics.
    pub fn incompatible(message: impl Into<String>) -> Self {
        Self::new(Kind::Incompatible, message)
    }

    /// The call cannot succeed, now or later.
    pub fn unusable(message: impl Into<String>) -> Self {
        Self::new(Kind::Unusable, message)
    }

    /// Adds the underlying error as the source.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Marks that the call has not taken effect, because it never left this process.
    #[must_use]
    pub const fn unsent(mut self) -> Self {
        self.unsent = true;
        self
    }

    /// Marks that the call may have taken effect, because an earlier part of it succeeded.
    #[must_use]
    pub const fn maybe_sent(mut self) -> Self {
        self.unsent = false;
        self
    }

    /// Returns whether the call has certainly not taken effect.
    #[must_use]
    pub const fn is_unsent(&self) -> bool {
        self.unsent
    }

    /// Returns whether a retry can succeed.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.kind == Kind::Transient
    }

    /// Returns whether the store is damaged. No decision may be based on it; it must be
    /// quarantined.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.kind == Kind::Damaged
    }

    /// Returns whether the pool needs another version of the program.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        self.kind == Kind::Incompatible
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
        Self::damaged(format!("{damaged}; quarantine the pool's log")).caused_by(damaged)
    }
}
