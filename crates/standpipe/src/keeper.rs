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
            let shared = Arc::clone(shared);
            let thread = std::thread::Builder::new().name("standpipe".to_owned());
            state.started = thread.spawn(move || run(&shared)).is_ok();
        }
        state.started
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
