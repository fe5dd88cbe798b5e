//! Before and after: compares the last run in shadow mode with the last enforced run.
//!
//! A run is a stretch of time in which the pool did not change its mode. Earlier runs would add up
//! to figures of no run at all, so they are left out and counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::series::Series;
use crate::amount::percent;
use crate::journal::{Event, EventData, EventKind, Usage};
use crate::time::Timestamp;

/// The traffic of a pool before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Which pool, as the journal has it: text that anyone may have written.
    pub pool: String,
    /// In shadow mode; `None` if nothing was recorded.
    pub before: Option<Traffic>,
    /// While limits were enforced; `None` if nothing was recorded.
    pub after: Option<Traffic>,
    /// Calls of earlier runs in the same time, which neither side includes.
    pub earlier_calls: u64,
}

/// What was recorded of a pool in one mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Traffic {
    /// How many agents called.
    pub agents: usize,
    /// Calls that were sent.
    pub calls: u64,
    /// The most calls in one second.
    pub peak_per_second: u64,
    /// Calls that the provider refused.
    pub refused: u64,
    /// How many percent of the calls those are: sent, and for nothing.
    pub refused_percent: u64,
    /// Calls that tried another again.
    pub retries: u64,
    /// How many percent of the calls those are.
    pub retries_percent: u64,
    /// When the first call began to wait, or was admitted if none waited before that.
    pub first: Option<Timestamp>,
    /// When the last call was admitted.
    pub last: Option<Timestamp>,
    /// From the first to the last.
    pub wall_clock_ms: u64,
    /// How long calls waited, all together.
    pub waited_ms: u64,
}

impl Comparison {
    /// The kinds of events that it is worked out from.
    pub const KINDS: [EventKind; 2] = [EventKind::Usage, EventKind::Wait];

    /// Compares the runs of each pool in these events of
    /// [`Comparison::KINDS`].
    #[must_use]
    pub fn of(events: impl IntoIterator<Item = Event>) -> Vec<Self> {
        let mut sides = Runs::default();
        events.into_iter().for_each(|event| sides.add(event));
        sides.compared()
    }
}

/// The lines of each pool.
#[derive(Debug, Default)]
struct Runs(BTreeMap<String, Recorded>);

/// What was recorded of a pool.
#[derive(Debug, Default)]
struct Recorded {
    lines: Vec<Line>,
    waits: Vec<Wait>,
}

/// When the longest of some calls began to wait, at the earliest, and when their line was written.
#[derive(Clone, Copy, Debug)]
struct Wait {
    began: u64,
    written: u64,
}

/// A line of the journal and when it counts from: the second of its first call, and among lines of
/// one second when they were written.
#[derive(Debug)]
struct Line {
    began: (Timestamp, Timestamp),
    usage: Usage,
}

/// One mode of one pool.
#[derive(Debug, Default)]
struct Side {
    agents: BTreeSet<String>,
    calls: u64,
    cancelled: u64,
    refused: u64,
    retries: u64,
    waited_ms: u64,
    admitted: Series,
}

impl Runs {
    fn add(&mut self, event: Event) {
        match event.what {
            EventData::Usage(usage) => {
                let line = Line { began: (usage.from, event.at), usage };
                self.0.entry(event.pool).or_default().lines.push(line);
            }
            EventData::Wait { longest_ms, .. } => {
                let written = event.at.millis;
                let wait = Wait { began: written.saturating_sub(longest_ms), written };
                self.0.entry(event.pool).or_default().waits.push(wait);
            }
            _ => {}
        }
    }

    fn compared(self) -> Vec<Comparison> {
        let recorded = self.0.into_iter().filter(|(_, recorded)| !recorded.lines.is_empty());
        recorded.map(|(pool, recorded)| compared(pool, recorded)).collect()
    }
}

fn compared(pool: String, recorded: Recorded) -> Comparison {
    let Recorded { mut lines, waits } = recorded;
    lines.sort_by_key(|line| line.began);
    let starts = [false, true].map(|enforced| last_run(&lines, enforced));
    let mut sides = [Side::default(), Side::default()];
    let mut earlier_calls = 0_u64;
    for Line { began, usage } in lines {
        let at = usize::from(usage.enforced);
        if starts[at].is_some_and(|start| began >= start) {
            sides[at].add(usage);
        } else {
            earlier_calls = earlier_calls.saturating_add(usage.calls);
        }
    }
    let [before, after] = sides.map(Side::traffic);
    // In shadow mode no call waits.
    let after = after.map(|after| after.with_waits(&waits));
    Comparison { pool, before, after, earlier_calls }
}

/// When the last run in that mode began. A line without calls does not end a run: it reports calls
/// that were admitted before.
fn last_run(lines: &[Line], enforced: bool) -> Option<(Timestamp, Timestamp)> {
    let with_calls = lines.iter().rev().filter(|line| line.usage.calls > 0);
    let run = with_calls
        .skip_while(|line| line.usage.enforced != enforced)
        .take_while(|line| line.usage.enforced == enforced);
    run.last().map(|line| line.began)
}

impl Side {
    fn add(&mut self, usage: Usage) {
        usage.seconds().for_each(|(second, calls)| self.admitted.add(second, calls));
        self.calls = self.calls.saturating_add(usage.calls);
        self.cancelled = self.cancelled.saturating_add(usage.cancelled);
        self.refused = self.refused.saturating_add(usage.refused);
        self.retries = self.retries.saturating_add(usage.retries);
        self.waited_ms = self.waited_ms.saturating_add(usage.waited_ms);
        if usage.calls > 0 {
            self.agents.insert(usage.agent);
        }
    }

    fn traffic(self) -> Option<Traffic> {
        let calls = self.calls.saturating_sub(self.cancelled);
        let admitted = self.admitted.sorted().with_total(calls);
        let (first, last) = admitted.ends()?;
        let share = |part: u64| percent(u128::from(part), u128::from(calls));
        let moment = |second: u64| Timestamp { millis: second.saturating_mul(1_000) };
        Some(Traffic {
            agents: self.agents.len(),
            calls,
            peak_per_second: admitted.peak(1_000).0,
            refused: self.refused,
            refused_percent: share(self.refused),
            retries: self.retries,
            retries_percent: share(self.retries),
            first: Some(moment(first)),
            last: Some(moment(last)),
            wall_clock_ms: (last - first + 1).saturating_mul(1_000),
            waited_ms: self.waited_ms,
        })
    }
}

impl Traffic {
    /// A run begins when its first call begins to wait, not when that is admitted.
    fn with_waits(mut self, waits: &[Wait]) -> Self {
        let Some(first) = self.first.map(|first| first.millis) else { return self };
        let of_run = waits.iter().filter(|wait| wait.written >= first);
        let began = of_run.map(|wait| wait.began).min().unwrap_or(first).min(first);
        self.first = Some(Timestamp { millis: began });
        self.wall_clock_ms = self.wall_clock_ms.saturating_add(first - began);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(enforced: bool, agent: &str, second: u64, per_second: &[u32]) -> Usage {
        Usage {
            agent: agent.to_owned(),
            from: Timestamp { millis: second * 1_000 },
            per_second: per_second.to_vec(),
            enforced,
            calls: per_second.iter().map(|calls| u64::from(*calls)).sum(),
            ..Usage::default()
        }
    }

    fn compare(lines: Vec<Usage>) -> Vec<Comparison> {
        let event = |usage| {
            let (at, pool) = (Timestamp { millis: 0 }, "a/b".to_owned());
            Event { at, pool, what: EventData::Usage(usage) }
        };
        Comparison::of(lines.into_iter().map(event))
    }

    #[test]
    fn both_sides_are_added_up_over_all_agents() {
        let mut storm = used(false, "blog", 100, &[5, 0, 2]);
        (storm.refused, storm.retries) = (3, 2);
        let mut calm = used(true, "blog", 900, &[2]);
        (calm.waited_ms, calm.cancelled) = (4_000, 1);
        let lines =
            vec![storm, used(false, "engage", 100, &[4]), calm, used(true, "blog", 910, &[1])];
        let both = compare(lines);
        let [Comparison { before: Some(before), after: Some(after), .. }] = &both[..] else {
            panic!("{both:?}")
        };
        assert_eq!((before.agents, before.calls, before.peak_per_second), (2, 11, 9));
        assert_eq!((before.refused, before.refused_percent), (3, 27));
        assert_eq!((before.retries, before.retries_percent), (2, 18));
        assert_eq!((before.wall_clock_ms, before.waited_ms), (3_000, 0));
        assert_eq!((after.agents, after.calls, after.peak_per_second), (1, 2, 1));
        assert_eq!((after.wall_clock_ms, after.waited_ms), (11_000, 4_000));
    }

    #[test]
    fn the_wait_of_the_first_call_is_part_of_its_run() {
        let wait = |written: u64, longest_ms: u64| {
            let what = EventData::Wait {
                agent: "blog".to_owned(),
                model: None,
                priority: None,
                reason: "limit".to_owned(),
                limit: None,
                used: None,
                usable: None,
                position: None,
                held_by: Vec::new(),
                also: Vec::new(),
                ended: "admitted".to_owned(),
                next: None,
                refused_for: None,
                count: 1,
                waited_ms: longest_ms,
                longest_ms,
            };
            Event { at: Timestamp { millis: written }, pool: "a/b".to_owned(), what }
        };
        let line = |usage: Usage| Event {
            at: usage.from,
            pool: "a/b".to_owned(),
            what: EventData::Usage(usage),
        };
        let events = [
            wait(150_000, 40_000),
            line(used(false, "blog", 200, &[1, 1])),
            line(used(true, "blog", 900, &[1, 0, 1])),
            wait(900_000, 10_000),
            wait(902_000, 2_000),
        ];
        let both = Comparison::of(events);
        let [Comparison { before: Some(before), after: Some(after), .. }] = &both[..] else {
            panic!("{both:?}")
        };
        assert_eq!((before.wall_clock_ms, after.wall_clock_ms), (2_000, 13_000));
        assert_eq!(after.first, Some(Timestamp { millis: 890_000 }));
    }

    #[test]
    fn only_the_last_run_of_each_mode_counts() {
        let lines = [
            used(false, "blog", 100, &[7]),
            used(true, "blog", 200, &[5]),
            used(false, "blog", 300, &[1, 2]),
            used(true, "blog", 400, &[4]),
            used(true, "blog", 500, &[4]),
        ];
        let mut late = used(false, "blog", 450, &[]);
        late.refused = 1;
        let shuffled = [4, 0, 3, 1, 2].map(|at| lines[at].clone());
        let both = compare(shuffled.into_iter().chain([late]).collect());
        let [Comparison { before: Some(before), after: Some(after), earlier_calls, .. }] =
            &both[..]
        else {
            panic!("{both:?}")
        };
        assert_eq!((before.calls, before.refused, before.wall_clock_ms), (3, 1, 2_000));
        assert_eq!((after.calls, after.wall_clock_ms), (8, 101_000));
        assert_eq!(*earlier_calls, 12);
    }

    #[test]
    fn a_side_without_a_call_is_none() {
        let mut report = used(false, "blog", 1, &[]);
        report.refused = 1;
        let one = compare(vec![used(true, "blog", 1, &[1]), report]);
        assert!(one[0].before.is_none() && one[0].after.is_some(), "{one:?}");
        assert_eq!(compare(Vec::new()), []);
    }
}
