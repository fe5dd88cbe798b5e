//! Idempotency ids: a reserve with a known id of the same agent gets the answer of the first one.
//!
//! Ids are stored per agent name and not per agent record: agents beyond [`bounds::AGENTS`] share
//! one record and must not get each other's leases. `reserve.rs` looks ids up first.

use crate::bounds;
use crate::event::Key;
use crate::facts::IdRecord;
use crate::lease::call::CallId;
use crate::outcome::Grant;
use crate::state::State;
use crate::time::Instant;

impl State {
    /// The record of the first reserve with an id, until `lease_ttl` after its call ended.
    pub(crate) fn known(&self, id: Option<&CallId>, now: Instant) -> Option<IdRecord> {
        let known = *self.facts.ids.get(id?)?;
        let ttl = self.index.compiled.lease_ttl;
        known.ended.is_none_or(|ended| now < ended + ttl).then_some(known)
    }

    /// The grant of the first reserve, if its call is in flight or has ended.
    pub(crate) fn repeat(&self, known: IdRecord) -> Option<Grant> {
        let lease = known.first;
        let settled = known.ended.is_some();
        (settled || self.facts.leases.contains_key(&lease)).then(|| {
            let expires_at = known.ended.unwrap_or_else(|| self.lease_ends(lease));
            Grant { lease, expires_at, settled, instead_of: None }
        })
    }

    pub(crate) fn record_id(&mut self, id: Option<&CallId>, first: Key) {
        let Some(id) = id else { return };
        let known = IdRecord { first, ended: None };
        if let Some(IdRecord { ended: Some(ended), .. }) = self.facts.ids.insert(id.clone(), known)
        {
            self.index.ended_ids.remove(&(ended, id.clone()));
        }
    }

    /// Records that the call of an id ended.
    pub(crate) fn id_ended(&mut self, id: Option<&CallId>, first: Key, now: Instant) {
        let Some(id) = id else { return };
        let Some(known) = self.facts.ids.get_mut(id) else { return };
        // After a store lost entries, a recovered call and a newer one can have the same id. The id
        // then belongs to the newer one.
        if known.first != first || known.ended.is_some() {
            return;
        }
        known.ended = Some(now);
        self.index.ended_ids.insert((now, id.clone()));
        if self.index.ended_ids.len() > bounds::IDS {
            self.evict_oldest_id();
        }
    }

    /// Releases the id of a reserve that made no call, so that the next reserve with it is new.
    pub(crate) fn id_unused(&mut self, id: Option<&CallId>, first: Key) {
        let Some(id) = id else { return };
        let known = self.facts.ids.get(id);
        if known.is_some_and(|known| known.first == first && known.ended.is_none()) {
            self.facts.ids.remove(id);
        }
    }

    pub(crate) fn forget_old_ids(&mut self, now: Instant) {
        let ttl = self.index.compiled.lease_ttl;
        while self.index.ended_ids.first().is_some_and(|(ended, _)| now >= *ended + ttl) {
            self.evict_oldest_id();
        }
    }

    fn evict_oldest_id(&mut self) {
        if let Some((_, id)) = self.index.ended_ids.pop_first() {
            self.facts.ids.remove(&id);
        }
    }
}
