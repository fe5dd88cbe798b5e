//! Agents and the work they have.

use super::strategy::Strategy;
use crate::provider::{Call, Used};
use crate::random::Random;

/// An agent and its work.
#[derive(Debug)]
pub struct Agent {
    /// The name.
    pub name: String,
    /// 0 is the highest.
    pub priority: u8,
    /// The number of calls it can make at once.
    pub lanes: usize,
    /// The agent, by its number, whose nth call must be done before this one's nth begins.
    pub after: Option<usize>,
    /// The instant at which it is killed, if any. Its remaining calls are given up.
    pub killed_at: Option<u64>,
    /// Its planned calls.
    pub work: Vec<PlannedCall>,
    /// How it makes them.
    pub strategy: Box<dyn Strategy>,
    /// Its calls by their numbers in the world.
    pub(super) calls: Vec<usize>,
    /// All its calls before this one are over.
    pub(super) first: usize,
    /// The number of calls it has begun.
    pub(super) busy: usize,
}

/// A planned call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlannedCall {
    /// The planned instant.
    pub at: u64,
    /// The number of the pool.
    pub pool: usize,
    /// The request.
    pub call: Call,
    /// What it uses.
    pub used: Used,
    /// The time that the provider takes.
    pub lasts: u64,
    /// An additional delay of its reply.
    pub late: u64,
}

/// A series of similar calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// How many calls.
    pub calls: usize,
    /// The pattern of each call; its `at` is the start of the series.
    pub like: PlannedCall,
    /// The spacing of the calls.
    pub pattern: Pattern,
    /// By how many thousandths at most sizes and durations vary.
    pub vary: u32,
}

/// The spacing of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// All at the start; the agent's lanes space them.
    AtOnce,
    /// One per interval.
    Every(u64),
    /// Random gaps with this mean.
    Apart(u64),
}

impl Agent {
    /// Creates an agent with one lane and standard priority.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        strategy: impl Strategy + 'static,
        work: Vec<PlannedCall>,
    ) -> Self {
        Self {
            name: name.into(),
            priority: 1,
            lanes: 1,
            after: None,
            killed_at: None,
            work,
            strategy: Box::new(strategy),
            calls: Vec::new(),
            first: 0,
            busy: 0,
        }
    }

    /// The same with so many lanes.
    #[must_use]
    pub fn lanes(self, lanes: usize) -> Self {
        Self { lanes, ..self }
    }

    /// The same with another priority.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// The same, following another agent.
    #[must_use]
    pub fn after(self, agent: usize) -> Self {
        Self { after: Some(agent), ..self }
    }

    /// The same, killed at an instant.
    #[must_use]
    pub fn killed_at(self, at: u64) -> Self {
        Self { killed_at: Some(at), ..self }
    }

    pub(super) const fn has_lane(&self) -> bool {
        self.busy < self.lanes
    }

    /// Skips the nth call from now on, because it ended.
    pub(super) const fn pass(&mut self, nth: usize) {
        if self.first == nth {
            self.first += 1;
        }
    }
}

impl Work {
    /// Returns the calls of the series.
    #[must_use]
    pub fn calls(&self, seed: u64) -> Vec<PlannedCall> {
        let mut random = Random::new(seed);
        let mut at = self.like.at;
        let mut all = Vec::with_capacity(self.calls);
        for _ in 0..self.calls {
            all.push(PlannedCall { at, ..self.varied(&mut random) });
            at += match self.pattern {
                Pattern::AtOnce => 0,
                Pattern::Every(span) => span,
                Pattern::Apart(mean) => random.below(2 * mean + 1),
            };
        }
        all
    }

    /// One call: the estimate and what it uses vary together.
    fn varied(&self, random: &mut Random) -> PlannedCall {
        let vary = u64::from(self.vary.min(1_000));
        let share = 1_000 - vary + random.below(2 * vary + 1);
        let scale = |amount: u64| amount.saturating_mul(share) / 1_000;
        let PlannedCall { call, used, lasts, .. } = self.like;
        PlannedCall {
            call: Call { input: scale(call.input), ..call },
            used: Used {
                input: scale(used.input),
                cache_read: scale(used.cache_read),
                cache_written: scale(used.cache_written),
                output: scale(used.output),
                cost: scale(used.cost),
            },
            lasts: scale(lasts),
            ..self.like
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_spread_as_its_pattern_says() {
        let like = PlannedCall { at: 10, lasts: 1_000, ..PlannedCall::default() };
        let work = |pattern| Work { calls: 3, like, pattern, vary: 0 }.calls(1);
        let instants = |pattern| work(pattern).iter().map(|call| call.at).collect::<Vec<_>>();
        assert_eq!(instants(Pattern::AtOnce), [10, 10, 10]);
        assert_eq!(instants(Pattern::Every(5)), [10, 15, 20]);
        assert!(instants(Pattern::Apart(5)).iter().all(|at| (10..=30).contains(at)));
    }

    #[test]
    fn sizes_vary_within_their_bounds() {
        let like = PlannedCall { lasts: 1_000, ..PlannedCall::default() };
        let work = Work { calls: 500, like, pattern: Pattern::AtOnce, vary: 250 };
        let lengths: Vec<_> = work.calls(2).iter().map(|call| call.lasts).collect();
        assert!(lengths.iter().all(|length| (750..=1_250).contains(length)));
        assert!(lengths.iter().any(|length| *length < 800));
        assert!(lengths.iter().any(|length| *length > 1_200));
    }
}
