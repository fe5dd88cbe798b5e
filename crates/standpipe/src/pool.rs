//! One shared quota, as callers use it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use standpipe_core::{
    Action, AgentName, Configure, Configured, Limit, Observed, PoolConfig, Reserve, Source, State,
};
use standpipe_dialect::Dialect;
use standpipe_store::PoolName;

use crate::advice::Advice;
use crate::built_in;
use crate::config::StoreUrl;
use crate::desk::Desk;
use crate::error::Error;
use crate::explain::{Explanation, Verdict};
use crate::moment::{micros, span};
use crate::registry::Guard;
use crate::reply::{Meaning, Reply, dialect_of};
use crate::report::{Observation, Throttle};
use crate::request::{Request, key_on};
use crate::reserving::Reserving;
use crate::shared::units::check_stated;
use crate::shared::{PATIENCE, Shared};
use crate::status::{Pause, PoolStatus};
use crate::tap::Tap;

/// One shared quota. Clones are the same pool; it may be used from any thread.
#[derive(Clone)]
pub struct Pool {
    tap: Arc<Tap>,
    name: PoolName,
}

impl Pool {
    pub(crate) const fn new(tap: Arc<Tap>, name: PoolName) -> Self {
        Self { tap, name }
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &PoolName {
        &self.name
    }

    /// Asks for a call to be admitted. Nothing happens until the answer is awaited, or
    /// [`Reserving::blocking`] is called.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Error, Limit, Request, Rule, Standpipe};
    /// # fn main() -> Result<(), Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// use std::time::Duration;
    ///
    /// let pool = tap.pool("doc/reserve")?;
    /// pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })])?;
    /// let _first = pool.reserve(Request::by("blog")).blocking()?;
    ///
    /// let second = pool.reserve(Request::by("blog").timeout(Duration::ZERO)).blocking();
    /// assert!(matches!(second, Err(Error::Refused(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn reserve(&self, request: Request) -> Reserving {
        Reserving::new(self.clone(), request)
    }

    /// Whether a request can be understood on a pool that is given these limits besides those it
    /// has. Changes nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it cannot: what is wrong, and what to do.
    pub fn check(&self, request: &Request, limits: &[Limit]) -> Result<(), Error> {
        let reserve = request.resolve(&self.name, self.dialect(), self.tap.agent())?;
        let limits = [limits, self.own_limits()].concat();
        let stated = check_stated(&reserve.cost, &limits, &self.name);
        if stated.is_ok() || !self.tap.guard()?.shared().store().pools()?.contains(&self.name) {
            return stated;
        }
        let (shared, desk) = self.present()?;
        shared.check_units(&desk, &reserve.cost, &limits, None)
    }

    /// What a request would be answered now. Changes nothing.
    ///
    /// # Errors
    /// When the request cannot be understood, the pool has no limits, or the store cannot be read.
    pub fn peek(&self, request: &Request) -> Result<Verdict, Error> {
        let (shared, desk) = self.present()?;
        let reserve = self.resolve(&shared, &desk, request)?;
        shared.peek(&desk, &reserve)
    }

    /// What the ledger foresees for such a request, and what can be done about it here.
    pub(crate) fn foresee(&self, request: &Request) -> Result<Option<Advice>, Error> {
        let (shared, desk) = self.present()?;
        let reserve = self.resolve(&shared, &desk, request)?;
        let told = shared.read(&desk, |state, now, _| state.advise(&reserve, now.store))?;
        Ok(told.as_ref().map(Advice::of))
    }

    /// The admission rule step by step for a request. Changes nothing.
    ///
    /// # Errors
    /// As [`Pool::peek`].
    pub fn explain(&self, request: &Request) -> Result<Explanation, Error> {
        let (shared, desk) = self.present()?;
        let reserve = self.resolve(&shared, &desk, request)?;
        let mut told = shared.explain(&desk, &reserve)?;
        if told.advice.is_some() {
            told.advice = self.advise(request)?;
        }
        Ok(told)
    }

    /// How the pool stands: limits, who holds what, who waits for what and until when.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn status(&self) -> Result<PoolStatus, Error> {
        let (shared, desk) = self.ready()?;
        let provider = self.tap.settings().pools.get(&self.name);
        let provider = provider.and_then(|pool| pool.provider.clone());
        shared.status(&desk, provider)
    }

    /// Gives the pool limits from code. They count only for pools that no file configures; between
    /// processes the stricter wins, limit by limit. The answer says what came of it.
    ///
    /// All else is as for a pool in a file: see [`Pool::change`] to say more.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the limits cannot be used, and when the store cannot be reached.
    pub fn limit(&self, limits: Vec<Limit>) -> Result<Configured, Error> {
        if limits.is_empty() {
            let what = format!("`{}` is given no limit", self.name);
            return Err(Error::invalid(what, "give it at least one, for example parallel = 5"));
        }
        self.tell_config(Source::Code, self.usual(limits))
    }

    /// Changes the pool at run time. This is newer than whatever is there; what was used stays.
    ///
    /// # Errors
    /// As [`Pool::limit`].
    pub fn change(&self, config: PoolConfig) -> Result<Configured, Error> {
        self.tell_config(Source::Change, config)
    }

    /// What came of the file's configuration for this pool; none if no file configures it.
    /// [`Configured::Kept`] means that another process has a newer one, which counts.
    ///
    /// # Errors
    /// When the store cannot be reached, or the configuration cannot be used.
    pub fn configured(&self) -> Result<Option<Configured>, Error> {
        let guard = self.tap.guard()?;
        let desk = guard.shared().desk(&self.name)?;
        self.configure_from_file(PATIENCE, &guard, &desk)
    }

    /// What the pool is configured with, whoever said it; none while nobody did.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn config(&self) -> Result<Option<PoolConfig>, Error> {
        let (shared, desk) = self.ready()?;
        shared.read(&desk, |state, _, _| state.facts().config.clone())
    }

    /// How long its leases live by themselves where nothing else is said.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn lease_ttl(&self) -> Result<Duration, Error> {
        const USUAL: Duration = Duration::from_secs(600);
        let (shared, desk) = self.present()?;
        let said = |state: &State| state.facts().config.as_ref().map(|config| config.lease_ttl);
        Ok(shared.find(&desk, said)?.map_or(USUAL, micros))
    }

    /// No call is admitted for so long, by anybody. A running pause is never shortened by this.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn pause(&self, length: Duration) -> Result<(), Error> {
        self.tell(Action::Pause { length: span(length) })
    }

    /// The pause that runs, if one does.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn paused(&self) -> Result<Option<Pause>, Error> {
        let (shared, desk) = self.present()?;
        shared.read(&desk, |state, now, _| Pause::of(state.facts().pause?, now))
    }

    /// Lifts a pause, and the provider's word that ended everything.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn resume(&self) -> Result<(), Error> {
        self.tell(Action::Resume)?;
        self.tap.guard()?.shared().unpin(self.tap.graph(), &self.name);
        Ok(())
    }

    /// The provider refused a call.
    ///
    /// # Errors
    /// [`Error::LeaseGone`] when it names a lease that has ended; the refusal counts all the same.
    pub fn throttle(&self, throttle: &Throttle) -> Result<(), Error> {
        let (shared, desk) = self.present()?;
        shared.throttle(&desk, throttle, self.tap.graph())
    }

    /// A provider's answer that belongs to no lease here: what it says of limits is believed, and a
    /// refusal pauses the pool. Answers what it meant, and of how many limits it spoke.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn heard(&self, reply: &Reply, agent: Option<&str>) -> Result<(Meaning, usize), Error> {
        let (shared, desk) = self.present()?;
        let read = reply.read(self.dialect(), &self.name);
        shared.note_headers(&self.name, reply);
        shared.heard(&desk, agent, &read, self.tap.graph())?;
        let limits = read.limits();
        Ok((read.meaning, limits))
    }

    /// What a provider's answer means on this pool. Changes nothing.
    #[must_use]
    pub fn meaning_of(&self, reply: &Reply) -> Meaning {
        reply.read(self.dialect(), &self.name).meaning
    }

    /// The provider said how its limits stand.
    ///
    /// # Errors
    /// When the lease it names is on another pool, or the store cannot be reached.
    pub fn observe(&self, observation: &Observation) -> Result<(), Error> {
        let (shared, desk) = self.present()?;
        let lease = observation.lease.as_ref();
        let key = lease.map(|lease| key_on(&self.name, lease)).transpose()?;
        if observation.readings.is_empty() {
            return Ok(());
        }
        let readings = observation.readings.clone();
        let observed = Observed { lease: key, readings };
        shared.settle(&desk, vec![Action::Observed(observed)]).map(drop)
    }

    /// Extends every lease of that agent which lives by itself. Answers how many there are.
    ///
    /// # Errors
    /// When the store cannot be reached.
    pub fn heartbeat_agent(&self, agent: &AgentName) -> Result<usize, Error> {
        let (shared, desk) = self.present()?;
        shared.beat_for(&desk, agent)
    }

    /// Everything the ledger knows of the pool, as it is kept, for people to look into.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn dump(&self) -> Result<String, Error> {
        let guard = self.tap.guard()?;
        let desk = guard.shared().desk(&self.name)?;
        guard.shared().read(&desk, |state, _, _| format!("{:#?}", state.facts()))
    }

    /// Begins the pool anew as if nobody had ever used it. Who uses it now puts back what it holds.
    /// Answers whether there was such a pool.
    ///
    /// # Errors
    /// When the store is not the file store, or the pool's file cannot be removed.
    pub fn reset(&self) -> Result<bool, Error> {
        let guard = self.tap.guard()?;
        let was_there = guard.shared().engine().reset(&self.name)?;
        guard.shared().desk(&self.name)?.forget_told();
        Ok(was_there)
    }

    /// Moves the pool, which nobody uses, to another directory.
    ///
    /// # Errors
    /// When either store is not a file store, the pool is not there or in use, or the other store
    /// has one of that name.
    pub fn move_to(&self, to: &StoreUrl) -> Result<(), Error> {
        let guard = self.tap.guard()?;
        let target = crate::tap::open::target(to, self.tap.settings())?;
        guard.shared().engine().move_pool(&self.name, &target)
    }

    /// A request as the ledger takes it, with what holds its agent back elsewhere.
    fn resolve(
        &self,
        shared: &Arc<Shared>,
        desk: &Desk,
        request: &Request,
    ) -> Result<Reserve, Error> {
        let mut reserve = request.resolve(&self.name, self.dialect(), self.tap.agent())?;
        shared.check_units(desk, &reserve.cost, self.own_limits(), None)?;
        if let Some(seen) = shared.pressure(self.tap.graph(), &reserve.agent) {
            reserve.hold = reserve.hold.max(seen.hold);
        }
        Ok(reserve)
    }

    /// Whether its limits can be learned without anybody stating them: its name begins with a
    /// provider we know, and no file says which pools there are.
    #[must_use]
    pub fn learns(&self) -> bool {
        let known = self.dialect() != Dialect::Generic;
        known && self.tap.settings().unknown_pool(&self.name).is_none()
    }

    /// The pool's state as it is now.
    pub(crate) fn read_state<T>(
        &self,
        answer: impl FnOnce(&State, &crate::moment::Now) -> T,
    ) -> Result<T, Error> {
        let (shared, desk) = self.present()?;
        shared.read(&desk, |state, now, _| answer(state, now))
    }

    /// The limits that this process's file gives it.
    pub(crate) fn own_limits(&self) -> &[Limit] {
        self.tap.settings().pools.get(&self.name).map_or(&[], |pool| pool.limits.as_slice())
    }

    /// How its provider writes.
    pub(crate) fn dialect(&self) -> Dialect {
        let settings = self.tap.settings().pools.get(&self.name);
        dialect_of(self.name.as_str(), settings.and_then(|pool| pool.provider.as_deref()))
    }

    pub(crate) fn tap(&self) -> &Arc<Tap> {
        &self.tap
    }

    /// The pool's desk in this process, after the file had its say.
    fn ready(&self) -> Result<(Arc<Shared>, Arc<Desk>), Error> {
        let guard = self.tap.guard()?;
        let desk = guard.shared().desk(&self.name)?;
        self.configure_from_file(PATIENCE, &guard, &desk)?;
        Ok((Arc::clone(guard.shared()), desk))
    }

    /// The desk that answers questions about the pool now: while the store is unavailable, that of
    /// the ledger which stands in for it.
    fn present(&self) -> Result<(Arc<Shared>, Arc<Desk>), Error> {
        let (shared, desk) = self.ready()?;
        let present = desk.present();
        Ok((shared, present))
    }

    /// Tells the pool what the file says of it, once per process.
    pub(crate) fn configure_from_file(
        &self,
        patience: Duration,
        guard: &Guard,
        desk: &Arc<Desk>,
    ) -> Result<Option<Configured>, Error> {
        let settings = self.tap.settings();
        let fallback = settings.pools.get(&self.name).map(|pool| pool.on_store_failure);
        if desk.set_fallback(fallback.unwrap_or_default()) {
            guard.shared().begin_sharing(desk);
        }
        let told = desk.told(self.tap.number());
        if told.is_some() {
            return Ok(told);
        }
        let Some(config) = settings.pool_config(&self.name) else {
            return self.learn_from_provider(patience, guard, desk).map(|()| None);
        };
        let source = settings.source();
        let configured = guard.shared().configure(patience, desk, Configure { source, config })?;
        desk.was_told(self.tap.number(), configured.clone());
        Ok(Some(configured))
    }

    /// A pool of a provider we know needs no file: what its limits are, its answers tell.
    fn learn_from_provider(
        &self,
        patience: Duration,
        guard: &Guard,
        desk: &Arc<Desk>,
    ) -> Result<(), Error> {
        if !self.learns() {
            return Ok(());
        }
        let told = |state: &State| state.facts().config.is_some();
        let configured = if guard.shared().read(desk, |state, _, _| told(state))? {
            Configured::Same
        } else {
            let (source, config) = (Source::Code, self.usual(Vec::new()));
            guard.shared().configure(patience, desk, Configure { source, config })?
        };
        desk.was_told(self.tap.number(), configured);
        Ok(())
    }

    /// These limits, with what is usual on this store.
    fn usual(&self, limits: Vec<Limit>) -> PoolConfig {
        built_in::config(limits, &self.tap.settings().store.clone().unwrap_or_default())
    }

    fn tell_config(&self, source: Source, config: PoolConfig) -> Result<Configured, Error> {
        let (shared, desk) = self.ready()?;
        shared.configure(PATIENCE, &desk, Configure { source, config })
    }

    fn tell(&self, action: Action) -> Result<(), Error> {
        let (shared, desk) = self.ready()?;
        shared.settle(&desk, vec![action]).map(drop)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("name", &self.name).finish_non_exhaustive()
    }
}
