//! The referee finds what is wrong, and nothing else.

use standpipe_pairs::provider::ProviderCall;
use standpipe_pairs::record::Line;
use standpipe_pairs::referee::{Era, Permitted, calls, cap, judge, late, provider};
use standpipe_pairs::setup::{BUCKET, CHILD, SLOTS, Setup, WINDOW};

fn era() -> Era {
    Era { begins: 0, sure: 0, setup: Setup::new(String::new()) }
}

/// A process's record: calls that asked, were granted and began to settle at these instants.
fn record(pool: &str, calls: &[(u64, u64, u64)]) -> Vec<Line> {
    let line = |at, kind: &str, number| Line {
        at,
        kind: kind.to_owned(),
        number,
        pool: pool.to_owned(),
        rest: if kind == "grant" { format!("store lease-{number}") } else { String::new() },
    };
    let lines = calls.iter().zip(1_u64..).flat_map(|((asked, granted, settled), number)| {
        let settled = (*settled > 0).then(|| line(*settled, "settle", number));
        [line(*asked, "ask", number), line(*granted, "grant", number)].into_iter().chain(settled)
    });
    lines.collect()
}

fn broken(pool: &str, processes: &[&[(u64, u64, u64)]]) -> usize {
    let names = ["a", "b", "c"];
    let lines = processes.iter().map(|process| record(pool, process));
    let all: Vec<_> =
        names.iter().zip(lines).flat_map(|(name, lines)| calls(name, &lines)).collect();
    judge(&all, &[era()], &Permitted::default()).len()
}

#[test]
fn a_third_holder_of_two_slots_is_found() {
    let (a, b) = ([(10, 20, 500)], [(11, 30, 400)]);
    assert_eq!(broken(SLOTS, &[&a, &b, &[(35, 100, 300)]]), 1);
    // The first two certainly hold only until they begin to settle.
    assert_eq!(broken(SLOTS, &[&a, &b, &[(35, 450, 600)]]), 0);
    // A process that died held its slot until its last line at least, and not certainly longer.
    assert_eq!(broken(SLOTS, &[&a, &[(11, 30, 0)], &[(35, 100, 300)]]), 0);
}

#[test]
fn a_unit_too_much_in_a_period_is_found() {
    let many = |count: u64, gap: u64| -> Vec<(u64, u64, u64)> {
        (0..count).map(|at| (at * gap + 1, at * gap + 2, at * gap + 3)).collect()
    };
    assert_eq!(broken(WINDOW, &[&many(20, 1_000)]), 0);
    assert_eq!(broken(WINDOW, &[&many(21, 1_000)]), 1);
    assert_eq!(broken(WINDOW, &[&many(100, 50_001)]), 0);
    assert_eq!(broken(WINDOW, &[&many(100, 49_000)]), 1);
    // Calls on the child count at its parent, which admits 12 a second.
    assert_eq!(broken(CHILD, &[&many(12, 1_000)]), 0);
    assert_eq!(broken(CHILD, &[&many(13, 1_000)]), 1);
}

/// The provider's log: calls that arrived and finished at these instants, by the number of their
/// lease; 0 for one without a lease.
fn log(pool: &str, calls: &[(u64, u64, u64)]) -> Vec<ProviderCall> {
    let call = |(number, arrived, finished): &(u64, u64, u64)| ProviderCall {
        pool: pool.to_owned(),
        lease: if *number > 0 { format!("lease-{number}") } else { String::new() },
        agent: "a".to_owned(),
        arrived: *arrived,
        finished: Some(*finished),
        over: false,
    };
    calls.iter().map(call).collect()
}

/// What the provider's log adds to the record of one process.
fn seen(pool: &str, record_of: &[(u64, u64, u64)], log_of: &[(u64, u64, u64)]) -> Vec<String> {
    let calls = calls("a", &record(pool, record_of));
    provider::judge(&log(pool, log_of), &calls, &[era()], &Permitted::default())
}

#[test]
fn a_call_that_only_the_provider_saw_is_found() {
    let granted = [(10, 20, 50)];
    assert_eq!(seen(WINDOW, &granted, &[(1, 30, 31)]), Vec::<String>::new());
    let found = seen(WINDOW, &granted, &[(1, 30, 31), (0, 32, 33)]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("without a grant"), "{found:?}");
    for (log, word) in [
        (vec![(1, 30, 31), (1, 40, 41)], "a second time"),
        (vec![(1, 15, 16)], "too early"),
        (vec![(1, 60, 61)], "was settled"),
    ] {
        let found = seen(WINDOW, &granted, &log);
        assert!(found.len() == 1 && found[0].contains(word), "{word}: {found:?}");
    }
}

#[test]
fn one_lease_of_two_processes_is_found() {
    let of = |name| calls(name, &record(SLOTS, &[(10, 20, 50)]));
    let both = [of("a"), of("b")].concat();
    let found = provider::judge(&[], &both, &[era()], &Permitted::default());
    assert!(found.len() == 1 && found[0].contains("a and b"), "{found:?}");
}

#[test]
fn a_third_call_at_the_provider_is_found() {
    // By their records the first two had settled when the third asked.
    let recorded = [(10, 20, 50), (11, 21, 50), (60, 70, 300)];
    let served = seen(SLOTS, &recorded, &[(1, 30, 200), (2, 31, 200), (3, 80, 200)]);
    assert!(served.len() == 1 && served[0].contains("3 holders of 2"), "{served:?}");
    // A process that died held no slot, although the provider still served its call.
    let died = [(10, 20, 0), (11, 21, 0), (60, 70, 300)];
    let served = seen(SLOTS, &died, &[(1, 30, 200), (2, 31, 200), (3, 80, 200)]);
    assert_eq!(served, Vec::<String>::new());
}

#[test]
fn a_burst_that_the_network_delayed_is_no_violation() {
    let second = 1_000_000;
    // Twenty calls, and twenty more after the period. The first ones arrive as late as the others.
    let ask = |at: u64| (at * 10 + 1, at * 10 + 5, 2 * second);
    let first = (0..20).map(ask);
    let then =
        (0..20).map(ask).map(|(asked, granted, end)| (asked + second, granted + second, end));
    let recorded: Vec<(u64, u64, u64)> = first.chain(then).collect();
    let log: Vec<(u64, u64, u64)> =
        (1..=40).map(|number| (number, second + 500 + number, second + 600)).collect();
    assert_eq!(seen(WINDOW, &recorded, &log), Vec::<String>::new());
    // The same log of processes that asked only shortly before.
    let late: Vec<(u64, u64, u64)> =
        (0..40).map(|at| (second + at, second + at + 1, 2 * second)).collect();
    let found = seen(WINDOW, &late, &log);
    assert!(found.len() == 1 && found[0].contains("the provider saw: over"), "{found:?}");
    assert_eq!(seen(BUCKET, &recorded[..5], &log[..5]), Vec::<String>::new());
    assert_eq!(seen(BUCKET, &late[..6], &log[..6]).len(), 1);
}

#[test]
fn calls_that_overlap_are_counted_where_their_order_does_not_matter() {
    let overlapping = |count: u64, wait: u64| -> Vec<(u64, u64, u64)> {
        (0..count).map(|at| (at + 1, wait + at, wait + 2_000)).collect()
    };
    assert_eq!(broken(WINDOW, &[&overlapping(20, 1_000)]), 0);
    assert_eq!(broken(WINDOW, &[&overlapping(21, 1_000)]), 1);
    // They may have been charged in two periods.
    assert_eq!(broken(WINDOW, &[&overlapping(21, 1_100_000)]), 0);
    assert_eq!(broken(BUCKET, &[&overlapping(6, 100)]), 1);
    assert_eq!(broken(BUCKET, &[&overlapping(6, 60_000)]), 0);
}

#[test]
fn an_agent_over_its_cap_is_found() {
    let many = |count: u64| {
        record(
            WINDOW,
            &(0..count).map(|at| (at * 9 + 1, at * 9 + 2, at * 9 + 3)).collect::<Vec<_>>(),
        )
    };
    let mut capped = era();
    capped.setup.agents = "[agent.w1]\ncap = { requests = \"5/s\" }\n".to_owned();
    let found = |name: &str, count: u64, era: &Era| {
        cap::judge(&calls(name, &many(count)), std::slice::from_ref(era), &Permitted::default())
            .len()
    };
    assert_eq!((found("w1", 5, &capped), found("w1", 6, &capped)), (0, 1));
    assert_eq!((found("w2", 6, &capped), found("w1", 6, &era())), (0, 0));
}

#[test]
fn a_wait_beyond_its_time_is_found() {
    let waited = |micros: u64| calls("a", &record(WINDOW, &[(1, 1 + micros, 0)]));
    let none = Permitted::default();
    assert_eq!(
        (late(&waited(2_000_000), &none).len(), late(&waited(2_002_000), &none).len()),
        (0, 1)
    );
    let stopped = Permitted { hindered: true, ..Permitted::default() };
    assert_eq!(late(&waited(9_000_000), &stopped).len(), 0);
}

/// With `share` calls without the store come on top, and what the store admits keeps its limit.
#[test]
fn shares_do_not_hide_a_store_that_is_over() {
    let permitted = Permitted { shares: 2, ..Permitted::default() };
    let judged = |local: u64, by_store: u64| {
        let call = |at: u64| (at * 1_000 + 1, at * 1_000 + 2, at * 1_000 + 3);
        let all: Vec<_> = (0..local + by_store).map(call).collect();
        let mut calls = calls("a", &record(WINDOW, &all));
        calls.iter_mut().take(local as usize).for_each(|call| call.local = true);
        judge(&calls, &[era()], &permitted).len()
    };
    assert_eq!(judged(40, 20), 0);
    assert_eq!(judged(41, 20), 1);
    assert_eq!(judged(0, 21), 1);
}
