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
        self.first.guard.shared().store().location()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use standpipe_core::{Action, Instant, bounds};
    use standpipe_store::{Log, MemoryStore, PoolName, Store};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;

    /// A store that can be made to look as it does in a child process.
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
    fn after_a_fork_handles_begin_anew_and_leave_the_parents_alone() {
        let all: Arc<Mutex<Vec<Arc<Inherited>>>> = Arc::default();
        let opened = Arc::clone(&all);
        let world = MemoryStore::new(Arc::new(|| Instant(bounds::SPAN.0)));
        let open: Opener = Arc::new(move || {
            let (inherited, touched) = (AtomicBool::new(false), AtomicUsize::new(0));
            let store = Arc::new(Inherited { inner: world.another_process(), inherited, touched });
            opened.lock().unwrap().push(Arc::clone(&store));
            Ok(Engine::Other(store))
        });
        let anchor = Anchor::new("after a fork".to_owned(), open, None).unwrap();
        let parents = anchor.guard().unwrap();
        let pool: PoolName = "a/b".parse().unwrap();
        let desk = parents.shared().desk(&pool).unwrap();
        parents.shared().tell(&desk, Action::Resume);
        // At the fork another thread of the parent is at the desk, for ever.
        let _turn = desk.counter();
        let store = Arc::clone(&all.lock().unwrap()[0]);
        store.inherited.store(true, Ordering::SeqCst);
        let before = store.touched.load(Ordering::SeqCst);
        let childs = anchor.guard().unwrap();
        let own = childs.shared().desk(&pool).unwrap();
        childs.shared().tell(&own, Action::Resume);
        assert!(Arc::ptr_eq(&childs, &anchor.guard().unwrap()), "it begins anew once");
        assert_eq!(all.lock().unwrap().len(), 2);
        drop((parents, childs, anchor));
        assert_eq!(store.touched.load(Ordering::SeqCst), before, "the parent's was left alone");
    }
}
