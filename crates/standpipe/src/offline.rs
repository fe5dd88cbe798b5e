//! A pool whose store takes no writes, decided on in this process until it does again.
//!
//! It is a small ledger in memory behind a desk of its own. With `share` its limits are those of
//! the pool divided by the most sessions that were alive lately (`alive.rs`, `share.rs`), and it
//! begins with what this process used and holds (`charges.rs`, `opening.rs`); with `open` it only
//! counts. When a write comes through, what was admitted here is handed over (`outbox.rs`): calls
//! in flight are put back, above the limit if need be, and what was used counts there from then on.
//!
//! Invariant: a later outage begins with what an earlier one admitted, because that is among the
//! charges of this process by then; so a store that comes and goes grants no second share.

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
use self::opening::{Replay, Seen, opening, own_leases};
use self::outbox::Outbox;
use self::share::share_of;
use crate::config::StoreFailure;
use crate::desk::{Counter, Desk, Uptime};
use crate::journal::What;
use crate::moment::span;
use crate::shared::Shared;
use crate::status::Away;

/// How long a store may take no writes before it counts as unavailable.
const AWAY: Duration = Duration::from_secs(1);

/// A process shares only if the store took a write of it within so long before the outage: then
/// others counted it among the living.
const FRESH: Duration = Duration::from_secs(60);

/// How many actions are handed over in one step.
const BATCH: usize = 256;

/// What a share is computed from, kept up to date while the store is available.
pub(crate) struct Sharing {
    alive: AliveSessions,
    charges: Arc<Mutex<SessionCharges>>,
}

/// A pool that is decided on here.
pub(crate) struct OfflineFallback {
    pub(crate) desk: Arc<Desk>,
    mode: StoreFailure,
    /// Among how many the limits are divided.
    among: u64,
    since: Duration,
    uptime: Uptime,
    outbox: Arc<Mutex<Outbox>>,
}

/// How far a hand-over is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOver {
    /// The store takes no writes.
    Unavailable,
    /// There is more to tell it.
    More,
    /// It has everything; calls are decided there again.
    Done,
}

impl Sharing {
    /// Begins to observe a pool.
    pub(crate) fn begin(counter: &mut Counter) -> Self {
        let charges = Arc::<Mutex<SessionCharges>>::default();
        counter.member.observe_with(Box::new(Recorder(Arc::clone(&charges))));
        Self { alive: AliveSessions::default(), charges }
    }

    /// Notes who is alive as of the last contact with the store.
    pub(crate) fn sample(&mut self, state: &State, at: Instant, uptime: Duration) {
        let facts = state.facts();
        self.alive.sample(uptime, alive::alive(facts, at).len() as u64);
        locked(&self.charges).prune(facts, at);
    }
}

impl OfflineFallback {
    /// Where a pool is decided on while its store is unavailable; none if it is to wait for it.
    /// `stated` is what this process would have configured the pool with.
    pub(crate) fn of(
        shared: &Arc<Shared>,
        home: &Arc<Desk>,
        counter: &mut Counter,
        stated: impl FnOnce() -> Option<PoolConfig>,
    ) -> Option<Arc<Self>> {
        let mode = home.fallback();
        let since = counter.contact.silent_since()?;
        let unavailable = counter.contact.now().saturating_sub(since) >= AWAY;
        if mode == StoreFailure::Closed || !unavailable {
            return None;
        }
        let mut present = home.lock_cut_off();
        if present.is_none() {
            *present = Self::begin(shared, home, counter, stated, mode).map(Arc::new);
        }
        present.clone()
    }

    fn begin(
        shared: &Arc<Shared>,
        home: &Arc<Desk>,
        counter: &mut Counter,
        stated: impl FnOnce() -> Option<PoolConfig>,
        mode: StoreFailure,
    ) -> Option<Self> {
        if counter.member.replica().state().facts().terminal.is_some() {
            return None;
        }
        let (config, among, replay) = match mode {
            StoreFailure::Share => begin_share(counter)?,
            _ => begin_open(counter, stated)?,
        };
        let outbox = Arc::new(Mutex::new(Outbox::new(&config)));
        let uptime = counter.contact.uptime();
        let member = ledger(counter, config, replay, &outbox, &uptime)?;
        let desk = Desk::standing_in(home, member, shared.pen(), Arc::clone(&uptime));
        let what = match mode {
            StoreFailure::Share => format!(
                "the store is away; each of {among} processes admits its share of the limits"
            ),
            _ => "the store is away; calls are admitted without limit".to_owned(),
        };
        shared.journal().note(home.pool(), What::Store { what });
        // The keeper finds out when the store takes writes again.
        shared.owes();
        let since = uptime();
        Some(Self { desk: Arc::new(desk), mode, among, since, uptime, outbox })
    }

    pub(crate) fn status(&self) -> Away {
        Away {
            for_ms: u64::try_from(self.for_so_long().as_millis()).unwrap_or(u64::MAX),
            mode: if self.mode == StoreFailure::Share { "share" } else { "open" },
            among: self.among,
        }
    }

    /// A call was admitted here, with what was estimated because its caller did not say.
    pub(crate) fn note_cost(&self, lease: Key, cost: &Amounts) {
        locked(&self.outbox).note_cost(lease, cost);
    }

    /// Whether a lease was granted here.
    pub(crate) fn granted(&self, lease: Key) -> bool {
        locked(&self.outbox).granted(lease)
    }

    /// Tells the store what was admitted here, a bounded batch at a time. What was sent and not
    /// acknowledged stays with the member of the pool, which sends it again first; so nothing is
    /// lost or told twice. Calls are decided here until the store has everything.
    pub(crate) fn hand_over(
        &self,
        shared: &Shared,
        home: &Desk,
        counter: &mut Counter,
    ) -> HandOver {
        if !counter.probe_write() {
            return HandOver::Unavailable;
        }
        let batch = locked(&self.outbox).next_batch(BATCH);
        if !batch.is_empty() {
            return match counter.tell_all(batch) {
                true => HandOver::More,
                false => HandOver::Unavailable,
            };
        }
        let mut own = self.desk.counter();
        let outbox = locked(&self.outbox);
        if !outbox.is_empty() {
            return HandOver::More;
        }
        let calls = outbox.calls();
        drop(outbox);
        *home.lock_cut_off() = None;
        self.desk.moves();
        own.ring_all();
        drop(own);
        let seconds = self.for_so_long().as_secs();
        let what = format!(
            "the store is back after {seconds} s; {calls} call(s) that were admitted meanwhile \
             count there from now on"
        );
        shared.journal().note(home.pool(), What::Store { what });
        HandOver::Done
    }

    fn for_so_long(&self) -> Duration {
        (self.uptime)().saturating_sub(self.since)
    }
}

/// The part of this process, if it may take one.
fn begin_share(counter: &mut Counter) -> Option<(PoolConfig, u64, Replay)> {
    let (since, written) = (counter.contact.silent_since()?, counter.contact.written_at()?);
    if since.saturating_sub(written) >= FRESH {
        return None;
    }
    let mut sharing = counter.sharing.take()?;
    let replica = counter.member.replica();
    let (state, now, session) = (replica.state(), replica.now(), counter.member.session());
    sharing.sample(state, now, since);
    let among = sharing.alive.most(since).max(1);
    let charges = Arc::clone(&sharing.charges);
    let charges = locked(&charges);
    let seen = Seen { state, now, session, among, charges: &charges };
    let share = state.facts().config.clone().and_then(|config| share_of(config, among));
    let begun = share.map(|config| (config, among, opening(&seen)));
    drop(charges);
    counter.sharing = Some(sharing);
    begun
}

/// Everything is admitted; the limits say what would have been refused.
fn begin_open(
    counter: &Counter,
    stated: impl FnOnce() -> Option<PoolConfig>,
) -> Option<(PoolConfig, u64, Replay)> {
    let (replica, session) = (counter.member.replica(), counter.member.session());
    let config = replica.state().facts().config.clone().or_else(stated)?;
    let own = own_leases(replica.state(), replica.now(), &|key| key.session == session);
    let replay = Replay::from([(replica.now(), own)]);
    Some((PoolConfig { enforce: false, ..config }, 1, replay))
}

/// A ledger in memory that has these limits and begins with these actions. Its clock continues that
/// of the store.
fn ledger(
    counter: &Counter,
    config: PoolConfig,
    replay: Replay,
    outbox: &Arc<Mutex<Outbox>>,
    uptime: &Uptime,
) -> Option<Participant<Box<dyn Log + Send>>> {
    let replica = counter.member.replica();
    let now = replica.now();
    let first = replay.keys().next().copied().unwrap_or(now);
    let clock = LedgerClock::new(counter.contact.store_clock(now), Arc::clone(uptime));
    clock.set(first);
    let log: Box<dyn Log + Send> = Box::new(MemoryLog::new(clock.reader()));
    let mut member = Participant::new(log, random_session);
    let configure = Configure { source: Source::Change, config };
    member.submit(vec![Action::Configure(Box::new(configure))]).ok()?;
    for (at, actions) in replay {
        clock.set(at);
        member.submit(actions).ok()?;
    }
    clock.set(now);
    let pause = replica.state().facts().pause.map(|until| until.since(now));
    let pause = pause.filter(|length| *length > Span::ZERO);
    let pause = pause.map(|length| Action::Pause { length });
    member.submit(pause.into_iter().collect()).ok()?;
    // Only what is admitted from here on is to be handed over.
    member.observe_with(Box::new(OutboxRecorder(Arc::clone(outbox))));
    clock.start();
    Some(member)
}

/// A clock that stands where it is set until it is started, and then runs from a given instant.
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

/// Records who uses a pool while its store is available.
struct Recorder(Arc<Mutex<SessionCharges>>);

impl Observer for Recorder {
    fn on_event(&mut self, event: &Event, own: bool, at: Instant, outcome: &Outcome) {
        locked(&self.0).seen(event, own, at, outcome);
    }
}

/// Records what is to be handed over.
struct OutboxRecorder(Arc<Mutex<Outbox>>);

impl Observer for OutboxRecorder {
    fn on_event(&mut self, event: &Event, _own: bool, at: Instant, outcome: &Outcome) {
        locked(&self.0).seen(event, at, outcome);
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
