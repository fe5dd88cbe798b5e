//! What the journal is told of a call that waits.

use std::time::Duration;

use standpipe_core::{Grant, Queued, Reason, Refusal, State};

use super::Waiting;
use crate::desk::Counter;
use crate::error::Error;
use crate::journal::What;
use crate::moment::Now;
use crate::refused::limit_text;
use crate::shared::ask::tier_word;
use crate::shared::usage::Asker;
use crate::status::PoolStatus;

/// What a call was told when it first had to wait.
pub(super) struct FirstWait {
    reason: Reason,
    limit: Option<String>,
    used: Option<u64>,
    usable: Option<u64>,
    position: usize,
}

impl FirstWait {
    pub(super) fn new(queued: &Queued, state: &State, now: &Now) -> Self {
        let limit = queued.refusal.limit.as_ref().map(limit_text);
        let full = limit.as_ref().and_then(|limit| {
            let mut all = PoolStatus::limits_of(state, now).into_iter();
            all.find(|known| known.limit == *limit)
        });
        Self {
            reason: queued.refusal.reason,
            limit,
            used: full.as_ref().map(|full| full.used.saturating_add(full.held)),
            usable: full.as_ref().map(|full| full.effective),
            position: queued.position,
        }
    }
}

impl Waiting {
    /// Whether this call made its lease. Of all calls that share an id, in all processes, exactly
    /// one did; the others got the lease that was there.
    pub(super) fn is_new(&self, counter: &mut Counter, grant: &Grant) -> bool {
        let shared = self.reserve.id.is_some();
        !grant.settled && (!shared || counter.member.take_created(grant.lease))
    }

    pub(super) fn note_wait(&self, ended: &str, waited: Duration) {
        let Some(first) = &self.first else { return };
        let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        let what = What::Wait {
            agent: self.reserve.agent.to_string(),
            model: self.reserve.model.as_ref().map(ToString::to_string),
            priority: self.tier.map(|tier| tier_word(tier).to_owned()),
            reason: first.reason.as_str().to_owned(),
            limit: first.limit.clone(),
            used: first.used,
            usable: first.usable,
            position: u64::try_from(first.position).ok(),
            ended: ended.to_owned(),
            count: 1,
            waited_ms,
            longest_ms: waited_ms,
        };
        self.guard.shared().journal().note(self.pool.name(), what);
        // How long an admitted call waited is noted with its admission.
        if ended != "admitted" {
            self.guard.shared().note_waited(&self.desk, self.asker(), waited);
        }
    }

    /// It was not admitted, which is the end of it.
    pub(super) fn note_denied(&self, error: &Error) {
        let reason = match error {
            Error::Refused(refused) => refused.reason.as_str(),
            Error::Store(_) => "store",
            _ => return,
        };
        self.guard.shared().note_denied(&self.desk, self.asker(), reason);
    }

    const fn asker(&self) -> Asker<'_> {
        Asker { reserve: &self.reserve, tier: self.tier }
    }

    pub(super) fn note_shadow(&self, refusal: &Refusal) {
        let what = What::Shadow {
            agent: self.reserve.agent.to_string(),
            model: self.reserve.model.as_ref().map(ToString::to_string),
            reason: refusal.reason.as_str().to_owned(),
            limit: refusal.limit.as_ref().map(limit_text),
        };
        self.guard.shared().journal().note(self.pool.name(), what);
    }
}
