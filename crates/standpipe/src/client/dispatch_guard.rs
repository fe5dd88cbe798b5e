//! A caller's turn at the dispatcher of a pool, and the notifications it sends when the turn ends.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};

use super::Dispatcher;
use super::notify::Notify;

/// A caller's turn at the dispatcher.
///
/// Waiters are notified when the turn ends and the dispatcher is free: a waker is foreign code,
/// which must not run while the mutex is held.
pub(crate) struct DispatchGuard<'a> {
    // Fields are dropped in order: first the mutex is released, then waiters are notified.
    dispatcher: MutexGuard<'a, Dispatcher>,
    after: Notifications,
}

impl<'a> DispatchGuard<'a> {
    pub(super) fn new(dispatcher: MutexGuard<'a, Dispatcher>) -> Self {
        Self { dispatcher, after: Notifications::default() }
    }
}

/// Waiters that are notified when this is dropped.
#[derive(Default)]
struct Notifications(Vec<Arc<Notify>>);

impl Deref for DispatchGuard<'_> {
    type Target = Dispatcher;

    fn deref(&self) -> &Dispatcher {
        &self.dispatcher
    }
}

impl DerefMut for DispatchGuard<'_> {
    fn deref_mut(&mut self) -> &mut Dispatcher {
        &mut self.dispatcher
    }
}

impl Drop for DispatchGuard<'_> {
    fn drop(&mut self) {
        self.after.0 = self.dispatcher.end_turn();
    }
}

impl Drop for Notifications {
    fn drop(&mut self) {
        for notify in &self.0 {
            notify.notify();
        }
    }
}
