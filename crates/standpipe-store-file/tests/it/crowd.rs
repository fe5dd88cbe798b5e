//! Many independent processes on one pool: never over the limit in any rolling window, admitted in
//! order, and no process gets much less than another.

use std::fmt::Write as _;
use std::io::{BufRead, Write};
use std::process::Stdio;

use standpipe_core::{
    Action, Answer, Decision, Event, Instant, Key, Limit, Outcome, Phase, Rule, Span,
};
use standpipe_core::{State, Unit};
use standpipe_store::replica::CaughtUp;
use standpipe_store::{Participant, Replica};
use standpipe_store_file::{FileLog, FileStore};

use crate::support::{Scratch, commit, configure, member, more, pool, told_to_play, wait_for};

const PROCESSES: usize = 32;
const LIMIT: u64 = 32;
const PERIOD: Span = Span::millis(20);
const SLOTS: u64 = 12;

fn limits() -> Action {
    let rule = Rule::Window { unit: Unit::Requests, amount: LIMIT, period: PERIOD };
    configure(vec![Limit::new(rule), crate::support::parallel(SLOTS)])
}

fn rounds() -> usize {
    200 * more()
}

/// One of the processes: reserves, commits, and prints when it was admitted.
#[test]
fn worker() {
    let Some(home) = told_to_play() else { return };
    let store = FileStore::open(&home).unwrap();
    let mut member = member(&store);
    member.submit(vec![limits()]).unwrap();
    say("ready");
    let mut go = String::new();
    std::io::stdin().lock().read_line(&mut go).unwrap();
    let mut stamps = String::new();
    for _ in 0..rounds() {
        let lease = wait_for(&mut member, &store);
        write!(stamps, "{},", admitted_at(&member, lease).0).unwrap();
        member.submit(vec![commit(lease)]).unwrap();
    }
    say(&stamps);
}

/// Returns the stamp of an admission.
fn admitted_at(member: &Participant<FileLog>, lease: Key) -> Instant {
    member.replica().state().facts().leases[&lease].started
}

fn say(what: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "\n> {what}");
    let _ = out.flush();
}

#[test]
fn b02_a_crowd_of_processes_is_never_over_in_order_and_even() {
    let scratch = Scratch::new();
    let store = scratch.store();
    let mut first = member(&store);
    first.submit(vec![limits()]).unwrap();
    let mut crowd = Crowd::start(scratch.path());
    let mut observer = Observer::new();
    crowd.go();
    while !crowd.is_over() {
        observer.look(&store);
        std::thread::yield_now();
    }
    let stamps = crowd.stamps();
    assert_never_over(&stamps);
    assert_even(&stamps);
    assert!(observer.admissions > 100, "the observer saw {} admissions", observer.admissions);
    first.refresh().unwrap();
    assert!(first.replica().state().facts().leases.is_empty());
    first.replica().state().check().unwrap();
}

/// No interval of one period has more admissions than the limit, by the store's own stamps.
fn assert_never_over(stamps: &[Vec<u64>]) {
    let mut all: Vec<u64> = stamps.concat();
    all.sort_unstable();
    let limit = usize::try_from(LIMIT).unwrap();
    for (at, stretch) in all.windows(limit + 1).enumerate() {
        let length = stretch[limit] - stretch[0];
        assert!(length >= PERIOD.0, "{} admissions within {length} µs, at {at}", limit + 1);
    }
}

/// When the first process is done, none has fewer than half of its admissions.
fn assert_even(stamps: &[Vec<u64>]) {
    let over = stamps.iter().filter_map(|each| each.last()).min().unwrap();
    let had = stamps.iter().map(|each| each.iter().filter(|stamp| *stamp <= over).count());
    let had: Vec<usize> = had.collect();
    let (least, most) = (had.iter().min().unwrap(), had.iter().max().unwrap());
    assert!(least * 2 >= *most, "between {least} and {most}: {had:?}");
}

struct Crowd(Vec<crate::support::Worker>);

impl Crowd {
    fn start(home: &std::path::Path) -> Self {
        let start =
            |_| crate::support::Worker::start_with("crowd::worker", home, &[], Stdio::piped());
        let mut crowd: Vec<crate::support::Worker> = (0..PROCESSES).map(start).collect();
        for worker in &mut crowd {
            assert_eq!(worker.says().as_deref(), Some("ready"));
        }
        Self(crowd)
    }

    fn go(&mut self) {
        for worker in &mut self.0 {
            worker.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        }
    }

    fn is_over(&mut self) -> bool {
        self.0.iter_mut().all(|worker| worker.is_through())
    }

    fn stamps(self) -> Vec<Vec<u64>> {
        let number = |text: &str| text.parse().unwrap();
        let of = |mut worker: crate::support::Worker| {
            let said = worker.says().unwrap();
            assert!(worker.child.wait().unwrap().success());
            said.split_terminator(',').map(number).collect()
        };
        self.0.into_iter().map(of).collect()
    }
}

/// A separate replica that checks every admission it sees.
struct Observer {
    replica: Replica,
    state: State,
    admissions: usize,
}

impl Observer {
    fn new() -> Self {
        Self { replica: Replica::new(), state: State::new(), admissions: 0 }
    }

    /// Reads the log further. If it fell behind and loaded a snapshot, it continues from there.
    fn look(&mut self, store: &FileStore) {
        let mut seen: Vec<(Event, Instant, Outcome)> = Vec::new();
        let see = |event: &Event, stamp, outcome| seen.push((event.clone(), stamp, outcome));
        let reached = self.replica.catch_up(&mut store.pool_log(&pool()), see).unwrap();
        if reached != CaughtUp::ByEntries {
            self.state = State::from_facts(self.replica.state().facts().clone()).unwrap();
            return;
        }
        for (event, stamp, outcome) in seen {
            let waiting = self.waits_in_line(stamp);
            assert_eq!(self.state.apply(&event, stamp), outcome, "another replica says otherwise");
            let newcomer = matches!(&event.action, Action::Reserve(call) if call.ticket.is_none());
            if let Answer::Decided(Decision::Admit(_)) = outcome.answer {
                self.admissions += 1;
                assert!(!(newcomer && waiting), "a newcomer passed somebody who stands in line");
            }
        }
        assert!(self.state.facts().leases.len() as u64 <= SLOTS);
    }

    /// Whether a ticket is queued for units that are not earmarked for it.
    fn waits_in_line(&self, now: Instant) -> bool {
        let state = self.state.at(now);
        let in_line = |ticket: &standpipe_core::Ticket| matches!(ticket.phase, Phase::Line(_));
        state.facts().tickets.values().any(in_line)
    }
}
