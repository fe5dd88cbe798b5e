//! Agents and the work they have.

use super::manner::Manner;
use crate::provider::{Call, Used};
use crate::random::Random;

/// Somebody who calls.
#[derive(Debug)]
pub struct Agent {
    /// What it is called.
    pub name: String,
    /// 0 is the highest.
    pub priority: u8,
    /// How many calls it can be at, at once.
    pub lanes: usize,
    /// The agent, by its number, whose nth call must be done before this one's nth begins.
    pub after: Option<usize>,
    /// What it wants to call, and when.
    pub work: Vec<Wanted>,
    /// How it goes about it.
    pub manner: Box<dyn Manner>,
    /// Its calls by their numbers in the world.
    pub(super) calls: Vec<usize>,
    /// All its calls before this one are over.
    pub(super) first: usize,
    /// How many calls it is at.
    pub(super) busy: usize,
}

/// A call that an agent will want to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// From when on.
    pub at: u64,
    /// What it asks for.
    pub call: Call,
    /// What it will turn out to use.
    pub used: Used,
    /// How long the provider takes.
    pub lasts: u64,
}

/// Much of the same work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// How many calls.
    pub calls: usize,
    /// The first of them; its `at` is where all begin.
    pub like: Wanted,
    /// When they are wanted.
    pub pattern: Pattern,
    /// By how many thousandths, at most, sizes and lengths are more or less.
    pub vary: u32,
}

/// When calls are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// All at the start: the agent's lanes alone keep them apart.
    AtOnce,
    /// One each so many microseconds.
    Every(u64),
    /// Apart by chance, so many microseconds on average.
    Apart(u64),
}

impl Agent {
    /// One with one lane and the middle priority, who follows nobody.
    #[must_use]
    pub fn new(name: impl Into<String>, manner: impl Manner + 'static, work: Vec<Wanted>) -> Self {
        Self {
            name: name.into(),
            priority: 1,
            lanes: 1,
            after: None,
            work,
            manner: Box::new(manner),
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

    pub(super) const fn has_lane(&self) -> bool {
        self.busy < self.lanes
    }

    /// The nth call is over: whoever looks for work need not look at it again.
    pub(super) const fn pass(&mut self, nth: usize) {
        if self.first == nth {
            self.first += 1;
        }
    }
}

impl Work {
    /// Each call of it.
    #[must_use]
    pub fn calls(&self, seed: u64) -> Vec<Wanted> {
        let mut random = Random::new(seed);
        let mut at = self.like.at;
        let mut all = Vec::with_capacity(self.calls);
        for _ in 0..self.calls {
            all.push(Wanted { at, ..self.varied(&mut random) });
            at += match self.pattern {
                Pattern::AtOnce => 0,
                Pattern::Every(span) => span,
                Pattern::Apart(mean) => random.below(2 * mean + 1),
            };
        }
        all
    }

    /// One call: the estimate and what it uses vary together.
    fn varied(&self, random: &mut Random) -> Wanted {
        let vary = u64::from(self.vary.min(1_000));
        let share = 1_000 - vary + random.below(2 * vary + 1);
        let scale = |amount: u64| amount.saturating_mul(share) / 1_000;
        let Wanted { at, call, used, lasts } = self.like;
        Wanted {
            at,
            call: Call { input: scale(call.input), ..call },
            used: Used {
                input: scale(used.input),
                cache_read: scale(used.cache_read),
                cache_written: scale(used.cache_written),
                output: scale(used.output),
                cost: scale(used.cost),
            },
            lasts: scale(lasts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_spread_as_its_pattern_says() {
        let like = Wanted { at: 10, lasts: 1_000, ..Wanted::default() };
        let work = |pattern| Work { calls: 3, like, pattern, vary: 0 }.calls(1);
        let instants = |pattern| work(pattern).iter().map(|call| call.at).collect::<Vec<_>>();
        assert_eq!(instants(Pattern::AtOnce), [10, 10, 10]);
        assert_eq!(instants(Pattern::Every(5)), [10, 15, 20]);
        assert!(instants(Pattern::Apart(5)).iter().all(|at| (10..=30).contains(at)));
    }

    #[test]
    fn sizes_vary_within_their_bounds() {
        let like = Wanted { lasts: 1_000, ..Wanted::default() };
        let work = Work { calls: 500, like, pattern: Pattern::AtOnce, vary: 250 };
        let lengths: Vec<_> = work.calls(2).iter().map(|call| call.lasts).collect();
        assert!(lengths.iter().all(|length| (750..=1_250).contains(length)));
        assert!(lengths.iter().any(|length| *length < 800));
        assert!(lengths.iter().any(|length| *length > 1_200));
    }
}
