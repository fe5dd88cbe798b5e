//! Gathering what agents use, in memory, until it is worth a line.
//!
//! It only adds up. When a batch is ten seconds old, or the calendar is set back, it is handed out
//! as lines and the next begins. Bounded: agents and models beyond what is kept apart count as
//! `other`.

use std::time::{Duration, Instant as Local};

use standpipe_core::{AgentName, Priority, Unit};
use standpipe_store::PoolName;

use super::{Event, Usage, What};
use crate::moment::Moment;
use crate::shared::ask::tier_word;

/// How long a batch grows.
pub(super) const EVERY: Duration = Duration::from_secs(10);
/// How many lines a batch has at most, but for one `other` per pool, tier and mode.
const MOST: usize = 256;
/// How many units a line counts at most: as many as four calls can name.
const MOST_UNITS: usize = 64;

/// Whose use it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Whose<'a> {
    pub(crate) pool: &'a PoolName,
    pub(crate) agent: &'a str,
    pub(crate) model: Option<&'a str>,
    /// None where nobody knows it.
    pub(crate) tier: Option<Priority>,
    /// `false` in shadow mode.
    pub(crate) enforced: bool,
}

/// What there is to add up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use<'a> {
    /// A call was admitted; it may be another try of an earlier one.
    Admitted { retry: bool },
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
pub(super) struct Gather {
    /// When the batch began, by the calendar and by this process's steady clock.
    began: Option<(Moment, Local)>,
    lines: Vec<(PoolName, Usage)>,
    /// The line that was last added to: mostly the next one, too.
    last: usize,
}

impl Gather {
    /// Adds these up. Answers the lines of the batch before, if it is over.
    pub(super) fn add<'a>(
        &mut self,
        now: Moment,
        whose: Whose<'_>,
        uses: impl IntoIterator<Item = Use<'a>>,
    ) -> Vec<Event> {
        let mut uses = uses.into_iter().peekable();
        if uses.peek().is_none() {
            return Vec::new();
        }
        let every = u64::try_from(EVERY.as_millis()).unwrap_or(u64::MAX);
        let goes_on = |began: Moment| (began.millis..began.millis + every).contains(&now.millis);
        let over = self.began.is_some_and(|(began, _)| !goes_on(began));
        let lines = if over { self.take(now) } else { Vec::new() };
        self.began.get_or_insert_with(|| (now, Local::now()));
        let at = self.place(now, whose);
        if let Some((_, line)) = self.lines.get_mut(at) {
            uses.for_each(|each| line.count(now, each));
        }
        lines
    }

    /// The lines of the batch; the next begins with what comes.
    pub(super) fn take(&mut self, now: Moment) -> Vec<Event> {
        self.began = None;
        let lines = std::mem::take(&mut self.lines).into_iter();
        let event = |(pool, usage): (PoolName, Usage)| Event {
            at: now,
            pool: pool.to_string(),
            what: What::Usage(usage),
        };
        lines.map(event).collect()
    }

    /// When the batch is over, if there is one.
    pub(super) fn due(&self) -> Option<Local> {
        self.began.map(|(_, began)| began + EVERY)
    }

    /// Where somebody's line is; one is begun when there is none.
    fn place(&mut self, now: Moment, whose: Whose<'_>) -> usize {
        let known = self.find(whose);
        let full = known.is_none() && self.lines.len() >= MOST;
        let whose = match full {
            true => Whose { agent: AgentName::OTHER, model: None, ..whose },
            false => whose,
        };
        let known = if full { self.find(whose) } else { known };
        self.last = known.unwrap_or_else(|| {
            let line = Usage {
                agent: whose.agent.to_owned(),
                model: whose.model.map(ToOwned::to_owned),
                priority: whose.tier.map(|tier| tier_word(tier).to_owned()),
                from: Moment { millis: now.millis / 1_000 * 1_000 },
                enforced: whose.enforced,
                ..Usage::default()
            };
            self.lines.push((whose.pool.clone(), line));
            self.lines.len() - 1
        });
        self.last
    }

    fn find(&self, whose: Whose<'_>) -> Option<usize> {
        let is_its = |(pool, line): &(PoolName, Usage)| {
            let names = (line.agent.as_str(), line.model.as_deref());
            names == (whose.agent, whose.model)
                && line.enforced == whose.enforced
                && line.priority.as_deref() == whose.tier.map(tier_word)
                && pool == whose.pool
        };
        let last = self.lines.get(self.last).filter(|line| is_its(line));
        last.map(|_| self.last).or_else(|| self.lines.iter().position(is_its))
    }
}

impl Usage {
    fn count(&mut self, now: Moment, what: Use<'_>) {
        match what {
            Use::Admitted { retry } => {
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
            Use::Waited(ms) => {
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
            Use::Denied(reason) => match self.refusals.get_mut(reason) {
                Some(times) => *times += 1,
                None => drop(self.refusals.insert(reason.to_owned(), 1)),
            },
            Use::Cancelled => self.cancelled += 1,
            Use::Refused => self.refused += 1,
            Use::Used(unit, amount) => {
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

    fn admit(gather: &mut Gather, millis: u64, agent: &str, model: Option<&str>) -> Vec<Usage> {
        let pool = pool();
        let whose = Whose { pool: &pool, agent, model, tier: None, enforced: true };
        usages(gather.add(Moment { millis }, whose, [Use::Admitted { retry: false }]))
    }

    fn usages(lines: Vec<Event>) -> Vec<Usage> {
        let usage = |event: Event| match event.what {
            What::Usage(usage) => usage,
            other => panic!("{other:?}"),
        };
        lines.into_iter().map(usage).collect()
    }

    #[test]
    fn ten_seconds_of_an_agent_and_model_are_one_line() {
        let mut gather = Gather::default();
        for millis in [60_900, 61_000, 61_999, 70_899] {
            assert_eq!(admit(&mut gather, millis, "blog", Some("m")), []);
        }
        admit(&mut gather, 65_000, "data", None);
        let lines = admit(&mut gather, 70_900, "blog", Some("m"));
        let shown: Vec<_> = lines.iter().map(|l| (l.agent.as_str(), l.from.millis)).collect();
        assert_eq!(shown, [("blog", 60_000), ("data", 65_000)]);
        assert_eq!(lines[0].per_second, [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(lines[0].calls, 4);
        let rest = usages(gather.take(Moment { millis: 70_901 }));
        assert_eq!((rest.len(), rest[0].calls, rest[0].from.millis), (1, 1, 70_000));
        assert_eq!(gather.due(), None);
    }

    #[test]
    fn a_calendar_that_is_set_begins_a_new_batch() {
        for jump in [0, 59_999, 10_000_000] {
            let mut gather = Gather::default();
            admit(&mut gather, 60_000, "blog", None);
            assert_eq!(admit(&mut gather, jump, "blog", None).len(), 1, "{jump}");
            assert_eq!(usages(gather.take(Moment { millis: jump }))[0].per_second, [1]);
        }
    }

    #[test]
    fn everything_is_added_up() {
        let (mut gather, pool, now) = (Gather::default(), pool(), Moment { millis: 1_000 });
        let tier = Some(Priority::Background);
        let whose = Whose { pool: &pool, agent: "blog", model: None, tier, enforced: false };
        let uses = [
            Use::Admitted { retry: true },
            Use::Waited(30),
            Use::Waited(12),
            Use::Waited(100),
            Use::Waited(101),
            Use::Waited(7_200_000),
            Use::Denied("pause"),
            Use::Denied("pause"),
            Use::Refused,
            Use::Cancelled,
            Use::Used(&Unit::Tokens, 900),
            Use::Used(&Unit::Tokens, u64::MAX),
        ];
        gather.add(now, whose, uses);
        gather.add(now, Whose { enforced: true, ..whose }, []);
        let lines = usages(gather.take(now));
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
        let (mut gather, pool, now) = (Gather::default(), pool(), Moment { millis: 1_000 });
        for tier in [Some(Priority::Critical), Some(Priority::Standard), None] {
            let whose = Whose { pool: &pool, agent: "blog", model: None, tier, enforced: true };
            gather.add(now, whose, [Use::Admitted { retry: false }, Use::Waited(0)]);
            gather.add(now, whose, [Use::Admitted { retry: false }, Use::Waited(0)]);
        }
        let lines = usages(gather.take(now));
        let shown: Vec<_> = lines.iter().map(|l| (l.priority.as_deref(), &l.waits[..])).collect();
        let two: &[u64] = &[2];
        assert_eq!(shown, [(Some("critical"), two), (Some("standard"), two), (None, two)]);
    }

    #[test]
    fn those_beyond_the_bound_count_as_other() {
        let mut gather = Gather::default();
        for number in 0..2 * MOST {
            admit(&mut gather, 1_000, &format!("agent-{number}"), Some("m"));
        }
        admit(&mut gather, 1_000, "agent-0", Some("m"));
        let lines = usages(gather.take(Moment { millis: 1_000 }));
        assert_eq!(lines.len(), MOST + 1);
        assert_eq!(lines[0].calls, 2, "who is known stays known");
        let other = &lines[MOST];
        assert_eq!((other.agent.as_str(), other.calls), ("other", MOST as u64));
        assert_eq!(other.model, None);
    }
}
