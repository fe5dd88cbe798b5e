//! Decides which thread of the process listens, that is, sleeps in the store's wait, where other
//! processes wake it: one thread at a time.
//!
//! A blocked caller listens itself, so that it runs as soon as the store wakes it, without another
//! thread between. The maintenance thread listens for tasks, and while no caller blocks; it runs
//! its timers in any case.
//!
//! Invariant: while a caller waits in this process, a thread listens or was notified to begin; and
//! a thread that was woken for others too attends to the pool before it continues.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use std::time::Instant as Local;

use super::{Maintenance, State, attend};
use crate::client::notify::Notify;
use crate::client::registry::StoreHandle;
use crate::client::{CallerId, PoolClient};

/// The id of the maintenance thread among the listeners.
pub(super) const MAINTENANCE: CallerId = 0;

/// Which thread listens, and which could.
#[derive(Debug, Default)]
pub(super) struct WakeListener {
    listens: Option<CallerId>,
    /// The blocked threads, in the order in which they began.
    blocked: BTreeMap<CallerId, Arc<Notify>>,
}

impl WakeListener {
    /// Returns whether no thread listens.
    pub(super) const fn is_free(&self) -> bool {
        self.listens.is_none()
    }

    /// Returns whether a thread is blocked.
    pub(super) fn has_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Makes a caller the listener if there is none. Returns whether it is the listener.
    pub(super) fn take(&mut self, caller: CallerId) -> bool {
        *self.listens.get_or_insert(caller) == caller
    }

    pub(super) fn leave(&mut self, caller: CallerId) {
        self.listens.take_if(|listens| *listens == caller);
    }
}

impl Maintenance {
    /// Registers a thread that is about to sleep. Returns whether it is the listener.
    fn park(&self, caller: CallerId, notify: &Arc<Notify>) -> bool {
        let mut state = self.lock();
        state.listener.blocked.entry(caller).or_insert_with(|| Arc::clone(notify));
        let listens = state.listener.take(caller);
        // The maintenance thread yields to a blocked thread and wakes it.
        if state.timers.is_empty() && state.listener.listens == Some(MAINTENANCE) {
            drop(state);
            self.notify.notify();
        }
        listens
    }

    /// Removes a thread that is no longer blocked.
    fn unpark(&self, caller: CallerId) {
        let mut state = self.lock();
        state.listener.blocked.remove(&caller);
        state.listener.leave(caller);
        self.wake_next_listener(state);
    }

    /// Wakes the next listener if there is none: the maintenance thread if a task waits, else the
    /// thread that has been blocked for longest.
    pub(super) fn wake_next_listener(&self, state: MutexGuard<'_, State>) {
        if !state.listener.is_free() {
            return;
        }
        let next = match state.timers.is_empty() {
            true => state.listener.blocked.values().next().cloned(),
            false => state.sleeps.map(|_| Arc::clone(&self.notify)),
        };
        drop(state);
        if let Some(notify) = next {
            notify.notify();
        }
    }
}

/// Registers a blocked thread from its first sleep until its wait is over.
pub(crate) struct ParkGuard {
    handle: Arc<StoreHandle>,
    client: Arc<PoolClient>,
    caller: CallerId,
    notify: Arc<Notify>,
    /// Whether the store woke it, and only its own ticket has been checked since.
    must_attend: bool,
}

impl ParkGuard {
    pub(crate) const fn new(
        handle: Arc<StoreHandle>,
        client: Arc<PoolClient>,
        caller: CallerId,
        notify: Arc<Notify>,
    ) -> Self {
        Self { handle, client, caller, notify, must_attend: false }
    }

    /// Sleeps until it is notified, or the instant has come.
    pub(crate) fn sleep(&mut self, until: Local) {
        let store_client = self.handle.store_client();
        store_client.maintenance().run_inline_if_due(store_client);
        if !store_client.maintenance().park(self.caller, &self.notify) {
            self.notify.wait_until(until);
            return;
        }
        if self.must_attend {
            self.attend_pool();
        }
        self.must_attend = self.notify.listen_until(store_client.store(), until);
        if !self.must_attend {
            return;
        }
        // If no other caller waits on the pool, it continues at once.
        if self.client.dispatcher().has_others(self.caller) {
            self.must_attend = false;
            self.attend_pool();
        }
        let elsewhere = |client: &Arc<PoolClient>| {
            !Arc::ptr_eq(client, &self.client) && client.may_have_waiters()
        };
        if store_client.clients().iter().any(elsewhere) {
            store_client.maintenance().notify.notify();
        }
    }

    /// Runs a round of maintenance on the pool.
    fn attend_pool(&self) {
        let store_client = self.handle.store_client();
        if let Some(next) =
            attend::attend(store_client, &self.client, &mut self.client.dispatcher(), true)
        {
            store_client.maintenance().plan(next);
        }
    }
}

impl Drop for ParkGuard {
    fn drop(&mut self) {
        if self.handle.is_ours() {
            self.handle.store_client().maintenance().unpark(self.caller);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;
    use std::time::Duration;

    fn notifies<const COUNT: usize>() -> [Arc<Notify>; COUNT] {
        std::array::from_fn(|_| Arc::default())
    }

    fn is_notified(notify: &Notify) -> bool {
        notify.take_notified(Waker::noop())
    }

    fn listens(maintenance: &Maintenance) -> bool {
        maintenance.begin_sleep(None).unwrap().listens
    }

    fn soon() -> Local {
        Local::now() + Duration::from_secs(1_800)
    }

    #[test]
    fn a_listener_that_leaves_wakes_the_next() {
        let (maintenance, [one, two, three]) = (Maintenance::default(), notifies());
        assert!(maintenance.park(1, &one));
        assert!(!maintenance.park(2, &two) && !maintenance.park(3, &three));
        assert!(maintenance.park(1, &one), "it still listens");
        maintenance.unpark(1);
        assert!(is_notified(&two) && !is_notified(&three) && !is_notified(&maintenance.notify));
        assert!(maintenance.park(2, &two));
    }

    #[test]
    fn a_thread_that_is_woken_to_listen_and_leaves_wakes_the_next() {
        let (maintenance, [one, two, three]) = (Maintenance::default(), notifies());
        maintenance.park(1, &one);
        maintenance.park(2, &two);
        maintenance.park(3, &three);
        maintenance.unpark(1);
        maintenance.unpark(2);
        assert!(is_notified(&three));
    }

    #[test]
    fn a_thread_that_does_not_listen_wakes_none_when_it_leaves() {
        let (maintenance, [one, two, three]) = (Maintenance::default(), notifies());
        maintenance.park(1, &one);
        maintenance.park(2, &two);
        maintenance.park(3, &three);
        maintenance.unpark(2);
        assert!(!is_notified(&one) && !is_notified(&three) && !is_notified(&maintenance.notify));
    }

    #[test]
    fn the_maintenance_thread_is_woken_to_listen_for_tasks() {
        let (maintenance, [one, two, future]) = (Maintenance::default(), notifies());
        maintenance.park(1, &one);
        maintenance.park(2, &two);
        assert!(!listens(&maintenance));
        maintenance.set_timer(soon(), 3, &future);
        assert!(is_notified(&maintenance.notify), "it has a timer");
        maintenance.end_sleep();
        assert!(!listens(&maintenance), "a thread does");
        maintenance.unpark(1);
        assert!(is_notified(&maintenance.notify) && !is_notified(&two));
        maintenance.end_sleep();
        assert!(listens(&maintenance));
    }

    #[test]
    fn the_maintenance_thread_is_woken_when_a_task_begins_to_wait() {
        let (maintenance, [one, future]) = (Maintenance::default(), notifies());
        maintenance.park(1, &one);
        let sleep = maintenance.begin_sleep(Some(Local::now())).unwrap();
        maintenance.unpark(1);
        assert!(!sleep.listens && !is_notified(&maintenance.notify), "no caller waits");
        maintenance.set_timer(soon(), 2, &future);
        assert!(is_notified(&maintenance.notify));
    }

    #[test]
    fn the_maintenance_thread_yields_to_a_blocked_thread() {
        let (maintenance, [one]) = (Maintenance::default(), notifies());
        assert!(listens(&maintenance));
        assert!(!maintenance.park(1, &one));
        assert!(is_notified(&maintenance.notify));
        maintenance.end_sleep();
        assert!(!listens(&maintenance));
        assert!(is_notified(&one));
        assert!(maintenance.park(1, &one));
    }

    #[test]
    fn the_maintenance_thread_does_not_yield_while_a_task_waits() {
        let (maintenance, [one, future]) = (Maintenance::default(), notifies());
        let at = soon();
        maintenance.set_timer(at, 1, &future);
        assert!(listens(&maintenance));
        assert!(!maintenance.park(2, &one));
        assert!(!is_notified(&maintenance.notify));
        maintenance.clear_timer(at, 1);
        maintenance.end_sleep();
        assert!(!listens(&maintenance));
        assert!(is_notified(&one), "then it does");
    }

    #[test]
    fn an_instant_that_is_planned_while_the_thread_works_is_kept() {
        let (maintenance, at) = (Maintenance::default(), soon() - Duration::from_secs(60));
        maintenance.plan(at);
        maintenance.plan(soon());
        assert_eq!(maintenance.begin_sleep(None).unwrap().until, at);
        assert!(!is_notified(&maintenance.notify));
        maintenance.plan(at);
        assert!(!is_notified(&maintenance.notify));
        maintenance.plan(at - Duration::from_secs(1));
        assert!(is_notified(&maintenance.notify));
    }
}
