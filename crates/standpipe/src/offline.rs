//! The offline ledger of a pool, which decides in this process while the store takes no writes.
//!
//! It is a small ledger in memory behind a [`PoolClient`] of its own. With `share` its limits are
//! those of the pool divided by the largest number of sessions that were alive lately (`alive.rs`,
//! `share.rs`), and it begins with the usage and the leases of this process (`charges.rs`,
//! `opening.rs`); with `open` it only counts. When a write succeeds, what was admitted here is
//! handed over (`outbox.rs`): leases in flight are restored in the store, above the limit if need
//! be, and usage counts there from then on.
//!
//! Invariant: a later outage begins with what an earlier one admitted, because that is among the
//! charges of this process by then; so a store that fails repeatedly grants no second share.

mod alive;
mod charges;
mod opening;
mod outbox;
mod share;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use standpipe_core::{
    Action, Amounts, Configure, Event, Instant, Key, Outcome, PoolConfig, Source, Span, State,
};
use standpipe_store::participant::{Observer, random_session};
use standpipe_store::{Clock, Log, MemoryLog, Participant};

use self::alive::AliveSessions;
use self::charges::SessionCharges;
use self::opening::{LastRead, Replay, opening, own_leases};
use self::outbox::Outbox;
use self::share::share_of;
use crate::client::store_client::StoreClient;
use crate::client::{Dispatcher, PoolClient, Uptime};
use crate::config::StoreFailure;
use crate::journal::EventData;
use crate::moment::span;
use crate::status::OfflineStatus;

/// How long a store may take no writes before it counts as unavailable.
const OUTAGE_AFTER: Duration = Duration::from_secs(1);

/// A process takes a share only if the store took a write of it within this long before the outage:
/// then the others counted it as alive.
const FRESH: Duration = Duration::from_secs(60);

/// How many actions are handed over in one step.
const BATCH: usize = 256;

/// What a share is computed from, kept up to date while the store is available.
pub(crate) struct Sharing {
    alive: AliveSessions,
    charges: Arc<Mutex<SessionCharges>>,
}

/// The offline ledger of a pool.
pub(crate) struct OfflineFallback {
    pub(crate) client: Arc<PoolClient>,
    mode: StoreFailure,
    /// The number of processes that share the limits.
    among: u64,
    since: Duration,
    uptime: Uptime,
    outbox: Arc<Mutex<Outbox>>,
}

/// The progress of a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOver {
    /// The store takes no writes.
    Unavailable,
    /// There is more to hand over.
    More,
    /// The store has everything and decides again.
    Done,
}

impl Sharing {
    /// Begins to observe who uses a pool.
    pub(crate) fn begin(dispatcher: &mut Dispatcher) -> Self {
        let charges = Arc::<Mutex<SessionCharges>>::default();
        dispatcher.participant.observe_with(Box::new(Recorder(Arc::clone(&charges))));
        Self { alive: AliveSessions::default(), charges }
    }

    /// Records how many sessions are alive as of the last contact with the store.
    pub(crate) fn sample(&mut self, state: &State, at: Instant, uptime: Duration) {
        let facts = state.facts();
        self.alive.sample(uptime, alive::alive(facts, at).len() as u64);
        locked(&self.charges).prune(facts, at);
    }
}

impl OfflineFallback {
    /// Returns the offline ledger of a pool whose store is unavailable, and creates it if need be;
    /// `None` if calls have to wait for the store. `stated` is the configuration that this process
    /// has for the pool.
    pub(crate) fn of(
        store_client: &Arc<StoreClient>,
        home: &Arc<PoolClient>,
        dispatcher: &mut Dispatcher,
        stated: impl FnOnce() -> Option<PoolConfig>,
    ) -> Option<Arc<Self>> {
        let mode = home.fallback();
        let since = dispatcher.contact.silent_since()?;
        let unavailable = dispatcher.contact.now().saturating_sub(since) >= OUTAGE_AFTER;
        if mode == StoreFailure::Closed || !unavailable {
            return None;
        }
        let mut present = home.lock_offline();
        if present.is_none() {
            *present = Self::begin(store_client, home, dispatcher, stated, mode).map(Arc::new);
        }
        present.clone()
    }

    fn begin(
        store_client: &Arc<StoreClient>,
        home: &Arc<PoolClient>,
        dispatcher: &mut Dispatcher,
        stated: impl FnOnce() -> Option<PoolConfig>,
        mode: StoreFailure,
    ) -> Option<Self> {
        if dispatcher.participant.replica().state().facts().terminal.is_some() {
            return None;
        }
        let (config, among, replay) = match mode {
            StoreFailure::Share => begin_share(dispatcher)?,
            _ => begin_open(dispatcher, stated)?,
        };
        let outbox = Arc::new(Mutex::new(Outbox::new(&config)));
        let uptime = dispatcher.contact.uptime();
        let participant = ledger(dispatcher, config, replay, &outbox, &uptime)?;
        let client = PoolClient::new_offline(
            home,
            participant,
            store_client.journal_writer(),
            Arc::clone(&uptime),
        );
        let what = match mode {
            StoreFailure::Share => format!(
                "the store is unavailable; each of {among} processes admits its share of the limits"
            ),
            _ => "the store is unavailable; calls are admitted without limit".to_owned(),
        };
        tracing::warn!(pool = %home.pool(), "{what}");
        store_client.journal().note(home.pool(), EventData::Store { what });
        // The maintenance thread finds out when the store takes writes again.
        store_client.schedule_resend();
        let since = uptime();
        Some(Self { client: Arc::new(client), mode, among, since, uptime, outbox })
    }

    pub(crate) fn status(&self) -> OfflineStatus {
        OfflineStatus {
            for_ms: u64::try_from(self.outage_length().as_millis()).unwrap_or(u64::MAX),
            mode: self.mode.into(),
            among: self.among,
        }
    }

    /// Records the cost of a call that was admitted here, estimates included.
    pub(crate) fn note_cost(&self, lease: Key, cost: &Amounts) {
        locked(&self.outbox).note_cost(lease, cost);
    }

    /// Returns whether a lease was granted here.
    pub(crate) fn granted(&self, lease: Key) -> bool {
        locked(&self.outbox).granted(lease)
    }

    /// Sends to the store what was admitted here, a bounded batch at a time. What was sent and not
    /// acknowledged stays with the participant, which sends it again first, so that there are no
    /// duplicates or gaps. Calls are decided here until the store has everything.
    pub(crate) fn hand_over(
        &self,
        store_client: &StoreClient,
        home: &PoolClient,
        dispatcher: &mut Dispatcher,
    ) -> HandOver {
        if !dispatcher.probe_write() {
            return HandOver::Unavailable;
        }
        let batch = locked(&self.outbox).next_batch(BATCH);
        if !batch.is_empty() {
            return match dispatcher.send_or_keep_all(batch) {
                true => HandOver::More,
                false => HandOver::Unavailable,
            };
        }
        let mut own = self.client.dispatcher();
        let outbox = locked(&self.outbox);
        if !outbox.is_empty() {
            return HandOver::More;
        }
        let calls = outbox.calls();
        drop(outbox);
        *home.lock_offline() = None;
        self.client.switch_home();
        own.notify_all();
        drop(own);
        let seconds = self.outage_length().as_secs();
        let what = format!(
            "the store is available again after {seconds} s; {calls} call(s) that were admitted \
             without it count there from now on"
        );
        tracing::info!(pool = %home.pool(), "{what}");
        store_client.journal().note(home.pool(), EventData::Store { what });
        HandOver::Done
    }

    fn outage_length(&self) -> Duration {
        (self.uptime)().saturating_sub(self.since)
    }
}

/// Returns the share of this process, if it may take one.
fn begin_share(dispatcher: &mut Dispatcher) -> Option<(PoolConfig, u64, Replay)> {
    let (since, written) = (dispatcher.contact.silent_since()?, dispatcher.contact.written_at()?);
    if since.saturating_sub(written) >= FRESH {
        return None;
    }
    let mut sharing = dispatcher.sharing.take()?;
    let replica = dispatcher.participant.replica();
    let (state, now, session) = (replica.state(), replica.now(), dispatcher.participant.session());
    sharing.sample(state, now, since);
    let among = sharing.alive.most(since).max(1);
    let charges = Arc::clone(&sharing.charges);
    let charges = locked(&charges);
    let last = LastRead { state, now, session, among, charges: &charges };
    let share = state.facts().config.clone().and_then(|config| share_of(config, among));
    let begun = share.map(|config| (config, among, opening(&last)));
    drop(charges);
    dispatcher.sharing = Some(sharing);
    begun
}

/// Returns a configuration that admits everything; its limits only show what would have been
/// refused.
fn begin_open(
    dispatcher: &Dispatcher,
    stated: impl FnOnce() -> Option<PoolConfig>,
) -> Option<(PoolConfig, u64, Replay)> {
    let (replica, session) = (dispatcher.participant.replica(), dispatcher.participant.session());
    let config = replica.state().facts().config.clone().or_else(stated)?;
    let own = own_leases(replica.state(), replica.now(), &|key| key.session == session);
    let replay = Replay::from([(replica.now(), own)]);
    Some((PoolConfig { enforce: false, ..config }, 1, replay))
}

/// Creates a ledger in memory that has these limits and begins with these actions. Its clock
/// continues that of the store.
fn ledger(
    dispatcher: &Dispatcher,
    config: PoolConfig,
    replay: Replay,
    outbox: &Arc<Mutex<Outbox>>,
    uptime: &Uptime,
) -> Option<Participant<Box<dyn Log + Send>>> {
    let replica = dispatcher.participant.replica();
    let now = replica.now();
    let first = replay.keys().next().copied().unwrap_or(now);
    let clock = LedgerClock::new(dispatcher.contact.store_clock(now), Arc::clone(uptime));
    clock.set(first);
    let log: Box<dyn Log + Send> = Box::new(MemoryLog::new(clock.reader()));
    let mut participant = Participant::new(log, random_session);
    let configure = Configure { source: Source::Change, config };
    participant.submit(vec![Action::Configure(Box::new(configure))]).ok()?;
    for (at, actions) in replay {
        clock.set(at);
        participant.submit(actions).ok()?;
    }
    clock.set(now);
    let facts = replica.state().facts();
    let pause = facts.pause.map(|until| until.since(now));
    let pause = pause.filter(|length| *length > Span::ZERO);
    let by = facts.throttling.order.as_ref().and_then(|order| order.by.clone());
    let pause = pause.map(|length| Action::Pause { length, by });
    participant.submit(pause.into_iter().collect()).ok()?;
    // Only what is admitted from here on is to be handed over.
    participant.observe_with(Box::new(OutboxRecorder(Arc::clone(outbox))));
    clock.start();
    Some(participant)
}

/// A clock that stands still where it is set until it is started, and then runs from a given
/// instant.
struct LedgerClock {
    from: Instant,
    uptime: Uptime,
    began: Duration,
    runs: Arc<AtomicBool>,
    stands_at: Arc<AtomicU64>,
}

impl LedgerClock {
    fn new(from: Instant, uptime: Uptime) -> Self {
        let began = uptime();
        Self { from, uptime, began, runs: Arc::default(), stands_at: Arc::default() }
    }

    fn set(&self, at: Instant) {
        self.stands_at.store(at.0, Ordering::Relaxed);
    }

    fn start(&self) {
        self.runs.store(true, Ordering::Release);
    }

    fn reader(&self) -> Clock {
        let (from, began, uptime) = (self.from, self.began, Arc::clone(&self.uptime));
        let (runs, stands_at) = (Arc::clone(&self.runs), Arc::clone(&self.stands_at));
        Arc::new(move || match runs.load(Ordering::Acquire) {
            true => from + span(uptime().saturating_sub(began)),
            false => Instant(stands_at.load(Ordering::Relaxed)),
        })
    }
}

/// Records which session uses what while the store is available.
struct Recorder(Arc<Mutex<SessionCharges>>);

impl Observer for Recorder {
    fn on_event(&mut self, event: &Event, own: bool, at: Instant, outcome: &Outcome) {
        locked(&self.0).on_event(event, own, at, outcome);
    }
}

/// Records what is to be handed over.
struct OutboxRecorder(Arc<Mutex<Outbox>>);

impl Observer for OutboxRecorder {
    fn on_event(&mut self, event: &Event, _own: bool, at: Instant, outcome: &Outcome) {
        locked(&self.0).on_event(event, at, outcome);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for OfflineFallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OfflineFallback").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl fmt::Debug for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sharing").field("alive", &self.alive).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
