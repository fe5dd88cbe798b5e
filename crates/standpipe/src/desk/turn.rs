//! A caller's turn at a desk, and who is notified when it ends.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, MutexGuard};

use super::Counter;
use crate::bell::Bell;

/// A caller's turn at a desk. Those it has news for are told when it ends: a waker is somebody
/// else's code, which must not run while the desk is taken.
pub(crate) struct Turn<'a> {
    // Fields are dropped in their order: first the desk is free, then the bells ring.
    counter: MutexGuard<'a, Counter>,
    after: Rings,
}

impl<'a> Turn<'a> {
    pub(super) fn new(counter: MutexGuard<'a, Counter>) -> Self {
        Self { counter, after: Rings::default() }
    }
}

/// Bells that ring when this is dropped.
#[derive(Default)]
struct Rings(Vec<Arc<Bell>>);

impl Deref for Turn<'_> {
    type Target = Counter;

    fn deref(&self) -> &Counter {
        &self.counter
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut Counter {
        &mut self.counter
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.after.0 = std::mem::take(&mut self.counter.rings);
    }
}

impl Drop for Rings {
    fn drop(&mut self) {
        for bell in &self.0 {
            bell.ring();
        }
    }
}
