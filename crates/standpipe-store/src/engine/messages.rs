//! Messages for people, kept until somebody takes them.

use std::sync::{Mutex, PoisonError};

use crate::pool::PoolName;

/// A message of a store for people: one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The pool that it is about, if it is about one.
    pub pool: Option<PoolName>,
    /// The sentence.
    pub text: String,
}

/// The messages of a store; see [`crate::Store::take_messages`]. At most 64 are kept, each once.
#[derive(Debug, Default)]
pub struct Messages(Mutex<Vec<Message>>);

impl Messages {
    /// Adds a message, unless the same one is waiting to be read.
    pub fn push(&self, pool: Option<&PoolName>, text: String) {
        let message = Message { pool: pool.cloned(), text };
        let mut messages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if messages.len() < MAX_MESSAGES && !messages.contains(&message) {
            messages.push(message);
        }
    }

    /// Returns all messages and drops them.
    #[must_use]
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// How many messages are kept, in case nobody reads them.
const MAX_MESSAGES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_message_is_taken_once_and_they_are_bounded() {
        let messages = Messages::default();
        for number in 0..200 {
            messages.push(None, number.to_string());
            messages.push(None, "0".to_owned());
        }
        let taken = messages.take();
        let text = |at: usize| taken[at].text.as_str();
        assert_eq!((taken.len(), text(0), text(1)), (MAX_MESSAGES, "0", "1"));
        assert!(messages.take().is_empty());
    }
}
