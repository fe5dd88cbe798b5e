//! Waking a waiter in another process: from just before the commit until the waiter runs.

use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use standpipe::{Limit, Pool, Request, Rule, Store};
use standpipe_core::{Action, Answer, Decision, Key, Reserve, Span};
use standpipe_store::Member;
use standpipe_store_file::{FileLog, FileStore};

use crate::pairs::{commit_nothing, member_of, pool_at};
use crate::pool::call;
use crate::scratch::Scratch;
use crate::table::aim;
use crate::worker::{Worker, heard, ourselves, say, shown};

const ROUNDS: usize = 500;
/// After the waiter is seen in line it gets so long to fall asleep.
const SETTLE: Duration = Duration::from_millis(2);

pub(crate) fn run() -> Result<(), String> {
    println!("## Waking a waiter in another process\n");
    println!(
        "On `parallel = 1`, through the library: from just before the holder's commit until the \
         blocked reserve of another process has returned, {ROUNDS} rounds. Beside it, taken in \
         turns: the same on the store without the library (`Member` and `Store::wait_for_wake`), \
         and the machine's own floor, a byte through a pipe to another process.\n"
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
    let (mut woken, mut stored, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    let mut commits = Vec::new();
    for _ in 0..ROUNDS {
        woken.push(once(&pool, &mut waiter)?);
        let (until_woken, committing) = holder.once(&mut bare_waiter)?;
        stored.push(until_woken);
        commits.push(committing);
        std::thread::sleep(SETTLE);
        let before = now();
        echo.tell("")?;
        floor.push(stamp(&echo.hear()?)?.saturating_sub(before));
    }
    println!("| what | p50, µs | p90, µs | p99, µs | most, µs |");
    println!("|---|---:|---:|---:|---:|");
    line("a waiter of Standpipe", &mut woken);
    line("the same without the library", &mut stored);
    line("of that the holder's commit, until it returns", &mut commits);
    line("a byte through a pipe", &mut floor);
    println!("\n| aim | reached | |\n|---|---:|---|");
    let (p50, p99) = (at(&woken, 50), at(&woken, 99));
    let times = |share: usize| at(&woken, share) / at(&floor, share).max(1.0);
    let say = |figure: f64, times: f64| format!("{:.0} µs ({times:.1} × the pipe)", figure / 1e3);
    aim("p50 at most 100 µs", Some(say(p50, times(50))), Some(p50 <= 100e3));
    aim("p99 at most 2 ms", Some(say(p99, times(99))), Some(p99 <= 2e6));
    println!();
    Ok(())
}

/// Takes the place, lets the other process wait for it, gives it back.
fn once(pool: &Pool, waiter: &mut Worker) -> Result<u64, String> {
    let wrong = |error: standpipe::Error| error.to_string();
    let lease = pool.reserve(Request::by("holder")).blocking().map_err(wrong)?;
    waiter.tell("wait")?;
    while pool.status().map_err(wrong)?.tickets.is_empty() {
        std::thread::sleep(Duration::from_micros(200));
    }
    std::thread::sleep(SETTLE);
    let before = now();
    lease.commit([]).map_err(wrong)?;
    Ok(stamp(&waiter.hear()?)?.saturating_sub(before))
}

fn slot(directory: &Path) -> Result<Pool, String> {
    pool_at(directory, vec![Limit::new(Rule::Parallel { amount: 1 })])
}

/// The waiter's side.
pub(crate) fn wait(place: &str) -> Result<(), String> {
    let pool = slot(Path::new(place))?;
    say("ready")?;
    while heard().is_some() {
        let lease = pool.reserve(Request::by("waiter")).blocking();
        let woken = now();
        let settled = lease.and_then(|lease| lease.commit([]));
        settled.map_err(|error| error.to_string())?;
        say(&woken.to_string())?;
    }
    Ok(())
}

/// One place on the store itself, without the library.
struct Slot {
    store: FileStore,
    member: Member<FileLog>,
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

    /// How long until the waiter ran, and how long the commit took.
    fn once(&mut self, waiter: &mut Worker) -> Result<(u64, u64), String> {
        let lease = self.reserve()?;
        waiter.tell("wait")?;
        while self.member.replica().state().facts().tickets.is_empty() {
            std::thread::sleep(Duration::from_micros(200));
            self.member.refresh().map_err(|error| error.to_string())?;
        }
        std::thread::sleep(SETTLE);
        let before = now();
        self.commit(lease)?;
        let committed = now() - before;
        Ok((stamp(&waiter.hear()?)?.saturating_sub(before), committed))
    }
}

/// The waiter's side of that.
pub(crate) fn wait_bare(place: &str) -> Result<(), String> {
    let mut slot = Slot::open(Path::new(place))?;
    say("ready")?;
    while heard().is_some() {
        let lease = slot.reserve()?;
        let woken = now();
        slot.commit(lease)?;
        say(&woken.to_string())?;
    }
    Ok(())
}

/// The other end of the pipe: no buffer and no words between a byte and its stamp.
pub(crate) fn echo() -> Result<(), String> {
    say("ready")?;
    let (mut from, mut to, mut byte) = (std::io::stdin(), std::io::stdout(), [0; 1]);
    while from.read(&mut byte).is_ok_and(|read| read > 0) {
        let woken = now();
        let said = writeln!(to, "{woken}").and_then(|()| to.flush());
        said.map_err(|error| format!("nobody listens: {error}"))?;
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

fn line(what: &str, found: &mut [u64]) {
    found.sort_unstable();
    let of = |share| at(found, share) / 1e3;
    println!("| {what} | {:.0} | {:.0} | {:.0} | {:.0} |", of(50), of(90), of(99), of(100));
}

/// The figure that so many of a hundred do not exceed.
fn at(sorted: &[u64], share: usize) -> f64 {
    let place = (sorted.len() * share / 100).min(sorted.len().saturating_sub(1));
    sorted.get(place).map_or(0.0, |nanos| *nanos as f64)
}
