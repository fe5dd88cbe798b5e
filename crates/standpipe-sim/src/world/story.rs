//! What came of a run, in numbers.

use std::collections::BTreeSet;
use std::fmt;

use super::{State, World};
use crate::calendar::{SECOND, decimal};
use crate::provider::{Record, Seen};

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// Calls that agents wanted to make.
    pub wanted: usize,
    /// Of these, how many were made in the end.
    pub done: usize,
    /// Of these, how many were given up.
    pub given_up: usize,
    /// Of these, how many never began because what they follow was given up.
    pub lost: usize,
    /// Calls that reached the provider.
    pub made: usize,
    /// Of these, how many it refused.
    pub refused: usize,
    /// Of these, how many did nobody any good.
    pub wasted: usize,
    /// The most that reached it in any second.
    pub peak: usize,
    /// When the last thing happened.
    pub ended: u64,
    /// Refusals that came close together.
    pub waves: Vec<Wave>,
    /// Each agent's part.
    pub agents: Vec<AgentStory>,
}

/// Refusals with less than a second from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave {
    /// The first of them.
    pub from: u64,
    /// The last of them.
    pub until: u64,
    /// How many.
    pub refusals: usize,
    /// How many agents were hit.
    pub agents: usize,
}

/// An agent's part of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentStory {
    /// What it is called.
    pub name: String,
    /// 0 is the highest.
    pub priority: u8,
    /// Calls that it wanted to make.
    pub wanted: usize,
    /// Of these, how many were made in the end.
    pub done: usize,
    /// Calls of its that reached the provider.
    pub made: usize,
    /// Of these, how many were refused.
    pub refused: usize,
    /// For each call that was done, in order: how long from when it was wanted to when it was
    /// accepted.
    pub waits: Vec<u64>,
}

impl Story {
    pub(super) fn of(world: &World) -> Self {
        let record = world.provider.record();
        let count = |state| world.calls.iter().filter(|call| call.state == state).count();
        let done = count(State::Done);
        Self {
            wanted: world.calls.len(),
            done,
            given_up: count(State::GivenUp),
            lost: count(State::Lost),
            made: record.arrived(),
            refused: record.refused(),
            wasted: record.arrived() - done,
            peak: record.peak(),
            ended: world.now,
            waves: waves(record),
            agents: agents(world),
        }
    }

    /// Calls that reached the provider for each that was wanted, in thousandths.
    #[must_use]
    pub fn made_per_wanted(&self) -> usize {
        (self.made * 1_000).checked_div(self.wanted).unwrap_or(0)
    }

    /// Whether everything that was wanted came to an end.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.done + self.given_up + self.lost == self.wanted
    }
}

/// One line, for people.
impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, done, given_up, lost, made, refused, wasted, peak, ended, .. } = self;
        let waves = self.waves.len();
        write!(f, "wanted {wanted}: done {done}, given up {given_up}, lost {lost}; ")?;
        write!(f, "made {made}: refused {refused}, wasted {wasted}, at most {peak} a second; ")?;
        write!(f, "{} s, waves of refusals: {waves}", decimal(ended / 1_000, 3))
    }
}

impl AgentStory {
    /// The longest that one of its calls waited.
    #[must_use]
    pub fn longest_wait(&self) -> u64 {
        self.waits.iter().copied().max().unwrap_or(0)
    }
}

fn waves(record: &Record) -> Vec<Wave> {
    let refusals: Vec<_> = record.refusals().collect();
    let close = |one: &&Seen, next: &&Seen| next.at - one.at < SECOND;
    let wave = |of: &[&Seen]| {
        let agents: BTreeSet<_> = of.iter().map(|seen| seen.agent).collect();
        let (from, until) = (of.first()?.at, of.last()?.at);
        Some(Wave { from, until, refusals: of.len(), agents: agents.len() })
    };
    refusals.chunk_by(close).filter_map(wave).collect()
}

fn agents(world: &World) -> Vec<AgentStory> {
    let empty = world.agents.iter().map(|agent| AgentStory {
        name: agent.name.clone(),
        priority: agent.priority,
        wanted: agent.calls.len(),
        done: 0,
        made: 0,
        refused: 0,
        waits: Vec::new(),
    });
    let mut agents: Vec<_> = empty.collect();
    for call in world.calls.iter().filter(|call| call.state == State::Done) {
        let agent = &mut agents[call.agent];
        agent.done += 1;
        agent.waits.extend(call.accepted.map(|at| at - call.wanted.at));
    }
    for seen in &world.provider.record().calls {
        let Some(agent) = agents.get_mut(seen.agent as usize) else { continue };
        agent.made += 1;
        agent.refused += usize::from(seen.verdict.refused_by().is_some());
    }
    agents
}
