//! Views of a pool, which change nothing, and the heartbeats that extend an agent's leases.
//!
//! A view is read from the store; while that is unavailable, a status shows what this process knew
//! last.

use std::sync::Arc;

use standpipe_core::{Action, AgentName, LeaseOwner, Reserve, State};
pub(crate) use standpipe_observe::explain::{has_no_limits, tier_word};
use standpipe_store::StoreError;

use super::StoreClient;
use crate::client::{Dispatcher, PoolClient};
use crate::error::Error;
use crate::explain::{Explanation, Verdict};
use crate::maintenance::liveness;
use crate::moment::{Now, span};
use crate::status::{PoolStatus, Unavailable};

impl StoreClient {
    /// Reads what other processes did, and returns a view of the pool as it is now.
    pub(crate) fn read<T>(
        self: &Arc<Self>,
        client: &PoolClient,
        answer: impl FnOnce(&State, &Now, &Dispatcher) -> T,
    ) -> Result<T, Error> {
        self.maintenance().run_inline_if_due(self);
        let mut dispatcher = client.dispatcher();
        dispatcher.refresh()?;
        let (dispatcher, now) = (&*dispatcher, dispatcher.now());
        let state = dispatcher.participant.replica().state().at(now.store);
        Ok(answer(&state, &now, dispatcher))
    }

    /// Looks for something in the replica, and reads what other processes did only if it is not
    /// there. For facts that do not change by time.
    pub(crate) fn find<T>(
        &self,
        client: &PoolClient,
        search: impl Fn(&State) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let mut dispatcher = client.dispatcher();
        if let Some(found) = search(dispatcher.participant.replica().state()) {
            return Ok(Some(found));
        }
        dispatcher.refresh()?;
        Ok(search(dispatcher.participant.replica().state()))
    }

    /// Does [`StoreClient::read`] after dead sessions were reported. A view does not wait for that
    /// report.
    fn read_living<T>(
        self: &Arc<Self>,
        client: &PoolClient,
        answer: impl FnOnce(&State, &Now, &Dispatcher) -> T,
    ) -> Result<T, Error> {
        // An offline ledger has no other sessions.
        if !client.is_offline() {
            let mut dispatcher = client.dispatcher();
            dispatcher.refresh()?;
            liveness::report_dead(&mut dispatcher, &**self.store());
        }
        self.read(client, answer)
    }

    pub(crate) fn peek(
        self: &Arc<Self>,
        client: &PoolClient,
        reserve: &Reserve,
    ) -> Result<Verdict, Error> {
        self.read_living(client, |state, now, _| Verdict::of(client.pool(), state, reserve, now))?
            .ok_or_else(|| Error::NoLimits { pool: client.pool().clone() })
    }

    pub(crate) fn explain(
        self: &Arc<Self>,
        client: &PoolClient,
        reserve: &Reserve,
    ) -> Result<Explanation, Error> {
        self.read_living(client, |state, now, _| {
            Explanation::of(client.pool(), state, reserve, now, &|id| self.store().process_of(id))
        })?
        .ok_or_else(|| Error::NoLimits { pool: client.pool().clone() })
    }

    pub(crate) fn status(
        self: &Arc<Self>,
        client: &PoolClient,
        provider: Option<String>,
    ) -> Result<PoolStatus, Error> {
        if let Some(fallback) = client.offline() {
            let mut status = self.status(&fallback.client, provider)?;
            status.cut_off = Some(fallback.status());
            return Ok(status);
        }
        let read = self.read_living(client, |state, now, dispatcher| {
            self.status_of(client, state, now, dispatcher)
        });
        let mut status = match read {
            Err(Error::Store(error)) if error.is_transient() => self.last_status(client, &error)?,
            read => read?,
        };
        status.provider = provider;
        Ok(status)
    }

    fn status_of(
        &self,
        client: &PoolClient,
        state: &State,
        now: &Now,
        dispatcher: &Dispatcher,
    ) -> PoolStatus {
        let replica = dispatcher.participant.replica();
        let process_of = |session| self.store().process_of(session);
        let mut status = PoolStatus::of(client.pool(), state, now, &process_of);
        status.position = replica.position().number;
        status.skipped = replica.skipped();
        status
    }

    /// Returns the pool as this process knew it last, with its age; the error if it never read the
    /// pool. A view that fails while the store is unavailable would hide just that.
    fn last_status(&self, client: &PoolClient, error: &StoreError) -> Result<PoolStatus, Error> {
        let dispatcher = client.dispatcher();
        let replica = dispatcher.participant.replica();
        let Some(read_at) = dispatcher.read_at().filter(|_| replica.position().number > 0) else {
            return Err(error.clone().into());
        };
        let age = read_at.elapsed();
        let now = Now::at(replica.now() + span(age));
        let state = replica.state().at(now.store);
        let mut status = self.status_of(client, &state, &now, &dispatcher);
        let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
        status.unavailable = Some(Unavailable::new(age_ms, error.to_string()));
        Ok(status)
    }

    /// Extends every lease of an agent that has a time to live. Returns how many there are.
    pub(crate) fn beat_for(
        self: &Arc<Self>,
        client: &PoolClient,
        agent: &AgentName,
    ) -> Result<usize, Error> {
        let beats: Vec<Action> = self.read(client, |state, _, _| {
            let facts = state.facts();
            let leases = facts.leases.iter().filter(|(_, lease)| {
                let its = facts.agents.get(usize::from(lease.agent));
                let alone = matches!(lease.owner, LeaseOwner::Ttl { .. });
                alone && its.is_some_and(|known| known.name == *agent)
            });
            let beat = |key| Action::Heartbeat { lease: Some(key), ttl: None };
            leases.map(|(key, _)| beat(*key)).collect()
        })?;
        let count = beats.len();
        if count > 0 {
            self.settle(client, beats)?;
        }
        Ok(count)
    }
}
