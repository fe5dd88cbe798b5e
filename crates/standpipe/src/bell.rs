//! What a waiter sleeps on: rung by whoever sees that it should look.
//!
//! A bell that was rung stays rung until its waiter has noticed, so a ring between two looks is
//! never lost. A thread may sleep on the store's bell instead of its own; a ring then goes there.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant as Local;

use standpipe_store::Store;

/// What a waiter sleeps on.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rung: bool,
    waker: Option<Waker>,
    /// Where its waiter listens, while it does.
    listens: Option<Arc<dyn Store>>,
}

impl Bell {
    /// Tells the waiter to look.
    pub(crate) fn ring(&self) {
        let mut state = self.lock();
        state.rung = true;
        let (waker, listens) = (state.waker.take(), state.listens.clone());
        drop(state);
        match listens {
            Some(store) => store.interrupt(),
            None => self.changed.notify_all(),
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether it was rung since it was last asked; if not, the waker will be told.
    pub(crate) fn was_rung(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if std::mem::take(&mut state.rung) {
            return true;
        }
        match &mut state.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        false
    }

    /// Sleeps until it is rung or the moment has come.
    pub(crate) fn wait_until(&self, at: Local) {
        let mut state = self.lock();
        while !state.rung {
            let now = Local::now();
            let Some(left) = at.checked_duration_since(now).filter(|left| !left.is_zero()) else {
                break;
            };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.rung = false;
    }

    /// Sleeps until it is rung, the store is, or the moment has come. Answers whether it listened:
    /// what woke it may then concern others, too.
    pub(crate) fn listen_until(&self, store: &Arc<dyn Store>, at: Local) -> bool {
        let left = at.saturating_duration_since(Local::now());
        let mut state = self.lock();
        let listens = !state.rung && !left.is_zero();
        if listens {
            state.listens = Some(Arc::clone(store));
            drop(state);
            store.wait_for_wake(left);
            state = self.lock();
            state.listens = None;
        }
        state.rung = false;
        listens
    }

    /// What the mutex guards is whole after every statement.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use standpipe_core::Instant;
    use standpipe_store::MemoryStore;
    use std::time::Duration;

    #[test]
    fn a_ring_before_the_wait_is_not_lost() {
        let bell = Bell::default();
        bell.ring();
        bell.wait_until(Local::now() + Duration::from_secs(3_600));
        bell.wait_until(Local::now());
    }

    #[test]
    fn a_ring_wakes_a_thread_that_listens_at_the_store() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(|| Instant(0))));
        let bell = Arc::new(Bell::default());
        let rings = Arc::clone(&bell);
        let far = Local::now() + Duration::from_secs(30);
        let other = std::thread::spawn(move || {
            while rings.lock().listens.is_none() {
                std::thread::yield_now();
            }
            rings.ring();
        });
        assert!(bell.listen_until(&store, far) && Local::now() < far);
        other.join().unwrap();
        bell.ring();
        assert!(!bell.listen_until(&store, far), "it had been rung before");
    }

    #[test]
    fn a_ring_wakes_a_sleeping_thread() {
        let bell = Arc::new(Bell::default());
        let rings = Arc::clone(&bell);
        let other = std::thread::spawn(move || rings.ring());
        bell.wait_until(Local::now() + Duration::from_secs(3_600));
        other.join().unwrap();
    }
}
