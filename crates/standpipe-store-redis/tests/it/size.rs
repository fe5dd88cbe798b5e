//! How much goes over the wire, and how much lies on the server: bounded, whatever happened.

use std::sync::Arc;

use standpipe_core::{Action, Amounts, Event, Instant, Key, Span, Unit};
use standpipe_servers::Server;
use standpipe_store::replica::CaughtUp;
use standpipe_store::{Log, LogRead, Replica, entry};

use crate::support::meter::Meter;
use crate::support::{
    HOUR, admitted, beat, call, commit, configure, decision, insist, key, member, parallel, pool,
    read_anew, requests, state_hash, store, used,
};

/// What one call carries either way, with what the protocol adds.
const CALL: usize = 65_536 + 4_096;

#[test]
fn b46_ten_thousand_items_go_in_calls_of_64_kb_and_are_whole_numbers() {
    const ITEMS: usize = 10_000;
    let server = Server::start();
    let meter = Meter::before(&server);
    let mut busy = member(&store(&meter.url()));
    let limits = vec![requests(ITEMS as u64 - 1, HOUR)];
    insist(&mut busy, vec![configure(limits)]);
    let mut one = call(Span::ZERO);
    one.ttl = Some(Span::secs(60));
    let mut leases = Vec::new();
    // Not more in flight than a pool may have.
    for asked in [4_000, 4_000, 2_000] {
        let outcomes = insist(&mut busy, vec![Action::from(one.clone()); asked]);
        assert_eq!(outcomes.len(), asked);
        leases.extend(outcomes.iter().filter_map(|outcome| admitted(&decision(outcome))));
        let settle = leases.split_off(leases.len().saturating_sub(asked));
        insist(&mut busy, settle.into_iter().map(commit).collect());
    }
    let all = insist(&mut busy, vec![beat(); ITEMS]);
    assert_eq!(all.len(), ITEMS, "an answer for each");
    let (longest, answer) = meter.longest();
    assert!(longest <= CALL, "a call of {longest} bytes");
    assert!(answer <= CALL, "an answer of {answer} bytes");
    assert!(longest > CALL / 2, "calls are filled: {longest} bytes");
    assert_eq!(used(read_anew(&store(&server.url())).state(), 0), ITEMS as u64 - 1);
    // Whole numbers of a fixed width, however large they get: see `protocol/scripts/head.lua`.
    assert_eq!(server.run(&["HSTRLEN", &key("head"), "h"]).trim(), "147");
}

#[test]
fn b46_a_large_snapshot_is_written_and_read_in_pieces() {
    let server = Server::start();
    let meter = Meter::before(&server);
    let through = store(&meter.url());
    let mut busy = member(&through);
    insist(&mut busy, vec![configure(vec![parallel(4_000)])]);
    insist(&mut busy, vec![Action::from(call(Span::ZERO)); 4_000]);
    let snapshot = busy.replica().snapshot();
    assert!(snapshot.bytes.len() > 2 * 65_536, "{} bytes", snapshot.bytes.len());
    meter.longest();
    through.pool_log(&pool()).write_snapshot(&snapshot).unwrap();
    let (longest, _) = meter.longest();
    assert!(longest <= CALL, "a call of {longest} bytes");
    let stages = server.run(&["KEYS", &key("stage:*")]);
    assert_eq!(stages, "", "nothing is left on the way");
    let mut new = Replica::new();
    let reached = new.catch_up(&mut through.pool_log(&pool()), |_, _, _| ()).unwrap();
    assert_eq!(reached, CaughtUp::BySnapshot);
    assert_eq!(state_hash(new.state()), state_hash(busy.replica().state()));
    let (_, answer) = meter.longest();
    assert!(answer <= CALL, "an answer of {answer} bytes");
    assert!(answer > CALL / 2, "pieces are filled: {answer} bytes");
}

/// The bytes of a pool on its server.
fn bytes(server: &Server) -> u64 {
    let of = |part: &str| server.run(&["STRLEN", &key(part)]).parse::<u64>().unwrap();
    ["log", "snapshot", "previous"].map(of).into_iter().sum()
}

/// How many bytes went in and out of the server so far.
fn traffic(server: &Server) -> u64 {
    let of = |field| server.info(field).unwrap().parse::<u64>().unwrap();
    of("total_net_input_bytes") + of("total_net_output_bytes")
}

#[test]
fn fifty_thousand_events_later_the_log_is_short() {
    let server = Server::start();
    let direct = store(&server.url());
    let mut busy = member(&direct);
    insist(&mut busy, vec![configure(vec![requests(1_000_000, Span::secs(1)), parallel(9)])]);
    let mut most = 0;
    for _ in 0..100 {
        insist(&mut busy, vec![beat(); 500]);
        most = most.max(bytes(&server));
    }
    assert!(busy.replica().position().number >= 50_000);
    assert!(most < 8 << 20, "{most} bytes at most, however fast it grows");
    crate::support::pass(&server, Span::secs(1));
    // Whoever comes next keeps it short; the one after that lets go of what is behind.
    for _ in 0..2 {
        insist(&mut busy, vec![beat(); 200]);
        crate::support::pass(&server, Span::millis(1_001));
    }
    assert!(bytes(&server) < 64 << 10, "{} bytes afterwards", bytes(&server));
}

/// Processes that begin, send one event, and die. One that lives reports those that are silent.
fn dead(log: &mut impl Log, replica: &mut Replica, from: u64, count: u64) {
    let sessions: Vec<u64> = (from..from + count).collect();
    for batch in sessions.chunks(400) {
        let silent = replica.state().silent_sessions(replica.now());
        let reports = (1..).zip(silent).map(|(number, session)| Event {
            key: Key { session: (batch[0] << 8) + 1, number },
            action: Action::SessionEnded { session },
        });
        let reports: Vec<Vec<u8>> = reports.map(|report| entry::body(&report)).collect();
        for some in reports.chunks(400) {
            let since = log.append(replica.position(), some).unwrap();
            replica.apply_read(log, since, |_, _, _| ()).unwrap();
        }
        let event = |session: &u64| Event {
            key: Key { session: *session << 8, number: 1 },
            action: Action::from(call(Span::ZERO)),
        };
        let bodies: Vec<Vec<u8>> = batch.iter().map(|id| entry::body(&event(id))).collect();
        let since = log.append(replica.position(), &bodies).unwrap();
        let due = matches!(&since, LogRead::Tail(tail) if tail.snapshot_due);
        replica.apply_read(log, since, |_, _, _| ()).unwrap();
        if due {
            log.write_snapshot(&replica.snapshot()).unwrap();
        }
    }
}

#[test]
fn b47_a_hundred_thousand_dead_processes_leave_pool_and_steps_as_they_were() {
    const DEAD: u64 = 100_000;
    let server = Server::start();
    // Ten seconds pass with each batch: the dead are given up on the way.
    let time = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let clock = Arc::clone(&time);
    let store = store(&server.url()).with_clock(Arc::new(move || {
        let steps = clock.fetch_add(10_000_000, std::sync::atomic::Ordering::SeqCst);
        Instant(1_000_000 + steps)
    }));
    let mut configures = member(&store);
    insist(&mut configures, vec![configure(vec![parallel(4_000), requests(10, Span::secs(1))])]);
    let (mut log, mut replica) = (store.pool_log(&pool()), Replica::new());
    replica.catch_up(&mut log, |_, _, _| ()).unwrap();
    let mut figures = Vec::new();
    for part in 0..5 {
        let before = traffic(&server);
        dead(&mut log, &mut replica, 1 + part * DEAD / 5, DEAD / 5);
        figures.push((bytes(&server), traffic(&server) - before));
    }
    let (first, last) = (figures[1], figures[4]);
    assert!(last.0 < 2 * first.0, "bytes of the pool and of the steps: {figures:?}");
    assert!(last.1 < 2 * first.1, "bytes of the pool and of the steps: {figures:?}");
    assert!(replica.state().facts().sessions.len() < 10_000);
    replica.state().check().unwrap();
}

#[test]
fn a_snapshot_that_was_asked_for_in_vain_is_asked_for_again_before_the_log_is_full() {
    const STEPS: u64 = 200;
    let server = Server::start();
    // Time stands still, so that only its length can be the reason.
    let store = store(&server.url()).with_clock(Arc::new(|| Instant(1_000_000)));
    let (mut log, mut at) = (store.pool_log(&pool()), Replica::new().position());
    let mut asked = 0;
    for number in 1..=STEPS {
        let used = Amounts::new([(Unit::Requests, 1)]).unwrap();
        let lease = Key { session: 1, number };
        let big = standpipe_core::Commit { lease, used, progress: false, refused: false };
        let key = Key { session: 1, number };
        let body = entry::body(&Event { key, action: Action::Commit(big) });
        let since = log.append(at, &vec![body; 1_200]).unwrap();
        let LogRead::Tail(tail) = since else { panic!("it forked") };
        at = tail.head;
        asked = if tail.snapshot_due { number } else { asked };
    }
    assert_eq!(asked, STEPS, "the step at which it was last asked for");
}
