//! The keeper: the one thread of a process that watches its store.
//!
//! It waits for the store to ring, looks at the pools where somebody waits here, tells those whose
//! turn has come or whose place is gone, runs the timers of those who await, beats while the
//! process holds something, and sends what is owed. It is started when it is first needed. It
//! decides nothing: what a waiter does when it is told is in `reserving.rs`.

pub(crate) mod look;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Local};

use standpipe_store::Store;

use crate::bell::Bell;
use crate::desk::Caller;
use crate::shared::Shared;

/// How often a session says that it lives.
pub(crate) const BEAT: Duration = Duration::from_secs(30);

/// How long it sleeps when nothing is to be done.
const IDLE: Duration = Duration::from_secs(3_600);

/// The one thread of a process that watches its store.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    started: bool,
    stopped: bool,
    /// Until when it sleeps; none while it works.
    sleeps: Option<Local>,
    timers: BTreeMap<(Local, Caller), Arc<Bell>>,
}

impl Keeper {
    /// Starts the thread if it does not run yet. Answers whether it runs.
    pub(crate) fn start(&self, shared: &Arc<Shared>) -> bool {
        let mut state = self.lock();
        if !state.started && !state.stopped {
            let shared = Arc::clone(shared);
            let thread = std::thread::Builder::new().name("standpipe".to_owned());
            state.started = thread.spawn(move || run(&shared)).is_ok();
        }
        state.started
    }

    /// It will be awake by then.
    pub(crate) fn plan(&self, store: &dyn Store, at: Local) {
        if self.lock().sleeps.is_none_or(|until| at < until) {
            store.interrupt();
        }
    }

    /// Rings the bell at that moment.
    pub(crate) fn set_timer(&self, store: &dyn Store, at: Local, caller: Caller, bell: &Arc<Bell>) {
        self.lock().timers.insert((at, caller), Arc::clone(bell));
        self.plan(store, at);
    }

    pub(crate) fn clear_timer(&self, at: Local, caller: Caller) {
        self.lock().timers.remove(&(at, caller));
    }

    /// Ends the thread, as soon as it notices.
    pub(crate) fn stop(&self, store: &dyn Store) {
        let mut state = self.lock();
        state.stopped = true;
        if state.started {
            drop(state);
            store.interrupt();
        }
    }

    /// Rings the bells whose time has come.
    fn ring_due(&self, now: Local) {
        let mut state = self.lock();
        let later = state.timers.split_off(&(now, Caller::MAX));
        let due = std::mem::replace(&mut state.timers, later);
        drop(state);
        for bell in due.values() {
            bell.ring();
        }
    }

    /// Goes to sleep until something is to be done. What is planned from now on interrupts it.
    fn sleeps_until(&self, next: Option<Local>) -> Option<Duration> {
        let mut state = self.lock();
        let now = Local::now();
        let timer = state.timers.first_key_value().map(|((at, _), _)| *at);
        let until = next.into_iter().chain(timer).fold(now + IDLE, Local::min);
        state.sleeps = Some(until);
        (!state.stopped).then(|| until.saturating_duration_since(now))
    }

    fn wakes(&self) {
        self.lock().sleeps = None;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run(shared: &Arc<Shared>) {
    let keeper = shared.keeper();
    let mut woken = true;
    loop {
        keeper.ring_due(Local::now());
        let desks = shared.desks();
        let next = desks.iter().filter_map(|desk| look::attend(shared, desk, woken)).min();
        let Some(sleep) = keeper.sleeps_until(next) else { return };
        let asleep = Local::now();
        shared.store().wait_for_wake(sleep);
        keeper.wakes();
        woken = asleep.elapsed() < sleep;
    }
}
