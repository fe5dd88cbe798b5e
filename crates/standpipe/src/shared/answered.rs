//! What a provider's answer tells the ledger and the journal.

use std::sync::Arc;
use std::time::Duration;

use standpipe_core::{Action, AgentName, Amounts, Answer, LeaseAnswer, Throttled};

use super::Shared;
use crate::desk::Desk;
use crate::error::Error;
use crate::journal::What;
use crate::lease_id::LeaseId;
use crate::moment::span;
use crate::reply::{Meaning, Read};
use crate::request::agent_name;
use crate::workflow::Graph;

impl Shared {
    /// A call was answered: it is settled by what that means.
    pub(crate) fn answered(
        self: &Arc<Self>,
        desk: &Desk,
        lease: &LeaseId,
        agent: Option<&str>,
        read: &Read,
        used: &Amounts,
        graph: &Graph,
    ) -> Result<(), Error> {
        self.note_answer(desk, Some(lease), agent, read);
        let (answers, _) = self.settle(desk, read.actions(lease.key(), used))?;
        self.pin_if_refused(desk, agent, read, graph);
        match answers.last() {
            Some(Answer::Lease(LeaseAnswer::Gone)) => {
                Err(Error::LeaseGone { lease: lease.clone() })
            }
            _ => Ok(()),
        }
    }

    /// An answer to a call that nobody here holds a lease for.
    pub(crate) fn heard(
        self: &Arc<Self>,
        desk: &Desk,
        agent: Option<&str>,
        read: &Read,
        graph: &Graph,
    ) -> Result<(), Error> {
        let name = agent.map(agent_name).transpose()?;
        self.note_answer(desk, None, agent, read);
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
        self.settle(desk, actions)?;
        if let Meaning::Refused { kind, .. } = read.meaning {
            self.note_refused(desk, agent, kind);
        }
        self.pin_if_refused(desk, agent, read, graph);
        Ok(())
    }

    fn pin_if_refused(
        self: &Arc<Self>,
        desk: &Desk,
        agent: Option<&str>,
        read: &Read,
        graph: &Graph,
    ) {
        let refused = matches!(read.meaning, Meaning::Refused { .. });
        if let Some(agent) = agent.filter(|_| refused).and_then(AgentName::new) {
            self.pin(graph, desk, &agent);
        }
    }

    fn note_answer(&self, desk: &Desk, lease: Option<&LeaseId>, agent: Option<&str>, read: &Read) {
        for note in &read.notes {
            self.journal.note(desk.pool(), note.clone());
        }
        if let Meaning::Refused { kind, retry_after, message } = &read.meaning {
            let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
            let said = Some(message.clone()).filter(|message| !message.is_empty());
            self.journal.note(
                desk.pool(),
                What::Throttle {
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
