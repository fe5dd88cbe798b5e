//! What one waiter sleeps on, a thread or a task, until it is notified.
//!
//! A notification stays until its waiter takes it, so one that arrives between two checks is never
//! lost. A thread may sleep in the store's wait instead of here; a notification then interrupts
//! that wait. `maintenance/wake_listener.rs` decides which thread does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant as Local;

use standpipe_store::Store;

/// What one waiter sleeps on.
#[derive(Debug, Default)]
pub(crate) struct Notify {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    notified: bool,
    waker: Option<Waker>,
    /// The store in whose wait the waiter sleeps, while it does.
    listens: Option<Arc<dyn Store>>,
}

impl Notify {
    /// Wakes the waiter.
    pub(crate) fn notify(&self) {
        let mut state = self.lock();
        state.notified = true;
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

    /// Returns whether it was notified since the last call. If not, the waker is called when it is.
    pub(crate) fn take_notified(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if std::mem::take(&mut state.notified) {
            return true;
        }
        match &mut state.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        false
    }

    /// Sleeps until it is notified or the instant has come.
    pub(crate) fn wait_until(&self, at: Local) {
        let mut state = self.lock();
        while !state.notified {
            let now = Local::now();
            let Some(left) = at.checked_duration_since(now).filter(|left| !left.is_zero()) else {
                break;
            };
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.notified = false;
    }

    /// Sleeps until it is notified, the store is woken, or the instant has come. Returns whether it
    /// slept in the store's wait: what woke it may then concern other waiters too.
    pub(crate) fn listen_until(&self, store: &Arc<dyn Store>, at: Local) -> bool {
        let left = at.saturating_duration_since(Local::now());
        let mut state = self.lock();
        let listens = !state.notified && !left.is_zero();
        if listens {
            state.listens = Some(Arc::clone(store));
            drop(state);
            store.wait_for_wake(left);
            state = self.lock();
            state.listens = None;
        }
        state.notified = false;
        listens
    }

    /// Ignores poisoning: the state is consistent after every statement.
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
    fn a_notification_before_the_wait_is_not_lost() {
        let notify = Notify::default();
        notify.notify();
        notify.wait_until(Local::now() + Duration::from_secs(3_600));
        notify.wait_until(Local::now());
    }

    #[test]
    fn a_notification_wakes_a_thread_that_sleeps_in_the_store() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::new(|| Instant(0))));
        let notify = Arc::new(Notify::default());
        let sender = Arc::clone(&notify);
        let far = Local::now() + Duration::from_secs(30);
        let other = std::thread::spawn(move || {
            while sender.lock().listens.is_none() {
                std::thread::yield_now();
            }
            sender.notify();
        });
        assert!(notify.listen_until(&store, far) && Local::now() < far);
        other.join().unwrap();
        notify.notify();
        assert!(!notify.listen_until(&store, far), "it was notified before");
    }

    #[test]
    fn a_notification_wakes_a_sleeping_thread() {
        let notify = Arc::new(Notify::default());
        let sender = Arc::clone(&notify);
        let other = std::thread::spawn(move || sender.notify());
        notify.wait_until(Local::now() + Duration::from_secs(3_600));
        other.join().unwrap();
    }
}
