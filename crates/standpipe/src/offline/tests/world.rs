//! A world in virtual time: one memory store, processes that can each lose it in several ways, and
//! maintenance that is run by hand, so that the same seed gives the same story.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use standpipe_core::{Instant, Span, bounds};
use standpipe_store::trace::ManualClock;
use standpipe_store::{Log, LogRead, MemoryStore, PoolName, Position, Snapshot, Store, StoreError};

use crate::client::registry::StoreHandle;
use crate::maintenance::attend::attend;
use crate::{Error, Lease, Pool, Request, Settings, Standpipe};

/// How the store is for one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Up = 0,
    /// Every call fails.
    Cut = 1,
    /// Reads are answered, writes are refused.
    NoWrites = 2,
    /// Writes are done and their answers are lost, but for the first few; reads are answered.
    LosesAnswers = 3,
}

/// One store in virtual time.
pub(super) struct World {
    pub(super) time: ManualClock,
    store: MemoryStore,
}

/// A process on it.
pub(super) struct Process {
    link: Arc<AtomicU8>,
    /// How many answers to writes still arrive on a link that loses them.
    answers: Arc<AtomicUsize>,
    pub(super) pool: Pool,
    handle: Arc<StoreHandle>,
    _tap: Standpipe,
}

const POOL: &str = "t/api";

impl World {
    pub(super) fn new() -> Self {
        let time = ManualClock::default();
        time.set(Instant(bounds::SPAN.0));
        Self { store: MemoryStore::new(time.clock()), time }
    }

    /// A process with this configuration of the pool.
    pub(super) fn process(&self, pool: &str) -> Process {
        let text = format!("[pool.\"{POOL}\"]\nmargin = 0\nslack = 0\n{pool}\n");
        let settings = Settings::parse(&text, None, 1).unwrap();
        let (link, answers) = (Arc::<AtomicU8>::default(), Arc::<AtomicUsize>::default());
        let rig = Rig {
            inner: self.store.another_process(),
            time: self.time.clone(),
            link: Arc::clone(&link),
            answers: Arc::clone(&answers),
        };
        let tap = Standpipe::builder().settings(settings).on(Arc::new(rig)).agent("tests");
        let tap = tap.open().unwrap();
        let handle = tap.store_handle().unwrap();
        // Its maintenance is run by hand.
        handle.store_client().maintenance().stop();
        let pool = tap.pool(POOL).unwrap();
        Process { link, answers, pool, handle, _tap: tap }
    }

    pub(super) fn passes(&self, span: Span) {
        self.time.set(self.time.now() + span);
    }

    /// Time passes in steps, and the maintenance of every process runs in each.
    pub(super) fn passes_with(&self, span: Span, processes: &[Process]) {
        let end = self.time.now() + span;
        while self.time.now() < end {
            self.passes(Span::millis(500).min(end.since(self.time.now())));
            processes.iter().for_each(Process::maintain);
        }
    }
}

impl Process {
    pub(super) fn set(&self, link: Link) {
        self.link.store(link as u8, Ordering::SeqCst);
    }

    /// The next so many writes are answered; then they are done and their answers are lost.
    pub(super) fn loses_answers_after(&self, answers: usize) {
        self.answers.store(answers, Ordering::SeqCst);
        self.set(Link::LosesAnswers);
    }

    pub(super) fn is_up(&self) -> bool {
        self.link.load(Ordering::SeqCst) == Link::Up as u8
    }

    /// What its maintenance thread does when it wakes.
    pub(super) fn maintain(&self) {
        for client in self.handle.store_client().clients() {
            attend(self.handle.store_client(), &client, &mut client.dispatcher(), true);
        }
    }

    /// One call that does not wait.
    pub(super) fn call(&self) -> Result<Lease, Error> {
        self.call_as("blog")
    }

    pub(super) fn call_as(&self, agent: &str) -> Result<Lease, Error> {
        let request = Request::by(agent).unit("content", 1).timeout(Duration::ZERO);
        self.pool.reserve(request).blocking()
    }

    /// As many calls as are admitted, at most this many, all of them settled at once.
    pub(super) fn calls(&self, most: usize) -> usize {
        let granted = (0..most).map_while(|_| self.call().ok());
        granted.map(|lease| lease.commit([]).blocking().unwrap()).count()
    }

    pub(super) fn is_cut_off(&self) -> bool {
        self.handle.store_client().client(self.pool.name()).unwrap().offline().is_some()
    }

    /// Among how many it shares at present.
    pub(super) fn among(&self) -> Option<u64> {
        self.pool.status().blocking().unwrap().cut_off.map(|outage| outage.among)
    }
}

#[derive(Debug)]
struct Rig {
    inner: MemoryStore,
    time: ManualClock,
    link: Arc<AtomicU8>,
    answers: Arc<AtomicUsize>,
}

struct LinkedLog {
    log: Box<dyn Log + Send>,
    link: Arc<AtomicU8>,
    answers: Arc<AtomicUsize>,
}

impl LinkedLog {
    fn link(&self) -> u8 {
        self.link.load(Ordering::SeqCst)
    }
}

fn fails<T>(what: &str) -> Result<T, StoreError> {
    Err(StoreError::transient(format!("{what}, on purpose")))
}

impl Log for LinkedLog {
    fn append(&mut self, from: Position, bodies: &[Vec<u8>]) -> Result<LogRead, StoreError> {
        let (link, writes) = (self.link(), !bodies.is_empty());
        if link == Link::Cut as u8 {
            return fails("cut off");
        }
        if link == Link::NoWrites as u8 && writes {
            return fails("no memory left");
        }
        let since = self.log.append(from, bodies)?;
        let arrives = || {
            let less = |left: usize| left.checked_sub(1);
            self.answers.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok()
        };
        if link == Link::LosesAnswers as u8 && writes && !arrives() {
            return fails("the answer is lost");
        }
        Ok(since)
    }

    fn read(&mut self, from: Position) -> Result<LogRead, StoreError> {
        if self.link() == Link::Cut as u8 {
            return fails("cut off");
        }
        self.log.read(from)
    }

    fn write_snapshot(&mut self, snapshot: &Snapshot) -> Result<(), StoreError> {
        self.log.write_snapshot(snapshot)
    }
}

impl Store for Rig {
    fn log(&self, pool: &PoolName) -> Result<Box<dyn Log + Send>, StoreError> {
        let (link, answers) = (Arc::clone(&self.link), Arc::clone(&self.answers));
        Ok(Box::new(LinkedLog { log: self.inner.log(pool)?, link, answers }))
    }

    fn pools(&self) -> Result<Vec<PoolName>, StoreError> {
        self.inner.pools()
    }

    fn begin_session(&self) -> Result<u64, StoreError> {
        self.inner.begin_session()
    }

    fn end_session(&self, session: u64) {
        self.inner.end_session(session);
    }

    fn wait_for_wake(&self, at_most: Duration) {
        self.inner.wait_for_wake(at_most);
    }

    fn interrupt(&self) {
        self.inner.interrupt();
    }

    fn uptime(&self) -> Duration {
        Duration::from_micros(self.time.now().0)
    }

    fn location(&self) -> String {
        "a store in virtual time".to_owned()
    }
}
