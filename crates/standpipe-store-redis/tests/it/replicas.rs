//! Replicas in different processes: whatever they append, and however each of them read it, their
//! states are the same to the byte.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use standpipe_core::{Event, Instant, Span};
use standpipe_servers::Server;
use standpipe_store::conformance::RandomEvents;
use standpipe_store::replica::CaughtUp;
use standpipe_store::{Clock, Log, LogRead, Replica, entry};
use standpipe_store_redis::{RedisLog, RedisStore};

use crate::support::worker::{Worker, hear, say, told, told_to_play};
use crate::support::{more, pool, state_hash, store};

/// As many as there are sessions in a stream of random events: each process is one of them.
const PROCESSES: u64 = 6;
const ROUNDS: usize = 5;
const EVENTS: usize = 102_000;
const SEED: u64 = 42;

/// Events of one process that go in one step.
const TOGETHER: usize = 150;

/// A clock that runs fast, so that leases, tickets and sessions come to their ends on the way. It
/// begins at an instant all processes are told.
fn fast(began: u64) -> Clock {
    Arc::new(move || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let micros = u64::try_from(now.as_micros()).unwrap() - began;
        Instant(1_000_000) + Span(micros * 200)
    })
}

fn on_fast_clock(url: &str, began: u64) -> RedisStore {
    store(url).with_clock(fast(began))
}

/// Appends its session's part of the stream. After each round it reads to the end when it is told,
/// and says what it has come to.
#[test]
fn worker() {
    let Some(url) = told_to_play() else { return };
    let session = told("SESSION");
    let store = on_fast_clock(&url, told("BEGAN"));
    let (mut log, mut replica) = (store.pool_log(&pool()), Replica::new());
    let mut events = RandomEvents::new(SEED);
    let first = events.first();
    for round in 0..ROUNDS {
        let begin = if round == 0 { vec![first.clone()] } else { Vec::new() };
        let all = begin.into_iter().chain((0..EVENTS * more() / ROUNDS).map(|_| events.event()));
        let own: Vec<Event> = all.filter(|event| event.key.session == session).collect();
        for batch in own.chunks(TOGETHER) {
            append(&mut log, &mut replica, batch);
        }
        say("appended");
        hear().unwrap();
        replica.catch_up(&mut log, |_, _, _| ()).unwrap();
        let at = replica.position();
        say(&format!("{} {} {}", at.number, at.chain, state_hash(replica.state())));
        hear().unwrap();
    }
}

/// One step, with a snapshot when one is due, as a member would.
fn append(log: &mut RedisLog, replica: &mut Replica, batch: &[Event]) {
    let bodies: Vec<Vec<u8>> = batch.iter().map(entry::body).collect();
    let since = log.append(replica.position(), &bodies).unwrap();
    let due = matches!(&since, LogRead::Tail(tail) if tail.snapshot_due);
    let reached = replica.apply_read(log, since, |_, _, _| ()).unwrap();
    assert_ne!(reached, CaughtUp::Forked);
    if due {
        log.write_snapshot(&replica.snapshot()).unwrap();
    }
}

#[test]
fn replicas_in_different_processes_are_equal_byte_for_byte() {
    let server = Server::start();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let began = now.as_micros().to_string();
    let start = |session: u64| {
        let told = [("SESSION", session.to_string()), ("BEGAN", began.clone())];
        let told = told.each_ref().map(|(name, value)| (*name, value.as_str()));
        Worker::start("replicas::worker", &server.url(), &told)
    };
    let mut workers: Vec<Worker> = (1..=PROCESSES).map(start).collect();
    let store = on_fast_clock(&server.url(), began.parse().unwrap());
    let mut total = 0;
    for round in 0..ROUNDS {
        for worker in &mut workers {
            assert_eq!(worker.says().as_deref(), Some("appended"), "seed {SEED}, round {round}");
        }
        let came_to = workers.iter_mut().map(|worker| {
            worker.tell("read");
            worker.says().unwrap()
        });
        let came_to: Vec<String> = came_to.collect();
        // Somebody who was not there begins with a snapshot, and comes to the same.
        let mut late = Replica::new();
        let reached = late.catch_up(&mut store.pool_log(&pool()), |_, _, _| ()).unwrap();
        assert_eq!(reached, CaughtUp::BySnapshot, "seed {SEED}, round {round}");
        late.state().check().unwrap();
        let (at, hash) = (late.position(), state_hash(late.state()));
        for other in came_to {
            let expected = format!("{} {} {hash}", at.number, at.chain);
            assert_eq!(other, expected, "seed {SEED}, round {round}");
        }
        total = at.number;
        for worker in &mut workers {
            worker.tell("go on");
        }
    }
    workers.into_iter().for_each(Worker::ends);
    assert!(total >= 100_000 * more() as u64, "{total} events");
}
