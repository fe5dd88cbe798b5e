//! The board: where it is pinned who is throttled, for everybody downstream to see, whatever pool
//! they are on.
//!
//! It is a small pool of its own. A note is a lease without a session that lives as long as the
//! pause: its agent is who is throttled, its model names the pool. Nothing here may fail a call:
//! what cannot be pinned or read is left out.

use std::sync::Arc;

use standpipe_core::{
    Action, AgentName, Amounts, Configure, Facts, Instant, Key, Lease, Limit, PoolConfig, Reserve,
    Rule, Source, Span, Text, bounds,
};
use standpipe_store::PoolName;

use super::Shared;
use crate::desk::Desk;
use crate::error::Error;
use crate::moment::Now;
use crate::workflow::{Backpressure, Graph};

/// Its name. Pools of this provider are ours.
pub(crate) const BOARD: &str = "standpipe/board";

/// What somebody downstream learns.
pub(crate) struct Pressure {
    pub(crate) told: Backpressure,
    /// How long it has to wait for it, if it has to.
    pub(crate) hold: Option<Span>,
}

impl Shared {
    /// An agent was refused on a pool: if somebody is downstream, it is pinned up.
    pub(crate) fn pin(self: &Arc<Self>, graph: &Graph, desk: &Desk, agent: &AgentName) {
        if graph.feeds(agent) {
            // Whoever is downstream is only not told; the calls themselves are decided.
            let _untold = self.try_pin(desk, agent);
        }
    }

    fn try_pin(self: &Arc<Self>, desk: &Desk, agent: &AgentName) -> Result<(), Error> {
        let length = self.read(desk, |state, now, _| {
            let facts = state.facts();
            let stopped = facts.terminal.map(|terminal| terminal.until.or(terminal.next_probe));
            let end = facts.pause.max(stopped.flatten())?;
            Some(end.since(now.store))
        })?;
        let Some(length) = length.filter(|length| *length > Span::ZERO) else { return Ok(()) };
        let board = self.board()?;
        let pool = desk.pool().as_str();
        let known = self.read(&board, |state, _, _| note(state.facts(), agent, pool))?;
        let action = match known {
            Some(lease) => Action::Heartbeat { lease: Some(lease), ttl: Some(length) },
            None => {
                let mut reserve = Reserve::new(agent.clone(), Amounts::default());
                (reserve.ttl, reserve.model) = (Some(length), Text::new(pool));
                Action::Reserve(Box::new(reserve))
            }
        };
        self.settle(&board, vec![action]).map(drop)
    }

    /// A pool admits calls again before its time: its notes come down.
    pub(crate) fn unpin(self: &Arc<Self>, graph: &Graph, pool: &PoolName) {
        if *graph != Graph::default() {
            // They come down by themselves otherwise, in time.
            let _later = self.try_unpin(pool);
        }
    }

    fn try_unpin(self: &Arc<Self>, pool: &PoolName) -> Result<(), Error> {
        let board = self.board()?;
        let of_pool = |facts: &Facts| -> Vec<Action> {
            let notes = facts.leases.iter().filter(|(_, lease)| is_about(lease, pool.as_str()));
            notes.map(|(key, _)| Action::Cancel { lease: *key }).collect()
        };
        let notes = self.read(&board, |state, _, _| of_pool(state.facts()))?;
        if notes.is_empty() {
            return Ok(());
        }
        self.settle(&board, notes).map(drop)
    }

    /// What an agent learns about those upstream: who is throttled the longest.
    pub(crate) fn pressure(self: &Arc<Self>, graph: &Graph, agent: &AgentName) -> Option<Pressure> {
        let upstream = graph.upstream_of(agent)?;
        let board = self.board().ok()?;
        let seen = self.read(&board, |state, now, _| {
            let facts = state.facts();
            let notes = facts.leases.iter().filter_map(|(key, lease)| {
                let who = &facts.agents.get(usize::from(lease.agent))?.name;
                let hold = *upstream.get(who)?;
                Some((state.lease_ends(*key), who, hold, lease))
            });
            let notes: Vec<_> = notes.collect();
            let held = notes.iter().filter(|(_, _, hold, _)| *hold).map(|(ends, ..)| *ends).max();
            let longest = notes.into_iter().max_by_key(|(ends, ..)| *ends);
            longest.map(|(ends, who, _, lease)| Pressure {
                told: told(who, lease, ends, now),
                hold: held.map(|ends| ends.since(now.store)),
            })
        });
        seen.ok().flatten()
    }

    /// Everybody who is throttled, as it is pinned up.
    pub(crate) fn pressures(self: &Arc<Self>) -> Result<Vec<Backpressure>, Error> {
        let board = self.board()?;
        self.read(&board, |state, now, _| {
            let facts = state.facts();
            let each = facts.leases.iter().filter_map(|(key, lease)| {
                let who = &facts.agents.get(usize::from(lease.agent))?.name;
                Some(told(who, lease, state.lease_ends(*key), now))
            });
            each.collect()
        })
    }

    /// The board's desk. Notes are bounded by how many leases there can be.
    fn board(self: &Arc<Self>) -> Result<Arc<Desk>, Error> {
        let name: PoolName =
            BOARD.parse().map_err(|_| Error::invalid(BOARD, "is a pool's name"))?;
        let desk = self.desk(&name)?;
        if !self.read(&desk, |state, _, _| state.facts().config.is_some())? {
            let limit = Limit::new(Rule::Parallel { amount: bounds::LEASES as u64 });
            let config = PoolConfig { longest_lease: None, ..PoolConfig::new(vec![limit]) };
            let configure = Configure { source: Source::Code, config };
            self.settle(&desk, vec![Action::Configure(Box::new(configure))])?;
        }
        Ok(desk)
    }
}

fn told(who: &AgentName, lease: &Lease, ends: Instant, now: &Now) -> Backpressure {
    Backpressure {
        agent: who.to_string(),
        pool: lease.call.model.as_ref().map(ToString::to_string).unwrap_or_default(),
        until: now.ahead(ends),
        until_ms: now.millis_until(ends),
    }
}

fn note(facts: &Facts, agent: &AgentName, pool: &str) -> Option<Key> {
    let own = facts.agents.iter().position(|known| known.name == *agent)?;
    let mut notes = facts.leases.iter();
    let same = |lease: &Lease| usize::from(lease.agent) == own && is_about(lease, pool);
    notes.find(|(_, lease)| same(lease)).map(|(key, _)| *key)
}

fn is_about(lease: &Lease, pool: &str) -> bool {
    lease.call.model.as_ref().is_some_and(|model| model.as_str() == pool)
}
