//! Ids make a reserve repeatable: the same id of the same agent is answered with the first.

use crate::agent::AgentId;
use crate::bounds;
use crate::event::Key;
use crate::facts::Known;
use crate::name::Text;
use crate::outcome::Grant;
use crate::state::State;
use crate::time::Instant;

impl State {
    /// What became of the first reserve with an id, while that is remembered.
    pub(crate) fn known(&self, agent: AgentId, id: Option<&Text>, now: Instant) -> Option<Known> {
        let known = *self.facts.ids.get(&(agent, id?.clone()))?;
        let ttl = self.index.plan.lease_ttl;
        known.ended.is_none_or(|ended| now < ended + ttl).then_some(known)
    }

    /// An id whose call is in flight or has ended is answered with that call.
    pub(crate) fn repeat(&self, known: Known) -> Option<Grant> {
        let lease = known.first;
        let settled = known.ended.is_some();
        (settled || self.facts.leases.contains_key(&lease)).then(|| {
            let expires_at = known.ended.unwrap_or_else(|| self.lease_ends(lease));
            Grant { lease, expires_at, settled, instead_of: None }
        })
    }

    pub(crate) fn know_id(&mut self, agent: AgentId, id: Option<&Text>, first: Key) {
        let Some(id) = id else { return };
        let known = Known { first, ended: None };
        match self.facts.ids.insert((agent, id.clone()), known) {
            None => self.index.loads[usize::from(agent)].ids += 1,
            Some(Known { ended: Some(ended), .. }) => {
                self.index.ended_ids.remove(&(ended, agent, id.clone()));
            }
            Some(Known { ended: None, .. }) => {}
        }
    }

    /// The call of an id has ended.
    pub(crate) fn id_ended(&mut self, agent: AgentId, id: Option<&Text>, first: Key, now: Instant) {
        let Some(id) = id else { return };
        let Some(known) = self.facts.ids.get_mut(&(agent, id.clone())) else { return };
        // A recovered call may have come to an id that another one has since.
        if known.first != first || known.ended.is_some() {
            return;
        }
        known.ended = Some(now);
        self.index.ended_ids.insert((now, agent, id.clone()));
        if self.index.ended_ids.len() > bounds::IDS {
            self.forget_oldest_id();
        }
    }

    /// A ticket ended without a call: the next ask with its id is a new one.
    pub(crate) fn id_unused(&mut self, agent: AgentId, id: Option<&Text>, first: Key) {
        let Some(id) = id else { return };
        let known = self.facts.ids.get(&(agent, id.clone()));
        if known.is_some_and(|known| known.first == first && known.ended.is_none()) {
            self.forget_id(agent, id);
        }
    }

    pub(crate) fn forget_old_ids(&mut self, now: Instant) {
        let ttl = self.index.plan.lease_ttl;
        while self.index.ended_ids.first().is_some_and(|(ended, ..)| now >= *ended + ttl) {
            self.forget_oldest_id();
        }
    }

    fn forget_oldest_id(&mut self) {
        if let Some((_, agent, id)) = self.index.ended_ids.pop_first() {
            self.forget_id(agent, &id);
        }
    }

    fn forget_id(&mut self, agent: AgentId, id: &Text) {
        if self.facts.ids.remove(&(agent, id.clone())).is_some() {
            self.index.loads[usize::from(agent)].ids -= 1;
        }
    }
}
