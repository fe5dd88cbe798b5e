//! How a tap finds the [`StoreHandle`] of its own process, also in a child after a fork.
//!
//! Every process that inherits a [`ForkAware`] adds a link for itself and never touches those of
//! its parents. `registry` shares handles between taps.

use std::fmt;
use std::sync::{Arc, OnceLock};

use standpipe_store::StoreError;

use crate::client::registry::{Opener, StoreHandle, find_or_open};
use crate::error::Error;
use crate::journal::JournalDirectory;

/// Finds the store handle of the current process.
pub(crate) struct ForkAware {
    key: String,
    open: Opener,
    journal: Option<JournalDirectory>,
    first: Link,
}

struct Link {
    handle: Arc<StoreHandle>,
    /// The link of a child process.
    child: OnceLock<Box<Link>>,
}

impl ForkAware {
    /// Opens a store, or finds it open under this key.
    pub(crate) fn new(
        key: String,
        open: Opener,
        journal: Option<JournalDirectory>,
    ) -> Result<Self, Error> {
        let first = Link::new(&key, &open, journal.as_ref())?;
        Ok(Self { key, open, journal, first })
    }

    /// Returns the store handle of this process.
    pub(crate) fn store_handle(&self) -> Result<Arc<StoreHandle>, Error> {
        let mut link = &self.first;
        while !link.handle.is_ours() {
            link = match link.child.get() {
                Some(child) => child,
                None => self.add(link)?,
            };
        }
        Ok(Arc::clone(&link.handle))
    }

    /// Returns whether the store is the one of this key.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.key == key
    }

    /// Returns the location of the store, for messages.
    pub(crate) fn location(&self) -> String {
        self.first.handle.store_client().store().location()
    }

    /// Adds the link of this process. The link is made before the cell is locked: a fork during
    /// that lock would leave it locked in the child for ever.
    fn add<'a>(&self, parent: &'a Link) -> Result<&'a Link, Error> {
        let child = Link::new(&self.key, &self.open, self.journal.as_ref())?;
        if !child.handle.is_ours() {
            return Err(StoreError::unusable(
                "the store was opened before this process was forked; open it anew here",
            )
            .into());
        }
        Ok(parent.child.get_or_init(|| Box::new(child)))
    }
}

impl Link {
    fn new(key: &str, open: &Opener, journal: Option<&JournalDirectory>) -> Result<Self, Error> {
        let handle = find_or_open(key, open)?;
        if let Some(place) = journal {
            handle.store_client().journal().write_to(place);
        }
        Ok(Self { handle, child: OnceLock::new() })
    }
}

impl fmt::Debug for ForkAware {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForkAware").field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::engine::Engine;
    use standpipe_core::{Action, Instant, bounds};
    use standpipe_store::{Log, MemoryStore, PoolName, Store};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    /// A store that can be switched to behave as in a child process.
    #[derive(Debug)]
    struct Inherited {
        inner: MemoryStore,
        inherited: AtomicBool,
        touched: AtomicUsize,
    }

    impl Inherited {
        fn touch(&self) {
            self.touched.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Store for Inherited {
        fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
            self.touch();
            self.inner.log(pool)
        }

        fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
            self.touch();
            self.inner.pools()
        }

        fn begin_session(&self) -> Result<u64, StoreError> {
            self.touch();
            self.inner.begin_session()
        }

        fn end_session(&self, session: u64) {
            self.touch();
            self.inner.end_session(session);
        }

        fn wait_for_wake(&self, at_most: Duration) {
            self.inner.wait_for_wake(at_most);
        }

        fn interrupt(&self) {
            self.touch();
            self.inner.interrupt();
        }

        fn was_forked(&self) -> bool {
            self.inherited.load(Ordering::SeqCst)
        }

        fn location(&self) -> String {
            "inherited".to_owned()
        }
    }

    #[test]
    fn after_a_fork_handles_open_the_store_again_and_do_not_touch_the_parents() {
        let all: Arc<Mutex<Vec<Arc<Inherited>>>> = Arc::default();
        let opened = Arc::clone(&all);
        let world = MemoryStore::new(Arc::new(|| Instant(bounds::SPAN.0)));
        let open: Opener = Arc::new(move || {
            let (inherited, touched) = (AtomicBool::new(false), AtomicUsize::new(0));
            let store = Arc::new(Inherited { inner: world.another_process(), inherited, touched });
            opened.lock().unwrap().push(Arc::clone(&store));
            Ok(Engine::Other(store))
        });
        let fork_aware = ForkAware::new("after a fork".to_owned(), open, None).unwrap();
        let forked_parent = fork_aware.store_handle().unwrap();
        let pool: PoolName = "a/b".parse().unwrap();
        let client = forked_parent.store_client().client(&pool).unwrap();
        forked_parent.store_client().send_unattended(&client, Action::Resume { by: None });
        // At the fork another thread of the parent holds the dispatcher, for ever.
        let _turn = client.dispatcher();
        let store = Arc::clone(&all.lock().unwrap()[0]);
        store.inherited.store(true, Ordering::SeqCst);
        let before = store.touched.load(Ordering::SeqCst);
        let childs = fork_aware.store_handle().unwrap();
        let own = childs.store_client().client(&pool).unwrap();
        childs.store_client().send_unattended(&own, Action::Resume { by: None });
        assert!(Arc::ptr_eq(&childs, &fork_aware.store_handle().unwrap()), "opened once");
        assert_eq!(all.lock().unwrap().len(), 2);
        drop((forked_parent, childs, fork_aware));
        assert_eq!(store.touched.load(Ordering::SeqCst), before, "the parent's is not touched");
    }
}
