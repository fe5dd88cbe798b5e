//! The entries that an engine appends itself: a loss, a pause, the end of sessions.

use standpipe_core::{Action, Event, Key};

use crate::entry;
use crate::participant::random_session;

/// Encodes actions as bodies of a session of their own, numbered from 1: no participant waits for
/// their outcomes.
#[must_use]
pub fn entry_bodies(actions: impl IntoIterator<Item = Action>) -> Vec<Vec<u8>> {
    let session = random_session();
    let numbered = actions.into_iter().zip(1..);
    let event = |(action, number)| Event { key: Key { session, number }, action };
    numbered.map(|each| entry::body(&event(each))).collect()
}
