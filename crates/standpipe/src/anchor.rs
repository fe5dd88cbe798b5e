//! How a tap finds its process's part of a store, also in a child after a fork.
//!
//! Every process that inherits an anchor adds a link for itself and leaves the others alone.

use std::fmt;
use std::sync::{Arc, OnceLock};

use standpipe_store::StoreError;

use crate::error::Error;
use crate::journal::Place;
use crate::registry::{Guard, Opener, find_or_open};

/// How a tap finds its process's part of a store.
pub(crate) struct Anchor {
    key: String,
    open: Opener,
    journal: Option<Place>,
    first: Link,
}

struct Link {
    guard: Arc<Guard>,
    /// That of a child process.
    child: OnceLock<Box<Link>>,
}

impl Anchor {
    /// Opens a store, or finds it open under this key.
    pub(crate) fn new(key: String, open: Opener, journal: Option<Place>) -> Result<Self, Error> {
        let first = Link::new(&key, &open, journal.as_ref())?;
        Ok(Self { key, open, journal, first })
    }

    /// This process's part.
    pub(crate) fn guard(&self) -> Result<Arc<Guard>, Error> {
        let mut link = &self.first;
        while !link.guard.is_ours() {
            link = match link.child.get() {
                Some(child) => child,
                None => self.add(link)?,
            };
        }
        Ok(Arc::clone(&link.guard))
    }

    /// What a person would call the store.
    pub(crate) fn place(&self) -> String {
        self.first.guard.shared().store().place()
    }

    /// It is made first and put in its place then, so that the place is locked for no time.
    fn add<'a>(&self, parent: &'a Link) -> Result<&'a Link, Error> {
        let child = Link::new(&self.key, &self.open, self.journal.as_ref())?;
        if !child.guard.is_ours() {
            return Err(StoreError::unusable(
                "the store was opened before this process was forked; open it anew here",
            )
            .into());
        }
        Ok(parent.child.get_or_init(|| Box::new(child)))
    }
}

impl Link {
    fn new(key: &str, open: &Opener, journal: Option<&Place>) -> Result<Self, Error> {
        let guard = find_or_open(key, open)?;
        if let Some(place) = journal {
            guard.shared().journal().write_to(place);
        }
        Ok(Self { guard, child: OnceLock::new() })
    }
}

impl fmt::Debug for Anchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anchor").field("key", &self.key).finish_non_exhaustive()
    }
}
