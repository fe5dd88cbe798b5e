//! Leases as callers hold them: settled exactly once, whatever happens to the holder.

mod handle;
mod settling;

use std::fmt;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use standpipe_core::{Action, Amounts, Commit, Key, Priority, Reserve, Unit, Zone};
use standpipe_dialect::Dialect;
use standpipe_store::PoolName;

pub use self::handle::LeaseHandle;
pub use self::settling::Settling;
use crate::advice::Advice;
use crate::desk::Desk;
use crate::error::Error;
use crate::lease_id::LeaseId;
use crate::refused::Refused;
use crate::registry::Guard;
use crate::reply::{Meaning, Reply};
use crate::report::Throttle;
use crate::shared::usage::Ended;
use crate::workflow::{Backpressure, Graph};

/// What a granted call holds until it is settled.
///
/// Dropped, also by a panic, it is settled at its estimate: the call may have been made. If it was
/// not, say so with [`Lease::cancel`]. While it lives its process beats for it by itself.
///
/// In a child process after a fork it is the parent's: dropping it there does nothing.
#[must_use = "a lease that is dropped at once is settled at its estimate"]
pub struct Lease {
    guard: Arc<Guard>,
    desk: Arc<Desk>,
    id: LeaseId,
    held: Held,
    granted: Granted,
    around: Around,
}

/// What is around the pool of a lease.
#[derive(Clone, Debug)]
pub(crate) struct Around {
    /// How its provider writes.
    pub(crate) dialect: Dialect,
    /// Who works for whom.
    pub(crate) graph: Arc<Graph>,
    /// Somebody upstream is throttled.
    pub(crate) backpressure: Option<Backpressure>,
}

/// Whether dropping it settles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// It is this value's to settle.
    Yes,
    /// Somebody else settles it, or it has ended.
    No,
}

/// What is known of a lease from its grant.
#[derive(Clone, Debug)]
pub(crate) struct Granted {
    pub(crate) key: Key,
    pub(crate) reserve: Reserve,
    pub(crate) expires_at: SystemTime,
    pub(crate) waited: Duration,
    pub(crate) settled: bool,
    /// Somebody may come back for it with its id.
    pub(crate) keeps_place: bool,
    pub(crate) instead_of: Option<Refused>,
    pub(crate) zone: Zone,
    pub(crate) foreseen: Option<standpipe_core::Advice>,
    /// The tier it was admitted in; none if it ended already.
    pub(crate) tier: Option<Priority>,
    /// It is not an earlier call of the same id.
    pub(crate) is_new: bool,
    /// `false` in shadow mode.
    pub(crate) enforced: bool,
    /// Money is computed on its pool.
    pub(crate) priced: bool,
}

impl Lease {
    pub(crate) fn new(
        guard: Arc<Guard>,
        desk: Arc<Desk>,
        granted: Granted,
        around: Around,
    ) -> Self {
        let id = LeaseId::new(desk.pool().clone(), granted.key);
        let held = if granted.settled { Held::No } else { Held::Yes };
        if held == Held::Yes && granted.reserve.ttl.is_none() {
            guard.shared().holds(desk.moved_to().as_ref().unwrap_or(&desk));
        }
        Self { guard, desk, id, held, granted, around }
    }

    /// Its name, for other processes and the record.
    #[must_use]
    pub const fn id(&self) -> &LeaseId {
        &self.id
    }

    /// The pool it is on.
    #[must_use]
    pub const fn pool(&self) -> &PoolName {
        self.id.pool()
    }

    /// Whose call it is.
    #[must_use]
    pub fn agent(&self) -> &str {
        self.granted.reserve.agent.as_str()
    }

    /// What it was reserved for, with what was estimated because nobody said.
    #[must_use]
    pub const fn cost(&self) -> &Amounts {
        &self.granted.reserve.cost
    }

    /// When it ends by itself if nothing more is heard of it. A lease that lives with its process
    /// is heard of every 30 s.
    #[must_use]
    pub const fn expires_at(&self) -> SystemTime {
        self.granted.expires_at
    }

    /// How long it lives by itself; none if it lives with its process.
    #[must_use]
    pub fn ttl(&self) -> Option<Duration> {
        self.granted.reserve.ttl.map(crate::moment::micros)
    }

    /// How long the call waited for it.
    #[must_use]
    pub const fn waited(&self) -> Duration {
        self.granted.waited
    }

    /// An earlier call with the same id has ended already: this one must not be made.
    #[must_use]
    pub const fn is_settled(&self) -> bool {
        self.granted.settled
    }

    /// Somebody this agent works for is throttled, on whatever pool.
    #[must_use]
    pub const fn backpressure(&self) -> Option<&Backpressure> {
        self.around.backpressure.as_ref()
    }

    /// How much quota is left: green, amber or red.
    #[must_use]
    pub const fn zone(&self) -> Zone {
        self.granted.zone
    }

    /// What to do before the next call like this, which would have to wait: ask for less. Where
    /// else to go, [`Pool::advise`](crate::Pool::advise) knows.
    #[must_use]
    pub fn advice(&self) -> Option<Advice> {
        self.granted.foreseen.as_ref().map(Advice::of)
    }

    /// Whether it was decided on in this process alone, because the store was away.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.desk.is_substitute()
    }

    /// In shadow mode: what would have been said instead.
    #[must_use]
    pub const fn instead_of(&self) -> Option<&Refused> {
        self.granted.instead_of.as_ref()
    }

    /// The call is over and used this much. What is not named settles at the estimate.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Limit, Request, Rule, Span, Standpipe, Unit};
    /// # fn main() -> Result<(), standpipe::Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// # let pool = tap.pool("doc/commit")?;
    /// # let rule = Rule::Window { unit: Unit::Tokens, amount: 9_000, period: Span::secs(60) };
    /// # pool.limit(vec![Limit::new(rule)])?;
    /// let lease = pool.reserve(Request::by("blog").unit("tokens", 1_200)).blocking()?;
    /// lease.commit([(Unit::Tokens, 900)])?;
    /// assert_eq!(pool.status()?.limits[0].used, 900);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::LeaseGone`] when it has ended before, by expiry for example. When the store does
    /// not answer, the commit is still sent with the next word to the store.
    pub fn commit(mut self, used: impl IntoIterator<Item = (Unit, u64)>) -> Result<(), Error> {
        let used = self.checked(used)?;
        self.end(Action::Commit(Commit {
            lease: self.id.key(),
            used,
            progress: false,
            refused: false,
        }))
    }

    /// [`Lease::commit`] for tasks: it does not block, also where the store is across a network.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Limit, Pool, Request, Rule, Span, Standpipe, Unit};
    /// async fn call(pool: &Pool) -> Result<(), standpipe::Error> {
    ///     let lease = pool.reserve(Request::by("blog").unit("tokens", 1_200)).await?;
    ///     lease.commit_async([(Unit::Tokens, 900)]).await
    /// }
    /// ```
    pub fn commit_async(self, used: impl IntoIterator<Item = (Unit, u64)>) -> Settling {
        let (lease, progress, refused) = (self.id.key(), false, false);
        let commit = |used| Action::Commit(Commit { lease, used, progress, refused });
        let action = self.checked(used).map(commit);
        Settling::new(self, action)
    }

    /// The call goes on and has used this much so far. Figures are totals, so sending the same
    /// again changes nothing.
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn progress(&self, used: impl IntoIterator<Item = (Unit, u64)>) -> Result<(), Error> {
        let used = self.checked(used)?;
        let (lease, refused) = (self.id.key(), false);
        let commit = Commit { lease, used, progress: true, refused };
        self.ours()?.about_lease(&self.desk(), &self.id, Action::Commit(commit)).map(drop)
    }

    /// The call was never sent: everything goes back.
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn cancel(mut self) -> Result<(), Error> {
        self.end(Action::Cancel { lease: self.id.key() })
    }

    /// The provider refused the call: what is charged at the end was not used, and everybody on the
    /// pool learns of it.
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn throttled(mut self, throttle: Throttle) -> Result<(), Error> {
        let shared = self.ours()?;
        self.held = Held::No;
        let throttle = throttle.lease(self.id.clone()).agent(self.agent());
        let told = shared.throttle(&self.desk(), &throttle, &self.around.graph);
        self.let_go();
        told
    }

    /// The provider answered the call: it is settled by what the answer means, everybody on the
    /// pool learns of a refusal, and what it says of limits is believed. What it says of usage
    /// counts.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Limit, Meaning, Reply, Request, Rule, Standpipe};
    /// # fn main() -> Result<(), standpipe::Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// # let pool = tap.pool("anthropic/doc")?;
    /// # pool.limit(vec![Limit::new(Rule::Parallel { amount: 5 })])?;
    /// let lease = pool.reserve(Request::by("blog")).blocking()?;
    /// let meaning = lease.answered(&Reply::new(429).header("retry-after", "17"))?;
    /// assert!(matches!(meaning, Meaning::Refused { .. }));
    /// assert!(pool.status()?.pause.is_some(), "everybody pauses");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn answered(self, reply: &Reply) -> Result<Meaning, Error> {
        self.answered_using(reply, [])
    }

    /// [`Lease::answered`], with figures the caller knows better: they count before the answer's.
    ///
    /// # Errors
    /// As [`Lease::commit`].
    pub fn answered_using(
        mut self,
        reply: &Reply,
        used: impl IntoIterator<Item = (Unit, u64)>,
    ) -> Result<Meaning, Error> {
        let used = self.checked(used)?;
        let shared = self.ours()?;
        if mem::replace(&mut self.held, Held::No) == Held::No {
            return Err(Error::LeaseGone { lease: self.id.clone() });
        }
        let read = reply.read(self.around.dialect, self.id.pool());
        if self.granted.is_new {
            shared.note_answered(&self.desk(), self.granted.call(), &read, &used);
        }
        let (desk, id, graph) = (self.desk(), &self.id, &self.around.graph);
        let told = shared.answered(&desk, id, Some(self.agent()), &read, &used, graph);
        self.let_go();
        told.map(|()| read.meaning)
    }

    /// Hands the lease over: from now on it lives so long by itself, and not with this process.
    /// Nothing is settled; whoever has its id does that.
    ///
    /// # Errors
    /// As [`Lease::commit`]; the lease is then settled at its estimate.
    pub fn keep(mut self, ttl: Duration) -> Result<LeaseId, Error> {
        let shared = self.ours()?;
        let ttl = Some(crate::moment::span(ttl.max(Duration::from_micros(1))));
        let beat = Action::Heartbeat { lease: Some(self.id.key()), ttl };
        shared.about_lease(&self.desk(), &self.id, beat)?;
        self.held = Held::No;
        self.let_go();
        Ok(self.id.clone())
    }

    /// Lets go of a lease that lives by itself: it stays in flight until whoever has its id settles
    /// it, or its time is up. One that lives with this process is settled at its estimate.
    pub fn into_id(mut self) -> LeaseId {
        if self.granted.reserve.ttl.is_some() {
            self.held = Held::No;
        }
        self.id.clone()
    }

    /// It was granted to this very request, and not to an earlier one of the same id.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.granted.is_new
    }

    /// Everything goes back, and nobody wants to know whether that worked. What somebody may come
    /// back for stays.
    pub(crate) fn give_back(mut self) {
        if self.granted.keeps_place {
            self.held = Held::No;
        }
        if self.guard.is_ours() && mem::replace(&mut self.held, Held::No) == Held::Yes {
            let cancel = Action::Cancel { lease: self.id.key() };
            self.note_ended(&cancel);
            self.guard.shared().tell(&self.desk(), cancel);
            self.let_go();
        }
    }

    /// Figures of units that the pool or the lease counts.
    fn checked(&self, used: impl IntoIterator<Item = (Unit, u64)>) -> Result<Amounts, Error> {
        let used = amounts(used)?;
        self.ours()?.check_units(&self.desk(), &used, &[], Some(self.id.key()))?;
        Ok(used)
    }

    fn end(&mut self, action: Action) -> Result<(), Error> {
        let shared = self.ours()?;
        if mem::replace(&mut self.held, Held::No) == Held::No {
            return Err(Error::LeaseGone { lease: self.id.clone() });
        }
        self.note_ended(&action);
        let ended = shared.about_lease(&self.desk(), &self.id, action).map(drop);
        self.let_go();
        ended
    }

    /// That it was granted, for the record.
    pub(crate) fn note_admitted(&self) {
        self.guard.shared().note_admitted(&self.desk(), &self.granted);
    }

    /// That it ends, for the record. An earlier call of the same id is noted by whoever made it.
    fn note_ended(&self, action: &Action) {
        if let Some(how) = Ended::by(action).filter(|_| self.granted.is_new) {
            self.guard.shared().note_ended(&self.desk(), self.granted.call(), how);
        }
    }

    /// What it belongs to, unless that is the parent of this process.
    fn ours(&self) -> Result<Arc<crate::shared::Shared>, Error> {
        if self.guard.is_ours() {
            return Ok(Arc::clone(self.guard.shared()));
        }
        Err(Error::invalid(
            "this lease belongs to the parent process",
            "settle it there, or reserve one of your own after the fork",
        ))
    }

    /// Where it is settled: one that was granted while the store was away is handed over to it when
    /// it is back.
    fn desk(&self) -> Arc<Desk> {
        self.desk.moved_to().unwrap_or_else(|| Arc::clone(&self.desk))
    }

    fn let_go(&self) {
        if self.granted.reserve.ttl.is_none() {
            self.desk().let_go();
        }
    }
}

/// Figures of a commit.
pub(crate) fn amounts(used: impl IntoIterator<Item = (Unit, u64)>) -> Result<Amounts, Error> {
    Amounts::new(used).map_err(|wrong| {
        Error::invalid(
            format!("the usage cannot be taken: {wrong}"),
            "name each unit once, with what the call used so far",
        )
    })
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.held == Held::No || !self.guard.is_ours() {
            return;
        }
        let (lease, used) = (self.id.key(), Amounts::default());
        let commit = Commit { lease, used, progress: false, refused: false };
        let commit = Action::Commit(commit);
        self.note_ended(&commit);
        self.guard.shared().tell(&self.desk(), commit);
        self.let_go();
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
