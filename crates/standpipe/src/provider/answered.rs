//! Sends what a provider's answer means to the ledger and the journal.
//!
//! An answer settles its lease in the same step in which its limits are reported. `reply` reads it.

use std::sync::Arc;
use std::time::Duration;

use standpipe_core::{Action, AgentName, Amounts, Answer, LeaseAnswer, Throttled};

use crate::client::PoolClient;
use crate::client::StoreClient;
use crate::error::Error;
use crate::journal::EventData;
use crate::lease_id::LeaseId;
use crate::moment::span;
use crate::provider::reply::{Meaning, Read};
use crate::request::agent_name;
use crate::routing::workflow::Graph;

impl StoreClient {
    /// Settles a call by what its answer means.
    pub(crate) fn answered(
        self: &Arc<Self>,
        client: &PoolClient,
        lease: &LeaseId,
        agent: Option<&str>,
        read: &Read,
        used: &Amounts,
        graph: &Graph,
    ) -> Result<(), Error> {
        self.note_answer(client, Some(lease), agent, read);
        let (answers, _) = self.settle(client, read.actions(lease.key(), used))?;
        self.record_if_refused(client, agent, read, graph);
        match answers.last() {
            Some(Answer::Lease(LeaseAnswer::Gone)) => {
                Err(Error::LeaseGone { lease: lease.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Reports an answer to a call without a lease.
    pub(crate) fn observe_reply(
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
        let refused = matches!(read.meaning, Meaning::Refused { .. });
        if let Some(agent) = agent.filter(|_| refused).and_then(AgentName::new) {
            self.record_backpressure(graph, client, &agent);
        }
    }

    fn note_answer(
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
