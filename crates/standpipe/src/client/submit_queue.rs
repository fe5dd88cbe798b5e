//! What callers of a pool want to be sent with the next step.

use std::sync::{Mutex, MutexGuard, PoisonError};

use standpipe_core::{Action, Key};

use super::CallerId;

/// What callers want to be sent, in order of submission.
#[derive(Default)]
pub(super) struct SubmitQueue {
    submissions: Mutex<Vec<Submission>>,
    /// Callers that left while another one held the dispatcher.
    left: Mutex<Vec<LeftCaller>>,
}

/// A caller that no longer waits, and the ticket it waited for.
pub(super) struct LeftCaller {
    pub(super) caller: CallerId,
    pub(super) ticket: Option<Key>,
}

/// What one caller wants to be sent. Without actions it wants a read.
pub(super) struct Submission {
    pub(super) caller: CallerId,
    pub(super) actions: Vec<Action>,
}

impl SubmitQueue {
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Submission>> {
        self.submissions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns what a caller submitted and was not sent.
    pub(super) fn withdraw(&self, caller: CallerId) -> Vec<Action> {
        let mut queue = self.lock();
        let own = queue.extract_if(.., |submission| submission.caller == caller);
        own.flat_map(|submission| submission.actions).collect()
    }

    /// Records a caller that leaves without the dispatcher.
    pub(super) fn leave(&self, caller: CallerId, ticket: Option<Key>) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.push(LeftCaller { caller, ticket });
    }

    /// Returns whether callers left that the dispatcher has not detached.
    pub(super) fn has_left(&self) -> bool {
        !self.left.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(super) fn take_left(&self) -> Vec<LeftCaller> {
        std::mem::take(&mut self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
