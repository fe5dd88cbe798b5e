//! Fault B55: power loss. After a random run the pool's file is a mixture of old and new pages,
//! perhaps truncated, and is opened with or without a reboot. The pool is usable, no unit is
//! created, and a reset works.
//!
//! The test counts what participants were granted and never reads the ledger. Repeat one case with
//! `STANDPIPE_SEED=n`.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use standpipe_core::{
    Action, Configure, Instant, Limit, PoolConfig, Rule, Source, Span, Unit, bounds,
};
use standpipe_store::{Clock, Log, Participant, Store, entry};
use standpipe_store_file::{FileLog, FileStore, Options, Sizes, Time};

use crate::support::{Scratch, admitted, ask, commit, more, pool, write_to_the_first};

const PAGE: usize = 4_096;
/// Where the log begins in the file.
const LOG_AT: usize = 8_192;
const SIZES: Sizes = Sizes { log: 16 << 10, snapshot: 8 << 10 };
/// The limit: `LIMIT` calls per `PERIOD` seconds, and `SLOTS` at once.
const LIMIT: u64 = 24;
const PERIOD: u64 = 60;
const SLOTS: u64 = 8;
/// How many mixtures of each run are tested.
const MIXTURES: u64 = 100;

/// A deterministic random generator.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % bound
    }
}

/// A simulated machine with clocks and reboots.
struct Machine {
    boot: Arc<AtomicU64>,
    wall: Arc<AtomicU64>,
    start: u64,
}

impl Machine {
    fn new() -> Self {
        let boot = Arc::new(AtomicU64::new(1_000_000_000));
        let wall = Arc::new(AtomicU64::new(bounds::SPAN.0 * 2));
        Self { boot, wall, start: 1 }
    }

    fn copied(&self) -> Self {
        let copy = |clock: &AtomicU64| Arc::new(AtomicU64::new(clock.load(Ordering::Relaxed)));
        Self { boot: copy(&self.boot), wall: copy(&self.wall), start: self.start }
    }

    fn pass(&self, micros: u64) {
        self.boot.fetch_add(micros, Ordering::Relaxed);
        self.wall.fetch_add(micros, Ordering::Relaxed);
    }

    /// The clock by which the test dates grants.
    fn now(&self) -> u64 {
        self.wall.load(Ordering::Relaxed)
    }

    fn store(&self, scratch: &Scratch) -> FileStore {
        let clock = |value: &Arc<AtomicU64>| -> Clock {
            let value = Arc::clone(value);
            Arc::new(move || Instant(value.load(Ordering::Relaxed)))
        };
        let time = Time::machine(clock(&self.boot), clock(&self.wall), self.start);
        let options = Options { time, sizes: SIZES, ..Options::default() };
        FileStore::open_with(scratch.path(), options).unwrap()
    }
}

fn limits() -> Action {
    let period = Span::secs(PERIOD);
    let rule = Rule::Window { unit: Unit::Requests, amount: LIMIT, period };
    let limits = vec![Limit::new(rule), Limit::new(Rule::Parallel { amount: SLOTS })];
    // Slots of a lost ledger return after this time.
    let config = PoolConfig { lease_ttl: period, ..PoolConfig::new(limits) };
    Action::Configure(Box::new(Configure { source: Source::Code, config }))
}

fn joins(store: &FileStore) -> Participant<FileLog> {
    let sessions = store.clone();
    let mut member =
        Participant::new(store.pool_log(&pool()), move || sessions.begin_session().unwrap());
    member.submit(vec![limits()]).unwrap();
    member
}

/// A run of a pool: when calls were granted, and the file after each operation.
#[derive(Default)]
struct Run {
    grants: Vec<u64>,
    images: Vec<(u64, Vec<u8>)>,
}

fn random_run(chance: &mut Chance, machine: &Machine, scratch: &Scratch) -> Run {
    let store = machine.store(scratch);
    let mut member = joins(&store);
    let (mut run, mut held) = (Run::default(), Vec::new());
    for _ in 0..20 + chance.below(120) {
        machine.pass(1 + chance.below(1_500_000));
        match chance.below(8) {
            0 => {
                let snapshot = member.replica().snapshot();
                store.pool_log(&pool()).write_snapshot(&snapshot).unwrap();
            }
            1 => drop(member.submit(vec![Action::Heartbeat { lease: None, ttl: None }]).unwrap()),
            2 | 3 if !held.is_empty() => {
                let lease = held.swap_remove(chance.below(held.len() as u64) as usize);
                member.submit(vec![commit(lease)]).unwrap();
            }
            _ => {
                if let Some(lease) = admitted(&ask(&mut member)) {
                    run.grants.push(machine.now());
                    held.push(lease);
                }
            }
        }
        run.images.push((machine.now(), fs::read(store.path_of(&pool())).unwrap()));
    }
    run
}

/// A file after a power loss.
struct Left {
    bytes: Vec<u8>,
    /// When the newest operation ended of which anything survived. The file of a machine that
    /// stopped at this moment can look the same.
    as_of: u64,
    /// Whether there were later ones.
    earlier: bool,
}

/// Takes each page from the old or the new image, and sometimes truncates the file.
fn mixture(chance: &mut Chance, run: &Run) -> Left {
    let newest = run.images.len() - 1;
    let old = newest - chance.below(run.images.len() as u64).min(40) as usize;
    let before = &run.images[old].1;
    let after = &run.images[newest].1;
    let odds = chance.below(5);
    let mut bytes = Vec::with_capacity(after.len());
    for (one, other) in before.chunks(PAGE).zip(after.chunks(PAGE)) {
        let is_old = chance.below(4) < odds;
        bytes.extend_from_slice(if is_old { one } else { other });
    }
    let heads = [0..PAGE, PAGE..LOG_AT].map(|head| last_change(run, old, head, &bytes));
    let survived = heads[0].max(heads[1]).max(newest_entry(run, old, &bytes));
    let cut = chance.below(4) == 0;
    if cut {
        bytes.truncate(chance.below(bytes.len() as u64) as usize);
    }
    Left { bytes, as_of: run.images[survived].0, earlier: survived < newest }
}

/// Returns the operation that wrote a page with a head as it is, or the old image's.
fn last_change(run: &Run, old: usize, page: Range<usize>, bytes: &[u8]) -> usize {
    let wrote = |at: &usize| {
        let (before, after) = (&run.images[at - 1].1, &run.images[*at].1);
        before[page.clone()] != after[page.clone()] && bytes[page.clone()] == after[page.clone()]
    };
    (old + 1..run.images.len()).rev().find(wrote).unwrap_or(old)
}

/// Returns the last operation of which the ring has a whole entry, or the old image's.
fn newest_entry(run: &Run, old: usize, bytes: &[u8]) -> usize {
    let ring = &bytes[LOG_AT..LOG_AT + SIZES.log as usize];
    let entries = (0..ring.len()).filter_map(|at| entry::take(&ring[at..]).ok());
    let stamps: BTreeSet<u64> = entries.map(|(entry, _)| entry.stamp.0).collect();
    let survived = |at: &usize| stamps.contains(&run.images[*at].0);
    (old + 1..run.images.len()).rev().find(survived).unwrap_or(old)
}

/// What was granted afterwards, and whether the file was quarantined.
struct After {
    grants: Vec<u64>,
    anew: bool,
    began: u64,
}

fn use_it(chance: &mut Chance, machine: &Machine, scratch: &Scratch) -> After {
    let store = machine.store(scratch);
    let began = machine.now();
    let mut grants = Vec::new();
    let mut anew = false;
    let mut member = joins(&store);
    // All other sessions are dead.
    crate::support::bury_the_dead(&mut member, &store);
    while machine.now() < began + 2_250_000 * PERIOD {
        while let Some(lease) = admitted(&ask(&mut member)) {
            grants.push(machine.now());
            member.submit(vec![commit(lease)]).unwrap();
        }
        member.replica().state().check().unwrap();
        anew |= !store.take_messages().is_empty();
        machine.pass(3_000_000 + chance.below(12_000_000));
    }
    After { grants, anew, began }
}

/// Returns the most grants in any period.
fn most_in_a_period(grants: &[u64]) -> u64 {
    let within = |end: &u64| {
        let begin = end.saturating_sub(PERIOD * 1_000_000);
        grants.iter().filter(|at| (begin + 1..=*end).contains(*at)).count()
    };
    grants.iter().map(within).max().unwrap_or(0) as u64
}

fn judge(seed: u64, run: &Run, left: &Left, after: &After) {
    let told = format!("STANDPIPE_SEED={seed}");
    let grants = &after.grants;
    assert!(most_in_a_period(grants) <= LIMIT, "{told}: over the limit afterwards");
    let later = grants.iter().filter(|at| **at >= after.began + PERIOD * 1_000_000).count() as u64;
    assert!(later >= LIMIT / 2, "{told}: {later} grants after one period, it is not usable");
    if after.anew {
        // The limit counts as full and returns linearly over one period.
        for at in grants.iter().filter(|at| **at < after.began + PERIOD * 1_000_000) {
            let so_far = grants.iter().filter(|other| *other <= at).count() as u64;
            let returned = (at - after.began) * LIMIT / (PERIOD * 1_000_000);
            assert!(so_far <= returned, "{told}: {so_far} granted, {returned} have returned");
        }
        return;
    }
    let known = |at: &&u64| **at <= left.as_of;
    let all: Vec<u64> = run.grants.iter().filter(known).chain(grants).copied().collect();
    let most = most_in_a_period(&all);
    assert!(most <= LIMIT, "{told}: {most} of {LIMIT} in one period");
}

/// Returns the run of a seed, with its machine and directory.
fn run_of(seed: u64) -> (Run, Machine, Scratch) {
    let mut chance = Chance(seed / MIXTURES);
    let (scratch, machine) = (Scratch::in_memory(), Machine::new());
    (random_run(&mut chance, &machine, &scratch), machine, scratch)
}

/// Returns whether the file was quarantined, and whether it looked like one of an earlier moment.
fn one(seed: u64, (run, machine, scratch): &(Run, Machine, Scratch)) -> (bool, bool) {
    let mut chance = Chance(seed ^ 1 << 40);
    let mut machine = machine.copied();
    let left = mixture(&mut chance, run);
    machine.pass(10_000_000 + chance.below(40_000_000));
    if chance.below(2) == 0 {
        machine.start = 2;
        machine.boot.store(chance.below(2_000_000_000), Ordering::Relaxed);
    }
    let store = machine.store(scratch);
    write_to_the_first(&store.path_of(&pool()), &left.bytes);
    drop(store);
    let after = use_it(&mut chance, &machine, scratch);
    judge(seed, run, &left, &after);
    (after.anew, left.earlier)
}

#[test]
fn b55_no_mixture_of_old_and_new_pages_makes_a_pool_unusable_or_mints_a_unit() {
    if let Ok(seed) = std::env::var("STANDPIPE_SEED") {
        let seed = seed.parse().unwrap();
        one(seed, &run_of(seed));
        return;
    }
    let (mut anew, mut went_on, mut earlier) = (0, 0, 0);
    let mut run = run_of(0);
    for seed in 0..2_000 * more() as u64 {
        if seed % MIXTURES == 0 {
            run = run_of(seed);
        }
        match one(seed, &run) {
            (true, _) => anew += 1,
            (false, false) => went_on += 1,
            (false, true) => earlier += 1,
        }
    }
    assert!(anew > 300 && went_on > 300 && earlier > 30, "{anew} {went_on} {earlier}: all happen");
}

#[test]
fn b55_a_reset_works_whatever_is_in_the_file() {
    let (run, mut machine, scratch) = run_of(0);
    for seed in 0..300 {
        let mut chance = Chance(seed);
        let left = mixture(&mut chance, &run);
        machine.start += chance.below(2);
        machine.pass(10_000_000);
        let store = machine.store(&scratch);
        fs::write(store.path_of(&pool()), &left.bytes).unwrap();
        assert!(store.reset(&pool()).unwrap(), "{seed}");
        let mut member = joins(&store);
        let got = (0..LIMIT).filter(|_| admitted(&ask(&mut member)).is_some()).count() as u64;
        assert_eq!(got, SLOTS, "{seed}: as if nobody had ever used it");
    }
}
