//! Pairs in virtual time: the file store's own processes in one program, whose clocks, boot id,
//! deaths and stops the harness makes up. The referee is the same.

mod contest;
mod faults;
mod paced;
mod sets;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use standpipe_core::{
    Action, AgentName, Amounts, Answer, CalendarReset, Commit, Decision, Instant, Key, LimitId,
    Priority, Reserve, Span, Unit, bounds,
};
use standpipe_sim::Random;
use standpipe_store::{Clock, Liveness, Participant, Store};
use standpipe_store_file::{FileLog, FileStore, Options, Sizes, Time};

pub use self::faults::{Fault, all};
use self::sets::SetCall;
use crate::drive::Verdict;
use crate::referee::{self, Call, Era, Permitted};
use crate::setup::{DAY_PERIOD, Extra, LONG, Rule, Setup};

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

/// What a call asks for.
#[derive(Clone, Copy)]
struct Ask {
    pool: usize,
    slots: u64,
    /// How long it waits, in milliseconds.
    timeout: u64,
    background: bool,
}

impl Ask {
    const fn of(pool: usize) -> Self {
        Self { pool, slots: 1, timeout: 0, background: false }
    }
}

/// The ledger's answer.
enum Reply {
    Granted(Key),
    Waits(Key),
    Refused(String),
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

    fn ask(&mut self, at: usize, ask: Ask) -> Result<bool, String> {
        let call = self.record(at, ask);
        let reply = self.reserve(at, ask.pool, None, call)?;
        Ok(self.follow(at, ask.pool, call, reply))
    }

    /// Records that a process asks, and returns the number of the call.
    fn record(&mut self, at: usize, ask: Ask) -> usize {
        self.calls.push(Call {
            worker: self.processes[at].name.clone(),
            pool: self.eras[0].setup.pools[ask.pool].name.to_owned(),
            lease: String::new(),
            asked: self.now,
            slots: ask.slots,
            background: ask.background,
            timeout: ask.timeout,
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
        self.calls.len() - 1
    }

    fn claim(&mut self, at: usize) -> Result<(), String> {
        let Some((pool, ticket, call)) = self.processes[at].waits.take() else { return Ok(()) };
        let reply = self.reserve(at, pool, Some(ticket), call)?;
        self.follow(at, pool, call, reply);
        Ok(())
    }

    /// Records the answer to a call on one pool. Returns whether it was granted.
    fn follow(&mut self, at: usize, pool: usize, call: usize, reply: Reply) -> bool {
        let process = &mut self.processes[at];
        match reply {
            Reply::Granted(lease) => {
                process.held.push((pool, lease, call));
                self.answered(call, None);
                return true;
            }
            Reply::Waits(ticket) => process.waits = Some((pool, ticket, call)),
            Reply::Refused(words) => self.answered(call, Some(words)),
        }
        false
    }

    /// Records that a call was granted, or refused with these words.
    fn answered(&mut self, call: usize, refused: Option<String>) {
        let logged = &mut self.calls[call];
        (logged.answered, logged.granted) = (Some(self.now), refused.is_none());
        logged.words = refused.unwrap_or_default();
    }

    fn reserve(
        &mut self,
        at: usize,
        pool: usize,
        ticket: Option<Key>,
        call: usize,
    ) -> Result<Reply, String> {
        let logged = &self.calls[call];
        let waited = self.now - logged.asked;
        let patience = Span((logged.timeout * 1_000).saturating_sub(waited));
        self.reserve_for(at, pool, ticket, call, patience)
    }

    fn reserve_for(
        &mut self,
        at: usize,
        pool: usize,
        ticket: Option<Key>,
        call: usize,
        patience: Span,
    ) -> Result<Reply, String> {
        let process = &mut self.processes[at];
        let is_blind = self.bug == Some(Bug::DeathUnnoticed);
        end_dead_sessions(&mut process.members[pool], &process.store, is_blind)?;
        let agent = AgentName::new(&process.name).ok_or("not an agent")?;
        let Call { slots, background, .. } = self.calls[call];
        let slots = Some((Unit::Parallel, slots)).filter(|(_, many)| *many > 1);
        let cost = Amounts::cost(slots).map_err(|_| "not a cost")?;
        let priority = background.then_some(Priority::Background);
        let reserve = Reserve { patience, ticket, priority, ..Reserve::new(agent, cost) };
        let outcomes = process.members[pool].submit(vec![Action::from(reserve)]);
        let outcomes = outcomes.map_err(words)?;
        Ok(match outcomes.first().map(|outcome| &outcome.answer) {
            Some(Answer::Decided(Decision::Admit(grant))) => Reply::Granted(grant.lease),
            Some(Answer::Decided(Decision::Wait(hold))) => Reply::Waits(hold.ticket),
            other => Reply::Refused(format!("{other:?}")),
        })
    }

    fn settle(&mut self, at: usize, which: usize) -> Result<(), String> {
        let (pool, lease, call) = self.processes[at].held.swap_remove(which);
        let cancels = self.random.below(8) == 0;
        let logged = &mut self.calls[call];
        (logged.held_until, logged.settled, logged.cancelled) = (self.now, true, cancels);
        self.end_lease(at, pool, lease, cancels)
    }

    fn end_lease(
        &mut self,
        at: usize,
        pool: usize,
        lease: Key,
        cancels: bool,
    ) -> Result<(), String> {
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

    /// Everybody settles, who waits is served, and a new process can take everything.
    fn finish(&mut self) -> Result<(), String> {
        for at in 0..self.processes.len() {
            self.processes[at].stopped = false;
            while !self.processes[at].held.is_empty() {
                self.settle(at, 0)?;
            }
        }
        for round in 0..55 {
            // Long enough for those whose death cannot be tested.
            self.pass(if round < 40 { 500_000 } else { 10_000_000 });
            for at in 0..self.processes.len() {
                self.claim(at)?;
                self.ask(at, Ask::of(DAYS))?;
                self.ask_paced(at)?;
                self.end_contest(at)?;
                self.end_sets(at)?;
                while !self.processes[at].held.is_empty() {
                    self.settle(at, 0)?;
                }
                // Every 20 s at the latest.
                if round % 2 == 0 {
                    self.beat(at)?;
                }
            }
        }
        self.start(self.boot_id)?;
        // Only a new process reads all of the file: it may be the first to find it damaged.
        self.pass(3_000_000);
        self.take_all()
    }

    /// A process shows that it lives, and makes a missing lock again.
    fn beat(&mut self, at: usize) -> Result<(), String> {
        let process = &mut self.processes[at];
        for member in &mut process.members {
            member.submit(vec![BEAT]).map_err(words)?;
        }
        let sessions = process.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.iter().for_each(|session| process.store.renew_session(*session));
        Ok(())
    }

    /// The last process takes the whole capacity of each pool.
    fn take_all(&mut self) -> Result<(), String> {
        let at = self.processes.len() - 1;
        let pools = self.setup().pools;
        for (pool, limits) in pools.iter().enumerate() {
            let amount = match limits.rule {
                // Only background is left, long after.
                _ if limits.name == LONG => continue,
                Rule::Parallel(amount) | Rule::Window(amount, _) => amount,
                Rule::Bucket(_, _, burst) => burst,
                // A day is too long to wait for.
                Rule::Day(..) | Rule::Absent => continue,
            };
            // What was taken from a pool counts at its parent, too.
            self.pass(2_100_000);
            for taken in 0..amount {
                if !self.ask(at, Ask::of(pool))? {
                    let last = self.calls.last().map_or("", |call| &call.words);
                    return Err(format!("{taken} of {amount} on {}: {last}", limits.name));
                }
            }
            while !self.processes[at].held.is_empty() {
                self.settle(at, 0)?;
            }
        }
        self.background_alone(at)
    }
}

/// When a run begins on the referee's clock.
const FIRST_INSTANT: u64 = 1_000_000_000;
/// The pool with days, among those of [`Setup::in_virtual_time`].
const DAYS: usize = 3;
/// How long a patient call waits, in milliseconds.
const PATIENT: u64 = 20_000;

const BEAT: Action = Action::Heartbeat { lease: None, ttl: None };

impl Drop for World {
    fn drop(&mut self) {
        self.processes.clear();
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// Ends the sessions of the dead, as a process that is about to be refused does.
fn end_dead_sessions(
    member: &mut Participant<FileLog>,
    store: &FileStore,
    is_blind: bool,
) -> Result<(), String> {
    member.refresh().map_err(words)?;
    let now = member.replica().now();
    let state = member.replica().state();
    let silent: Vec<u64> = state.silent_sessions(now).collect();
    let is_dead = |session: &u64| match store.liveness(*session) {
        Liveness::Dead if !is_blind => true,
        Liveness::Alive => false,
        Liveness::Dead | Liveness::Unknown => silent.contains(session),
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
