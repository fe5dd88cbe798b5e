//! What is shown: a snapshot and the latest events, read from JSON whatever it comes from, with
//! nothing in it that could move a cursor.

use std::collections::VecDeque;

use serde_json::Value;
use standpipe::Snapshot;
use standpipe::journal::Event;

use super::source::Source;
use crate::show::escaped::escape_strings;

/// How many events are remembered.
const EVENTS: usize = 500;

/// What is shown.
#[derive(Clone, Debug)]
pub(super) struct Picture {
    pub(super) seen: Snapshot,
    /// The latest events, newest first.
    pub(super) events: Vec<Event>,
}

/// What stays from one look to the next.
#[derive(Debug, Default)]
pub(super) struct Memory {
    events: VecDeque<Event>,
}

impl Memory {
    /// One more look.
    ///
    /// # Errors
    /// In one line, when there is nothing to see.
    pub(super) fn look(&mut self, source: &mut dyn Source) -> Result<Picture, String> {
        let seen = source.look()?;
        // What happened is worth less than how things stand: without it the picture is shown too.
        self.remember(source.events().unwrap_or_default());
        self.picture(seen)
    }

    fn picture(&self, mut seen: Value) -> Result<Picture, String> {
        escape_strings(&mut seen);
        let seen = serde_json::from_value(seen).map_err(|error| {
            format!("what came is no snapshot of pools ({error}); is the daemon of this version?")
        })?;
        Ok(Picture { seen, events: self.events.iter().rev().cloned().collect() })
    }

    /// Events of a kind that this program does not know are left out, and those that are known
    /// already: a daemon that began anew tells the last hour again.
    fn remember(&mut self, events: Vec<Value>) {
        for mut event in events {
            escape_strings(&mut event);
            let event = serde_json::from_value::<Event>(event);
            self.events.extend(event.ok().filter(|event| !self.events.contains(event)));
            if self.events.len() > EVENTS {
                self.events.pop_front();
            }
        }
    }
}

/// The picture in these texts.
#[cfg(test)]
pub(super) fn of(snapshot: Value, events: Vec<Value>) -> Picture {
    let mut memory = Memory::default();
    memory.remember(events);
    memory.picture(snapshot).unwrap()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_snapshot_is_told() {
        let error = Memory::default().picture(json!({ "hello": 1 })).unwrap_err();
        assert!(error.contains("no snapshot"), "{error}");
    }

    #[test]
    fn only_the_latest_events_stay_and_odd_ones_are_left_out() {
        let mut memory = Memory::default();
        let event = |kind: &str, pool: usize| {
            let at = "2026-01-31T12:00:00.000Z";
            json!({ "at": at, "pool": format!("a/{pool}"), "kind": kind })
        };
        memory.remember(vec![event("of next year", 0)]);
        assert!(memory.events.is_empty());
        memory.remember((0..EVENTS + 5).map(|at| event("resume", at)).collect());
        assert_eq!(memory.events.len(), EVENTS);
        let picture = memory.picture(json!({ "store": "x", "pools": [], "backpressure": [] }));
        assert_eq!(picture.unwrap().events[0].pool, format!("a/{}", EVENTS + 4));
    }
}
