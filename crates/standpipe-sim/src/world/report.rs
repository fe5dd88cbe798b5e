//! The result of a run, in numbers.

use std::collections::BTreeSet;
use std::fmt;

use super::{State, World};
use crate::calendar::{SECOND, decimal};
use crate::provider::{Seen, peak};

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Planned calls.
    pub wanted: usize,
    /// Of these, how many succeeded.
    pub done: usize,
    /// Of these, how many were given up.
    pub given_up: usize,
    /// Of these, how many never began because the call they follow was given up.
    pub lost: usize,
    /// Calls that reached the provider.
    pub made: usize,
    /// Of these, how many it refused.
    pub refused: usize,
    /// Of these, how many were in vain.
    pub wasted: usize,
    /// The largest number that reached it in one second.
    pub peak: usize,
    /// The instant of the last event.
    pub ended: u64,
    /// Waves of refusals.
    pub waves: Vec<Wave>,
    /// The result of each agent.
    pub agents: Vec<AgentReport>,
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

/// The result of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReport {
    /// What it is called.
    pub name: String,
    /// 0 is the highest.
    pub priority: u8,
    /// Planned calls.
    pub wanted: usize,
    /// Of these, how many succeeded.
    pub done: usize,
    /// Its calls that reached the provider.
    pub made: usize,
    /// Of these, how many were refused.
    pub refused: usize,
    /// For each successful call, in order: the time from its planned instant until it was accepted.
    pub waits: Vec<u64>,
}

impl Report {
    pub(super) fn of(world: &World) -> Self {
        let seen = all_seen(world);
        let refused = seen.iter().filter(|seen| seen.verdict.refused_by().is_some()).count();
        let count = |state| world.calls.iter().filter(|call| call.state == state).count();
        let done = count(State::Done);
        Self {
            wanted: world.calls.len(),
            done,
            given_up: count(State::GivenUp),
            lost: count(State::Lost),
            made: seen.len(),
            refused,
            wasted: seen.len() - done,
            peak: peak(&seen),
            ended: world.now,
            waves: waves(&seen),
            agents: agents(world),
        }
    }

    /// Calls that reached the provider for each that was wanted, in thousandths.
    #[must_use]
    pub fn made_per_wanted(&self) -> usize {
        (self.made * 1_000).checked_div(self.wanted).unwrap_or(0)
    }

    /// Whether every planned call ended.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.done + self.given_up + self.lost == self.wanted
    }
}

/// One line of text.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wanted, done, given_up, lost, made, refused, wasted, peak, ended, .. } = self;
        let waves = self.waves.len();
        write!(f, "wanted {wanted}: done {done}, given up {given_up}, lost {lost}; ")?;
        write!(f, "made {made}: refused {refused}, wasted {wasted}, at most {peak} a second; ")?;
        write!(f, "{} s, waves of refusals: {waves}", decimal(ended / 1_000, 3))
    }
}

impl AgentReport {
    /// The longest wait of its calls.
    #[must_use]
    pub fn longest_wait(&self) -> u64 {
        self.waits.iter().copied().max().unwrap_or(0)
    }
}

/// Every call as its provider saw it, in order of arrival.
fn all_seen(world: &World) -> Vec<Seen> {
    let all = world.providers.iter().flat_map(|provider| &provider.record().calls);
    let mut all: Vec<_> = all.copied().collect();
    all.sort_by_key(|seen| seen.at);
    all
}

fn waves(seen: &[Seen]) -> Vec<Wave> {
    let refused = seen.iter().filter(|seen| seen.verdict.refused_by().is_some());
    let refusals: Vec<_> = refused.collect();
    let close = |one: &&Seen, next: &&Seen| next.at - one.at < SECOND;
    let wave = |of: &[&Seen]| {
        let agents: BTreeSet<_> = of.iter().map(|seen| seen.agent).collect();
        let (from, until) = (of.first()?.at, of.last()?.at);
        Some(Wave { from, until, refusals: of.len(), agents: agents.len() })
    };
    refusals.chunk_by(close).filter_map(wave).collect()
}

fn agents(world: &World) -> Vec<AgentReport> {
    let empty = world.agents.iter().map(|agent| AgentReport {
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
    for seen in all_seen(world) {
        let Some(agent) = agents.get_mut(seen.agent as usize) else { continue };
        agent.made += 1;
        agent.refused += usize::from(seen.verdict.refused_by().is_some());
    }
    agents
}
