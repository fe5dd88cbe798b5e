//! What the journal records of a call that waits.
//!
//! A wait is recorded once, when it ends. Nothing here changes a decision.

use std::time::Duration;

use standpipe_core::{Grant, Reason, Refusal};

use super::WaitState;
use super::wait_log::{Caller, WaitEnd};
use crate::client::Dispatcher;
use crate::client::usage::Requester;
use crate::client::view::tier_word;
use crate::error::Error;
use crate::journal::EventData;
use crate::refused::{Refused, limit_text};

impl WaitState {
    /// Returns whether this call created its lease. Of all calls that share an id, in all
    /// processes, exactly one did; the others got the existing lease.
    pub(super) fn is_new(&self, dispatcher: &mut Dispatcher, grant: &Grant) -> bool {
        let shares_id = self.reserve.id.is_some();
        !grant.settled && (!shares_id || dispatcher.participant.take_created(grant.lease))
    }

    pub(super) fn note_wait(&mut self, end: WaitEnd, waited: Duration) {
        let caller = Caller {
            agent: self.reserve.agent.to_string(),
            model: self.reserve.model.as_ref().map(ToString::to_string),
            priority: self.tier.map(|tier| tier_word(tier).to_owned()),
        };
        let is_granted = matches!(end, WaitEnd::Admitted | WaitEnd::Continued(_));
        let Some(what) = self.waits.event(caller, end, self.began + waited) else { return };
        self.handle.store_client().journal().note(self.pool.name(), what);
        // How long an admitted call waited is noted with its admission.
        if !is_granted {
            let waited = self.waited_here(waited);
            self.handle.store_client().note_waited(&self.client, self.requester(), waited);
        }
    }

    /// Returns the part of a wait that was spent on this pool.
    pub(super) fn waited_here(&self, waited: Duration) -> Duration {
        waited.saturating_sub(self.entered.saturating_duration_since(self.began))
    }

    /// Records that the call was not admitted.
    pub(super) fn note_denied(&self, error: &Error) {
        let reason = match error {
            Error::Refused(refused) => refused.reason.as_str(),
            Error::Store(_) => "store",
            _ => return,
        };
        self.handle.store_client().note_denied(&self.client, self.requester(), reason);
        if let Error::Refused(refused) = error {
            self.note_refusal(refused);
        }
    }

    /// Records a refusal that no wait explains: one at once, or of a call that waited for something
    /// else.
    fn note_refusal(&self, refused: &Refused) {
        if !self.waits.is_empty() && refused.reason == Reason::Deadline {
            return;
        }
        let timeout = self.deadline.saturating_duration_since(self.began);
        let what = EventData::Refuse {
            agent: self.reserve.agent.to_string(),
            model: self.reserve.model.as_ref().map(ToString::to_string),
            priority: self.tier.map(|tier| tier_word(tier).to_owned()),
            reason: refused.waited_for.unwrap_or(refused.reason).as_str().to_owned(),
            limit: refused.limit.clone(),
            short_by: refused.short_by,
            by_cap: refused.by_cap,
            held_by: self.held_by.clone(),
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            count: 1,
        };
        self.handle.store_client().journal().refused(self.pool.name(), what);
    }

    const fn requester(&self) -> Requester<'_> {
        Requester { reserve: &self.reserve, tier: self.tier }
    }

    pub(super) fn note_shadow(&self, refusal: &Refusal) {
        let what = EventData::Shadow {
            agent: self.reserve.agent.to_string(),
            model: self.reserve.model.as_ref().map(ToString::to_string),
            reason: refusal.reason.as_str().to_owned(),
            limit: refusal.limit.as_ref().map(limit_text),
        };
        self.handle.store_client().journal().note(self.pool.name(), what);
    }
}
