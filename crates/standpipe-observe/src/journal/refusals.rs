//! Batches calls that were not admitted, in memory, until they are written as lines.
//!
//! Guarantee: at most one line per pool, agent, model, tier, reason and limit in each batch, and a
//! bounded number of lines: agents beyond the bound count as `other`.

use standpipe_core::AgentName;

use super::{Event, EventData};

/// How many lines a batch has at most, but for those of `other`.
const MOST: usize = 256;

/// The calls that were not admitted since the last lines.
#[derive(Debug, Default)]
pub(super) struct RefusalBatch {
    lines: Vec<Event>,
}

impl RefusalBatch {
    pub(super) fn add(&mut self, mut event: Event) {
        if self.count(&event) {
            return;
        }
        if self.lines.len() >= MOST {
            make_other(&mut event.what);
            if self.count(&event) {
                return;
            }
        }
        self.lines.push(event);
    }

    /// Adds to the line of like calls, if there is one.
    fn count(&mut self, event: &Event) -> bool {
        let alike = self.lines.iter_mut().find(|line| is_alike(line, event));
        let (Some(line), EventData::Refuse { count: more, .. }) = (alike, &event.what) else {
            return false;
        };
        if let EventData::Refuse { count, .. } = &mut line.what {
            *count = count.saturating_add(*more);
        }
        true
    }

    /// Returns the lines of the batch, each at the time of its first call.
    pub(super) fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.lines)
    }
}

fn make_other(what: &mut EventData) {
    if let EventData::Refuse { agent, model, held_by, .. } = what {
        AgentName::OTHER.clone_into(agent);
        *model = None;
        held_by.clear();
    }
}

fn is_alike(line: &Event, event: &Event) -> bool {
    let key = |what: &EventData| match what {
        EventData::Refuse { agent, model, priority, reason, limit, .. } => {
            Some((agent.clone(), model.clone(), priority.clone(), reason.clone(), limit.clone()))
        }
        _ => None,
    };
    line.pool == event.pool && key(&line.what) == key(&event.what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Timestamp;

    fn refusal(agent: &str, reason: &str) -> Event {
        let what = EventData::Refuse {
            agent: agent.to_owned(),
            model: None,
            priority: None,
            reason: reason.to_owned(),
            limit: None,
            short_by: 0,
            by_cap: false,
            held_by: vec!["blog".to_owned()],
            timeout_ms: 0,
            count: 1,
        };
        Event { at: Timestamp { millis: 7 }, pool: "a/b".to_owned(), what }
    }

    fn counts(batch: &mut RefusalBatch) -> Vec<(String, String, u64)> {
        let count = |event: Event| match event.what {
            EventData::Refuse { agent, reason, count, .. } => (agent, reason, count),
            other => panic!("{other:?}"),
        };
        batch.take().into_iter().map(count).collect()
    }

    #[test]
    fn like_calls_are_one_line_with_their_number() {
        let mut batch = RefusalBatch::default();
        for (agent, reason) in [("cron", "limit"), ("cron", "pause"), ("cron", "limit")] {
            batch.add(refusal(agent, reason));
        }
        let line = |reason: &str, count| ("cron".to_owned(), reason.to_owned(), count);
        assert_eq!(counts(&mut batch), [line("limit", 2), line("pause", 1)]);
        assert_eq!(counts(&mut batch), []);
    }

    #[test]
    fn agents_beyond_the_bound_are_one_line() {
        let mut batch = RefusalBatch::default();
        for number in 0..2 * MOST {
            batch.add(refusal(&format!("agent-{number}"), "limit"));
        }
        let counts = counts(&mut batch);
        assert_eq!(counts.len(), MOST + 1);
        assert_eq!(counts[MOST], ("other".to_owned(), "limit".to_owned(), MOST as u64));
    }
}
