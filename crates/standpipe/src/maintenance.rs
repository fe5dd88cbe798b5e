//! The maintenance thread: one per process and store, started when it is first needed.
//!
//! It notifies waiters whose ticket is due or gone, runs the timers of tasks, sends heartbeats
//! while the process has leases or tickets, sends what is pending, and writes usage to the journal.
//! It decides nothing: a notified waiter takes its own next step (`wait/`).
//!
//! Reading order: `attend` is one round on one pool; `wake_listener` decides which thread sleeps in
//! the store's wait; `liveness` and `owner` find dead sessions and processes.

pub(crate) mod attend;
pub(crate) mod liveness;
pub(crate) mod owner;
pub(crate) mod wake_listener;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as Local};

use self::wake_listener::WakeListener;
use crate::client::notify::Notify;
use crate::client::store_client::StoreClient;
use crate::client::{CallerId, PoolClient};

/// How often a session sends a heartbeat.
pub(crate) const BEAT: Duration = Duration::from_secs(30);

/// How often a caller does the work of a thread that could not be started.
const INLINE_INTERVAL: Duration = Duration::from_millis(250);

/// How long the thread sleeps when nothing is due.
const IDLE: Duration = Duration::from_secs(3_600);

/// The maintenance thread of a process on one store.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    state: Mutex<State>,
    /// What the thread sleeps on.
    notify: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    started: bool,
    stopped: bool,
    /// Whether the thread could not be started. Callers then do its work during their own calls.
    failed: bool,
    /// Whether the program runs the rounds itself, as long as nothing else needs the thread.
    by_program: bool,
    /// When a caller last did its work.
    ran_inline: Option<Local>,
    /// Until when the thread sleeps; `None` while it works.
    sleeps: Option<Local>,
    /// The earliest instant that was planned while it worked.
    planned: Option<Local>,
    /// The tasks that wait, each with its next instant.
    timers: BTreeMap<(Local, CallerId), Arc<Notify>>,
    listener: WakeListener,
}

/// How the thread sleeps.
struct Sleep {
    until: Local,
    /// Whether it sleeps in the store's wait, and not only on its own [`Notify`].
    listens: bool,
}

impl Maintenance {
    /// Starts the thread if it does not run yet. Returns whether it runs.
    pub(crate) fn start(&self, store_client: &Arc<StoreClient>) -> bool {
        let mut state = self.lock();
        if !state.started && !state.stopped {
            let started = spawn(store_client);
            state.started = started.is_ok();
            if let Err(error) = started
                && !std::mem::replace(&mut state.failed, true)
            {
                store_client.report(format!(
                    "the maintenance thread cannot be started: {error}; this process sends \
                     heartbeats and wakes its waiters only while it calls Standpipe; raise its \
                     limit of threads (ulimit -u)"
                ));
            }
        }
        state.started
    }

    /// Starts the thread for a lease, unless the program keeps its leases alive itself.
    pub(crate) fn start_for_lease(&self, store_client: &Arc<StoreClient>) {
        if !self.lock().by_program {
            self.start(store_client);
        }
    }

    /// Leaves the rounds to the program, which calls [`Maintenance::run_round`]. Waiting tasks
    /// still start the thread.
    pub(crate) fn leave_to_program(&self) {
        self.lock().by_program = true;
    }

    /// Runs a round on the caller's thread, unless the thread runs. Returns when the next is due.
    pub(crate) fn run_round(&self, store_client: &Arc<StoreClient>) -> Local {
        let now = Local::now();
        let has_thread = self.lock().started;
        let next = if has_thread { None } else { attend_all(store_client, now, false) };
        next.unwrap_or(now + IDLE)
    }

    /// Does the thread's work on the caller's thread, if the thread could not be started and it is
    /// time. No pool may be in use by the caller.
    pub(crate) fn run_inline_if_due(&self, store_client: &Arc<StoreClient>) {
        let now = Local::now();
        let mut state = self.lock();
        let due = state.ran_inline.is_none_or(|last| now >= last + INLINE_INTERVAL);
        if !state.failed || state.started || state.stopped || !due {
            return;
        }
        state.ran_inline = Some(now);
        drop(state);
        if !self.start(store_client) {
            attend_all(store_client, now, false);
        }
    }

    /// Makes the thread run a round at this instant or earlier.
    pub(crate) fn plan(&self, at: Local) {
        let mut state = self.lock();
        match state.sleeps {
            Some(until) if until <= at => {}
            Some(_) => {
                drop(state);
                self.notify.notify();
            }
            None => state.planned = Some(state.planned.map_or(at, |planned| planned.min(at))),
        }
    }

    /// Notifies a task at this instant. A task cannot sleep in the store's wait, so the thread does
    /// while any timer is set.
    pub(crate) fn set_timer(&self, at: Local, caller: CallerId, notify: &Arc<Notify>) {
        let mut state = self.lock();
        state.timers.insert((at, caller), Arc::clone(notify));
        let no_listener = state.listener.is_free();
        if state.sleeps.is_some_and(|until| no_listener || at < until) {
            drop(state);
            self.notify.notify();
        }
    }

    pub(crate) fn clear_timer(&self, at: Local, caller: CallerId) {
        self.lock().timers.remove(&(at, caller));
    }

    /// Ends the thread when it next wakes, and wakes it.
    pub(crate) fn stop(&self) {
        self.lock().stopped = true;
        self.notify.notify();
    }

    /// Notifies the tasks whose instant has come.
    fn notify_due(&self, now: Local) {
        let mut state = self.lock();
        let later = state.timers.split_off(&(now, CallerId::MAX));
        let due = std::mem::replace(&mut state.timers, later);
        drop(state);
        for notify in due.values() {
            notify.notify();
        }
    }

    /// Begins to sleep until something is due. An instant that is planned from now on wakes the
    /// thread.
    fn begin_sleep(&self, next: Option<Local>) -> Option<Sleep> {
        let mut state = self.lock();
        let timer = state.timers.first_key_value().map(|((at, _), _)| *at);
        let moments = next.into_iter().chain(timer).chain(state.planned.take());
        let until = moments.fold(Local::now() + IDLE, Local::min);
        state.sleeps = Some(until);
        let stopped = state.stopped;
        let yields = state.timers.is_empty() && state.listener.has_blocked();
        let listens = !yields && state.listener.take(wake_listener::MAINTENANCE);
        self.wake_next_listener(state);
        (!stopped).then_some(Sleep { until, listens })
    }

    /// Ends the sleep. Another thread may sleep in the store's wait from now on.
    fn end_sleep(&self) {
        let mut state = self.lock();
        state.sleeps = None;
        state.listener.leave(wake_listener::MAINTENANCE);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn spawn(store_client: &Arc<StoreClient>) -> std::io::Result<()> {
    #[cfg(test)]
    if tests::NO_THREADS.get() {
        return Err(std::io::ErrorKind::WouldBlock.into());
    }
    let store_client = Arc::clone(store_client);
    let thread = std::thread::Builder::new().name("standpipe".to_owned());
    thread.spawn(move || run(&store_client)).map(drop)
}

fn run(store_client: &Arc<StoreClient>) {
    let maintenance = store_client.maintenance();
    let mut woken = true;
    loop {
        maintenance.notify_due(Local::now());
        let next = attend_all(store_client, Local::now(), woken);
        let Some(sleep) = maintenance.begin_sleep(next) else { return };
        match sleep.listens {
            true => drop(maintenance.notify.listen_until(store_client.store(), sleep.until)),
            false => maintenance.notify.wait_until(sleep.until),
        }
        maintenance.end_sleep();
        woken = Local::now() < sleep.until;
    }
}

/// Attends to every pool and returns when to do so again.
///
/// A pool whose store does not answer must not delay the others. So a step that would have to wait
/// is left to the pool's own worker, which plans the next round itself.
fn attend_all(store_client: &Arc<StoreClient>, now: Local, woken: bool) -> Option<Local> {
    let clients = store_client.clients();
    let next = clients.iter().filter_map(|client| attend_one(store_client, client, woken));
    next.chain(store_client.journal().see_to_usage(now)).min()
}

fn attend_one(
    store_client: &Arc<StoreClient>,
    client: &Arc<PoolClient>,
    woken: bool,
) -> Option<Local> {
    if store_client.store().is_remote() && !client.is_offline() {
        let free = client.try_dispatcher();
        if free.is_some_and(|free| !attend::needs_store(store_client, client, &free)) {
            return None;
        }
    } else {
        let mut dispatcher = client.short_turn();
        let next = attend::attend(store_client, client, &mut dispatcher, woken);
        if !dispatcher.was_blocked() {
            return next;
        }
    }
    match client.worker().attend(store_client, client, woken) {
        true => None,
        false => attend::attend(store_client, client, &mut client.dispatcher(), woken),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Limit, Request, Rule, Settings, Standpipe};
    use std::cell::Cell;

    thread_local! {
        /// Whether this thread cannot start others, as at a limit on threads.
        pub(super) static NO_THREADS: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn b61_without_a_thread_the_caller_is_warned_and_its_own_calls_keep_its_session() {
        let name = format!("standpipe-no-thread-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let tap = Standpipe::builder().settings(Settings::default()).home(&home).open().unwrap();
        let pool = tap.pool("my/slots").unwrap();
        pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking().unwrap();
        NO_THREADS.set(true);
        let lease = pool.reserve(Request::by("holder")).blocking().unwrap();
        let news = tap.take_messages().unwrap().concat();
        assert!(news.contains("maintenance thread cannot be started"), "{news}");
        assert_eq!(tap.take_messages().unwrap(), [] as [String; 0], "once");
        // The session's lock file was removed. The next call creates it again.
        let sessions = home.join("sessions");
        for file in std::fs::read_dir(&sessions).unwrap() {
            std::fs::remove_file(file.unwrap().path()).unwrap();
        }
        tap.store_handle().unwrap().store_client().maintenance().lock().ran_inline = None;
        pool.status().blocking().unwrap();
        let locks = std::fs::read_dir(&sessions).unwrap();
        let is_lock = |name: std::ffi::OsString| name.to_string_lossy().ends_with(".lock");
        assert_eq!(locks.filter(|file| is_lock(file.as_ref().unwrap().file_name())).count(), 1);
        NO_THREADS.set(false);
        drop((lease, pool, tap));
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn usage_is_written_in_time_without_another_call() {
        let name = format!("standpipe-kept-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let tap = Standpipe::builder().settings(Settings::default()).home(&home).open().unwrap();
        let pool = tap.pool("my/slots").unwrap();
        pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking().unwrap();
        drop(pool.reserve(Request::by("blog")).blocking().unwrap());
        let handle = tap.store_handle().unwrap();
        let due = handle.store_client().journal().see_to_usage(Local::now()).unwrap();
        let next = attend_all(handle.store_client(), Local::now(), false);
        assert!(next.is_some_and(|at| at <= due), "a round is planned");
        attend_all(handle.store_client(), due, false);
        assert_eq!(
            handle.store_client().journal().see_to_usage(Local::now()),
            None,
            "it is written"
        );
        drop((handle, pool, tap));
        std::fs::remove_dir_all(&home).unwrap();
    }
}
