//! The data of the view: a snapshot of the pools and the latest events.
//!
//! Both sources deliver JSON. Every string in it is escaped here, so that nothing from outside can
//! move the cursor.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use standpipe::observe::Timestamp;
use standpipe::observe::journal::Event;
use standpipe::{PoolName, Snapshot};

use super::source::Source;
use crate::show::escaped::escape_strings;

/// The most events that are kept.
const MAX_EVENTS: usize = 500;

/// What the view shows.
#[derive(Clone, Debug)]
pub(super) struct ViewData {
    pub(super) snapshot: Snapshot,
    /// The latest events, newest first.
    pub(super) events: Vec<Event>,
    /// The latest calls through the proxy, newest first; `None` if no daemon answers.
    pub(super) proxied: Option<Vec<ProxiedCall>>,
}

/// A call through the proxy that ended, as `/v1/proxied` describes it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ProxiedCall {
    pub(super) at: Timestamp,
    pub(super) agent: String,
    #[serde(default)]
    pub(super) session: Option<String>,
    pub(super) pool: String,
    #[serde(default)]
    pub(super) model: Option<String>,
    pub(super) status: u16,
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) micro_usd: u64,
    pub(super) waited_ms: u64,
}

/// The events that are kept from one fetch to the next.
#[derive(Debug, Default)]
pub(super) struct EventBuffer {
    events: VecDeque<Event>,
}

impl EventBuffer {
    /// Fetches a snapshot and the new events.
    ///
    /// # Errors
    /// One line, when there is no snapshot.
    pub(super) fn fetch(&mut self, source: &mut dyn Source) -> Result<ViewData, String> {
        let snapshot = source.snapshot()?;
        // The snapshot is worth showing without the events.
        self.extend(source.events().unwrap_or_default());
        let proxied = source.proxied().map(|reply| proxied_calls(reply, source.wanted()));
        Ok(ViewData { proxied, ..self.view_data(snapshot)? })
    }

    fn view_data(&self, mut snapshot: Value) -> Result<ViewData, String> {
        escape_strings(&mut snapshot);
        let snapshot = serde_json::from_value(snapshot).map_err(|error| {
            format!("the reply is no snapshot of pools ({error}); is the daemon of this version?")
        })?;
        let events = self.events.iter().rev().cloned().collect();
        Ok(ViewData { snapshot, events, proxied: None })
    }

    /// Adds events. Unknown kinds are skipped, and duplicates: a restarted daemon sends the last
    /// hour again.
    fn extend(&mut self, events: Vec<Value>) {
        for mut event in events {
            escape_strings(&mut event);
            let event = serde_json::from_value::<Event>(event);
            let is_new = |event: &Event| !event.is_internal() && !self.events.contains(event);
            let event = event.ok().filter(is_new);
            self.events.extend(event);
            if self.events.len() > MAX_EVENTS {
                self.events.pop_front();
            }
        }
    }
}

/// Returns the calls of a reply of `/v1/proxied`, without those that a newer daemon describes in
/// another form. Only those of one pool if it is the only one of the view.
fn proxied_calls(mut reply: Value, wanted: Option<&PoolName>) -> Vec<ProxiedCall> {
    escape_strings(&mut reply);
    let calls = reply.get("recent").and_then(Value::as_array).into_iter().flatten();
    let calls = calls.filter_map(|call| ProxiedCall::deserialize(call).ok());
    calls.filter(|call| wanted.is_none_or(|pool| pool.as_str() == call.pool)).collect()
}

/// Builds view data from JSON.
#[cfg(test)]
pub(super) fn parse(snapshot: Value, events: Vec<Value>, proxied: Value) -> ViewData {
    let mut buffer = EventBuffer::default();
    buffer.extend(events);
    ViewData { proxied: Some(proxied_calls(proxied, None)), ..buffer.view_data(snapshot).unwrap() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use standpipe::observe::journal::LOG_POOL;

    use super::*;

    #[test]
    fn an_invalid_snapshot_is_an_error() {
        let error = EventBuffer::default().view_data(json!({ "hello": 1 })).unwrap_err();
        assert!(error.contains("no snapshot"), "{error}");
    }

    #[test]
    fn only_the_calls_of_the_wanted_pool_are_kept() {
        let call = |pool: &str| {
            json!({
                "at": "2026-01-31T12:00:00.000Z", "agent": "blog", "pool": pool, "status": 200,
                "input_tokens": 1, "output_tokens": 1, "micro_usd": 0, "waited_ms": 0,
            })
        };
        let reply = json!({ "recent": [call("a/b"), call("a/c"), call("a/b")] });
        assert_eq!(proxied_calls(reply.clone(), None).len(), 3);
        let wanted: PoolName = "a/b".parse().unwrap();
        let kept = proxied_calls(reply, Some(&wanted));
        assert!(kept.len() == 2 && kept.iter().all(|call| call.pool == "a/b"));
    }

    #[test]
    fn the_latest_events_are_kept_and_unknown_kinds_skipped() {
        let mut buffer = EventBuffer::default();
        let event = |kind: &str, pool: usize| {
            let at = "2026-01-31T12:00:00.000Z";
            json!({ "at": at, "pool": format!("a/{pool}"), "kind": kind })
        };
        let of_log = json!({
            "at": "2026-01-31T12:00:00.000Z", "pool": LOG_POOL, "kind": "resume",
        });
        buffer.extend(vec![event("of next year", 0), of_log]);
        assert!(buffer.events.is_empty());
        buffer.extend((0..MAX_EVENTS + 5).map(|at| event("resume", at)).collect());
        assert_eq!(buffer.events.len(), MAX_EVENTS);
        let data = buffer.view_data(json!({ "store": "x", "pools": [], "backpressure": [] }));
        assert_eq!(data.unwrap().events[0].pool, format!("a/{}", MAX_EVENTS + 4));
    }
}
