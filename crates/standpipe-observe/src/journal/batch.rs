//! Batches what agents use, in memory, until it is written as lines.
//!
//! It only adds up. When a batch is ten seconds old, or the wall clock is set back, it becomes
//! lines and the next batch begins. Memory is bounded: agents and models beyond the bound count as
//! `other`.

use std::time::{Duration, Instant as Local};

use standpipe_core::{AgentName, Priority, Unit};
use standpipe_store::PoolName;

use super::refusals::RefusalBatch;
use super::{Event, EventData, Usage};
use crate::time::Timestamp;

/// How long a batch grows.
pub(super) const EVERY: Duration = Duration::from_secs(10);
/// How many lines a batch has at most, but for one `other` per pool, tier and mode.
const MOST: usize = 256;
/// The most units of a line: what four calls can name.
const MOST_UNITS: usize = 64;

/// What usage is grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsageKey<'a> {
    /// The pool.
    pub pool: &'a PoolName,
    /// The agent.
    pub agent: &'a str,
    /// The model it called.
    pub model: Option<&'a str>,
    /// `None` if it is not known.
    pub tier: Option<Priority>,
    /// `false` in shadow mode.
    pub enforced: bool,
    /// Whether the caller named another pool.
    pub part: bool,
}

/// One change of usage.
#[derive(Clone, Copy, Debug)]
pub enum UsageChange<'a> {
    /// A call was admitted; it may be another try of an earlier one.
    Admitted {
        /// Whether it is another try.
        retry: bool,
    },
    /// A call waited so many milliseconds, whatever came of it; none if it was admitted at once.
    Waited(u64),
    /// A call was not admitted, for this reason.
    Denied(&'static str),
    /// A call that was admitted was never sent.
    Cancelled,
    /// The provider refused a call for a reason of quota.
    Refused,
    /// A call that ended used so much of a unit.
    Used(&'a Unit, u64),
}

/// What was used since the last lines.
#[derive(Debug, Default)]
pub(super) struct UsageBatch {
    /// When the batch began, by the calendar and by this process's steady clock.
    began: Option<(Timestamp, Local)>,
    lines: Vec<(PoolName, Usage)>,
    /// The line that was last added to: mostly the next one, too.
    last: usize,
    refusals: RefusalBatch,
}

impl UsageBatch {
    /// Adds these up. Answers the lines of the batch before, if it is over.
    pub(super) fn add<'a>(
        &mut self,
        now: Timestamp,
        key: UsageKey<'_>,
        uses: impl IntoIterator<Item = UsageChange<'a>>,
    ) -> Vec<Event> {
        let mut uses = uses.into_iter().peekable();
        if uses.peek().is_none() {
            return Vec::new();
        }
        let every = u64::try_from(EVERY.as_millis()).unwrap_or(u64::MAX);
        let goes_on = |began: Timestamp| (began.millis..began.millis + every).contains(&now.millis);
        let over = self.began.is_some_and(|(began, _)| !goes_on(began));
        let lines = if over { self.take(now) } else { Vec::new() };
        self.began.get_or_insert_with(|| (now, Local::now()));
        let at = self.place(now, key);
        if let Some((_, line)) = self.lines.get_mut(at) {
            uses.for_each(|each| line.count(now, each));
        }
        lines
    }

    /// The lines of the batch; the next begins with what comes.
    pub(super) fn take(&mut self, now: Timestamp) -> Vec<Event> {
        self.began = None;
        let lines = std::mem::take(&mut self.lines).into_iter();
        let event = |(pool, usage): (PoolName, Usage)| Event {
            at: now,
            pool: pool.to_string(),
            what: EventData::Usage(usage),
        };
        lines.map(event).chain(self.refusals.take()).collect()
    }

    /// Adds calls that were not admitted. They are written with the batch.
    pub(super) fn refuse(&mut self, event: Event) {
        self.began.get_or_insert_with(|| (event.at, Local::now()));
        self.refusals.add(event);
    }

    /// When the batch is over, if there is one.
    pub(super) fn due(&self) -> Option<Local> {
        self.began.map(|(_, began)| began + EVERY)
    }

    /// Returns the index of a key's line, which is created if there is none.
    fn place(&mut self, now: Timestamp, key: UsageKey<'_>) -> usize {
        let known = self.find(key);
        let full = known.is_none() && self.lines.len() >= MOST;
        let key = match full {
            true => UsageKey { agent: AgentName::OTHER, model: None, ..key },
            false => key,
        };
        let known = if full { self.find(key) } else { known };
        self.last = known.unwrap_or_else(|| {
            let line = Usage {
                agent: key.agent.to_owned(),
                model: key.model.map(ToOwned::to_owned),
                priority: key.tier.map(|tier| tier.as_str().to_owned()),
                from: Timestamp { millis: now.millis / 1_000 * 1_000 },
                enforced: key.enforced,
                part: key.part,
                ..Usage::default()
            };
            self.lines.push((key.pool.clone(), line));
            self.lines.len() - 1
        });
        self.last
    }

    fn find(&self, key: UsageKey<'_>) -> Option<usize> {
        let is_its = |(pool, line): &(PoolName, Usage)| {
            let names = (line.agent.as_str(), line.model.as_deref());
            names == (key.agent, key.model)
                && (line.enforced, line.part) == (key.enforced, key.part)
                && line.priority.as_deref() == key.tier.map(Priority::as_str)
                && pool == key.pool
        };
        let last = self.lines.get(self.last).filter(|line| is_its(line));
        last.map(|_| self.last).or_else(|| self.lines.iter().position(is_its))
    }
}

impl Usage {
    fn count(&mut self, now: Timestamp, what: UsageChange<'_>) {
        match what {
            UsageChange::Admitted { retry } => {
                self.calls += 1;
                self.retries += u64::from(retry);
                let since = now.millis.saturating_sub(self.from.millis) / 1_000;
                let second = usize::try_from(since).unwrap_or(usize::MAX).min(MOST_SECONDS);
                if self.per_second.len() <= second {
                    self.per_second.resize(second + 1, 0);
                }
                if let Some(calls) = self.per_second.get_mut(second) {
                    *calls = calls.saturating_add(1);
                }
            }
            UsageChange::Waited(ms) => {
                self.waited_ms = self.waited_ms.saturating_add(ms);
                let figure = Self::WAITS_MS.partition_point(|bound| *bound < ms);
                if self.waits.len() <= figure {
                    self.waits.resize(figure + 1, 0);
                }
                if let Some(waits) = self.waits.get_mut(figure) {
                    *waits += 1;
                }
            }
            // There are as many reasons as there are words for them.
            UsageChange::Denied(reason) => match self.refusals.get_mut(reason) {
                Some(times) => *times += 1,
                None => drop(self.refusals.insert(reason.to_owned(), 1)),
            },
            UsageChange::Cancelled => self.cancelled += 1,
            UsageChange::Refused => self.refused += 1,
            UsageChange::Used(unit, amount) => {
                if let Some(total) = self.units.get_mut(unit.name()) {
                    *total = total.saturating_add(amount);
                } else if self.units.len() < MOST_UNITS {
                    self.units.insert(unit.name().to_owned(), amount);
                }
            }
        }
    }
}

/// A batch is over before its lines are longer than this.
const MOST_SECONDS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn pool() -> PoolName {
        "a/b".parse().unwrap()
    }

    fn key<'a>(
        pool: &'a PoolName,
        agent: &'a str,
        model: Option<&'a str>,
        tier: Option<Priority>,
    ) -> UsageKey<'a> {
        UsageKey { pool, agent, model, tier, enforced: true, part: false }
    }

    fn admit(batch: &mut UsageBatch, millis: u64, agent: &str, model: Option<&str>) -> Vec<Usage> {
        let pool = pool();
        let key = key(&pool, agent, model, None);
        usages(batch.add(Timestamp { millis }, key, [UsageChange::Admitted { retry: false }]))
    }

    fn usages(lines: Vec<Event>) -> Vec<Usage> {
        let usage = |event: Event| match event.what {
            EventData::Usage(usage) => usage,
            other => panic!("{other:?}"),
        };
        lines.into_iter().map(usage).collect()
    }

    #[test]
    fn ten_seconds_of_an_agent_and_model_are_one_line() {
        let mut batch = UsageBatch::default();
        for millis in [60_900, 61_000, 61_999, 70_899] {
            assert_eq!(admit(&mut batch, millis, "blog", Some("m")), []);
        }
        admit(&mut batch, 65_000, "data", None);
        let lines = admit(&mut batch, 70_900, "blog", Some("m"));
        let shown: Vec<_> = lines.iter().map(|l| (l.agent.as_str(), l.from.millis)).collect();
        assert_eq!(shown, [("blog", 60_000), ("data", 65_000)]);
        assert_eq!(lines[0].per_second, [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(lines[0].calls, 4);
        let rest = usages(batch.take(Timestamp { millis: 70_901 }));
        assert_eq!((rest.len(), rest[0].calls, rest[0].from.millis), (1, 1, 70_000));
        assert_eq!(batch.due(), None);
    }

    #[test]
    fn a_calendar_that_is_set_begins_a_new_batch() {
        for jump in [0, 59_999, 10_000_000] {
            let mut batch = UsageBatch::default();
            admit(&mut batch, 60_000, "blog", None);
            assert_eq!(admit(&mut batch, jump, "blog", None).len(), 1, "{jump}");
            assert_eq!(usages(batch.take(Timestamp { millis: jump }))[0].per_second, [1]);
        }
    }

    #[test]
    fn everything_is_added_up() {
        let (mut batch, pool, now) = (UsageBatch::default(), pool(), Timestamp { millis: 1_000 });
        let tier = Some(Priority::Background);
        let key = UsageKey { enforced: false, ..key(&pool, "blog", None, tier) };
        let uses = [
            UsageChange::Admitted { retry: true },
            UsageChange::Waited(30),
            UsageChange::Waited(12),
            UsageChange::Waited(100),
            UsageChange::Waited(101),
            UsageChange::Waited(7_200_000),
            UsageChange::Denied("pause"),
            UsageChange::Denied("pause"),
            UsageChange::Refused,
            UsageChange::Cancelled,
            UsageChange::Used(&Unit::Tokens, 900),
            UsageChange::Used(&Unit::Tokens, u64::MAX),
        ];
        batch.add(now, key, uses);
        batch.add(now, UsageKey { enforced: true, ..key }, []);
        let lines = usages(batch.take(now));
        let [line] = &lines[..] else { panic!("nothing to add is no line: {lines:?}") };
        assert_eq!((line.calls, line.retries, line.refused, line.cancelled), (1, 1, 1, 1));
        assert_eq!((line.waited_ms, line.enforced), (7_200_243, false));
        assert_eq!(line.waits, [3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(line.refusals, std::collections::BTreeMap::from([("pause".to_owned(), 2)]));
        assert_eq!(line.priority.as_deref(), Some("background"));
        assert_eq!(line.units["tokens"], u64::MAX);
    }

    #[test]
    fn calls_of_two_tiers_are_two_lines() {
        let (mut batch, pool, now) = (UsageBatch::default(), pool(), Timestamp { millis: 1_000 });
        for tier in [Some(Priority::Critical), Some(Priority::Standard), None] {
            let key = key(&pool, "blog", None, tier);
            batch.add(now, key, [UsageChange::Admitted { retry: false }, UsageChange::Waited(0)]);
            batch.add(now, key, [UsageChange::Admitted { retry: false }, UsageChange::Waited(0)]);
        }
        let lines = usages(batch.take(now));
        let shown: Vec<_> = lines.iter().map(|l| (l.priority.as_deref(), &l.waits[..])).collect();
        let two: &[u64] = &[2];
        assert_eq!(shown, [(Some("critical"), two), (Some("standard"), two), (None, two)]);
    }

    #[test]
    fn those_beyond_the_bound_count_as_other() {
        let mut batch = UsageBatch::default();
        for number in 0..2 * MOST {
            admit(&mut batch, 1_000, &format!("agent-{number}"), Some("m"));
        }
        admit(&mut batch, 1_000, "agent-0", Some("m"));
        let lines = usages(batch.take(Timestamp { millis: 1_000 }));
        assert_eq!(lines.len(), MOST + 1);
        assert_eq!(lines[0].calls, 2, "who is known stays known");
        let other = &lines[MOST];
        assert_eq!((other.agent.as_str(), other.calls), ("other", MOST as u64));
        assert_eq!(other.model, None);
    }
}
