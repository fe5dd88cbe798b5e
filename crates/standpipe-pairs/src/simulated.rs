//! Pairs in virtual time: the file store's own processes in one program, whose clocks, boot id,
//! deaths and stops the harness makes up. The referee is the same.

mod calls;
mod contest;
mod faults;
mod finish;
mod paced;
mod sets;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use standpipe_core::{Action, CalendarReset, Instant, Key, LimitId, Span, Unit, bounds};
use standpipe_sim::Random;
use standpipe_store::{Clock, Participant, Store};
use standpipe_store_file::{FileLog, FileStore, Options, Sizes, Time};

use self::calls::Ask;
pub use self::faults::{Fault, all};
use self::sets::SetCall;
use crate::drive::Verdict;
use crate::referee::{self, Call, Era, Permitted};
use crate::setup::{DAY_PERIOD, Extra, Rule, Setup};

/// A process.
struct Process {
    name: String,
    store: FileStore,
    /// Its sessions, one after the other.
    sessions: Arc<Mutex<Vec<u64>>>,
    members: Vec<Participant<FileLog>>,
    /// Pool, lease and the number of the call.
    held: Vec<(usize, Key, usize)>,
    /// Pool, ticket and the number of the call.
    waits: Option<(usize, Key, usize)>,
    /// Tickets on the pool in fair order, and the numbers of their calls.
    contest: VecDeque<(Key, usize)>,
    /// Calls that draw on two pools.
    sets: Vec<SetCall>,
    stopped: bool,
}

/// A bug that is planted, to see that the referee finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The ledger does not pace background.
    Unpaced,
    /// The ledger gives all agents the same weight.
    Unweighted,
    /// A pool does not draw on its parent.
    NoParent,
    /// The lease on the parent is never settled.
    ParentUnsettled,
    /// Earlier charges are not dated to the last grant.
    Undated,
    /// A death that the machine shows is noticed only by two minutes of silence.
    DeathUnnoticed,
}

/// A machine and the processes on it.
pub struct World {
    base: PathBuf,
    boot: Arc<AtomicU64>,
    wall: Arc<AtomicU64>,
    boot_id: u64,
    /// What the referee dates everything with: it only ever passes.
    now: u64,
    random: Random,
    /// What decides about slots and calls on the pool with days. It is apart, so that the other
    /// decisions of a seed stay.
    extras: Random,
    extra: Extra,
    bug: Option<Bug>,
    processes: Vec<Process>,
    /// The names of processes that died.
    dead: Vec<String>,
    calls: Vec<Call>,
    eras: Vec<Era>,
    permitted: Permitted,
    kept: Vec<(PathBuf, Vec<u8>)>,
    started: u64,
    /// The wall clock went forward by a day.
    wall_is_ahead: bool,
    /// When processes last looked whether their files are there.
    watched: u64,
}

/// Runs a pair.
#[must_use]
pub fn run(a: Fault, b: Fault, seed: u64) -> Verdict {
    // Other pools for each pair, and for each seed of a pair.
    let name = format!("{a:?} {b:?}");
    let number = name.bytes().fold(seed, |sum, byte| sum.wrapping_add(u64::from(byte)));
    run_with(a, b, seed, Extra::draw(number), None)
}

/// Runs a pair with these pools and a bug.
#[must_use]
pub fn run_with(a: Fault, b: Fault, seed: u64, extra: Extra, bug: Option<Bug>) -> Verdict {
    let mut verdict = Verdict::default();
    let mut world = World::new(seed, extra, bug);
    let mut contested_until = u64::MAX;
    let mut attempt = || -> Result<(), String> {
        for _ in 0..3 {
            world.start(world.boot_id)?;
        }
        world.steps(30, 40)?;
        faults::inject(a, &mut world)?;
        world.steps(0, 30)?;
        faults::inject(b, &mut world)?;
        world.steps(15, 40)?;
        let (first, second) = if world.random.below(2) == 0 { (a, b) } else { (b, a) };
        faults::end(first, &mut world)?;
        world.steps(0, 15)?;
        faults::end(second, &mut world)?;
        world.steps(20, 40)?;
        contested_until = world.now;
        world.finish()
    };
    if let Err(error) = attempt() {
        verdict.broken.push(error);
    }
    verdict.asked = world.calls.len();
    verdict.granted = world.calls.iter().filter(|call| call.granted).count();
    let (calls, eras, permitted) = (&world.calls, &world.eras, &world.permitted);
    verdict.broken.extend(referee::judge(calls, eras, permitted));
    verdict.broken.extend(referee::cap::judge(calls, eras, permitted));
    verdict.broken.extend(referee::paced::judge(calls, eras, permitted));
    verdict.broken.extend(referee::within::judge(calls, eras, permitted));
    verdict.broken.extend(referee::fair::judge(calls, eras, permitted, contested_until));
    verdict
}

impl World {
    fn new(seed: u64, extra: Extra, bug: Option<Bug>) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sp-pairs-v-{}-{count}", std::process::id());
        let setup = Setup::in_virtual_time(extra);
        Self {
            base: std::env::temp_dir().join(name),
            boot: Arc::new(AtomicU64::new(FIRST_INSTANT)),
            wall: Arc::new(AtomicU64::new(bounds::SPAN.0 * 2)),
            boot_id: 1,
            now: FIRST_INSTANT,
            random: Random::new(seed),
            extras: Random::new(seed ^ 0x5a5a),
            extra,
            bug,
            processes: Vec::new(),
            dead: Vec::new(),
            calls: Vec::new(),
            eras: vec![Era { begins: 0, sure: 0, setup }],
            permitted: Permitted::default(),
            kept: Vec::new(),
            started: 0,
            wall_is_ahead: false,
            watched: 0,
        }
    }

    /// A process sees another boot id. If that is a restart, the store's clock advances by what the
    /// wall clock shows since the last step.
    fn believe_the_wall_clock(&mut self) {
        self.permitted.clock_ahead.extend(self.wall_is_ahead.then_some(self.now));
    }

    fn setup(&self) -> Setup {
        let last = self.eras.last();
        last.map_or_else(|| Setup::in_virtual_time(self.extra), |era| era.setup.clone())
    }

    /// The number of a pool, which no change of the limits changes.
    fn pool_number(&self, name: &str) -> Option<usize> {
        self.eras[0].setup.pools.iter().position(|pool| pool.name == name)
    }

    fn pass(&mut self, micros: u64) {
        self.boot.fetch_add(micros, Ordering::Relaxed);
        self.wall.fetch_add(micros, Ordering::Relaxed);
        self.now += micros;
    }

    fn start(&mut self, boot_id: u64) -> Result<(), String> {
        let clock = |value: &Arc<AtomicU64>| -> Clock {
            let value = Arc::clone(value);
            Arc::new(move || Instant(value.load(Ordering::Relaxed)))
        };
        let time = Time::machine(clock(&self.boot), clock(&self.wall), boot_id);
        let sizes = Sizes { log: 64 << 10, snapshot: 64 << 10 };
        let options = Options { time, sizes, ..Options::default() };
        let store = FileStore::open_with(&self.base, options).map_err(words)?;
        let session = store.begin_session().map_err(words)?;
        let sessions = Arc::new(Mutex::new(vec![session]));
        let begin = || {
            let (store, sessions, mut last) = (store.clone(), Arc::clone(&sessions), None);
            move || {
                let next = last.map_or(session, |it| store.begin_session().unwrap_or(it));
                sessions.lock().unwrap_or_else(PoisonError::into_inner).push(next);
                *last.insert(next)
            }
        };
        let setup = self.setup();
        let mut members = Vec::new();
        for pool in &setup.pools {
            let name = pool.name.parse().map_err(|_| "not a name")?;
            let mut member = Participant::new(store.pool_log(&name), begin());
            member.submit(vec![faults::configure(&setup, pool, self.bug)]).map_err(words)?;
            self.announce(&mut member, pool.rule)?;
            members.push(member);
        }
        self.started += 1;
        let name = format!("p{}", self.started);
        self.processes.push(Process {
            name,
            store,
            sessions,
            members,
            held: Vec::new(),
            waits: None,
            contest: VecDeque::new(),
            sets: Vec::new(),
            stopped: false,
        });
        Ok(())
    }

    /// Steps of random processes, with random time between them.
    fn steps(&mut self, least: u64, more: u64) -> Result<(), String> {
        for _ in 0..least + self.random.below(more) {
            let pause = self.random.below(30_000);
            self.pass(pause);
            self.watch()?;
            self.contend()?;
            let at = self.random.below(self.processes.len() as u64) as usize;
            if self.processes.get(at).is_some_and(|process| !process.stopped) {
                self.step(at)?;
            }
        }
        Ok(())
    }

    /// Once a second each process sees whether its files are still there, as the library does.
    fn watch(&mut self) -> Result<(), String> {
        if self.now < self.watched + 1_000_000 {
            return Ok(());
        }
        self.watched = self.now;
        let setup = self.setup();
        let mut processes = std::mem::take(&mut self.processes);
        let mut watch = || -> Result<(), String> {
            for process in processes.iter_mut().filter(|process| !process.stopped) {
                for (member, pool) in process.members.iter_mut().zip(&setup.pools) {
                    if member.is_current() == Some(false) {
                        member.refresh().map_err(words)?;
                    }
                    self.announce(member, pool.rule)?;
                }
            }
            Ok(())
        };
        let watched = watch();
        self.processes = processes;
        watched
    }

    /// Announces the resets of a calendar window by the wall clock, as the library does.
    fn announce(&self, member: &mut Participant<FileLog>, rule: Rule) -> Result<(), String> {
        let Rule::Day(_, begins) = rule else { return Ok(()) };
        let limit = LimitId::Window(Unit::Requests, Span(DAY_PERIOD));
        // The wall clock begins with a day when the referee's is at its first instant.
        let time_of_day = (begins + DAY_PERIOD - FIRST_INSTANT) % DAY_PERIOD;
        let since = (self.wall.load(Ordering::Relaxed) + DAY_PERIOD - time_of_day) % DAY_PERIOD;
        let (since, left) = (Span(since), Span(DAY_PERIOD - since));
        let resets = vec![CalendarReset { limit, since, left }];
        let replica = member.replica();
        if replica.state().would_announce(&resets, replica.now()) {
            member.submit(vec![Action::Calendar { resets }]).map_err(words)?;
        }
        Ok(())
    }

    fn step(&mut self, at: usize) -> Result<(), String> {
        if self.extras.below(4) == 0 {
            self.ask(at, Ask::of(DAYS))?;
        }
        self.ask_paced(at)?;
        self.step_sets(at)?;
        if self.processes[at].waits.is_some() && self.random.below(2) == 0 {
            return self.claim(at);
        }
        let held = self.processes[at].held.len() as u64;
        if held > 0 && self.random.below(3) > 0 {
            let which = self.random.below(held) as usize;
            return self.settle(at, which);
        }
        let pool = self.random.below(3) as usize;
        let patient = self.processes[at].waits.is_none() && self.random.below(4) == 0;
        let timeout = if patient { PATIENT } else { 0 };
        let slots = if pool == 0 && self.extras.below(4) == 0 { 2 } else { 1 };
        self.ask(at, Ask { slots, timeout, ..Ask::of(pool) }).map(|_| ())
    }

    /// A process dies. What it held ends there.
    fn kill(&mut self, at: usize) {
        let process = self.processes.swap_remove(at);
        let sessions = process.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = |session: &u64| self.base.join(format!("sessions/{session:014x}.lock"));
        if !sessions.iter().all(|session| lock(session).exists()) {
            self.permitted.unseen.push(process.name.clone());
        }
        self.dead.push(process.name.clone());
        let now = self.now;
        for call in self.calls.iter_mut().filter(|call| call.worker == process.name) {
            call.last = now;
            call.held_until = call.held_until.min(now);
        }
    }
}

/// When a run begins on the referee's clock.
const FIRST_INSTANT: u64 = 1_000_000_000;
/// The pool with days, among those of [`Setup::in_virtual_time`].
const DAYS: usize = 3;
/// How long a patient call waits, in milliseconds.
const PATIENT: u64 = 20_000;

impl Drop for World {
    fn drop(&mut self) {
        self.processes.clear();
        let _ = fs::remove_dir_all(&self.base);
    }
}

fn words(error: standpipe_store::StoreError) -> String {
    error.to_string()
}
