//! A lease whose call draws on several pools.
//!
//! The lease of the named pool owns the leases of the others. Settling succeeds with the named
//! pool; what the others are sent is retried by this process, and if the process dies they are
//! settled at their estimate.

use std::mem;
use std::sync::Arc;
use std::time::{Instant as Local, SystemTime};

use standpipe_core::{
    Action, Amounts, Commit, Hit, Instant, Key, LeaseAnswer, Priority, Reserve, Span, ThrottleKind,
    Unit,
};
use standpipe_store::PoolName;

use super::{Lease, lease_answer};
use crate::client::operation::{Operation, Plan, Sending};
use crate::client::{PoolClient, StoreClient};
use crate::error::Error;
use crate::pool::Pool;

/// A call on one of its pools: where, and the ledger's name for its lease there.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) client: Arc<PoolClient>,
    pub(crate) key: Key,
}

impl Lease {
    /// Returns the pools that the call draws on, the named one first.
    pub fn pools(&self) -> impl Iterator<Item = &PoolName> {
        self.id.pools()
    }

    /// Adds the lease of the same call on another pool.
    pub(crate) fn join(&mut self, other: Self) {
        let part = (other.id.pool().clone(), other.id.key());
        self.id = self.id.clone().with_others([part]);
        self.others.push(other);
    }

    /// Returns a value of the lease on each pool, the named one first.
    pub(super) fn each<'a, T: 'a>(
        &'a self,
        value: impl Fn(&'a Self) -> T + 'a,
    ) -> impl Iterator<Item = T> + 'a {
        std::iter::once(self).chain(&self.others).map(value)
    }

    pub(crate) const fn reserve(&self) -> &Reserve {
        &self.granted.reserve
    }

    /// Returns the pool that the lease's pool lies within, as its ledger states it.
    pub(crate) fn parent(&self) -> Option<&Pool> {
        self.granted.parent.as_deref()
    }

    pub(crate) const fn started(&self) -> Instant {
        self.granted.started
    }

    pub(crate) const fn asked_at(&self) -> Local {
        self.granted.asked_at
    }

    pub(crate) const fn slack(&self) -> Span {
        self.granted.slack
    }

    pub(crate) const fn set_expires_at(&mut self, at: SystemTime) {
        self.granted.expires_at = at;
    }

    /// Dates the charges of the lease to now, because its call was not sent yet. Returns when the
    /// lease expires; `None` if the pool must be asked again.
    pub(crate) fn redate(&self) -> Operation<Option<SystemTime>> {
        let (handle, client, id) = (Arc::clone(&self.handle), self.client(), self.id.clone());
        let ours = self.ours().map(drop);
        Operation::new(move || {
            if let Err(error) = ours {
                return Plan::Ready(Err(error));
            }
            let actions = vec![Action::Redate { lease: id.key() }];
            let then = Box::new(move |received: Result<(Vec<_>, crate::moment::Now), Error>| {
                let (answers, now) = received?;
                Ok(match lease_answer(answers, &id) {
                    Ok(LeaseAnswer::Lives(until)) => Some(now.system(until)),
                    _ => None,
                })
            });
            Plan::Send(Sending { handle, client, actions, then })
        })
    }

    /// Returns whether a call of a higher priority waits in the lease's pool.
    pub(crate) fn blocks_a_higher_tier(&self) -> bool {
        let Some(own) = self.granted.tier.filter(|tier| *tier != Priority::Critical) else {
            return false;
        };
        let (client, store) = (self.client(), self.handle.store_client().store());
        let mut dispatcher = client.short_turn();
        // A store across a network is not asked for this: what the process knows decides.
        if !store.is_remote() && dispatcher.refresh().is_err() {
            return false;
        }
        let tickets = &dispatcher.participant.replica().state().facts().tickets;
        tickets.keys().next().is_some_and(|first| first.tier < own)
    }

    /// Gives the lease back in any case, because another pool refused the call.
    pub(crate) fn withdraw(mut self) {
        self.granted.keeps_place = false;
        self.give_back();
    }

    /// Drops the lease without settling it, because it has ended or another request holds it.
    pub(crate) fn disown(mut self) {
        self.release();
    }

    /// Leaves leases with a time to live in flight.
    pub(super) fn leave_by_ttl(&mut self) {
        for lease in self.others.iter_mut().filter(|other| other.granted.reserve.ttl.is_some()) {
            lease.owned = false;
        }
        if self.granted.reserve.ttl.is_some() {
            self.owned = false;
        }
    }

    fn part(&self) -> Part {
        Part { client: self.client(), key: self.id.key() }
    }

    /// Returns the lease on the other pools.
    pub(super) fn other_parts(&self) -> Vec<Part> {
        self.others.iter().map(Self::part).collect()
    }

    /// Returns the lease on every pool, the named one first. Whoever has them settles it.
    pub(super) fn take_parts(&mut self) -> Vec<Part> {
        let parts = self.each(Self::part).collect();
        for other in &mut self.others {
            other.release();
        }
        self.release();
        parts
    }

    /// Stops owning the lease: something else settles it, or it lives by its time to live.
    fn release(&mut self) {
        if mem::replace(&mut self.owned, false) {
            self.lease_ended();
        }
    }

    /// Ends the lease on the named pool, then on the others.
    pub(super) fn end_all(self, others: Vec<Self>, action: Action) -> Result<(), Error> {
        let store_client = self.ours()?;
        let named = action.clone();
        let result = Operation::new(move || self.end(named)).blocking();
        // With a store that does not answer, each pool would wait for a timeout of its own.
        let unavailable = matches!(result, Err(Error::Store(_)));
        for mut other in others {
            if !mem::replace(&mut other.owned, false) {
                continue;
            }
            let action = about(&action, other.id.key());
            other.note_ended(&action);
            match unavailable {
                true => store_client.send_unattended(&other.client(), action),
                false => drop(store_client.settle(&other.client(), vec![action])),
            }
            other.lease_ended();
        }
        result
    }
}

/// Returns the same action about another lease.
fn about(action: &Action, lease: Key) -> Action {
    match action {
        Action::Commit(commit) => Action::Commit(Commit { lease, ..commit.clone() }),
        Action::Cancel { .. } => Action::Cancel { lease },
        Action::Heartbeat { ttl, .. } => Action::Heartbeat { lease: Some(lease), ttl: *ttl },
        other => other.clone(),
    }
}

/// Sends the other pools of a call what its named pool was sent. What the store does not take now
/// is sent later.
pub(super) fn repeat(store_client: &Arc<StoreClient>, others: &[Part], action: &Action) {
    for Part { client, key } in others {
        drop(store_client.settle(client, vec![about(action, *key)]));
    }
}

/// Settles a call that the provider refused for a limit of another pool: units charged at the end
/// are refunded, and these pools do not pause.
pub(super) fn refuse(store_client: &Arc<StoreClient>, parts: &[Part]) {
    for Part { client, key } in parts {
        let (lease, used) = (*key, Amounts::default());
        let commit = Commit { lease, used, progress: false, refused: true };
        drop(store_client.settle(client, vec![Action::Commit(commit)]));
    }
}

impl StoreClient {
    /// Returns which pool of a call a refusal is about: the first that has the limit it names, else
    /// the named pool.
    pub(crate) fn pool_of_refusal(
        &self,
        parts: &[Part],
        kind: ThrottleKind,
        hit: Option<&Hit>,
    ) -> usize {
        match hit {
            Some(hit) => self.pool_of_limit(parts, Some(&hit.unit), hit.period),
            None if kind == ThrottleKind::Concurrency => self.pool_of_limit(parts, None, None),
            None => 0,
        }
    }

    /// Returns the first pool of a call that has a limit, else the named one. Without a unit, the
    /// limit is `parallel`.
    pub(crate) fn pool_of_limit(
        &self,
        parts: &[Part],
        unit: Option<&Unit>,
        period: Option<Span>,
    ) -> usize {
        if parts.len() < 2 {
            return 0;
        }
        let has = |part: &Part| {
            let known = self.find(&part.client, |state| {
                let facts = state.facts();
                let config = facts.config.as_ref()?;
                let declared = config.limits.iter().map(|limit| limit.id());
                let learned = facts.learned.limits.iter();
                let is_it = |of: Option<&Unit>, its: Option<Span>| {
                    of == unit && (period.is_none() || its.is_none() || its == period)
                };
                let mut learned = learned.map(|limit| is_it(Some(&limit.unit), Some(limit.period)));
                let mut declared = declared.map(|id| is_it(id.unit(), id.period()));
                Some(declared.any(|found| found) || learned.any(|found| found))
            });
            known.ok().flatten() == Some(true)
        };
        parts.iter().position(has).unwrap_or(0)
    }
}
