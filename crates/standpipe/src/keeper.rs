//! The keeper: the one thread of a process that watches its store.
//!
//! It looks at the pools where somebody waits here, tells those whose turn has come or whose place
//! is gone, runs the timers of those who await, beats while the process holds something, sends what
//! is owed, and sees that the journal has what was used. It listens at the store unless a thread
//! that blocks does so, see `post.rs`. It is started when it is first needed. It decides nothing:
//! what a waiter does when it is told is in `reserving.rs`.

pub(crate) mod look;
pub(crate) mod post;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Local};

use self::post::Post;
use crate::bell::Bell;
use crate::desk::Caller;
use crate::shared::Shared;

/// How often a session says that it lives.
pub(crate) const BEAT: Duration = Duration::from_secs(30);

/// How often a caller does the work of a thread that could not be started.
const STAND_IN: Duration = Duration::from_millis(250);

/// How long it sleeps when nothing is to be done.
const IDLE: Duration = Duration::from_secs(3_600);

/// The one thread of a process that watches its store.
#[derive(Debug, Default)]
pub(crate) struct Keeper {
    state: Mutex<State>,
    /// What the thread sleeps on.
    bell: Arc<Bell>,
}

#[derive(Debug, Default)]
struct State {
    started: bool,
    stopped: bool,
    /// The thread could not be started. Callers do its work then, with their own calls.
    failed: bool,
    /// When a caller last did.
    stood_in: Option<Local>,
    /// Until when it sleeps; none while it works.
    sleeps: Option<Local>,
    /// What was planned while it worked.
    planned: Option<Local>,
    /// Those who await, each with its next moment.
    timers: BTreeMap<(Local, Caller), Arc<Bell>>,
    post: Post,
}

/// How the thread sleeps.
struct Sleep {
    until: Local,
    /// At the store, not only on its own bell.
    listens: bool,
}

impl Keeper {
    /// Starts the thread if it does not run yet. Answers whether it runs.
    pub(crate) fn start(&self, shared: &Arc<Shared>) -> bool {
        let mut state = self.lock();
        if !state.started && !state.stopped {
            let started = spawn(shared);
            state.started = started.is_ok();
            if let Err(error) = started
                && !std::mem::replace(&mut state.failed, true)
            {
                shared.report(format!(
                    "the maintenance thread cannot be started: {error}; this process sends \
                     heartbeats and wakes its waiters only while it calls Standpipe; raise its \
                     limit of threads (ulimit -u)"
                ));
            }
        }
        state.started
    }

    /// Does the thread's work on the caller's thread, if the thread could not be started and it is
    /// time. No pool may be in use by the caller.
    pub(crate) fn stand_in(&self, shared: &Arc<Shared>) {
        let now = Local::now();
        let mut state = self.lock();
        let due = state.stood_in.is_none_or(|last| now >= last + STAND_IN);
        if !state.failed || state.started || state.stopped || !due {
            return;
        }
        state.stood_in = Some(now);
        drop(state);
        if !self.start(shared) {
            see_to_all(shared, now, false);
        }
    }

    /// It will be awake by then.
    pub(crate) fn plan(&self, at: Local) {
        let mut state = self.lock();
        match state.sleeps {
            Some(until) if until <= at => {}
            Some(_) => {
                drop(state);
                self.bell.ring();
            }
            None => state.planned = Some(state.planned.map_or(at, |planned| planned.min(at))),
        }
    }

    /// Rings the bell at that moment. Whoever has a timer awaits, so the store is listened at.
    pub(crate) fn set_timer(&self, at: Local, caller: Caller, bell: &Arc<Bell>) {
        let mut state = self.lock();
        state.timers.insert((at, caller), Arc::clone(bell));
        let unheard = state.post.is_free();
        if state.sleeps.is_some_and(|until| unheard || at < until) {
            drop(state);
            self.bell.ring();
        }
    }

    pub(crate) fn clear_timer(&self, at: Local, caller: Caller) {
        self.lock().timers.remove(&(at, caller));
    }

    /// Ends the thread, as soon as it notices.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.bell.ring();
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

    /// Goes to sleep until something is to be done. What is planned from now on wakes it.
    fn falls_asleep(&self, next: Option<Local>) -> Option<Sleep> {
        let mut state = self.lock();
        let timer = state.timers.first_key_value().map(|((at, _), _)| *at);
        let moments = next.into_iter().chain(timer).chain(state.planned.take());
        let until = moments.fold(Local::now() + IDLE, Local::min);
        state.sleeps = Some(until);
        let stopped = state.stopped;
        let gives_way = state.timers.is_empty() && state.post.is_wanted();
        let listens = !gives_way && state.post.take(post::KEEPER);
        self.call(state);
        (!stopped).then_some(Sleep { until, listens })
    }

    /// Wakes up, and leaves the store to whoever comes first.
    fn wakes(&self) {
        let mut state = self.lock();
        state.sleeps = None;
        state.post.leave(post::KEEPER);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spawn(shared: &Arc<Shared>) -> std::io::Result<()> {
    #[cfg(test)]
    if tests::NO_THREADS.get() {
        return Err(std::io::ErrorKind::WouldBlock.into());
    }
    let shared = Arc::clone(shared);
    let thread = std::thread::Builder::new().name("standpipe".to_owned());
    thread.spawn(move || run(&shared)).map(drop)
}

fn run(shared: &Arc<Shared>) {
    let keeper = shared.keeper();
    let mut woken = true;
    loop {
        keeper.ring_due(Local::now());
        let next = see_to_all(shared, Local::now(), woken);
        let Some(sleep) = keeper.falls_asleep(next) else { return };
        match sleep.listens {
            true => drop(keeper.bell.listen_until(shared.store(), sleep.until)),
            false => keeper.bell.wait_until(sleep.until),
        }
        keeper.wakes();
        woken = Local::now() < sleep.until;
    }
}

/// Does what is to be done now, and answers when to come again.
fn see_to_all(shared: &Arc<Shared>, now: Local, woken: bool) -> Option<Local> {
    let desks = shared.desks();
    let next = desks.iter().filter_map(|desk| look::attend(shared, desk, woken));
    next.chain(shared.journal().see_to_usage(now)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limit, Request, Rule, Settings, Standpipe};
    use std::cell::Cell;

    thread_local! {
        /// This thread has reached its limit of threads.
        pub(super) static NO_THREADS: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn b61_without_a_thread_the_caller_is_warned_and_its_own_calls_keep_its_session() {
        let name = format!("standpipe-no-thread-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let tap = Standpipe::builder().settings(Settings::default()).home(&home).open().unwrap();
        let pool = tap.pool("my/slots").unwrap();
        pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).unwrap();
        NO_THREADS.set(true);
        let lease = pool.reserve(Request::by("holder")).blocking().unwrap();
        let news = tap.news().unwrap().concat();
        assert!(news.contains("maintenance thread cannot be started"), "{news}");
        assert_eq!(tap.news().unwrap(), [] as [String; 0], "once");
        // What shows that it lives was removed. Its next call makes it again.
        let sessions = home.join("sessions");
        for file in std::fs::read_dir(&sessions).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
        tap.guard().unwrap().shared().keeper().lock().stood_in = None;
        pool.status().unwrap();
        let locks = std::fs::read_dir(&sessions).unwrap();
        let is_lock = |name: std::ffi::OsString| name.to_string_lossy().ends_with(".lock");
        assert_eq!(locks.filter(|file| is_lock(file.as_ref().unwrap().file_name())).count(), 1);
        NO_THREADS.set(false);
        drop((lease, pool, tap));
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn what_was_used_is_written_in_time_though_nobody_calls_any_more() {
        let name = format!("standpipe-kept-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let tap = Standpipe::builder().settings(Settings::default()).home(&home).open().unwrap();
        let pool = tap.pool("my/slots").unwrap();
        pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).unwrap();
        drop(pool.reserve(Request::by("blog")).blocking().unwrap());
        let guard = tap.guard().unwrap();
        let due = guard.shared().journal().see_to_usage(Local::now()).unwrap();
        let next = see_to_all(guard.shared(), Local::now(), false);
        assert!(next.is_some_and(|at| at <= due), "it comes for it");
        see_to_all(guard.shared(), due, false);
        assert_eq!(guard.shared().journal().see_to_usage(Local::now()), None, "it is handed out");
        drop((guard, pool, tap));
        std::fs::remove_dir_all(&home).unwrap();
    }
}
