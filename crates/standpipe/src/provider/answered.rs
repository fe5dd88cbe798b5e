//! Sends what a provider's answer means to the ledger and the journal.
//!
//! An answer settles its lease in the same step in which its limits are reported. `reply` reads it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use standpipe_core::{Action, AgentName, Amounts, Reading, Throttled};

use crate::client::PoolClient;
use crate::client::StoreClient;
use crate::error::Error;
use crate::journal::EventData;
use crate::lease::{Part, answered};
use crate::lease_id::LeaseId;
use crate::moment::span;
use crate::provider::reply::{Meaning, Read};
use crate::request::agent_name;
use crate::routing::workflow::Graph;

impl StoreClient {
    /// Returns what an answer means for each pool of a call: limits that only another pool than the
    /// named one has are reported there, and a refusal that names such a limit pauses that pool.
    pub(crate) fn split_reply<'a>(&self, parts: &[Part], read: &'a Read) -> Vec<Cow<'a, Read>> {
        if parts.len() < 2 {
            return vec![Cow::Borrowed(read)];
        }
        let of = |reading: &Reading| self.pool_of_limit(parts, Some(&reading.unit), reading.period);
        let owners: Vec<usize> = read.readings().iter().map(of).collect();
        let refused_by = match &read.meaning {
            Meaning::Refused { kind, .. } => self.pool_of_refusal(parts, *kind, read.hit()),
            _ => 0,
        };
        let part = |at: usize| {
            let owner_of = |reading: &Reading| {
                let found = read.readings().iter().position(|known| known == reading);
                found.and_then(|found| owners.get(found).copied())
            };
            Cow::Owned(read.part(|reading| owner_of(reading) == Some(at), at == refused_by))
        };
        (0..parts.len()).map(part).collect()
    }

    /// Settles a call by what its answer means on each of its pools. The result is that of the
    /// named pool.
    pub(crate) fn answered(
        self: &Arc<Self>,
        parts: &[Part],
        lease: &LeaseId,
        agent: Option<&str>,
        reads: &[Cow<'_, Read>],
        used: &Amounts,
        graph: &Graph,
    ) -> Result<(), Error> {
        let mut result = Ok(());
        for (at, (part, read)) in parts.iter().zip(reads).enumerate() {
            self.note_answer(&part.client, Some(lease), agent, read);
            let settled = self.settle(&part.client, read.actions(part.key, used));
            if settled.is_ok() {
                self.record_if_refused(&part.client, agent, read, graph);
            }
            if at == 0 {
                result = settled.and_then(|(answers, _)| answered(&answers, lease));
            }
        }
        result
    }

    /// Reports an answer to a call without a lease, on the pool and those it lies within.
    pub(crate) fn observe_reply(
        self: &Arc<Self>,
        parts: &[Part],
        agent: Option<&str>,
        read: &Read,
        graph: &Graph,
    ) -> Result<(), Error> {
        for (part, read) in parts.iter().zip(self.split_reply(parts, read)) {
            self.observe_on(&part.client, agent, &read, graph)?;
        }
        Ok(())
    }

    fn observe_on(
        self: &Arc<Self>,
        client: &PoolClient,
        agent: Option<&str>,
        read: &Read,
        graph: &Graph,
    ) -> Result<(), Error> {
        let name = agent.map(agent_name).transpose()?;
        self.note_answer(client, None, agent, read);
        let mut actions: Vec<Action> = read.observed(None).into_iter().collect();
        if let Meaning::Refused { kind, retry_after, .. } = &read.meaning {
            actions.push(Action::Throttled(Throttled {
                lease: None,
                agent: name,
                kind: *kind,
                retry_after: retry_after.map(span),
                hit: read.hit().cloned(),
            }));
        }
        if actions.is_empty() {
            return Ok(());
        }
        self.settle(client, actions)?;
        if let Meaning::Refused { kind, .. } = read.meaning {
            self.note_refused(client, agent, kind);
        }
        self.record_if_refused(client, agent, read, graph);
        Ok(())
    }

    fn record_if_refused(
        self: &Arc<Self>,
        client: &PoolClient,
        agent: Option<&str>,
        read: &Read,
        graph: &Graph,
    ) {
        if let Some(agent) = agent.filter(|_| read.is_refused()).and_then(AgentName::new) {
            self.record_backpressure(graph, client, &agent);
        }
    }

    pub(crate) fn note_answer(
        &self,
        client: &PoolClient,
        lease: Option<&LeaseId>,
        agent: Option<&str>,
        read: &Read,
    ) {
        for note in &read.notes {
            self.journal().note(client.pool(), note.clone());
        }
        if let Meaning::Refused { kind, retry_after, message } = &read.meaning {
            let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
            let said = Some(message.clone()).filter(|message| !message.is_empty());
            self.journal().note(
                client.pool(),
                EventData::Throttle {
                    agent: agent.map(ToOwned::to_owned),
                    lease: lease.map(ToString::to_string),
                    about: kind.as_str().to_owned(),
                    retry_after_ms: retry_after.map(millis),
                    said,
                },
            );
        }
    }
}
