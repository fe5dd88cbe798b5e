//! What callers at a desk want to be sent with the next step.

use std::sync::{Mutex, MutexGuard, PoisonError};

use standpipe_core::Action;

use super::Caller;

/// What callers want to be sent, in the order in which they came.
#[derive(Default)]
pub(super) struct Inbox(Mutex<Vec<Asked>>);

/// What one caller wants to be sent. Nothing means that it only wants to know what is new.
pub(super) struct Asked {
    pub(super) caller: Caller,
    pub(super) actions: Vec<Action>,
}

impl Inbox {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a caller asked for that was not sent.
    pub(super) fn take_back(&self, caller: Caller) -> Vec<Action> {
        let mut asked = self.lock();
        let mut taken = Vec::new();
        for each in asked.extract_if(.., |asked| asked.caller == caller) {
            taken.extend(each.actions);
        }
        taken
    }
}
