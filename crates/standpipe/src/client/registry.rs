//! The stores that a process has open: one [`StoreHandle`] per store, however often it is opened.
//!
//! A child process after a fork has a registry of its own. It never touches the parent's, whose
//! locks another thread may have held at the moment of the fork.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use standpipe_store::StoreError;

use crate::client::engine::Engine;
use crate::client::store_client::StoreClient;

/// How a store is opened, in this process or in a child of it.
pub(crate) type Opener = Arc<dyn Fn() -> Result<Engine, StoreError> + Send + Sync>;

/// The handle of a process on a store. Dropping the last reference ends the session.
pub(crate) struct StoreHandle {
    store_client: Arc<StoreClient>,
}

/// What one process has open.
struct Registry {
    pid: u32,
    handles: Mutex<BTreeMap<String, Weak<StoreHandle>>>,
    /// The registry of a child process that inherited this one.
    child: OnceLock<Box<Registry>>,
}

/// Returns the handle for a store in this process, and opens the store if it is not open yet.
pub(crate) fn find_or_open(key: &str, open: &Opener) -> Result<Arc<StoreHandle>, StoreError> {
    let mut handles = own().handles.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(handle) = handles.get(key).and_then(Weak::upgrade).filter(|handle| handle.is_ours())
    {
        return Ok(handle);
    }
    let store_client = Arc::new(StoreClient::new(open()?));
    let handle = Arc::new(StoreHandle { store_client });
    handles.retain(|_, handle| handle.strong_count() > 0);
    handles.insert(key.to_owned(), Arc::downgrade(&handle));
    Ok(handle)
}

/// Returns the registry of the current process.
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
        Self { pid, handles: Mutex::default(), child: OnceLock::new() }
    }
}

impl StoreHandle {
    pub(crate) const fn store_client(&self) -> &Arc<StoreClient> {
        &self.store_client
    }

    /// Returns whether this process opened it. If not, its parent did, and nothing of it may be
    /// touched.
    pub(crate) fn is_ours(&self) -> bool {
        !self.store_client.store().was_forked()
    }
}

impl Drop for StoreHandle {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        self.store_client.journal().flush();
        let store_client = Arc::clone(&self.store_client);
        // A drop must not wait for the network. If the process ends first, others find that its
        // session ended.
        let on_thread = store_client.store().is_remote() && store_client.has_pending() && {
            let store_client = Arc::clone(&store_client);
            let thread = std::thread::Builder::new().name("standpipe-close".to_owned());
            thread.spawn(move || store_client.shut_down()).is_ok()
        };
        if !on_thread {
            store_client.shut_down();
        }
    }
}

impl fmt::Debug for StoreHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreHandle").finish_non_exhaustive()
    }
}
