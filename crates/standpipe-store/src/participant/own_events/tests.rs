//! The bound of the record, at the bounds of a ledger, and what restores a pause.

use standpipe_core::{Amounts, Grant, Text, ThrottleKind, Unit};

use super::*;

/// What the whole record may take, with the configuration.
const MOST: usize = 8_000_000;

fn key(number: u64) -> Key {
    Key { session: 0x0012_3456_789a_bcde, number }
}

/// A reserve as an agent's program makes it, with a model and a task.
fn reserve() -> Box<Reserve> {
    let cost = [(Unit::InputTokens, 12_000), (Unit::OutputTokens, 800)];
    let mut reserve =
        Reserve::new(AgentName::new("summariser-7").unwrap(), Amounts::new(cost).unwrap());
    reserve.model = Text::new("claude-sonnet-4-5-20250929");
    reserve.task = Text::new("summarise");
    Box::new(reserve)
}

fn record(own: &mut OwnEvents, number: u64, action: Action, at: Instant, answer: &Answer) {
    let event = Event { key: key(number), action };
    own.record(&event, entry::body(&event), at, answer, true);
    own.prune(at);
}

fn admit(own: &mut OwnEvents, number: u64, at: Instant) {
    let grant = Grant { lease: key(number), expires_at: at, settled: false, instead_of: None };
    let answer = Answer::Decided(Decision::Admit(grant));
    record(own, number, Action::Reserve(reserve()), at, &answer);
}

fn commit(own: &mut OwnEvents, number: u64, lease: u64, progress: bool, at: Instant) {
    let used = Amounts::new([(Unit::InputTokens, 11_000)]).unwrap();
    let commit = Commit { lease: key(lease), used, progress, refused: false };
    let lives = LeaseAnswer::Lives(at);
    let answer = Answer::Lease(if progress { lives } else { LeaseAnswer::Ended });
    record(own, number, Action::Commit(commit), at, &answer);
}

fn throttle(own: &mut OwnEvents, number: u64, at: Instant) {
    let throttled = Throttled {
        lease: None,
        agent: AgentName::new("summariser-7"),
        kind: ThrottleKind::Quota,
        retry_after: Some(Span::secs(2)),
        hit: None,
    };
    record(own, number, Action::Throttled(throttled), at, &Answer::Done);
}

/// Counts again, entry by entry.
fn counted(own: &OwnEvents) -> usize {
    let leases: usize = own.leases.values().map(OwnLease::bytes).sum();
    leases + own.throttles.iter().map(|recorded| throttle_bytes(&recorded.what)).sum::<usize>()
}

#[test]
fn a_busy_process_keeps_at_most_8_mb_of_a_pool() {
    let (mut own, start) = (OwnEvents::default(), Instant(1_000_000_000));
    // As many calls in flight as a ledger admits, then 200,000 short ones within ten minutes.
    let in_flight = bounds::LEASES as u64 - 1;
    for number in 1..=in_flight {
        admit(&mut own, number, start);
        commit(&mut own, 1_000_000 + number, number, true, start);
    }
    let calls = 200_000;
    let at = |call: u64| start + Span(call * 2_900);
    for call in 0..calls {
        let number = 2_000_000 + 2 * call;
        admit(&mut own, number, at(call));
        commit(&mut own, number + 1, number, false, at(call));
        assert!(own.bytes <= MOST, "{call}: {}", own.bytes);
    }
    assert_eq!(own.bytes, counted(&own));
    assert!(at(calls) < start + RETENTION, "nothing was dropped for its age");
    assert!(own.ended.len() > 15_000, "the bound is used: {}", own.ended.len());
    let last = own.ended.back().map(|(_, lease)| lease.number);
    assert_eq!(last, Some(2_000_000 + 2 * (calls - 1)), "the latest are kept");
    let lives = |number: u64| own.leases.get(&key(number)).is_some_and(|own| own.ended.is_none());
    assert!((1..=in_flight).all(lives), "no lease in flight is dropped");
    assert!(own.in_flight.iter().copied().eq((1..=in_flight).map(key)));
}

#[test]
fn a_lease_in_flight_outlives_the_bound_and_is_recovered_with_its_changes() {
    let (mut own, at) = (OwnEvents::default(), Instant(1_000_000_000));
    admit(&mut own, 1, at);
    let longer = Action::Heartbeat { lease: Some(key(1)), ttl: Some(Span::secs(90)) };
    record(&mut own, 2, longer, at, &Answer::Lease(LeaseAnswer::Lives(at)));
    commit(&mut own, 3, 1, true, at);
    for number in 4..120_000 {
        throttle(&mut own, number, at + Span(number));
        assert!(own.bytes <= MOST, "{number}: {}", own.bytes);
    }
    assert!(own.throttles.len() < 100_000, "the bound was reached");
    assert_eq!(own.bytes, counted(&own));
    let lost = own.actions_to_recover(&State::default(), &|lost| lost.number <= 3, at);
    let [Action::Recovered(Recovered::Reserve { lease, reserve }), Action::Commit(progress)] =
        &lost[..]
    else {
        panic!("{lost:?}")
    };
    assert_eq!((*lease, reserve.ttl), (key(1), Some(Span::secs(90))));
    assert!(progress.progress && progress.lease == key(1));
    let late = at + Span(120_000) + RETENTION;
    own.prune(late);
    assert!(own.throttles.is_empty() && own.leases.len() == 1);
}

#[test]
fn a_lost_pause_ends_when_it_would_have_and_names_who_ordered_it() {
    let (mut own, at) = (OwnEvents::default(), Instant(5_000_000));
    let by = AgentName::new("ops");
    let pause = |seconds: u64| Action::Pause { length: Span::secs(seconds), by: by.clone() };
    record(&mut own, 1, pause(30), at, &Answer::Done);
    let restored = |now: Instant| own.actions_to_recover(&State::default(), &|_| true, now);
    assert!(restored(at + Span::secs(10)).contains(&pause(20)));
    assert!(!restored(at + Span::secs(30)).iter().any(|it| matches!(it, Action::Pause { .. })));
}
