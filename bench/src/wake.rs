//! Waking a waiter in another process: from the holder's commit, its call and its return, until the
//! waiter runs.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use standpipe::{Limit, Pool, Request, Rule, Store};
use standpipe_core::{Action, Answer, Decision, Key, Reserve, Span};
use standpipe_store::Participant;
use standpipe_store_file::{FileLog, FileStore};

use crate::pairs::{commit_nothing, member_of, pool_at};
use crate::pool::call;
use crate::scratch::Scratch;
use crate::table::aim;
use crate::worker::{Worker, next_line, ourselves, send_line, shown};

const ROUNDS: usize = 500;
/// After the waiter is seen in line it gets so long to fall asleep.
const SETTLE: Duration = Duration::from_millis(2);

/// When a commit was called and had returned, and when the waiter ran.
struct Wake {
    called: u64,
    returned: u64,
    woken: u64,
}

pub(crate) fn run() -> Result<(), String> {
    println!("## Waking a waiter in another process\n");
    println!(
        "On `parallel = 1`, through the library, {ROUNDS} rounds, until the blocked reserve of \
         another process has returned with its lease, which it had to claim. Both ends are on one \
         clock. *From the call* counts from just before the holder calls `commit`, so the whole \
         commit is in it; *from the return* counts from when `commit` has returned: its entry was \
         in the log and the waiter notified a few µs before. Beside it, in turns: the same on the \
         store without the library (`Participant`, `Store::wait_for_wake`), and the machine's own \
         floor, a byte through a pipe to another process.\n"
    );
    let scratch = Scratch::new()?;
    let pool = slot(scratch.path())?;
    let mut waiter = Worker::start(&mut ourselves("waiter", &shown(scratch.path()))?)?;
    waiter.wait_ready()?;
    let bare = Scratch::new()?;
    let mut holder = Slot::open(bare.path())?;
    let mut bare_waiter = Worker::start(&mut ourselves("bare-waiter", &shown(bare.path()))?)?;
    bare_waiter.wait_ready()?;
    let mut echo = Worker::start(&mut ourselves("echo", "-")?)?;
    echo.wait_ready()?;
    let (mut library, mut store, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        library.push(once(&pool, &mut waiter)?);
        store.push(holder.once(&mut bare_waiter)?);
        std::thread::sleep(SETTLE);
        let before = now();
        echo.send("")?;
        floor.push(stamp(&echo.receive()?)?.saturating_sub(before));
    }
    println!("| what | p50, µs | p90, µs | p99, µs | most, µs |");
    println!("|---|---:|---:|---:|---:|");
    let (called, returned) = lines("a waiter of Standpipe", &library);
    lines("without the library", &store);
    floor.sort_unstable();
    line("a byte through a pipe", &floor);
    println!("\n| aim | reached | |\n|---|---:|---|");
    judge("from the commit's return", &returned, &floor);
    judge("from the commit's call", &called, &floor);
    println!();
    Ok(())
}

/// Takes the place, lets the other process wait for it, gives it back.
fn once(pool: &Pool, waiter: &mut Worker) -> Result<Wake, String> {
    let wrong = |error: standpipe::Error| error.to_string();
    let lease = pool.reserve(Request::by("holder")).blocking().map_err(wrong)?;
    waiter.send("wait")?;
    while pool.status().blocking().map_err(wrong)?.tickets.is_empty() {
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(SETTLE);
    let called = now();
    lease.commit([]).blocking().map_err(wrong)?;
    let returned = now();
    Ok(Wake { called, returned, woken: stamp(&waiter.receive()?)? })
}

/// Prints what was found, and answers it sorted: from the call, and from the return.
fn lines(what: &str, wakes: &[Wake]) -> (Vec<u64>, Vec<u64>) {
    let sorted = |length: &dyn Fn(&Wake) -> u64| {
        let mut lengths: Vec<u64> = wakes.iter().map(length).collect();
        lengths.sort_unstable();
        lengths
    };
    let called = sorted(&|wake| wake.woken.saturating_sub(wake.called));
    let returned = sorted(&|wake| wake.woken.saturating_sub(wake.returned));
    line(&format!("{what}, from the commit's call"), &called);
    line(&format!("{what}, from the commit's return"), &returned);
    let commit = sorted(&|wake| wake.returned - wake.called);
    line(&format!("{what}: the commit itself"), &commit);
    (called, returned)
}

fn judge(since: &str, found: &[u64], floor: &[u64]) {
    let figure_at = |share: usize| {
        let (figure, pipe) = (at(found, share), at(floor, share).max(1.0));
        (figure, figure / pipe, format!("{:.0} µs ({:.1} × the pipe)", figure / 1e3, figure / pipe))
    };
    let (_, times, text) = figure_at(50);
    aim(&format!("p50 at most 5 × the pipe, {since}"), Some(text), Some(times <= 5.0));
    let (figure, _, text) = figure_at(99);
    aim(&format!("p99 at most 2 ms, {since}"), Some(text), Some(figure <= 2e6));
}

fn slot(directory: &Path) -> Result<Pool, String> {
    pool_at(directory, vec![Limit::new(Rule::Parallel { amount: 1 })])
}

/// The waiter's side.
pub(crate) fn wait(place: &str) -> Result<(), String> {
    let pool = slot(Path::new(place))?;
    send_line("ready")?;
    while next_line().is_some() {
        let lease = pool.reserve(Request::by("waiter")).blocking();
        let woken = now();
        let settled = lease.and_then(|lease| lease.commit([]).blocking());
        settled.map_err(|error| error.to_string())?;
        send_line(&woken.to_string())?;
    }
    Ok(())
}

/// One place on the store itself, without the library.
struct Slot {
    store: FileStore,
    member: Participant<FileLog>,
}

impl Slot {
    fn open(directory: &Path) -> Result<Self, String> {
        let store = FileStore::open(directory).map_err(|error| error.to_string())?;
        let limits = vec![Limit::new(Rule::Parallel { amount: 1 })];
        let member = member_of(&store, limits)?;
        Ok(Self { store, member })
    }

    /// Asks, and claims whenever it is woken, until it is admitted.
    fn reserve(&mut self) -> Result<Key, String> {
        let mut ask = Reserve { patience: Span::secs(60), ..call("bench", 0) };
        loop {
            let asked = self.member.submit(vec![Action::from(ask.clone())]);
            let outcomes = asked.map_err(|error| error.to_string())?;
            match &outcomes[0].answer {
                Answer::Decided(Decision::Admit(grant)) => return Ok(grant.lease),
                Answer::Decided(Decision::Wait(hold)) => ask.ticket = Some(hold.ticket),
                other => return Err(format!("answered {other:?}")),
            }
            self.store.wait_for_wake(Duration::from_secs(1));
        }
    }

    fn commit(&mut self, lease: Key) -> Result<(), String> {
        let settled = self.member.submit(vec![commit_nothing(lease)]);
        settled.map(drop).map_err(|error| error.to_string())
    }

    fn once(&mut self, waiter: &mut Worker) -> Result<Wake, String> {
        let lease = self.reserve()?;
        waiter.send("wait")?;
        while self.member.replica().state().facts().tickets.is_empty() {
            std::thread::sleep(Duration::from_micros(200));
            self.member.refresh().map_err(|error| error.to_string())?;
        }
        std::thread::sleep(SETTLE);
        let called = now();
        self.commit(lease)?;
        let returned = now();
        Ok(Wake { called, returned, woken: stamp(&waiter.receive()?)? })
    }
}

/// The waiter's side of that.
pub(crate) fn wait_bare(place: &str) -> Result<(), String> {
    let mut slot = Slot::open(Path::new(place))?;
    send_line("ready")?;
    while next_line().is_some() {
        let lease = slot.reserve()?;
        let woken = now();
        slot.commit(lease)?;
        send_line(&woken.to_string())?;
    }
    Ok(())
}

/// The other end of the pipe: no buffer and no words between a byte and its stamp.
pub(crate) fn echo() -> Result<(), String> {
    send_line("ready")?;
    let (mut from, mut to, mut byte) = (std::io::stdin(), std::io::stdout(), [0; 1]);
    while from.read(&mut byte).is_ok_and(|read| read > 0) {
        let woken = now();
        let written = writeln!(to, "{woken}").and_then(|()| to.flush());
        written.map_err(|error| format!("the output is closed: {error}"))?;
    }
    Ok(())
}

fn stamp(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is no instant"))
}

/// Nanoseconds on a clock that all processes share.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn line(what: &str, found: &[u64]) {
    let of = |share| at(found, share) / 1e3;
    println!("| {what} | {:.0} | {:.0} | {:.0} | {:.0} |", of(50), of(90), of(99), of(100));
}

/// The figure that so many of a hundred do not exceed.
fn at(sorted: &[u64], share: usize) -> f64 {
    let place = (sorted.len() * share / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(0.0, |nanos| *nanos as f64)
}
