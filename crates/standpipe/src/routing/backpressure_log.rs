//! The backpressure log: which agents are throttled on which pools, for agents downstream in all
//! processes.
//!
//! It is a small pool of its own. An entry is a lease without a session that lives as long as the
//! pause: its agent is the one that is throttled, its model names the pool. An entry that cannot be
//! written or read never fails a call. `workflow` defines who is downstream.

use std::sync::Arc;

use standpipe_core::{
    Action, AgentName, Amounts, Configure, Facts, Instant, Key, Lease, Limit, PoolConfig, Reserve,
    Rule, Source, Span, Text, bounds,
};
pub(crate) use standpipe_observe::journal::LOG_POOL;
use standpipe_store::PoolName;

use crate::client::PoolClient;
use crate::client::StoreClient;
use crate::error::Error;
use crate::moment::Now;
use crate::routing::workflow::{Backpressure, Graph};

/// What an agent downstream receives.
pub(crate) struct Pressure {
    pub(crate) backpressure: Backpressure,
    /// How long it is held, if the workflow holds it.
    pub(crate) hold: Option<Span>,
}

impl StoreClient {
    /// Records that an agent was refused on a pool, if agents are downstream of it.
    pub(crate) fn record_backpressure(
        self: &Arc<Self>,
        graph: &Graph,
        client: &PoolClient,
        agent: &AgentName,
    ) {
        if graph.feeds(agent) {
            // A failure only leaves agents downstream uninformed; the call itself is decided.
            let _failed = self.try_record_backpressure(client, agent);
        }
    }

    fn try_record_backpressure(
        self: &Arc<Self>,
        client: &PoolClient,
        agent: &AgentName,
    ) -> Result<(), Error> {
        let length = self.read(client, |state, now, _| {
            let facts = state.facts();
            let stopped = facts.terminal.map(|terminal| terminal.until.or(terminal.next_probe));
            let end = facts.pause.max(stopped.flatten())?;
            Some(end.since(now.store))
        })?;
        let Some(length) = length.filter(|length| *length > Span::ZERO) else { return Ok(()) };
        let log = self.backpressure_log()?;
        let pool = client.pool().as_str();
        let known = self.read(&log, |state, _, _| entry(state.facts(), agent, pool))?;
        let action = match known {
            Some(lease) => Action::Heartbeat { lease: Some(lease), ttl: Some(length) },
            None => {
                let mut reserve = Reserve::new(agent.clone(), Amounts::default());
                (reserve.ttl, reserve.model) = (Some(length), Text::new(pool));
                Action::Reserve(Box::new(reserve))
            }
        };
        self.settle(&log, vec![action]).map(drop)
    }

    /// Removes the entries of a pool that was resumed before its pause ended.
    pub(crate) fn clear_backpressure(self: &Arc<Self>, graph: &Graph, pool: &PoolName) {
        if *graph != Graph::default() {
            // Otherwise the entries expire with the pause.
            let _later = self.try_clear_backpressure(pool);
        }
    }

    fn try_clear_backpressure(self: &Arc<Self>, pool: &PoolName) -> Result<(), Error> {
        let log = self.backpressure_log()?;
        let of_pool = |facts: &Facts| -> Vec<Action> {
            let entries = facts.leases.iter().filter(|(_, lease)| is_about(lease, pool.as_str()));
            entries.map(|(key, _)| Action::Cancel { lease: *key }).collect()
        };
        let entries = self.read(&log, |state, _, _| of_pool(state.facts()))?;
        if entries.is_empty() {
            return Ok(());
        }
        self.settle(&log, entries).map(drop)
    }

    /// Returns the agent upstream of this one that is throttled for longest.
    pub(crate) fn pressure(self: &Arc<Self>, graph: &Graph, agent: &AgentName) -> Option<Pressure> {
        let upstream = graph.upstream_of(agent)?;
        let log = self.backpressure_log().ok()?;
        let seen = self.read(&log, |state, now, _| {
            let facts = state.facts();
            let entries = facts.leases.iter().filter_map(|(key, lease)| {
                let who = &facts.agents.get(usize::from(lease.agent))?.name;
                let hold = *upstream.get(who)?;
                Some((state.lease_ends(*key), who, hold, lease))
            });
            let entries: Vec<_> = entries.collect();
            let held = entries.iter().filter(|(_, _, hold, _)| *hold).map(|(ends, ..)| *ends).max();
            let longest = entries.into_iter().max_by_key(|(ends, ..)| *ends);
            let (ends, who, _, lease) = longest?;
            Some(Pressure {
                backpressure: backpressure_of(who, lease, ends, now)?,
                hold: held.map(|ends| ends.since(now.store)),
            })
        });
        seen.ok().flatten()
    }

    /// Returns all entries.
    pub(crate) fn pressures(self: &Arc<Self>) -> Result<Vec<Backpressure>, Error> {
        let log = self.backpressure_log()?;
        self.read(&log, |state, now, _| {
            let facts = state.facts();
            let each = facts.leases.iter().filter_map(|(key, lease)| {
                let who = &facts.agents.get(usize::from(lease.agent))?.name;
                backpressure_of(who, lease, state.lease_ends(*key), now)
            });
            each.collect()
        })
    }

    /// Returns the client of the log's pool, configured to hold as many entries as there can be
    /// leases.
    fn backpressure_log(self: &Arc<Self>) -> Result<Arc<PoolClient>, Error> {
        let name: PoolName =
            LOG_POOL.parse().map_err(|_| Error::invalid(LOG_POOL, "is a pool's name"))?;
        let client = self.client(&name)?;
        if !self.read(&client, |state, _, _| state.facts().config.is_some())? {
            let limit = Limit::new(Rule::Parallel { amount: bounds::LEASES as u64 });
            let config = PoolConfig { longest_lease: None, ..PoolConfig::new(vec![limit]) };
            let configure = Configure { source: Source::Code, config };
            self.settle(&client, vec![Action::Configure(Box::new(configure))])?;
        }
        Ok(client)
    }
}

fn backpressure_of(
    who: &AgentName,
    lease: &Lease,
    ends: Instant,
    now: &Now,
) -> Option<Backpressure> {
    Some(Backpressure {
        agent: who.to_string(),
        pool: lease.call.model.as_ref()?.as_str().parse().ok()?,
        until: now.ahead(ends),
        until_ms: now.millis_until(ends),
    })
}

fn entry(facts: &Facts, agent: &AgentName, pool: &str) -> Option<Key> {
    let own = facts.agents.iter().position(|known| known.name == *agent)?;
    let mut entries = facts.leases.iter();
    let same = |lease: &Lease| usize::from(lease.agent) == own && is_about(lease, pool);
    entries.find(|(_, lease)| same(lease)).map(|(key, _)| *key)
}

fn is_about(lease: &Lease, pool: &str) -> bool {
    lease.call.model.as_ref().is_some_and(|model| model.as_str() == pool)
}
