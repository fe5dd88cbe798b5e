//! The operations of a pool, on a thread that may block.
//!
//! Each is the body of the public method of a similar name in `pool.rs`.

use std::sync::Arc;
use std::time::Duration;

use standpipe_core::{
    Action, AgentName, AgentRule, Configure, Configured, Key, Limit, Observed, Order, PoolConfig,
    Priority, Reserve, Source, State,
};

use super::Pool;
use crate::built_in;
use crate::client::registry::StoreHandle;
use crate::client::store_client::SEND_TIMEOUT;
use crate::client::units::{check_stated, without_undeclared};
use crate::client::{PoolClient, StoreClient};
use crate::config::{MAX_ANCESTORS, StoreUrl};
use crate::error::Error;
use crate::lease::{LeaseHandle, Part};
use crate::moment::{micros, span};
use crate::provider::reply::{Meaning, Reply};
use crate::provider::report::{Observation, Throttle};
use crate::request::{Request, agent_name, key_on, limited_units};
use crate::routing::advice::Advice;
use crate::status::{Pause, PoolStatus};

impl Pool {
    pub(crate) fn check_now(&self, request: &Request, limits: &[Limit]) -> Result<(), Error> {
        let reserve = request.resolve(&self.inner.name, self.dialect(), self.inner.tap.agent())?;
        limited_units::check(limits, &reserve.cost)?;
        let limits = [limits, self.own_limits()].concat();
        let stated = check_stated(&reserve.cost, &limits, &self.inner.name);
        if stated.is_ok()
            || !self
                .inner
                .tap
                .store_handle()?
                .store_client()
                .store()
                .pools()?
                .contains(&self.inner.name)
        {
            return stated;
        }
        let (store_client, client) = self.present()?;
        store_client.check_units(&client, &reserve.cost, &limits, None)
    }

    pub(crate) fn read_status(&self) -> Result<PoolStatus, Error> {
        let (handle, client) = self.connect()?;
        match self.configure_from_file(SEND_TIMEOUT, &handle, &client) {
            // A known pool is shown although the store is unavailable.
            Err(Error::Store(error)) if error.is_transient() => {}
            configured => drop(configured?),
        }
        let provider = self.inner.tap.settings().pools.get(&self.inner.name);
        let provider = provider.and_then(|pool| pool.provider.clone());
        handle.store_client().status(&client, provider)
    }

    pub(crate) fn set_limits(&self, limits: Vec<Limit>) -> Result<Configured, Error> {
        if limits.is_empty() {
            let what = format!("`{}` is given no limit", self.inner.name);
            return Err(Error::invalid(what, "give it at least one, for example parallel = 5"));
        }
        self.send_config(Source::Code, self.usual(limits))
    }

    pub(crate) fn set_config(&self, config: PoolConfig) -> Result<Configured, Error> {
        self.send_config(Source::Change, config)
    }

    pub(crate) fn configure(&self) -> Result<Option<Configured>, Error> {
        let (handle, client) = self.connect()?;
        self.configure_from_file(SEND_TIMEOUT, &handle, &client)
    }

    pub(crate) fn read_config(&self) -> Result<Option<PoolConfig>, Error> {
        let (store_client, client) = self.ready()?;
        store_client.read(&client, |state, _, _| state.facts().config.clone())
    }

    /// Returns the time to live of leases, if this process has read the pool's configuration.
    pub(super) fn known_lease_ttl(&self) -> Option<Duration> {
        let (handle, client) = self.connected()?;
        let local = !handle.store_client().store().is_remote();
        let turn = if local { Some(client.short_turn()) } else { client.try_dispatcher() };
        let state = turn.as_ref()?.participant.replica().state();
        state.facts().config.as_ref().map(|config| micros(config.lease_ttl))
    }

    pub(crate) fn read_lease_ttl(&self) -> Result<Duration, Error> {
        const USUAL: Duration = Duration::from_secs(600);
        let (store_client, client) = self.present()?;
        let stated = |state: &State| state.facts().config.as_ref().map(|config| config.lease_ttl);
        Ok(store_client.find(&client, stated)?.map_or(USUAL, micros))
    }

    pub(crate) fn send_pause(&self, agent: &str, length: Duration) -> Result<(), Error> {
        let by = Some(agent_name(agent)?);
        self.send_action(Action::Pause { length: span(length), by })
    }

    pub(crate) fn read_pause(&self) -> Result<Option<Pause>, Error> {
        let (store_client, client) = self.present()?;
        store_client.read(&client, |state, now, _| Pause::of_pool(state, now))
    }

    pub(crate) fn send_resume(&self, agent: &str) -> Result<(), Error> {
        let by = Some(agent_name(agent)?);
        self.send_action(Action::Resume { by })?;
        self.inner
            .tap
            .store_handle()?
            .store_client()
            .clear_backpressure(self.inner.tap.graph(), &self.inner.name);
        Ok(())
    }

    pub(crate) fn send_throttle(&self, throttle: &Throttle) -> Result<(), Error> {
        if let Some(lease) = throttle.lease.as_ref().filter(|lease| !lease.others().is_empty()) {
            key_on(&self.inner.name, lease)?;
            let handle = LeaseHandle::new(Arc::clone(&self.inner.tap), lease.clone());
            // A report to a pool that the caller of the call did not name is about that pool.
            let about = Some(self.inner.name.clone()).filter(|name| name != lease.pool());
            return handle.throttled_on(about, throttle.clone()).blocking();
        }
        let (store_client, parts) = self.present_parts()?;
        let about = store_client.pool_of_refusal(&parts, throttle.kind, throttle.hit.as_ref());
        // A refusal with a lease settles it, which is on this pool.
        let about = if throttle.lease.is_some() { 0 } else { about };
        store_client.throttle(&parts[about].client, throttle, self.inner.tap.graph())
    }

    pub(crate) fn send_reply(
        &self,
        reply: &Reply,
        agent: Option<&str>,
    ) -> Result<(Meaning, usize), Error> {
        let (store_client, parts) = self.present_parts()?;
        let read = reply.read(self.dialect(), &self.inner.name);
        store_client.note_headers(&self.inner.name, reply);
        store_client.observe_reply(&parts, agent, &read, self.inner.tap.graph())?;
        let limits = read.limits();
        Ok((read.meaning, limits))
    }

    pub(crate) fn send_observation(&self, observation: &Observation) -> Result<(), Error> {
        let (store_client, client) = self.present()?;
        let lease = observation.lease.as_ref();
        let key = lease.map(|lease| key_on(&self.inner.name, lease)).transpose()?;
        if observation.readings.is_empty() {
            return Ok(());
        }
        let readings = observation.readings.clone();
        let observed = Observed { lease: key, readings };
        store_client.settle(&client, vec![Action::Observed(observed)]).map(drop)
    }

    pub(crate) fn send_heartbeats(&self, agent: &AgentName) -> Result<usize, Error> {
        let (store_client, client) = self.present()?;
        store_client.beat_for(&client, agent)
    }

    pub(crate) fn read_dump(&self) -> Result<String, Error> {
        let (handle, client) = self.connect()?;
        handle.store_client().read(&client, |state, _, _| format!("{:#?}", state.facts()))
    }

    pub(crate) fn reset_now(&self) -> Result<bool, Error> {
        let handle = self.inner.tap.store_handle()?;
        let was_there = handle.store_client().engine().reset(&self.inner.name)?;
        // A pool that is not open here stays deleted: opening it would create it again.
        if let Some(client) = handle.store_client().open_client(&self.inner.name) {
            client.forget_configured();
        }
        Ok(was_there)
    }

    pub(crate) fn move_now(&self, to: &StoreUrl) -> Result<(), Error> {
        let (handle, name) = (self.inner.tap.store_handle()?, &self.inner.name);
        if self.inner.tap.is_at(to) {
            let what = format!("`{name}` is already in {to}");
            return Err(Error::invalid(what, "there is nothing to move"));
        }
        let target = crate::tap::open::target(to, self.inner.tap.settings())?;
        let remedy =
            format!("delete the copy there: standpipe --store {to} store reset {name} --yes");
        handle.store_client().engine().move_pool(name, &target, &remedy)
    }

    /// Returns a request as the ledger takes it, held back if an agent upstream is throttled.
    pub(super) fn resolve(
        &self,
        store_client: &Arc<StoreClient>,
        client: &PoolClient,
        request: &Request,
    ) -> Result<Reserve, Error> {
        let mut reserve =
            request.resolve(&self.inner.name, self.dialect(), self.inner.tap.agent())?;
        reserve.priority = reserve.priority.or_else(|| self.agent_priority(&reserve.agent));
        if Request::is_part(&reserve, &self.inner.name) {
            let own = self.own_limits();
            let counted = |state: &State| {
                state
                    .facts()
                    .config
                    .is_some()
                    .then(|| without_undeclared(state, &reserve.cost, own))
            };
            let counted = store_client.find(client, counted)?;
            reserve.cost = counted.unwrap_or(reserve.cost);
            return Ok(reserve);
        }
        store_client.check_units(client, &reserve.cost, self.own_limits(), None)?;
        if let Some(seen) = store_client.pressure(self.inner.tap.graph(), &reserve.agent) {
            reserve.hold = reserve.hold.max(seen.hold);
        }
        Ok(reserve)
    }

    /// Reads the pool and returns a view of its state.
    pub(crate) fn read_state<T>(
        &self,
        answer: impl FnOnce(&State, &crate::moment::Now) -> T,
    ) -> Result<T, Error> {
        let (store_client, client) = self.present()?;
        store_client.read(&client, |state, now, _| answer(state, now))
    }

    /// Returns the pool's client in this process, after the file's configuration was sent.
    pub(super) fn ready(&self) -> Result<(Arc<StoreClient>, Arc<PoolClient>), Error> {
        let (handle, client) = self.connect()?;
        self.configure_from_file(SEND_TIMEOUT, &handle, &client)?;
        Ok((Arc::clone(handle.store_client()), client))
    }

    /// Returns the client that answers for the pool now: while the store is unavailable, that of
    /// the offline ledger.
    pub(super) fn present(&self) -> Result<(Arc<StoreClient>, Arc<PoolClient>), Error> {
        let (store_client, client) = self.ready()?;
        let present = client.present();
        Ok((store_client, present))
    }

    /// Returns the clients that answer for the pool and those it lies within, for reports that
    /// belong to no lease.
    fn present_parts(&self) -> Result<(Arc<StoreClient>, Vec<Part>), Error> {
        let (store_client, client) = self.present()?;
        let mut parts = vec![Part { client, key: Key::default() }];
        for above in self.ancestors()? {
            parts.push(Part { client: above.present()?.1, key: Key::default() });
        }
        Ok((store_client, parts))
    }

    /// Returns the pools that this one lies within, nearest first, as the ledgers state it.
    pub(crate) fn ancestors(&self) -> Result<Vec<Self>, Error> {
        let mut chain: Vec<Self> = Vec::new();
        let mut next = self.parent()?;
        while let Some(parent) = next.filter(|_| chain.len() < MAX_ANCESTORS) {
            if parent.name() == self.name() || chain.iter().any(|own| own.name() == parent.name()) {
                break;
            }
            next = parent.parent()?;
            chain.push(parent);
        }
        Ok(chain)
    }

    fn parent(&self) -> Result<Option<Self>, Error> {
        let (store_client, client) = self.present()?;
        let within = |state: &State| Some(state.facts().config.as_ref()?.within.clone());
        let within = store_client.find(&client, within)?.flatten();
        let name = within.and_then(|name| name.as_str().parse().ok());
        Ok(name.map(|name| Self::new(Arc::clone(&self.inner.tap), name)))
    }

    /// Sends the file's configuration to the pool, once per tap.
    pub(crate) fn configure_from_file(
        &self,
        patience: Duration,
        handle: &StoreHandle,
        client: &Arc<PoolClient>,
    ) -> Result<Option<Configured>, Error> {
        self.set_fallback(handle.store_client(), client);
        let settings = self.inner.tap.settings();
        let known = client.configured(self.inner.tap.number());
        if known.is_some() {
            return Ok(known);
        }
        let Some(config) = settings.pool_config(&self.inner.name) else {
            return self.learn_from_provider(patience, handle, client).map(|()| None);
        };
        let source = settings.source();
        let configured =
            handle.store_client().configure(patience, client, Configure { source, config })?;
        client.set_configured(self.inner.tap.number(), configured.clone());
        Ok(Some(configured))
    }

    /// Configures a pool of a known provider that no file declares, so that it learns its limits
    /// from the provider's answers.
    pub(super) fn learn_from_provider(
        &self,
        patience: Duration,
        handle: &StoreHandle,
        client: &Arc<PoolClient>,
    ) -> Result<(), Error> {
        if !self.learns() {
            return Ok(());
        }
        let is_configured = |state: &State| self.has_rules(state);
        let configured =
            if handle.store_client().read(client, |state, _, _| is_configured(state))? {
                Configured::Same
            } else {
                let (source, config) = (Source::Code, self.usual(Vec::new()));
                handle.store_client().configure(patience, client, Configure { source, config })?
            };
        client.set_configured(self.inner.tap.number(), configured);
        Ok(())
    }

    /// Returns a configuration with these limits, the file's rules for agents, and the defaults for
    /// this store.
    pub(crate) fn usual(&self, limits: Vec<Limit>) -> PoolConfig {
        let settings = self.inner.tap.settings();
        let agents = settings.agent_rules(&self.inner.name, &limits, Order::Arrival);
        let config = built_in::config(limits, &settings.store.clone().unwrap_or_default());
        PoolConfig { agents, ..config }
    }

    /// Returns whether the pool has a configuration, with rules for the agents of the file.
    pub(crate) fn has_rules(&self, state: &State) -> bool {
        let Some(config) = &state.facts().config else { return false };
        let is_known = |rule: &AgentRule| config.agents.iter().any(|own| own.name == rule.name);
        self.usual(Vec::new()).agents.iter().all(is_known)
    }

    /// Returns the priority that the file gives an agent on a pool that it does not describe. On
    /// others the ledger has it, with the rest of the pool's configuration.
    pub(crate) fn agent_priority(&self, agent: &AgentName) -> Option<Priority> {
        let agents = &self.inner.tap.settings().agents;
        agents.get(agent).filter(|_| !self.is_declared())?.priority
    }

    pub(super) fn send_config(
        &self,
        source: Source,
        config: PoolConfig,
    ) -> Result<Configured, Error> {
        let (store_client, client) = self.ready()?;
        store_client.configure(SEND_TIMEOUT, &client, Configure { source, config })
    }

    pub(super) fn send_action(&self, action: Action) -> Result<(), Error> {
        let (store_client, client) = self.ready()?;
        store_client.settle(&client, vec![action]).map(drop)
    }

    /// Returns the ledger's advice if it forecasts a long wait for such a request.
    pub(crate) fn forecast(&self, request: &Request) -> Result<Option<Advice>, Error> {
        let (store_client, client) = self.present()?;
        let reserve = self.resolve(&store_client, &client, request)?;
        let advice =
            store_client.read(&client, |state, now, _| state.advise(&reserve, now.store))?;
        Ok(advice.as_ref().map(Advice::of))
    }
}
