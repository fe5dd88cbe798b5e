//! The referee's rules for pace, fair order, pools within pools and deaths that cannot be seen.

use standpipe_pairs::referee::{Call, Era, Permitted, fair, judge, paced, within};
use standpipe_pairs::setup::{CHILD, Extra, FAIR, LONG, PACED, PACED_BEGINS, SLOTS, Setup};

const SECOND: u64 = 1_000_000;

fn era() -> Era {
    Era { begins: 0, sure: 0, setup: Setup::in_virtual_time(Extra::All) }
}

/// A call that asked and was granted at these instants.
fn call(worker: &str, pool: &str, asked: u64, answered: u64) -> Call {
    Call {
        worker: worker.to_owned(),
        pool: pool.to_owned(),
        lease: String::new(),
        asked,
        slots: 1,
        background: false,
        timeout: 20_000,
        answered: Some(answered),
        granted: true,
        local: false,
        cancelled: false,
        unanswered: false,
        held_until: answered + 1,
        settled: true,
        last: u64::MAX,
        words: String::new(),
    }
}

fn background(pool: &str, at: u64) -> Call {
    Call { background: true, ..call("p1", pool, at, at) }
}

fn count(found: &[String]) -> usize {
    found.len()
}

/// A rolling window of 200 in 600 s paces by 10 at once and 190 in 600 s.
#[test]
fn background_beyond_a_twentieth_is_found() {
    let of = |many: u64, gap: u64| -> Vec<Call> {
        let higher = call("p2", LONG, SECOND, SECOND);
        let rest = (1..=many).map(|number| background(LONG, SECOND + number * gap));
        [higher].into_iter().chain(rest).collect()
    };
    let judged = |calls: &[Call], era: Era| count(&paced::judge(calls, &[era], &none()));
    // The higher call drew on the bucket, too; some part of a unit was refilled meanwhile.
    assert_eq!((judged(&of(10, 10), era()), judged(&of(11, 10), era())), (0, 1));
    // One in 600/190 s, and the first nine at once would be too many.
    assert_eq!(judged(&of(150, 3_158_000), era()), 0);
    assert_eq!(judged(&of(190, 2_900_000), era()), 1);
    // Nobody higher is active, or has a floor, or nothing is enforced.
    assert_eq!(judged(&of(50, 10)[1..], era()), 0);
    let mut floors = era();
    floors.setup.agents = "floor".to_owned();
    assert_eq!(judged(&of(50, 10), floors), 0);
    let mut shadow = era();
    shadow.setup.pools.iter_mut().for_each(|pool| pool.enforced = false);
    assert_eq!(judged(&of(50, 10), shadow), 0);
    let lost = Permitted { lost: vec![SECOND], ..none() };
    assert_eq!(count(&paced::judge(&of(50, 10), &[era()], &lost)), 0);
}

/// A day of 86,400 paces by one per second since it began.
#[test]
fn background_beyond_the_elapsed_share_is_found() {
    let at = PACED_BEGINS + 10 * SECOND;
    let of = |many: u64| -> Vec<Call> {
        let higher = call("p2", PACED, at, at);
        [higher].into_iter().chain((1..=many).map(|gap| background(PACED, at + gap))).collect()
    };
    let judged = |calls: &[Call]| count(&paced::judge(calls, &[era()], &none()));
    // Two seconds of tolerance: the twelfth unit may be used, and then one call more.
    assert_eq!((judged(&of(12)), judged(&of(13))), (0, 1));
}

fn none() -> Permitted {
    Permitted::default()
}

/// Two agents with weights 1 and 6 that wait all the time, served in these turns.
fn contest(turns: &[usize]) -> Vec<Call> {
    let names = ["p1", "p3"];
    let always =
        names.map(|name| Call { answered: None, granted: false, ..call(name, FAIR, SECOND, 0) });
    let served = turns.iter().zip(1_u64..);
    let served =
        served.map(|(who, number)| call(names[*who], FAIR, SECOND, SECOND + number * 25_000));
    always.into_iter().chain(served).collect()
}

#[test]
fn an_agent_that_gets_more_than_its_weight_is_found() {
    let judged = |turns: &[usize], era: Era| {
        count(&fair::judge(&contest(turns), &[era], &none(), 100 * SECOND))
    };
    let fair_turns = [0, 1, 1, 1, 1, 1, 1].repeat(10);
    assert_eq!(judged(&fair_turns, era()), 0);
    assert_eq!(judged(&[0, 1].repeat(20), era()), 1, "in order of arrival");
    assert_eq!(judged(&[0, 0, 0], era()), 1);
    assert_eq!(judged(&[1].repeat(14), era()), 0);
    assert_eq!(judged(&[1].repeat(15), era()), 1);
    let mut arrival = era();
    arrival.setup.version = 2;
    assert_eq!(judged(&[0, 1].repeat(20), arrival), 0);
    // A process that is stopped does not claim what is due to it.
    let stopped = Permitted { hindered: true, ..none() };
    let calls = contest(&[0, 1].repeat(20));
    assert_eq!(count(&fair::judge(&calls, &[era()], &stopped, 100 * SECOND)), 0);
    // An agent that does not wait gets nothing.
    let calls = contest(&[1].repeat(20));
    assert_eq!(count(&fair::judge(&calls[1..], &[era()], &none(), 100 * SECOND)), 0);
}

/// Eight a second on the child: nine calls that were charged early and made late.
#[test]
fn calls_that_wait_for_the_parent_count_when_they_are_made() {
    let made = |many: u64, gap: u64| -> Vec<Call> {
        let each = (0..many).map(|number| (SECOND + number * 200_000, 3 * SECOND + number * gap));
        each.map(|(asked, answered)| call("p1", CHILD, asked, answered)).collect()
    };
    let judged = |calls: &[Call]| count(&within::judge(calls, &[era()], &none()));
    assert_eq!((judged(&made(8, 10)), judged(&made(9, 10)), judged(&made(9, 125_000))), (0, 1, 0));
}

/// A wait for slots is excused only by a dead holder whose death the machine cannot show.
#[test]
fn only_an_unseen_death_excuses_a_wait_for_slots() {
    let waited =
        |slots: u64| Call { granted: false, slots, ..call("p2", SLOTS, 10 * SECOND, 30 * SECOND) };
    let dead = |slots: u64| Call {
        settled: false,
        slots,
        last: 6 * SECOND,
        ..call("p1", SLOTS, 5 * SECOND, 5 * SECOND)
    };
    let judged = |calls: &[Call], permitted: &Permitted| count(&judge(calls, &[era()], permitted));
    let unseen = Permitted { unseen: vec!["p1".to_owned()], ..none() };
    assert_eq!(judged(&[dead(2), waited(1)], &none()), 1);
    assert_eq!(judged(&[dead(2), waited(1)], &unseen), 0);
    assert_eq!(judged(&[dead(1), waited(1)], &unseen), 1, "the other slot is free");
    assert_eq!(judged(&[dead(1), waited(2)], &unseen), 0);
    // Two minutes are for those whose lock is gone, not for every death after a fault.
    let slow = Permitted { slow_reclaim: true, ..none() };
    assert_eq!(judged(&[dead(2), waited(1)], &slow), 1);
    let settled = Call { settled: true, ..dead(2) };
    assert_eq!(judged(&[settled, waited(1)], &unseen), 1);
}
