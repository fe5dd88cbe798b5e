//! Leases as callers hold them.
//!
//! A lease is settled exactly once: by a method, by its drop, or by other processes after its
//! process died. `lease/handle.rs` is a lease by its id.

mod answered;
mod granted;
mod handle;
mod several;
mod usage;

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use standpipe_core::{Action, Amounts, Answer, Commit, Configured, LeaseAnswer, Unit, Zone};
use standpipe_store::PoolName;

pub(crate) use self::answered::answered;
pub(crate) use self::granted::{Granted, LeaseContext};
pub use self::handle::LeaseHandle;
pub(crate) use self::several::Part;
use self::usage::amounts;
use crate::client::operation::{Operation, Plan, Sending, Worker};
use crate::client::registry::StoreHandle;
use crate::client::usage::Ended;
use crate::client::{PoolClient, StoreClient, units};
use crate::error::Error;
use crate::lease_id::LeaseId;
use crate::provider::report::Throttle;
use crate::refused::Refused;
use crate::routing::advice::Advice;
use crate::routing::workflow::Backpressure;

/// The permission for one call, with the units it holds until it is settled.
///
/// Dropping it, also by a panic, settles it at its estimate, because the call may have been made.
/// If it was not, call [`Lease::cancel`]. While the lease exists, the process sends its heartbeats.
///
/// After a fork it belongs to the parent: dropping it in the child does nothing.
#[must_use = "a lease that is dropped at once is settled at its estimate"]
pub struct Lease {
    handle: Arc<StoreHandle>,
    client: Arc<PoolClient>,
    id: LeaseId,
    /// Whether this value settles the lease. If not, another one does, or the lease has ended.
    owned: bool,
    granted: Granted,
    context: LeaseContext,
    /// The same call on the other pools that it draws on.
    others: Vec<Lease>,
}

impl Lease {
    pub(crate) fn new(
        handle: Arc<StoreHandle>,
        client: Arc<PoolClient>,
        granted: Granted,
        context: LeaseContext,
    ) -> Self {
        let id = LeaseId::new(client.pool().clone(), granted.key);
        let owned = !granted.settled;
        if owned && granted.reserve.ttl.is_none() {
            handle.store_client().lease_began(client.resumed().as_ref().unwrap_or(&client));
        }
        Self { handle, client, id, owned, granted, context, others: Vec::new() }
    }

    /// Returns the lease's id, for other processes and the journal.
    #[must_use]
    pub const fn id(&self) -> &LeaseId {
        &self.id
    }

    /// Returns the name of the pool that the caller named.
    #[must_use]
    pub const fn pool(&self) -> &PoolName {
        self.id.pool()
    }

    /// Returns the agent that makes the call.
    #[must_use]
    pub fn agent(&self) -> &str {
        self.granted.reserve.agent.as_str()
    }

    /// Returns the cost it was admitted with, estimates included.
    #[must_use]
    pub const fn cost(&self) -> &Amounts {
        &self.granted.reserve.cost
    }

    /// Returns when the lease expires without a heartbeat. A lease that lives with its process gets
    /// one every 30 s.
    #[must_use]
    pub fn expires_at(&self) -> SystemTime {
        self.each(|lease| lease.granted.expires_at).min().unwrap_or(self.granted.expires_at)
    }

    /// Returns its time to live; `None` if it lives with its process.
    #[must_use]
    pub fn ttl(&self) -> Option<Duration> {
        self.granted.reserve.ttl.map(crate::moment::micros)
    }

    /// Returns how long the call waited.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.each(|lease| lease.granted.waited).max().unwrap_or_default()
    }

    /// Returns whether the limits that came with the request count; `None` if none came.
    #[must_use]
    pub fn limits_in_force(&self) -> Option<bool> {
        let result = self.granted.limits_result.as_ref()?;
        Some(*result != Configured::Kept)
    }

    /// Returns whether the limits that came with the request changed those of the pool, for every
    /// caller. A pool that the call created is changed too.
    #[must_use]
    pub fn limits_changed(&self) -> bool {
        self.granted.limits_result == Some(Configured::Applied)
    }

    /// Returns whether others used the pool before the call. If not, the call created the pool,
    /// perhaps together with others that state the same limits.
    #[must_use]
    pub const fn was_shared(&self) -> bool {
        self.granted.was_shared
    }

    /// Returns whether an earlier call with the same id has already ended. This one must then not
    /// be made.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.granted.settled
    }

    /// Returns the throttled agent upstream, on any pool, if there is one.
    #[must_use]
    pub const fn backpressure(&self) -> Option<&Backpressure> {
        self.context.backpressure.as_ref()
    }

    /// Returns how much quota is left, on the pool with the least: green, amber or red.
    #[must_use]
    pub fn zone(&self) -> Zone {
        self.each(|lease| lease.granted.zone).max().unwrap_or(self.granted.zone)
    }

    /// Returns what to do before the next call like this, if it would have to wait.
    /// [`Pool::advise`](crate::Pool::advise) also names pools to use instead.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        self.each(|lease| lease.granted.forecast.as_ref().map(Advice::of)).flatten().next()
    }

    /// Returns whether this process alone granted the lease, because the store was unavailable.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.each(|lease| lease.client.is_offline()).any(|offline| offline)
    }

    /// Returns the refusal that shadow mode replaced by this lease, if there was one.
    #[must_use]
    pub fn instead_of(&self) -> Option<&Refused> {
        self.each(|lease| lease.granted.instead_of.as_ref()).flatten().next()
    }

    /// Settles the lease: the call is over and used this much. Units that are not named settle at
    /// the estimate. Dropped before it begins, the operation settles everything at the estimate.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Limit, Request, Rule, Span, Standpipe, Unit};
    /// # fn main() -> Result<(), standpipe::Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// # let pool = tap.pool("doc/commit")?;
    /// # let rule = Rule::Window { unit: Unit::Tokens, amount: 9_000, period: Span::secs(60) };
    /// # pool.limit(vec![Limit::new(rule)]).blocking()?;
    /// let lease = pool.reserve(Request::by("blog").unit("tokens", 1_200)).blocking()?;
    /// lease.commit([(Unit::Tokens, 900)]).blocking()?;
    /// assert_eq!(pool.status().blocking()?.limits[0].used, 900);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::LeaseGone`] when the lease has ended before, for example by expiry. When the store
    /// does not answer, the commit is still sent with the next step.
    pub fn commit(self, used: impl IntoIterator<Item = (Unit, u64)>) -> Operation<()> {
        let used = amounts(used);
        Operation::new(move || {
            let used = match used {
                Ok(used) => used,
                Err(error) => return Plan::Ready(Err(error)),
            };
            if !units::custom(&used, &[]).is_empty() {
                let worker = Worker::of(&self.handle, &self.client);
                return Plan::Block(worker, Box::new(move || self.commit_checked(used)));
            }
            let (lease, progress, refused) = (self.id.key(), false, false);
            self.end(Action::Commit(Commit { lease, used, progress, refused }))
        })
    }

    /// Commits usage with units that may be misspelled.
    fn commit_checked(self, used: Amounts) -> Result<(), Error> {
        let key = self.id.key();
        self.ours()?.check_units(&self.client(), &used, &[], Some(key))?;
        let commit = Commit { lease: key, used, progress: false, refused: false };
        Operation::new(move || self.end(Action::Commit(commit))).blocking()
    }

    /// Reports what the call has used so far. Amounts are totals, so sending the same again changes
    /// nothing.
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn progress(&self, used: impl IntoIterator<Item = (Unit, u64)>) -> Operation<()> {
        let (used, id) = (amounts(used), self.id.clone());
        let (handle, client) = (Arc::clone(&self.handle), self.client());
        let (ours, others) = (self.ours().map(drop), self.other_parts());
        Operation::new(move || {
            if let Err(error) = ours {
                return Plan::Ready(Err(error));
            }
            let worker = Worker::of(&handle, &client);
            let used = match used {
                Ok(used) if others.is_empty() && units::custom(&used, &[]).is_empty() => used,
                used => {
                    let run = move || {
                        let (store_client, used) = (handle.store_client(), used?);
                        store_client.check_units(&client, &used, &[], Some(id.key()))?;
                        let commit = so_far(&id, used);
                        let result = store_client.about_lease(&client, &id, commit.clone());
                        several::repeat(store_client, &others, &commit);
                        result.map(drop)
                    };
                    return Plan::Block(worker, Box::new(run));
                }
            };
            let actions = vec![so_far(&id, used)];
            let then = Box::new(move |received: Result<(Vec<Answer>, _), Error>| {
                lease_answer(received?.0, &id).map(drop)
            });
            Plan::Send(Sending { handle, client, actions, then })
        })
    }

    /// Gives everything back: the call was never sent.
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn cancel(self) -> Operation<()> {
        Operation::new(move || {
            let lease = self.id.key();
            self.end(Action::Cancel { lease })
        })
    }

    /// Reports that the provider refused the call. Units charged at the end are refunded, and
    /// everyone on the pool pauses.
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn throttled(self, throttle: Throttle) -> Operation<()> {
        self.blocking(move |lease, store_client| {
            let throttle = throttle.lease(lease.id.clone()).agent(lease.agent());
            let mut parts = lease.take_parts();
            let about = store_client.pool_of_refusal(&parts, throttle.kind, throttle.hit.as_ref());
            let target = parts.remove(about);
            let graph = &lease.context.graph;
            let result = store_client.throttle(&target.client, &throttle, graph);
            several::refuse(store_client, &parts);
            result
        })
    }

    /// Detaches the lease from this process: it lives for this long from now on. It is not settled;
    /// that is left to [`Standpipe::lease`](crate::Standpipe::lease) with its id, in any process.
    ///
    /// # Errors
    /// As [`Lease::commit`]; the lease is then settled at its estimate.
    pub fn keep(self, ttl: Duration) -> Operation<LeaseId> {
        self.blocking(move |lease, store_client| {
            let ttl = Some(crate::moment::span(ttl.max(Duration::from_micros(1))));
            let beat = |key| Action::Heartbeat { lease: Some(key), ttl };
            // The named pool comes last: if this fails half-way, dropping the lease settles it.
            for other in &lease.others {
                store_client.settle(&other.client(), vec![beat(other.id.key())])?;
            }
            store_client.about_lease(&lease.client(), &lease.id, beat(lease.id.key()))?;
            drop(lease.take_parts());
            Ok(lease.id.clone())
        })
    }

    /// Returns an operation that may block for several steps.
    fn blocking<T: Send + 'static>(
        self,
        run: impl FnOnce(&mut Self, &Arc<StoreClient>) -> Result<T, Error> + Send + 'static,
    ) -> Operation<T> {
        Operation::new(move || self.block(run))
    }

    fn block<T: Send + 'static>(
        mut self,
        run: impl FnOnce(&mut Self, &Arc<StoreClient>) -> Result<T, Error> + Send + 'static,
    ) -> Plan<T> {
        let worker = Worker::of(&self.handle, &self.client);
        let run = move || {
            let store_client = self.ours()?;
            run(&mut self, &store_client)
        };
        Plan::Block(worker, Box::new(run))
    }

    /// Returns the id and leaves a lease with a time to live in flight, until it is settled by its
    /// id or expires. A lease that lives with this process is settled at its estimate.
    pub fn into_id(mut self) -> LeaseId {
        self.leave_by_ttl();
        self.id.clone()
    }

    /// Returns whether this request created the lease, and not an earlier one with the same id.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.granted.is_new
    }

    /// Gives the lease back without waiting for the result, because the caller never got it: the
    /// call may ask again with the same id. A lease that a later request with the same id may take
    /// over stays.
    pub(crate) fn give_back(mut self) {
        for other in mem::take(&mut self.others) {
            other.give_back();
        }
        if self.granted.keeps_place {
            self.owned = false;
        }
        if self.handle.is_ours() && mem::replace(&mut self.owned, false) {
            let withdraw = Action::Withdraw { lease: self.id.key() };
            self.note_ended(&withdraw);
            self.handle.store_client().send_unattended(&self.client(), withdraw);
            self.lease_ended();
        }
    }

    /// Ends the lease with an action.
    fn end(mut self, action: Action) -> Plan<()> {
        let others = mem::take(&mut self.others);
        if !others.is_empty() {
            let worker = Worker::of(&self.handle, &self.client);
            return Plan::Block(worker, Box::new(move || self.end_all(others, action)));
        }
        if let Err(error) = self.ours() {
            return Plan::Ready(Err(error));
        }
        if !mem::replace(&mut self.owned, false) {
            return Plan::Ready(Err(Error::LeaseGone { lease: self.id.clone() }));
        }
        self.note_ended(&action);
        let span = tracing::debug_span!("settle", pool = %self.pool(), agent = self.agent());
        let (handle, client) = (Arc::clone(&self.handle), self.client());
        let then = Box::new(move |received: Result<_, Error>| {
            self.lease_ended();
            let settled = received.and_then(|(answers, _)| lease_answer(answers, &self.id));
            span.in_scope(|| match &settled {
                Ok(_) => tracing::debug!("settled"),
                Err(error) => tracing::debug!(%error, "not settled"),
            });
            settled.map(drop)
        });
        Plan::Send(Sending { handle, client, actions: vec![action], then })
    }

    /// Writes the grant to the journal.
    pub(crate) fn note_admitted(&self, waited: Duration) {
        self.handle.store_client().note_admitted(&self.client(), &self.granted, waited);
    }

    /// Writes the end to the journal. A lease that an earlier request created is recorded by that
    /// one.
    fn note_ended(&self, action: &Action) {
        if let Some(how) = Ended::by(action).filter(|_| self.granted.is_new) {
            self.handle.store_client().note_ended(&self.client(), self.granted.call(), how);
        }
    }

    /// Returns the store client of the lease; an error in a child process after a fork.
    fn ours(&self) -> Result<Arc<crate::client::store_client::StoreClient>, Error> {
        if self.handle.is_ours() {
            return Ok(Arc::clone(self.handle.store_client()));
        }
        Err(Error::invalid(
            "this lease belongs to the parent process",
            "settle it there, or reserve one of your own after the fork",
        ))
    }

    /// Returns the client that settles the lease. A lease of an offline ledger moves to the store
    /// when it is available again.
    fn client(&self) -> Arc<PoolClient> {
        self.client.resumed().unwrap_or_else(|| Arc::clone(&self.client))
    }

    fn lease_ended(&self) {
        if self.granted.reserve.ttl.is_none() {
            self.client().lease_ended();
        }
    }
}

/// Returns the report of what a call has used so far.
const fn so_far(lease: &LeaseId, used: Amounts) -> Action {
    Action::Commit(Commit { lease: lease.key(), used, progress: true, refused: false })
}

/// Returns what the ledger answered about a lease. A lease that has ended is an error.
pub(crate) fn lease_answer(answers: Vec<Answer>, lease: &LeaseId) -> Result<LeaseAnswer, Error> {
    match answers.into_iter().next() {
        Some(Answer::Lease(answer)) if answer != LeaseAnswer::Gone => Ok(answer),
        _ => Err(Error::LeaseGone { lease: lease.clone() }),
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.owned || !self.handle.is_ours() {
            return;
        }
        let (lease, used) = (self.id.key(), Amounts::default());
        let commit = Commit { lease, used, progress: false, refused: false };
        let commit = Action::Commit(commit);
        self.note_ended(&commit);
        self.handle.store_client().send_unattended(&self.client(), commit);
        self.lease_ended();
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease")
            .field("id", &self.id)
            .field("agent", &self.agent())
            .field("cost", self.cost())
            .finish_non_exhaustive()
    }
}
