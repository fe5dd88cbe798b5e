//! A lease by its id, for example one that the command line printed earlier.
//!
//! The lease may belong to any process; dropping the handle never settles it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use standpipe_core::{Action, Amounts, Commit, LeaseAnswer, Unit};
use standpipe_store::{PoolName, Process};

use super::several::{self, Part};
use super::{amounts, lease_answer};
use crate::client::operation::{Operation, Plan, Sending, Then, Worker};
use crate::client::registry::StoreHandle;
use crate::client::usage::{Ended, KnownCall, known_call};
use crate::client::{PoolClient, StoreClient, units};
use crate::error::Error;
use crate::journal::EventData;
use crate::lease_id::LeaseId;
use crate::moment::Now;
use crate::pool::Pool;
use crate::provider::reply::{Meaning, Reply};
use crate::provider::report::Throttle;
use crate::tap::Tap;

/// A lease by its id. Dropping it changes nothing.
#[derive(Clone)]
pub struct LeaseHandle {
    tap: Arc<Tap>,
    id: LeaseId,
}

impl LeaseHandle {
    pub(crate) const fn new(tap: Arc<Tap>, id: LeaseId) -> Self {
        Self { tap, id }
    }

    /// Returns the lease's id.
    #[must_use]
    pub const fn id(&self) -> &LeaseId {
        &self.id
    }

    /// Settles the lease: the call is over and used this much. Units that are not named settle at
    /// the estimate.
    ///
    /// # Errors
    /// [`Error::LeaseGone`] when there is no such lease, or it has ended. Nothing changed then.
    pub fn commit(&self, used: impl IntoIterator<Item = (Unit, u64)>) -> Operation<()> {
        self.used(amounts(used), false)
    }

    /// Returns the living process that holds the lease, if that is another one.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn holder(&self) -> Result<Option<Process>, Error> {
        let handle = self.tap.store_handle()?;
        let process = handle.store_client().store().process_of(self.id.key().session);
        Ok(process.filter(|process| process.pid != std::process::id()))
    }

    /// Writes to the journal that somebody settled the lease of another process, which goes on.
    ///
    /// # Errors
    /// When the store cannot be used.
    pub fn note_settled(
        &self,
        by: &str,
        agent: Option<&str>,
        holder: Process,
    ) -> Result<(), Error> {
        let (lease, agent) = (self.id.to_string(), agent.map(ToOwned::to_owned));
        let what = EventData::Settle { lease, agent, by: by.to_owned(), pid: holder.pid };
        self.tap.store_handle()?.store_client().journal().note(self.id.pool(), what);
        Ok(())
    }

    /// Reports what the call has used so far.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn progress(&self, used: impl IntoIterator<Item = (Unit, u64)>) -> Operation<()> {
        self.used(amounts(used), true)
    }

    /// Gives everything back: the call was never sent.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn cancel(&self) -> Operation<()> {
        let action = Action::Cancel { lease: self.id.key() };
        self.send(move |_| Ok(action), |_, _| Ok(()))
    }

    /// Extends the lease by its own time to live, from now. Returns when it ends.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn heartbeat(&self) -> Operation<SystemTime> {
        self.beat(None)
    }

    /// Gives the lease this time to live, from now. Returns when it ends.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn keep(&self, ttl: Duration) -> Operation<SystemTime> {
        self.beat(Some(ttl))
    }

    /// Reports that the provider refused the call.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn throttled(&self, throttle: Throttle) -> Operation<()> {
        self.throttled_on(None, throttle)
    }

    /// Reports a refusal that is about this pool of the call.
    pub(crate) fn throttled_on(&self, pool: Option<PoolName>, throttle: Throttle) -> Operation<()> {
        self.blocking(move |lease, store_client, client| {
            let throttle = throttle.lease(lease.id.clone());
            let mut parts = lease.parts(store_client, client)?;
            let stated = lease.id.pools().position(|known| Some(known) == pool.as_ref());
            let found =
                || store_client.pool_of_refusal(&parts, throttle.kind, throttle.hit.as_ref());
            let about = stated.unwrap_or_else(found);
            let target = parts.remove(about);
            let result = store_client.throttle(&target.client, &throttle, lease.tap.graph());
            several::refuse(store_client, &parts);
            result
        })
    }

    /// Settles the lease by what the provider's answer means. `used` are amounts of the caller that
    /// replace the answer's.
    ///
    /// # Errors
    /// As [`LeaseHandle::commit`].
    pub fn answered_using(
        &self,
        reply: Reply,
        used: impl IntoIterator<Item = (Unit, u64)>,
    ) -> Operation<Meaning> {
        let used = amounts(used);
        self.blocking(move |lease, store_client, client| {
            let (used, key) = (used?, lease.id.key());
            store_client.check_units(client, &used, &[], Some(key))?;
            let pool = Pool::new(Arc::clone(&lease.tap), lease.id.pool().clone());
            let read = reply.read(pool.dialect(), pool.name());
            let agent = store_client.agent_of(client, key)?;
            let (agent, graph) = (agent.as_ref().map(|agent| agent.as_str()), lease.tap.graph());
            let parts = lease.parts(store_client, client)?;
            let split = store_client.split_reply(&parts, &read);
            let calls: Vec<_> =
                parts.iter().map(|part| store_client.call_of(&part.client, part.key)).collect();
            store_client.answered(&parts, &lease.id, agent, &split, &used, graph)?;
            for ((part, call), read) in parts.iter().zip(calls).zip(&split) {
                if let Some(call) = call {
                    store_client.note_answered(&part.client, call.call(), read, &used);
                }
            }
            Ok(read.meaning)
        })
    }

    fn beat(&self, ttl: Option<Duration>) -> Operation<SystemTime> {
        let ttl = ttl.map(|ttl| crate::moment::span(ttl.max(Duration::from_micros(1))));
        let (key, id) = (self.id.key(), self.id.clone());
        let beat = Action::Heartbeat { lease: Some(key), ttl };
        self.send(
            move |_| Ok(beat),
            move |answer, now| match answer {
                LeaseAnswer::Lives(until) => Ok(now.system(until)),
                LeaseAnswer::Ended | LeaseAnswer::Gone => Err(Error::LeaseGone { lease: id }),
            },
        )
    }

    fn used(&self, used: Result<Amounts, Error>, progress: bool) -> Operation<()> {
        let key = self.id.key();
        let commit =
            move |used| Action::Commit(Commit { lease: key, used, progress, refused: false });
        let used = match used {
            Ok(used) if units::custom(&used, &[]).is_empty() => used,
            // Units that may be misspelled are checked against the pool, which may take a read.
            used => {
                return self.blocking(move |lease, store_client, client| {
                    let used = used?;
                    store_client.check_units(client, &used, &[], Some(key))?;
                    lease.send(move |_| Ok(commit(used)), |_, _| Ok(())).blocking()
                });
            }
        };
        self.send(move |_| Ok(commit(used)), |_, _| Ok(()))
    }

    /// Returns the lease on every pool of its call, the named one first.
    fn parts(
        &self,
        store_client: &Arc<StoreClient>,
        named: &Arc<PoolClient>,
    ) -> Result<Vec<Part>, Error> {
        let mut parts = vec![Part { client: Arc::clone(named), key: self.id.key() }];
        for (pool, key) in self.id.others() {
            let client = store_client.client(pool)?.of_lease(*key);
            parts.push(Part { client, key: *key });
        }
        Ok(parts)
    }

    /// Returns an operation that sends one action about a lease on several pools. Its result is
    /// that of the named pool.
    fn send_to_all<T: Send + 'static>(
        &self,
        action: impl FnOnce(&Self) -> Result<Action, Error> + Send + 'static,
        then: impl FnOnce(LeaseAnswer, Now) -> Result<T, Error> + Send + 'static,
    ) -> Operation<T> {
        self.blocking(move |lease, store_client, client| {
            let action = action(lease)?;
            let parts = lease.parts(store_client, client)?;
            let call_of = |part: &Part| store_client.call_of(&part.client, part.key);
            let calls: Vec<_> = match Ended::by(&action) {
                Some(_) => parts.iter().map(call_of).collect(),
                None => Vec::new(),
            };
            let result = store_client.about_lease(client, &lease.id, action.clone());
            several::repeat(store_client, &parts[1..], &action);
            for (part, call) in parts.iter().zip(&calls) {
                note_ended(store_client, &part.client, call.as_ref(), &action);
            }
            let (answer, now) = result?;
            then(answer, now)
        })
    }

    /// Returns an operation that sends one action about the lease.
    fn send<T: Send + 'static>(
        &self,
        action: impl FnOnce(&Self) -> Result<Action, Error> + Send + 'static,
        then: impl FnOnce(LeaseAnswer, Now) -> Result<T, Error> + Send + 'static,
    ) -> Operation<T> {
        if !self.id.others().is_empty() {
            return self.send_to_all(action, then);
        }
        let lease = self.clone();
        Operation::new(move || {
            let (handle, client, action) = match lease.client().and_then(|(handle, client)| {
                let action = action(&lease)?;
                Ok((handle, client, action))
            }) {
                Ok(parts) => parts,
                Err(error) => return Plan::Ready(Err(error)),
            };
            let id = lease.id.clone();
            let ends = Ended::by(&action).is_some() && handle.store_client().journal().is_kept();
            let local = !handle.store_client().store().is_remote();
            let turn = match ends {
                true if local => Some(client.short_turn()),
                true => client.try_dispatcher(),
                false => None,
            };
            let call = turn.and_then(|dispatcher| {
                known_call(dispatcher.participant.replica().state(), id.key())
            });
            if ends && call.is_none() {
                // The journal records the call, and to find it takes a read.
                let worker = Worker::of(&handle, &client);
                let run = move || {
                    let store_client = handle.store_client();
                    let known = store_client.call_of(&client, id.key());
                    let (answer, now) = store_client.about_lease(&client, &id, action.clone())?;
                    note_ended(store_client, &client, known.as_ref(), &action);
                    then(answer, now)
                };
                return Plan::Block(worker, Box::new(run));
            }
            let noted = call.map(|call| (call, action.clone()));
            let (store_handle, pool_client) = (Arc::clone(&handle), Arc::clone(&client));
            let then: Then<T> = Box::new(move |received| {
                let (answers, now) = received?;
                let answer = lease_answer(answers, &id)?;
                if let Some((call, action)) = &noted {
                    note_ended(store_handle.store_client(), &pool_client, Some(call), action);
                }
                then(answer, now)
            });
            Plan::Send(Sending { handle, client, actions: vec![action], then })
        })
    }

    /// Returns an operation that may block for several steps.
    fn blocking<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Self, &Arc<StoreClient>, &Arc<PoolClient>) -> Result<T, Error>
        + Send
        + 'static,
    ) -> Operation<T> {
        let lease = self.clone();
        Operation::new(move || match lease.client() {
            Ok((handle, client)) => {
                let worker = Worker::of(&handle, &client);
                Plan::Block(worker, Box::new(move || run(&lease, handle.store_client(), &client)))
            }
            Err(error) => Plan::Ready(Err(error)),
        })
    }

    /// Returns the client that has the lease.
    fn client(&self) -> Result<(Arc<StoreHandle>, Arc<PoolClient>), Error> {
        let handle = self.tap.store_handle()?;
        let client = handle.store_client().client(self.id.pool())?.of_lease(self.id.key());
        Ok((handle, client))
    }
}

fn note_ended(
    store_client: &StoreClient,
    client: &PoolClient,
    call: Option<&KnownCall>,
    action: &Action,
) {
    if let (Some(call), Some(how)) = (call, Ended::by(action)) {
        store_client.note_ended(client, call.call(), how);
    }
}

impl fmt::Debug for LeaseHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseHandle").field("id", &self.id).finish_non_exhaustive()
    }
}
