//! A world for tests: pools in memory, time that only moves when told, processes that can die, and
//! stores that can be away.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::ThreadId;
use std::time::{Duration, Instant as Local};

use standpipe::{
    Configured, Error, Limit, MemoryStore, Pool, PoolName, Process, Refused, Request, Rule,
    Settings, Span, Standpipe, Store, StoreError, Unit,
};
use standpipe_core::{Instant, bounds};
use standpipe_store::fault_injection::{FaultQueue, FaultyLog};
use standpipe_store::trace::ManualClock;
use standpipe_store::{Liveness, Log};

/// How long a test waits for what must come: for ever, but for a test that fails.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Pools in memory, in time that only moves when told.
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

    /// Time passes, and everybody notices.
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

    /// A pool with these limits and nothing between them and the caller.
    pub(crate) fn limited(&self, name: &str, limits: Vec<Limit>) -> Pool {
        let pool = self.pool(name);
        let config = standpipe::PoolConfig::new(limits);
        assert!(matches!(pool.change(config).unwrap(), Configured::Applied | Configured::Same));
        pool
    }

    /// The process dies: its sessions are seen to be gone, and nothing of it is said any more.
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
    pub(crate) away: Arc<AtomicBool>,
    /// Who reads the pool `t/stuck` does not come back while this is set.
    pub(crate) stuck: Arc<Stuck>,
    /// Who appends does not come back while this is set.
    pub(crate) slow: Arc<Stuck>,
    /// How often something was appended.
    pub(crate) appends: Arc<AtomicUsize>,
    /// It says that it is across a network.
    pub(crate) remote: AtomicBool,
    listens: Mutex<Option<ThreadId>>,
}

/// Where readers do not come back.
#[derive(Debug, Default)]
pub(crate) struct Stuck {
    /// Whether it is so, and how many there are.
    now: Mutex<(bool, usize)>,
    changed: Condvar,
}

impl Stuck {
    pub(crate) fn set(&self, stuck: bool) {
        self.now.lock().unwrap().0 = stuck;
        self.changed.notify_all();
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
        let (faults, sessions, away) = (FaultQueue::default(), Mutex::default(), Arc::default());
        let (stuck, slow, listens) = (Arc::default(), Arc::default(), Mutex::default());
        let (appends, remote) = (Arc::default(), AtomicBool::new(false));
        Self { inner, time, faults, sessions, away, stuck, slow, appends, remote, listens }
    }

    /// The thread that waits for a wake just now.
    pub(crate) fn listens(&self) -> Option<ThreadId> {
        *self.listens.lock().unwrap()
    }
}

struct Away<L> {
    log: L,
    away: Arc<AtomicBool>,
    stuck: Option<Arc<Stuck>>,
    slow: Arc<Stuck>,
    appends: Arc<AtomicUsize>,
}

impl<L: Log> Away<L> {
    fn check(&self) -> Result<(), StoreError> {
        match self.away.load(Ordering::SeqCst) {
            true => Err(StoreError::transient("the store is away, on purpose")),
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

    fn wake_sessions(&self, sessions: &[u64]) {
        self.log.wake_sessions(sessions);
    }
}

impl Store for Rig {
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
        let log = FaultyLog::new(self.inner.log(pool)?, self.faults.clone());
        let stuck = (pool.to_string() == "t/stuck").then(|| Arc::clone(&self.stuck));
        let (away, slow) = (Arc::clone(&self.away), Arc::clone(&self.slow));
        Ok(Box::new(Away { log, away, stuck, slow, appends: Arc::clone(&self.appends) }))
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
        assert!(!waited.timed_out(), "nobody wakes it");
        *woken = false;
    }
}

/// Waits until something is so.
pub(crate) fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Local::now();
    while !so() {
        assert!(begun.elapsed() < LONG, "it is never so: {what}");
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

/// Nothing is in flight, nobody waits, and everything is free.
pub(crate) fn assert_whole(pool: &Pool) {
    let status = pool.status().unwrap();
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
