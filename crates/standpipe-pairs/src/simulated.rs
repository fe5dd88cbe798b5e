//! Pairs in virtual time: the file store's own processes in one program, whose clocks, boot id,
//! deaths and stops the harness makes up. The referee is the same.

mod faults;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, CalendarReset, Commit, Decision, Instant, Key, LimitId,
    Reserve, Span, Unit, bounds,
};
use standpipe_sim::Random;
use standpipe_store::{Clock, Liveness, Participant, Store};
use standpipe_store_file::{FileLog, FileStore, Options, Sizes, Time};

pub use self::faults::{Fault, all};
use crate::drive::Verdict;
use crate::referee::{self, Call, Era, Permitted};
use crate::setup::{DAY_PERIOD, Rule, Setup};

/// A process.
struct Process {
    name: String,
    store: FileStore,
    members: Vec<Participant<FileLog>>,
    /// Pool, lease and the number of the call.
    held: Vec<(usize, Key, usize)>,
    /// Pool, ticket and the number of the call.
    waits: Option<(usize, Key, usize)>,
    stopped: bool,
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
    processes: Vec<Process>,
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
    let mut verdict = Verdict::default();
    let mut world = World::new(seed);
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
    verdict
}

impl World {
    fn new(seed: u64) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sp-pairs-v-{}-{count}", std::process::id());
        Self {
            base: std::env::temp_dir().join(name),
            boot: Arc::new(AtomicU64::new(FIRST_INSTANT)),
            wall: Arc::new(AtomicU64::new(bounds::SPAN.0 * 2)),
            boot_id: 1,
            now: FIRST_INSTANT,
            random: Random::new(seed),
            extras: Random::new(seed ^ 0x5a5a),
            processes: Vec::new(),
            calls: Vec::new(),
            eras: vec![Era { begins: 0, sure: 0, setup: Setup::of_single_pools() }],
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
        self.eras.last().map_or_else(Setup::of_single_pools, |era| era.setup.clone())
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
        let begin = || {
            let (store, mut last) = (store.clone(), None);
            move || *last.insert(last.map_or(session, |it| store.begin_session().unwrap_or(it)))
        };
        let setup = self.setup();
        let mut members = Vec::new();
        for pool in &setup.pools {
            let name = pool.name.parse().map_err(|_| "not a name")?;
            let mut member = Participant::new(store.pool_log(&name), begin());
            member.submit(vec![faults::configure(&setup, pool)]).map_err(words)?;
            self.announce(&mut member, pool.rule)?;
            members.push(member);
        }
        self.started += 1;
        let name = format!("p{}", self.started);
        let (held, waits) = (Vec::new(), None);
        self.processes.push(Process { name, store, members, held, waits, stopped: false });
        Ok(())
    }

    /// Steps of random processes, with random time between them.
    fn steps(&mut self, least: u64, more: u64) -> Result<(), String> {
        for _ in 0..least + self.random.below(more) {
            let pause = self.random.below(30_000);
            self.pass(pause);
            self.watch()?;
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
        let time_of_day = begins - FIRST_INSTANT;
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
            self.ask(at, DAYS, 1, false)?;
        }
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
        let slots = if pool == 0 && self.extras.below(4) == 0 { 2 } else { 1 };
        self.ask(at, pool, slots, patient).map(|_| ())
    }

    fn ask(&mut self, at: usize, pool: usize, slots: u64, patient: bool) -> Result<bool, String> {
        let process = &self.processes[at];
        self.calls.push(Call {
            worker: process.name.clone(),
            pool: self.setup().pools[pool].name.to_owned(),
            lease: String::new(),
            asked: self.now,
            slots,
            timeout: if patient { 20_000 } else { 0 },
            answered: None,
            granted: false,
            local: false,
            cancelled: false,
            unanswered: false,
            held_until: u64::MAX,
            settled: false,
            last: u64::MAX,
            words: String::new(),
        });
        let patience = if patient { Span::secs(20) } else { Span::ZERO };
        self.reserve(at, pool, patience, None, self.calls.len() - 1)
    }

    fn claim(&mut self, at: usize) -> Result<(), String> {
        let Some((pool, ticket, call)) = self.processes[at].waits.take() else { return Ok(()) };
        let waited = self.now - self.calls[call].asked;
        let left = Span(20_000_000_u64.saturating_sub(waited));
        self.reserve(at, pool, left, Some(ticket), call).map(|_| ())
    }

    fn reserve(
        &mut self,
        at: usize,
        pool: usize,
        patience: Span,
        ticket: Option<Key>,
        call: usize,
    ) -> Result<bool, String> {
        let now = self.now;
        let process = &mut self.processes[at];
        end_dead_sessions(&mut process.members[pool], &process.store)?;
        let agent = AgentName::new(&process.name).ok_or("not an agent")?;
        let slots = Some((Unit::Parallel, self.calls[call].slots)).filter(|(_, many)| *many > 1);
        let cost = Amounts::cost(slots).map_err(|_| "not a cost")?;
        let reserve = Reserve { patience, ticket, ..Reserve::new(agent, cost) };
        let outcomes = process.members[pool].submit(vec![Action::from(reserve)]);
        let outcomes = outcomes.map_err(words)?;
        let answer = outcomes.first().map(|outcome| &outcome.answer);
        let logged = &mut self.calls[call];
        match answer {
            Some(Answer::Decided(Decision::Admit(grant))) => {
                (logged.answered, logged.granted) = (Some(now), true);
                process.held.push((pool, grant.lease, call));
                return Ok(true);
            }
            Some(Answer::Decided(Decision::Wait(hold))) => {
                process.waits = Some((pool, hold.ticket, call));
            }
            other => {
                logged.answered = Some(now);
                logged.words = format!("{other:?}");
            }
        }
        Ok(false)
    }

    fn settle(&mut self, at: usize, which: usize) -> Result<(), String> {
        let (pool, lease, call) = self.processes[at].held.swap_remove(which);
        let cancels = self.random.below(8) == 0;
        let logged = &mut self.calls[call];
        (logged.held_until, logged.settled, logged.cancelled) = (self.now, true, cancels);
        let used = Amounts::default();
        let action = match cancels {
            true => Action::Cancel { lease },
            false => Action::Commit(Commit { lease, used, progress: false, refused: false }),
        };
        self.processes[at].members[pool].submit(vec![action]).map_err(words).map(|_| ())
    }

    /// A process dies. What it held ends there.
    fn kill(&mut self, at: usize) {
        let process = self.processes.swap_remove(at);
        let now = self.now;
        for call in self.calls.iter_mut().filter(|call| call.worker == process.name) {
            call.last = now;
            call.held_until = call.held_until.min(now);
        }
    }

    /// Everybody settles, who waits is served, and a new process can take everything.
    fn finish(&mut self) -> Result<(), String> {
        for at in 0..self.processes.len() {
            self.processes[at].stopped = false;
            while !self.processes[at].held.is_empty() {
                self.settle(at, 0)?;
            }
        }
        for round in 0..70 {
            // Long enough for those whose death cannot be tested.
            self.pass(if round < 40 { 500_000 } else { 5_000_000 });
            for at in 0..self.processes.len() {
                self.claim(at)?;
                self.ask(at, DAYS, 1, false)?;
                while !self.processes[at].held.is_empty() {
                    self.settle(at, 0)?;
                }
                for member in &mut self.processes[at].members {
                    member.submit(vec![BEAT]).map_err(words)?;
                }
            }
        }
        self.start(self.boot_id)?;
        // Only a new process reads all of the file: it may be the first to find it damaged.
        self.pass(3_000_000);
        let at = self.processes.len() - 1;
        let pools = self.setup().pools;
        for (pool, limits) in pools.iter().enumerate() {
            let amount = match limits.rule {
                Rule::Parallel(amount) | Rule::Window(amount, _) => amount,
                Rule::Bucket(_, _, burst) => burst,
                // A day is too long to wait for.
                Rule::Day(..) | Rule::Absent => continue,
            };
            for taken in 0..amount {
                if !self.ask(at, pool, 1, false)? {
                    let last = self.calls.last().map_or("", |call| &call.words);
                    return Err(format!("{taken} of {amount} on {}: {last}", limits.name));
                }
            }
            while !self.processes[at].held.is_empty() {
                self.settle(at, 0)?;
            }
        }
        Ok(())
    }
}

/// When a run begins on the referee's clock.
const FIRST_INSTANT: u64 = 1_000_000_000;
/// The pool with days, among those of [`Setup::of_single_pools`].
const DAYS: usize = 3;

const BEAT: Action = Action::Heartbeat { lease: None, ttl: None };

impl Drop for World {
    fn drop(&mut self) {
        self.processes.clear();
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Ends the sessions of the dead, as a process that is about to be refused does.
fn end_dead_sessions(member: &mut Participant<FileLog>, store: &FileStore) -> Result<(), String> {
    member.refresh().map_err(words)?;
    let now = member.replica().now();
    let state = member.replica().state();
    let silent: Vec<u64> = state.silent_sessions(now).collect();
    let is_dead = |session: &u64| match store.liveness(*session) {
        Liveness::Dead => true,
        Liveness::Alive => false,
        Liveness::Unknown => silent.contains(session),
    };
    let dead = state.facts().sessions.keys().copied().filter(is_dead);
    let ended: Vec<Action> = dead.map(|session| Action::SessionEnded { session }).collect();
    if !ended.is_empty() {
        member.submit(ended).map_err(words)?;
    }
    Ok(())
}

fn words(error: standpipe_store::StoreError) -> String {
    error.to_string()
}
