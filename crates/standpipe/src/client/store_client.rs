//! What all handles of a process on one store share: the store, its sessions, one [`PoolClient`]
//! per pool, the maintenance thread and the writer of the journal.
//!
//! An action that was submitted is sent even if its caller gives up on a store that does not
//! answer: with the next step, or by the maintenance thread. Read `pool_client` and `dispatcher`
//! next.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Local};

use standpipe_core::{
    Action, AgentName, Answer, Configure, Configured, Key, LeaseAnswer, Outcome, Source, Throttled,
};
use standpipe_store::{Participant, PoolName, Store, StoreError};

use super::io_worker::IoWorker;
use super::{CallerId, PoolClient, Uptime};
use crate::client::engine::Engine;
use crate::client::session::Sessions;
use crate::client::usage::Ended;
use crate::error::Error;
use crate::journal::{EventData, Writer};
use crate::maintenance::Maintenance;
use crate::moment::span;
use crate::offline::{HandOver, Sharing};
use crate::provider::reply::Reply;
use crate::provider::report::Throttle;
use crate::request::{agent_name, key_on};
use crate::routing::backpressure_log::LOG_POOL;
use crate::routing::workflow::Graph;

/// What all handles of a process on one store share.
pub(crate) struct StoreClient {
    store: Arc<dyn Store>,
    engine: Engine,
    sessions: Arc<Sessions>,
    clients: Mutex<BTreeMap<PoolName, Arc<PoolClient>>>,
    maintenance: Maintenance,
    /// The thread that blocks for operations on no pool, or on one that is not open yet.
    worker: Arc<IoWorker>,
    journal: Arc<Writer>,
    callers: AtomicU64,
    /// Messages about the store that no caller has taken yet.
    messages: Mutex<Vec<String>>,
}

/// How long [`StoreClient::settle`] retries before it returns that the store is unavailable.
pub(crate) const SEND_TIMEOUT: Duration = Duration::from_secs(2);

/// How many messages about the store are kept until a caller takes them.
const MAX_MESSAGES: usize = 64;

/// How long to wait before sending again, at first and at most.
pub(crate) const FIRST_RETRY: Duration = Duration::from_millis(10);
pub(crate) const LAST_RETRY: Duration = Duration::from_millis(500);

impl StoreClient {
    pub(crate) fn new(engine: Engine) -> Self {
        let store = engine.store();
        Self {
            sessions: Arc::new(Sessions::new(Arc::clone(&store))),
            store,
            engine,
            clients: Mutex::default(),
            maintenance: Maintenance::default(),
            worker: Arc::default(),
            journal: Arc::new(Writer::default()),
            callers: AtomicU64::new(1),
            messages: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the engine, with the operations that only some stores support.
    pub(crate) const fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) const fn maintenance(&self) -> &Maintenance {
        &self.maintenance
    }

    pub(crate) const fn worker(&self) -> &Arc<IoWorker> {
        &self.worker
    }

    pub(crate) fn journal(&self) -> &Writer {
        &self.journal
    }

    /// Writes the store's messages to the journal, and keeps them for
    /// [`StoreClient::take_messages`].
    pub(crate) fn journal_messages(&self, pool: &PoolName) {
        let messages = self.store.take_messages();
        if messages.is_empty() {
            return;
        }
        for message in &messages {
            // The client of one pool may take a message about another.
            let about = message.pool.as_ref().unwrap_or(pool);
            self.journal.note(about, EventData::Store { what: message.text.clone() });
        }
        let mut kept = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(messages.into_iter().map(|message| message.text));
        let more = kept.len().saturating_sub(MAX_MESSAGES);
        kept.drain(..more);
    }

    /// Adds a message for the operator.
    pub(crate) fn report(&self, what: String) {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Returns the messages about the store since the last call.
    pub(crate) fn take_messages(&self) -> Vec<String> {
        let mut kept = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        let mut messages = std::mem::take(&mut *kept);
        messages.extend(self.store.take_messages().into_iter().map(|message| message.text));
        messages
    }

    /// Returns the journal's writer, which every pool client shares.
    pub(crate) fn journal_writer(&self) -> Arc<Writer> {
        Arc::clone(&self.journal)
    }

    /// Returns an id for a caller, unique in this process.
    pub(crate) fn caller(&self) -> CallerId {
        self.callers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the client of a pool. The first call for a pool opens its log and joins it.
    pub(crate) fn client(&self, pool: &PoolName) -> Result<Arc<PoolClient>, StoreError> {
        let mut clients = self.lock();
        if let Some(client) = clients.get(pool) {
            return Ok(Arc::clone(client));
        }
        let (log, session) = (self.store.log(pool)?, self.sessions.present()?);
        let (sessions, mut last) = (Arc::clone(&self.sessions), None);
        let participant = Participant::new(log, move || {
            *last.insert(last.map_or(session, |ended| sessions.after(ended)))
        });
        let store = Arc::clone(&self.store);
        let uptime: Uptime = Arc::new(move || store.uptime());
        let client = Arc::new(PoolClient::new(
            pool.clone(),
            participant,
            Arc::clone(&self.journal),
            uptime,
            self.store.is_remote(),
        ));
        clients.insert(pool.clone(), Arc::clone(&client));
        Ok(client)
    }

    /// Returns all pool clients, with those of offline ledgers.
    pub(crate) fn clients(&self) -> Vec<Arc<PoolClient>> {
        let own: Vec<Arc<PoolClient>> = self.lock().values().cloned().collect();
        let offline: Vec<_> = own.iter().filter_map(|client| client.offline()).collect();
        own.into_iter().chain(offline.iter().map(|fallback| Arc::clone(&fallback.client))).collect()
    }

    /// Counts a lease that lives with this process, and starts the heartbeats that keep it alive.
    pub(crate) fn lease_began(self: &Arc<Self>, client: &PoolClient) {
        client.lease_began();
        self.maintenance.start_for_lease(self);
        self.maintenance.plan(Local::now() + crate::maintenance::BEAT);
    }

    /// Prepares a pool that falls back to a share of its limits. From now on this process sends
    /// heartbeats even while it is idle, and records which sessions are alive there and what each
    /// of them uses.
    pub(crate) fn begin_sharing(self: &Arc<Self>, client: &PoolClient) {
        let mut dispatcher = client.dispatcher();
        let sharing = Sharing::begin(&mut dispatcher);
        dispatcher.sharing = Some(sharing);
        drop(dispatcher);
        self.maintenance.start(self);
        self.maintenance.plan(Local::now() + crate::maintenance::BEAT);
    }

    /// Reports that the provider refused a call.
    pub(crate) fn throttle(
        self: &Arc<Self>,
        client: &PoolClient,
        throttle: &Throttle,
        graph: &Graph,
    ) -> Result<(), Error> {
        let lease = throttle.lease.as_ref();
        let key = lease.map(|lease| key_on(client.pool(), lease)).transpose()?;
        let agent = match (throttle.agent.as_deref(), key) {
            (Some(agent), _) => Some(agent_name(agent)?),
            (None, Some(key)) => self.agent_of(client, key)?,
            (None, None) => None,
        };
        let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.journal.note(
            client.pool(),
            EventData::Throttle {
                agent: agent.as_ref().map(ToString::to_string),
                lease: lease.map(ToString::to_string),
                about: throttle.kind.as_str().to_owned(),
                retry_after_ms: throttle.retry_after.map(millis),
                said: None,
            },
        );
        let retry_after = throttle.retry_after.map(span);
        let (kind, hit) = (throttle.kind, throttle.hit.clone());
        let upstream = agent.clone();
        let known = key.and_then(|key| self.call_of(client, key));
        let throttled = Throttled { lease: key, agent, kind, retry_after, hit };
        let (answers, _) = self.settle(client, vec![Action::Throttled(throttled)])?;
        match &known {
            Some(known) => self.note_ended(client, known.call(), Ended::by_refusal(kind)),
            None => self.note_refused(client, upstream.as_ref().map(AgentName::as_str), kind),
        }
        if let Some(agent) = upstream {
            self.record_backpressure(graph, client, &agent);
        }
        match (lease, answers.first()) {
            (Some(lease), Some(Answer::Lease(LeaseAnswer::Gone))) => {
                Err(Error::LeaseGone { lease: lease.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the agent of a lease while it is in flight.
    pub(crate) fn agent_of(
        self: &Arc<Self>,
        client: &PoolClient,
        lease: Key,
    ) -> Result<Option<AgentName>, Error> {
        self.find(client, |state| {
            let facts = state.facts();
            let lease = facts.leases.get(&lease)?;
            Some(facts.agents.get(usize::from(lease.agent))?.name.clone())
        })
    }

    /// Sends a configuration to a pool and returns what the pool made of it.
    pub(crate) fn configure(
        self: &Arc<Self>,
        patience: Duration,
        client: &PoolClient,
        configure: Configure,
    ) -> Result<Configured, Error> {
        let source = source_name(&configure.source);
        let action = Action::Configure(Box::new(configure));
        let (answers, _) = self.settle_within(patience, client, vec![action])?;
        let Some(Answer::Configured(configured)) = answers.into_iter().next() else {
            let what = "the store did not return the result of the configuration";
            return Err(StoreError::transient(what).into());
        };
        if let Configured::Invalid(wrong) = &configured {
            return Err(crate::pool::invalid_config(client.pool(), wrong));
        }
        self.journal_configured(client.pool(), &configured, source);
        Ok(configured)
    }

    /// Writes to the journal what a pool made of a configuration, if that changed something.
    pub(crate) fn journal_configured(&self, pool: &PoolName, result: &Configured, source: &str) {
        let result = match result {
            Configured::Applied => "applied",
            Configured::Kept => "kept",
            Configured::Same | Configured::Invalid(_) => return,
        };
        let (result, source) = (result.to_owned(), source.to_owned());
        self.journal.note(pool, EventData::Config { result, source });
    }

    /// Writes the headers about limits to the journal.
    pub(crate) fn note_headers(&self, pool: &PoolName, reply: &Reply) {
        let headers = reply.headers_of_limits();
        if !headers.is_empty() {
            self.journal.note(pool, EventData::Observe { lease: None, headers });
        }
    }

    /// Makes the maintenance thread send what is pending.
    pub(crate) fn schedule_resend(self: &Arc<Self>) {
        self.maintenance.start(self);
        self.maintenance.plan(Local::now() + LAST_RETRY);
    }

    /// Returns the pools that this process has read.
    pub(crate) fn known_pools(&self) -> Vec<PoolName> {
        let clients: Vec<Arc<PoolClient>> = self.lock().values().cloned().collect();
        let known = clients.iter().filter(|client| client.dispatcher().read_at().is_some());
        let names = known.map(|client| client.pool().clone());
        names.filter(|name| name.as_str() != LOG_POOL).collect()
    }

    /// Returns the client of a pool, if the pool is open.
    pub(crate) fn open_client(&self, pool: &PoolName) -> Option<Arc<PoolClient>> {
        self.lock().get(pool).cloned()
    }

    /// Returns whether something is pending on a pool, or a step is under way there.
    pub(crate) fn has_pending(&self) -> bool {
        self.clients()
            .iter()
            .any(|client| client.try_dispatcher().is_none_or(|dispatcher| dispatcher.has_unsent()))
    }

    /// Sends everything that is pending on every pool.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        self.clients().iter().try_for_each(|client| client.dispatcher().flush())
    }

    /// Sends what is pending, ends the sessions and closes the journal. Called when the last handle
    /// is dropped.
    pub(crate) fn shut_down(&self) {
        self.maintenance.stop();
        self.worker.stop();
        for client in self.lock().values() {
            client.worker().stop();
        }
        let mut all_sent = true;
        let own: Vec<Arc<PoolClient>> = self.lock().values().cloned().collect();
        for client in own {
            let mut dispatcher = client.dispatcher();
            while let Some(fallback) = client.offline()
                && fallback.hand_over(self, &client, &mut dispatcher) == HandOver::More
            {
            }
            all_sent &= client.offline().is_none();
        }
        for client in self.clients() {
            let mut pause = FIRST_RETRY;
            while let Err(error) = client.dispatcher().flush()
                && error.is_transient()
            {
                // A process that ends must not hang. What is not sent, others settle when they find
                // that its session ended.
                if pause >= LAST_RETRY / 4 || error.is_unsent() {
                    all_sent = false;
                    break;
                }
                std::thread::sleep(pause);
                pause *= 2;
            }
        }
        if all_sent {
            self.sessions.end();
        }
        self.journal.close();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PoolName, Arc<PoolClient>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name of a configuration's source in the journal.
pub(crate) const fn source_name(source: &Source) -> &'static str {
    match source {
        Source::File { .. } => "file",
        Source::Code => "code",
        Source::Change => "change",
    }
}

pub(crate) fn answers(outcomes: Vec<Outcome>) -> Vec<Answer> {
    outcomes.into_iter().map(|outcome| outcome.answer).collect()
}

impl fmt::Debug for StoreClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreClient").field("store", &self.store).finish_non_exhaustive()
    }
}
