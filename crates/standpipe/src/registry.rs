//! What a process has open: one shared part per store, however often it is opened.
//!
//! A child process after a fork has a registry of its own. It never touches the parent's, whose
//! locks another thread may have held at the moment of the fork.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use standpipe_store::StoreError;

use crate::engine::Engine;
use crate::shared::Shared;

/// How a store is opened, in this process or in a child of it.
pub(crate) type Opener = Arc<dyn Fn() -> Result<Engine, StoreError> + Send + Sync>;

/// A process's part of a store. When the last handle goes, it ends the session.
pub(crate) struct Guard {
    shared: Arc<Shared>,
}

/// What one process has open.
struct Registry {
    pid: u32,
    guards: Mutex<BTreeMap<String, Weak<Guard>>>,
    /// That of a child that inherited this one.
    child: OnceLock<Box<Registry>>,
}

/// The guard for a store in this process; it is opened if it is not open yet.
pub(crate) fn find_or_open(key: &str, open: &Opener) -> Result<Arc<Guard>, StoreError> {
    let mut guards = own().guards.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(guard) = guards.get(key).and_then(Weak::upgrade).filter(|guard| guard.is_ours()) {
        return Ok(guard);
    }
    let shared = Arc::new(Shared::new(open()?));
    let guard = Arc::new(Guard { shared });
    guards.retain(|_, guard| guard.strong_count() > 0);
    guards.insert(key.to_owned(), Arc::downgrade(&guard));
    Ok(guard)
}

/// The registry of this very process.
fn own() -> &'static Registry {
    static FIRST: OnceLock<Registry> = OnceLock::new();
    let pid = std::process::id();
    let mut registry = FIRST.get_or_init(|| Registry::new(pid));
    while registry.pid != pid {
        registry = registry.child.get_or_init(|| Box::new(Registry::new(pid)));
    }
    registry
}

impl Registry {
    fn new(pid: u32) -> Self {
        Self { pid, guards: Mutex::default(), child: OnceLock::new() }
    }
}

impl Guard {
    pub(crate) const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Whether this process opened it; if not, its parent did, and nothing of it may be touched.
    pub(crate) fn is_ours(&self) -> bool {
        !self.shared.store().was_forked()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.is_ours() {
            self.shared.shut_down();
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}
