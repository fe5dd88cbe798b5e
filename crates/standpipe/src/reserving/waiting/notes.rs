//! What the journal is told of a call that waits.

use std::time::Duration;

use standpipe_core::{Grant, Refusal, Text};

use super::Waiting;
use crate::desk::Counter;
use crate::journal::What;
use crate::refused::limit_text;

impl Waiting {
    /// Whether it was admitted just now, and is not an earlier call of the same id.
    pub(super) fn is_new(&self, counter: &Counter, grant: &Grant) -> bool {
        let facts = counter.member.replica().state().facts();
        let started = facts.leases.get(&grant.lease).map(|lease| lease.started);
        !grant.settled && (self.reserve.id.is_none() || started == Some(facts.clock))
    }

    pub(super) fn note_wait(&self, ended: &str, waited: Duration) {
        let Some(reason) = self.first else { return };
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        let what = What::Wait {
            agent: self.reserve.agent.to_string(),
            model: self.reserve.model.as_ref().map(ToString::to_string),
            reason: reason.word().to_owned(),
            ended: ended.to_owned(),
            count: 1,
            waited_ms,
            longest_ms: waited_ms,
        };
        self.guard.shared().journal().note(self.pool.name(), what);
        let model = self.reserve.model.as_ref().map(Text::as_str);
        self.guard.shared().note_waited(&self.desk, self.reserve.agent.as_str(), model, waited_ms);
    }

    pub(super) fn note_shadow(&self, refusal: &Refusal) {
        let what = What::Shadow {
            agent: self.reserve.agent.to_string(),
            model: self.reserve.model.as_ref().map(ToString::to_string),
            reason: refusal.reason.word().to_owned(),
            limit: refusal.limit.as_ref().map(limit_text),
        };
        self.guard.shared().journal().note(self.pool.name(), what);
    }
}
