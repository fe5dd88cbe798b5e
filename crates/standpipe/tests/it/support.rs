//! Fixtures: pools in memory, a manual clock, processes that can die, and stores that can be
//! unavailable.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::ThreadId;
use std::time::{Duration, Instant as Local};

use standpipe::observe::Process;
use standpipe::{
    Configured, Error, Limit, MemoryStore, Pool, PoolName, Refused, Request, Rule, Settings, Span,
    Standpipe, Store, StoreError, Unit,
};
use standpipe_core::{Instant, bounds};
use standpipe_store::engine::{Message, Messages};
use standpipe_store::fault_injection::{FaultQueue, FaultyLog};
use standpipe_store::trace::ManualClock;
use standpipe_store::{Liveness, Log};

/// How long a test waits for a condition before it fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Pools in memory with a manual clock.
pub(crate) struct World {
    pub(crate) time: ManualClock,
    store: MemoryStore,
}

/// One process of a world.
pub(crate) struct Actor {
    pub(crate) store: Arc<Rig>,
    pub(crate) tap: Standpipe,
}

impl World {
    pub(crate) fn new() -> Self {
        let time = ManualClock::default();
        time.set(Instant(bounds::SPAN.0));
        Self { store: MemoryStore::new(time.clock()), time }
    }

    /// A process without a file.
    pub(crate) fn process(&self) -> Actor {
        self.process_with(Settings::default())
    }

    /// A process with this file.
    pub(crate) fn process_with(&self, settings: Settings) -> Actor {
        let store = Arc::new(Rig::new(self.store.another_process(), self.time.clone()));
        let on: Arc<dyn Store> = Arc::clone(&store) as Arc<dyn Store>;
        let tap = Standpipe::builder().settings(settings).on(on).agent("tests").open().unwrap();
        Actor { store, tap }
    }

    /// Moves the clock and wakes every process.
    pub(crate) fn passes(&self, span: Span, processes: &[&Actor]) {
        self.time.set(self.time.now() + span);
        for process in processes {
            process.store.interrupt();
        }
    }
}

impl Actor {
    pub(crate) fn pool(&self, name: &str) -> Pool {
        self.tap.pool(name).unwrap()
    }

    /// A pool with these limits, without margin, slack or other defaults.
    pub(crate) fn limited(&self, name: &str, limits: Vec<Limit>) -> Pool {
        let pool = self.pool(name);
        let config = standpipe::PoolConfig::new(limits);
        assert!(matches!(
            pool.change(config).blocking().unwrap(),
            Configured::Applied | Configured::Same
        ));
        pool
    }

    /// Kills the process: its sessions are dead, and it sends nothing any more.
    pub(crate) fn dies(&self) {
        for session in self.store.sessions.lock().unwrap().iter() {
            self.store.inner.end_session(*session);
        }
    }
}

/// A memory store in which things can go wrong.
#[derive(Debug)]
pub(crate) struct Rig {
    inner: MemoryStore,
    time: ManualClock,
    pub(crate) faults: FaultQueue,
    pub(crate) sessions: Mutex<Vec<u64>>,
    /// Calls to its logs are cut off while this is set.
    pub(crate) unavailable: Arc<AtomicBool>,
    /// A read of the pool `t/stuck` does not return while this is set.
    pub(crate) stuck: Arc<Stuck>,
    /// An append does not return while this is set.
    pub(crate) slow: Arc<Stuck>,
    /// The lock of the pool `t/held` is held by a stopped process while this is set.
    pub(crate) held: Arc<Stuck>,
    /// How often something was appended.
    pub(crate) appends: Arc<AtomicUsize>,
    /// Whether it reports that it is across a network.
    pub(crate) remote: AtomicBool,
    /// What it reports next to the operator.
    pub(crate) messages: Messages,
    listens: Mutex<Option<ThreadId>>,
}

/// A gate at which threads block.
#[derive(Debug, Default)]
pub(crate) struct Stuck {
    /// Whether it is closed, and how many threads are blocked.
    now: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Stuck {
    pub(crate) fn set(&self, stuck: bool) {
        self.now.lock().unwrap().0 = stuck;
        self.changed.notify_all();
    }

    /// Waits until it is not set, or the deadline has passed. Returns whether it is not set.
    fn pass_by(&self, deadline: Option<Local>) -> bool {
        let now = self.now.lock().unwrap();
        let left = deadline.map(|at| at.saturating_duration_since(Local::now()));
        let waits = self.changed.wait_timeout_while(now, left.unwrap_or(LONG), |now| now.0);
        !waits.unwrap().1.timed_out()
    }

    pub(crate) fn count(&self) -> usize {
        self.now.lock().unwrap().1
    }

    pub(crate) fn pass(&self) {
        let mut now = self.now.lock().unwrap();
        now.1 += 1;
        let mut now = self.changed.wait_while(now, |now| now.0).unwrap();
        now.1 -= 1;
    }
}

impl Rig {
    fn new(inner: MemoryStore, time: ManualClock) -> Self {
        let (faults, sessions, unavailable) =
            (FaultQueue::default(), Mutex::default(), Arc::default());
        let (stuck, slow, listens) = (Arc::default(), Arc::default(), Mutex::default());
        let (held, appends, remote) = (Arc::default(), Arc::default(), AtomicBool::new(false));
        Self {
            inner,
            time,
            faults,
            sessions,
            unavailable,
            stuck,
            slow,
            held,
            appends,
            remote,
            messages: Messages::default(),
            listens,
        }
    }

    /// Returns the thread that sleeps in the store's wait.
    pub(crate) fn listens(&self) -> Option<ThreadId> {
        *self.listens.lock().unwrap()
    }
}

struct Away<L> {
    log: L,
    unavailable: Arc<AtomicBool>,
    stuck: Option<Arc<Stuck>>,
    slow: Arc<Stuck>,
    held: Option<Arc<Stuck>>,
    deadline: Option<Local>,
    appends: Arc<AtomicUsize>,
}

impl<L: Log> Away<L> {
    fn check(&self) -> Result<(), StoreError> {
        if self.held.as_ref().is_some_and(|held| !held.pass_by(self.deadline)) {
            let error = StoreError::transient("the pool is in use by a stopped process");
            return Err(error.unsent());
        }
        match self.unavailable.load(Ordering::SeqCst) {
            true => Err(StoreError::transient("the store is unavailable, on purpose")),
            false => Ok(()),
        }
    }
}

impl<L: Log> Log for Away<L> {
    fn append(
        &mut self,
        from: standpipe_store::Position,
        bodies: &[Vec<u8>],
    ) -> Result<standpipe_store::LogRead, StoreError> {
        self.check()?;
        if !bodies.is_empty() {
            self.slow.pass();
            self.appends.fetch_add(1, Ordering::SeqCst);
        }
        self.log.append(from, bodies)
    }

    fn read(
        &mut self,
        from: standpipe_store::Position,
    ) -> Result<standpipe_store::LogRead, StoreError> {
        self.check()?;
        if let Some(stuck) = &self.stuck {
            stuck.pass();
        }
        self.log.read(from)
    }

    fn write_snapshot(&mut self, snapshot: &standpipe_store::Snapshot) -> Result<(), StoreError> {
        self.log.write_snapshot(snapshot)
    }

    fn set_deadline(&mut self, deadline: Option<Local>) {
        self.deadline = deadline;
    }

    fn wake_sessions(&self, sessions: &[u64]) {
        self.log.wake_sessions(sessions);
    }
}

impl Store for Rig {
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
        let log = FaultyLog::new(self.inner.log(pool)?, self.faults.clone());
        let stuck = (pool.to_string() == "t/stuck").then(|| Arc::clone(&self.stuck));
        let held = (pool.to_string() == "t/held").then(|| Arc::clone(&self.held));
        let (unavailable, slow) = (Arc::clone(&self.unavailable), Arc::clone(&self.slow));
        let (deadline, appends) = (None, Arc::clone(&self.appends));
        Ok(Box::new(Away { log, unavailable, stuck, slow, held, deadline, appends }))
    }

    fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        self.inner.pools()
    }

    fn begin_session(&self) -> Result<u64, StoreError> {
        let session = self.inner.begin_session()?;
        self.sessions.lock().unwrap().push(session);
        Ok(session)
    }

    fn end_session(&self, session: u64) {
        self.inner.end_session(session);
    }

    fn liveness(&self, session: u64) -> Liveness {
        self.inner.liveness(session)
    }

    fn process_of(&self, _session: u64) -> Option<Process> {
        Some(Process { pid: std::process::id(), stopped: false })
    }

    fn wait_for_wake(&self, at_most: Duration) {
        let before = self.listens.lock().unwrap().replace(std::thread::current().id());
        assert_eq!(before, None, "one thread waits at a time");
        self.inner.wait_for_wake(at_most);
        *self.listens.lock().unwrap() = None;
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn take_messages(&self) -> Vec<Message> {
        self.messages.take()
    }

    fn is_remote(&self) -> bool {
        self.remote.load(Ordering::SeqCst)
    }

    /// Real time, and what the world's time was moved by.
    fn uptime(&self) -> Duration {
        self.inner.uptime() + Duration::from_micros(self.time.now().0)
    }

    fn location(&self) -> String {
        "a rig".to_owned()
    }
}

/// A future that is polled by hand.
pub(crate) struct Hand<F> {
    future: Pin<Box<F>>,
    woken: Arc<Woken>,
}

#[derive(Default)]
struct Woken {
    woken: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().unwrap() = true;
        self.changed.notify_all();
    }
}

impl<F: Future> Hand<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), woken: Arc::default() }
    }

    pub(crate) fn poll(&mut self) -> Poll<F::Output> {
        let waker = Waker::from(Arc::clone(&self.woken));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    /// Polls whenever it is woken, until it is over.
    pub(crate) fn run(mut self) -> F::Output {
        loop {
            if let Poll::Ready(output) = self.poll() {
                return output;
            }
            self.wait();
        }
    }

    /// Sleeps until it is woken.
    pub(crate) fn wait(&self) {
        let woken = self.woken.woken.lock().unwrap();
        let waits = self.woken.changed.wait_timeout_while(woken, LONG, |woken| !*woken);
        let (mut woken, waited) = waits.unwrap();
        assert!(!waited.timed_out(), "it is never woken");
        *woken = false;
    }
}

/// Waits until a condition holds.
pub(crate) fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Local::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn parallel(amount: u64) -> Limit {
    Limit::new(Rule::Parallel { amount })
}

pub(crate) fn per_minute(unit: Unit, amount: u64) -> Limit {
    Limit::new(Rule::Window { unit, amount, period: Span::secs(60) })
}

pub(crate) fn at_once() -> Request {
    Request::by("hasty").timeout(Duration::ZERO)
}

pub(crate) fn patient() -> Request {
    Request::by("patient").timeout(LONG)
}

/// Asserts that nothing is in flight, no call waits, and all units are free.
pub(crate) fn assert_whole(pool: &Pool) {
    let status = pool.status().blocking().unwrap();
    assert_eq!(status.leases, [], "in flight");
    assert_eq!(status.tickets, [], "waiting");
    for limit in status.limits {
        assert_eq!(limit.left, limit.effective, "{}", limit.limit);
    }
}

pub(crate) fn refused<T: std::fmt::Debug>(outcome: Result<T, Error>) -> Refused {
    match outcome {
        Err(Error::Refused(refused)) => *refused,
        other => panic!("not refused: {other:?}"),
    }
}

/// A settings file in memory.
pub(crate) fn file(text: &str, written: u64) -> Settings {
    Settings::parse(text, Some("standpipe.toml".as_ref()), written).unwrap()
}
