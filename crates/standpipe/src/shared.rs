//! What all handles of a process on one store share: the store, the session, a desk per pool, the
//! keeper and the journal's pen.

mod answered;
pub(crate) mod ask;
pub(crate) mod board;
pub(crate) mod glance;
pub(crate) mod units;
pub(crate) mod usage;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Local};

use standpipe_core::{
    Action, AgentName, Answer, Configure, Configured, Key, LeaseAnswer, Outcome, Source, Throttled,
};
use standpipe_store::{Participant, PoolName, Store, StoreError};

use crate::clerk::Clerk;
use crate::desk::{Caller, Desk, Turn, Uptime};
use crate::engine::Engine;
use crate::error::Error;
use crate::journal::{What, Writer};
use crate::keeper::Keeper;
use crate::lease_id::LeaseId;
use crate::moment::{Now, span};
use crate::offline::{HandOver, OfflineFallback, Sharing};
use crate::reply::Reply;
use crate::report::Throttle;
use crate::request::{agent_name, key_on};
use crate::session::Sessions;
use crate::shared::usage::Ended;
use crate::workflow::Graph;

/// What all handles of a process on one store share.
pub(crate) struct Shared {
    store: Arc<dyn Store>,
    engine: Engine,
    sessions: Arc<Sessions>,
    desks: Mutex<BTreeMap<PoolName, Arc<Desk>>>,
    keeper: Keeper,
    clerk: Clerk,
    journal: Arc<Writer>,
    callers: AtomicU64,
    /// What happened to the store and was not asked for yet.
    news: Mutex<Vec<String>>,
}

/// How long a word that nobody waits for in the queue is tried to be sent before its sender hears
/// that the store is away.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// How many sentences about the store are kept for whoever asks.
const NEWS: usize = 64;

/// How long to wait before sending again, at first and at most.
pub(crate) const FIRST_RETRY: Duration = Duration::from_millis(10);
pub(crate) const LAST_RETRY: Duration = Duration::from_millis(500);

impl Shared {
    pub(crate) fn new(engine: Engine) -> Self {
        let store = engine.store();
        Self {
            sessions: Arc::new(Sessions::new(Arc::clone(&store))),
            store,
            engine,
            desks: Mutex::default(),
            keeper: Keeper::default(),
            clerk: Clerk::default(),
            journal: Arc::new(Writer::default()),
            callers: AtomicU64::new(1),
            news: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The store, with what only some can do.
    pub(crate) const fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) const fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    pub(crate) fn clerk(&self) -> &Clerk {
        &self.clerk
    }

    pub(crate) fn journal(&self) -> &Writer {
        &self.journal
    }

    /// What happened to the store is written down, and kept for whoever asks.
    pub(crate) fn hear_news(&self, pool: &PoolName) {
        let news = self.store.take_messages();
        if news.is_empty() {
            return;
        }
        for what in &news {
            self.journal.note(pool, What::Store { what: what.clone() });
        }
        let mut kept = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(news);
        let more = kept.len().saturating_sub(NEWS);
        kept.drain(..more);
    }

    /// People should know this.
    pub(crate) fn report(&self, what: String) {
        self.news.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// What happened to the store since this was last asked.
    pub(crate) fn take_news(&self) -> Vec<String> {
        let mut kept = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        let mut news = std::mem::take(&mut *kept);
        news.extend(self.store.take_messages());
        news
    }

    /// What desks write into the journal with.
    pub(crate) fn pen(&self) -> Arc<Writer> {
        Arc::clone(&self.journal)
    }

    /// A name for somebody who asks.
    pub(crate) fn caller(&self) -> Caller {
        self.callers.fetch_add(1, Ordering::Relaxed)
    }

    /// The desk of a pool. The first to ask for one joins the pool.
    pub(crate) fn desk(&self, pool: &PoolName) -> Result<Arc<Desk>, StoreError> {
        let mut desks = self.lock();
        if let Some(desk) = desks.get(pool) {
            return Ok(Arc::clone(desk));
        }
        let (log, session) = (self.store.log(pool)?, self.sessions.present()?);
        let (sessions, mut last) = (Arc::clone(&self.sessions), None);
        let member = Participant::new(log, move || {
            *last.insert(last.map_or(session, |ended| sessions.after(ended)))
        });
        let store = Arc::clone(&self.store);
        let uptime: Uptime = Arc::new(move || store.uptime());
        let desk = Arc::new(Desk::new(pool.clone(), member, Arc::clone(&self.journal), uptime));
        desks.insert(pool.clone(), Arc::clone(&desk));
        Ok(desk)
    }

    /// All desks, those too that stand in for one whose store is away.
    pub(crate) fn desks(&self) -> Vec<Arc<Desk>> {
        let own: Vec<Arc<Desk>> = self.lock().values().cloned().collect();
        let cut_off: Vec<_> = own.iter().filter_map(|desk| desk.cut_off()).collect();
        own.into_iter().chain(cut_off.iter().map(|place| Arc::clone(&place.desk))).collect()
    }

    /// A lease that lives with this process: somebody has to beat for it.
    pub(crate) fn holds(self: &Arc<Self>, desk: &Desk) {
        desk.hold();
        self.keeper.start(self);
        self.keeper.plan(Local::now() + crate::keeper::BEAT);
    }

    /// A pool that falls back to a share of its limits: this process beats on it from now on, idle
    /// or not, and notes who else is alive there and what each of them uses.
    pub(crate) fn begin_sharing(self: &Arc<Self>, desk: &Desk) {
        let mut counter = desk.counter();
        let sharing = Sharing::begin(&mut counter);
        counter.sharing = Some(sharing);
        drop(counter);
        self.keeper.start(self);
        self.keeper.plan(Local::now() + crate::keeper::BEAT);
    }

    /// Sends these and waits a little for a store that does not answer.
    pub(crate) fn settle(
        self: &Arc<Self>,
        desk: &Desk,
        actions: Vec<Action>,
    ) -> Result<(Vec<Answer>, Now), Error> {
        self.settle_within(PATIENCE, desk, actions)
    }

    fn settle_within(
        self: &Arc<Self>,
        patience: Duration,
        desk: &Desk,
        actions: Vec<Action>,
    ) -> Result<(Vec<Answer>, Now), Error> {
        self.keeper.stand_in(self);
        if let Some(answered) = self.settle_carried(desk, &actions) {
            return answered;
        }
        let caller = self.caller();
        let (deadline, mut pause) = (Local::now() + patience, FIRST_RETRY);
        desk.ask(caller, actions.clone());
        loop {
            let mut counter = desk.counter();
            if let Some(home) = desk.moved_to().filter(|_| !counter.has_answer(caller)) {
                counter.give_up(caller);
                drop(counter);
                return self.settle_within(patience, &home, actions);
            }
            match counter.answer(caller) {
                Ok(outcomes) => {
                    self.hear_news(desk.pool());
                    return Ok((answers(outcomes), counter.now()));
                }
                Err(error) if error.is_transient() => {
                    let answered = self.settle_offline(desk, counter, caller, &actions);
                    if let Some(answered) = answered {
                        return answered;
                    }
                    if Local::now() + pause >= deadline {
                        desk.counter().say_later(caller);
                        self.owes();
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LAST_RETRY);
        }
    }

    /// The store did not answer what is under way. If the pool has a fallback, that answers by now
    /// or soon, and the store learns of it later.
    fn settle_offline(
        self: &Arc<Self>,
        desk: &Desk,
        mut counter: Turn<'_>,
        caller: Caller,
        actions: &[Action],
    ) -> Option<Result<(Vec<Answer>, Now), Error>> {
        if !desk.falls_back() {
            return None;
        }
        self.owes();
        let home = self.desk(desk.pool()).ok()?;
        OfflineFallback::of(self, &home, &mut counter, || None);
        drop(counter);
        let answered = self.answer_carried(desk, actions)?;
        desk.counter().say_later(caller);
        Some(answered)
    }

    /// While the store is unavailable, what is said about a call that it admitted earlier is
    /// answered by the ledger that stands in for it, which has that call too, and is sent when
    /// the store takes writes again. None if there is no such ledger or call.
    fn settle_carried(
        self: &Arc<Self>,
        desk: &Desk,
        actions: &[Action],
    ) -> Option<Result<(Vec<Answer>, Now), Error>> {
        let answered = self.answer_carried(desk, actions)?;
        for action in actions {
            desk.leave_word(action.clone());
        }
        self.owes();
        Some(answered)
    }

    fn answer_carried(
        &self,
        desk: &Desk,
        actions: &[Action],
    ) -> Option<Result<(Vec<Answer>, Now), Error>> {
        let place = desk.cut_off()?;
        let lease = actions.iter().find_map(lease_of)?;
        let mut counter = place.desk.counter();
        let known = counter.member.replica().state().facts().leases.contains_key(&lease);
        // While its counter is held, that ledger cannot be given up.
        if !known || place.desk.moved_to().is_some() {
            return None;
        }
        let caller = self.caller();
        place.desk.ask(caller, actions.to_vec());
        let answered = counter.answer(caller).map(|outcomes| (answers(outcomes), counter.now()));
        Some(answered.map_err(Error::from))
    }

    /// Sends this; if the store does not answer, the keeper sends it later. Across a network it
    /// does not even wait to see.
    pub(crate) fn tell(self: &Arc<Self>, desk: &Arc<Desk>, action: Action) {
        if self.settle_carried(desk, std::slice::from_ref(&action)).is_some() {
            return;
        }
        desk.leave_word(action);
        if let Some(home) = desk.moved_to() {
            desk.forward_words(&home);
            self.owes();
            return;
        }
        if self.store.is_remote() && self.clerk.send(self, desk) {
            return;
        }
        if desk.counter().flush().is_err() {
            self.owes();
        }
    }

    /// Something about a lease. One that has ended is an error.
    pub(crate) fn about_lease(
        self: &Arc<Self>,
        desk: &Desk,
        lease: &LeaseId,
        action: Action,
    ) -> Result<(LeaseAnswer, Now), Error> {
        let (answers, now) = self.settle(desk, vec![action])?;
        match answers.into_iter().next() {
            Some(Answer::Lease(answer)) if answer != LeaseAnswer::Gone => Ok((answer, now)),
            _ => Err(Error::LeaseGone { lease: lease.clone() }),
        }
    }

    /// The provider refused a call.
    pub(crate) fn throttle(
        self: &Arc<Self>,
        desk: &Desk,
        throttle: &Throttle,
        graph: &Graph,
    ) -> Result<(), Error> {
        let lease = throttle.lease.as_ref();
        let key = lease.map(|lease| key_on(desk.pool(), lease)).transpose()?;
        let agent = match (throttle.agent.as_deref(), key) {
            (Some(agent), _) => Some(agent_name(agent)?),
            (None, Some(key)) => self.agent_of(desk, key)?,
            (None, None) => None,
        };
        let millis = |length: Duration| u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.journal.note(
            desk.pool(),
            What::Throttle {
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
        let known = key.and_then(|key| self.call_of(desk, key));
        let throttled = Throttled { lease: key, agent, kind, retry_after, hit };
        let (answers, _) = self.settle(desk, vec![Action::Throttled(throttled)])?;
        match &known {
            Some(known) => self.note_ended(desk, known.call(), Ended::by_refusal(kind)),
            None => self.note_refused(desk, upstream.as_ref().map(AgentName::as_str), kind),
        }
        if let Some(agent) = upstream {
            self.pin(graph, desk, &agent);
        }
        match (lease, answers.first()) {
            (Some(lease), Some(Answer::Lease(LeaseAnswer::Gone))) => {
                Err(Error::LeaseGone { lease: lease.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whose call a lease is, while it is in flight.
    pub(crate) fn agent_of(
        self: &Arc<Self>,
        desk: &Desk,
        lease: Key,
    ) -> Result<Option<AgentName>, Error> {
        self.find(desk, |state| {
            let facts = state.facts();
            let lease = facts.leases.get(&lease)?;
            Some(facts.agents.get(usize::from(lease.agent))?.name.clone())
        })
    }

    /// Tells the pool about itself.
    pub(crate) fn configure(
        self: &Arc<Self>,
        patience: Duration,
        desk: &Desk,
        configure: Configure,
    ) -> Result<Configured, Error> {
        let source = match configure.source {
            Source::File { .. } => "file",
            Source::Code => "code",
            Source::Change => "change",
        };
        let action = Action::Configure(Box::new(configure));
        let (answers, _) = self.settle_within(patience, desk, vec![action])?;
        let Some(Answer::Configured(configured)) = answers.into_iter().next() else {
            return Err(StoreError::transient("the store did not say what came of it").into());
        };
        let result = match &configured {
            Configured::Applied => "applied",
            Configured::Kept => "kept",
            Configured::Same => return Ok(configured),
            Configured::Invalid(wrong) => {
                let what = format!("`{}` cannot be limited so", desk.pool());
                return Err(Error::invalid(what, wrong.to_string()));
            }
        };
        let (result, source) = (result.to_owned(), source.to_owned());
        self.journal.note(desk.pool(), What::Config { result, source });
        Ok(configured)
    }

    /// Writes down which headers spoke of limits.
    pub(crate) fn note_headers(&self, pool: &PoolName, reply: &Reply) {
        let headers = reply.headers_of_limits();
        if !headers.is_empty() {
            self.journal.note(pool, What::Observe { lease: None, headers });
        }
    }

    /// The keeper sends what is owed, as soon as it can.
    pub(crate) fn owes(self: &Arc<Self>) {
        self.keeper.start(self);
        self.keeper.plan(Local::now() + LAST_RETRY);
    }

    /// The last handle goes: what is owed is sent, the sessions end, the journal is written.
    pub(crate) fn shut_down(&self) {
        self.keeper.stop();
        self.clerk.stop();
        let mut all_said = true;
        let own: Vec<Arc<Desk>> = self.lock().values().cloned().collect();
        for desk in own {
            let mut counter = desk.counter();
            while let Some(place) = desk.cut_off()
                && place.hand_over(self, &desk, &mut counter) == HandOver::More
            {}
            all_said &= desk.cut_off().is_none();
        }
        for desk in self.desks() {
            let mut pause = FIRST_RETRY;
            while let Err(error) = desk.counter().flush()
                && error.is_transient()
            {
                // Who waits for this process to end has its answer; others will see it end.
                if pause >= LAST_RETRY / 4 || error.is_unsent() {
                    all_said = false;
                    break;
                }
                std::thread::sleep(pause);
                pause *= 2;
            }
        }
        if all_said {
            self.sessions.end();
        }
        self.journal.close();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PoolName, Arc<Desk>>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lease that something is said about.
const fn lease_of(action: &Action) -> Option<Key> {
    match action {
        Action::Commit(commit) => Some(commit.lease),
        Action::Cancel { lease } => Some(*lease),
        Action::Heartbeat { lease, .. } => *lease,
        Action::Throttled(throttled) => throttled.lease,
        _ => None,
    }
}

fn answers(outcomes: Vec<Outcome>) -> Vec<Answer> {
    outcomes.into_iter().map(|outcome| outcome.answer).collect()
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("store", &self.store).finish_non_exhaustive()
    }
}
