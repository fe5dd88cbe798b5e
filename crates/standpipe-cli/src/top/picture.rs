//! What is shown: a snapshot and the latest events, read from JSON whatever it comes from, with
//! nothing in it that could move a cursor.

use std::collections::VecDeque;

use serde_json::Value;
use standpipe::Snapshot;
use standpipe::journal::Event;

use super::source::Source;

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
        clean(&mut seen);
        let seen = serde_json::from_value(seen).map_err(|error| {
            format!("what came is no snapshot of pools ({error}); is the daemon of this version?")
        })?;
        Ok(Picture { seen, events: self.events.iter().rev().cloned().collect() })
    }

    /// Events of a kind that this program does not know are left out, and those that are known
    /// already: a daemon that began anew tells the last hour again.
    fn remember(&mut self, events: Vec<Value>) {
        for mut event in events {
            clean(&mut event);
            let event = serde_json::from_value::<Event>(event);
            self.events.extend(event.ok().filter(|event| !self.events.contains(event)));
            if self.events.len() > EVENTS {
                self.events.pop_front();
            }
        }
    }
}

/// Puts a `?` for every character that is not meant to be seen: control characters, and those that
/// turn the direction of a text or hide in it.
fn clean(value: &mut Value) {
    match value {
        Value::String(text) if has_hidden(text) => *text = seen(text),
        Value::Array(all) => all.iter_mut().for_each(clean),
        Value::Object(all) => {
            all.values_mut().for_each(clean);
            if all.keys().any(|key| has_hidden(key)) {
                *all = std::mem::take(all).into_iter().map(|(k, v)| (seen(&k), v)).collect();
            }
        }
        _ => {}
    }
}

fn has_hidden(text: &str) -> bool {
    text.chars().any(is_hidden)
}

fn seen(text: &str) -> String {
    text.chars().map(|c| if is_hidden(c) { '?' } else { c }).collect()
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
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
    fn nothing_that_comes_can_move_the_cursor() {
        let mut value = json!({ "task": ["a\u{1b}[2Jb\u{9b}c", "x\u{202e}y", "größe ✓"], "\n": 1 });
        clean(&mut value);
        assert_eq!(value, json!({ "task": ["a?[2Jb?c", "x?y", "größe ✓"], "?": 1 }));
    }

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
