//! Clients whose clocks are wrong by up to two minutes: only the server's clock counts.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use standpipe_core::{Amounts, Limit, Rule, Span, Unit};
use standpipe_servers::{Server, faketime_library};

use crate::support::worker::{Worker, say, told_to_play};
use crate::support::{
    admitted_at, assert_never_over, assert_whole, call, commit, configure, insist, member,
    parallel, requests, store, wait_for,
};

const SKEWS: [i64; 5] = [-120, -30, 0, 30, 120];
const CALLS: usize = 60;

const WINDOW: (u64, Span) = (12, Span::millis(150));
const REFILL: (u64, Span) = (20, Span::millis(200));
const BURST: u64 = 10;
const SLOTS: u64 = 3;

fn limits() -> Vec<Limit> {
    let (amount, period) = REFILL;
    let bucket = Rule::Bucket { unit: Unit::InputTokens, amount, period, burst: BURST };
    vec![requests(WINDOW.0, WINDOW.1), Limit::new(bucket), parallel(SLOTS)]
}

fn wall_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_secs()).unwrap()
}

/// Says what it takes to be the time; then makes its calls, and says when each began and ended.
#[test]
fn worker() {
    let Some(url) = told_to_play() else { return };
    say(&wall_seconds().to_string());
    let store = store(&url);
    let mut member = member(&store);
    insist(&mut member, vec![configure(limits())]);
    let mut calls = String::new();
    for _ in 0..CALLS {
        let mut call = call(Span::secs(60));
        call.cost = Amounts::cost([(Unit::InputTokens, 1)]).unwrap();
        let lease = wait_for(&mut member, &store, call).unwrap();
        let began = admitted_at(&member, lease).0;
        insist(&mut member, vec![commit(lease)]);
        write!(calls, "{began}-{},", member.replica().now().0).unwrap();
    }
    say(&calls);
}

fn start(url: &str, skew: i64) -> Worker {
    let (library, skew) = (faketime_library(), format!("{skew:+}s"));
    let told = [
        ("LD_PRELOAD", library.to_str().unwrap()),
        ("FAKETIME", skew.as_str()),
        // How long something takes is measured as before.
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    Worker::start("skew::worker", url, &told)
}

#[test]
fn b04_b05_b06_clients_with_wrong_clocks_are_never_over_together() {
    let server = Server::start();
    let mut crowd = SKEWS.map(|skew| start(&server.url(), skew));
    for (worker, skew) in crowd.iter_mut().zip(SKEWS) {
        let thinks: i64 = worker.says().unwrap().parse().unwrap();
        let wrong = thinks - wall_seconds();
        assert!((wrong - skew).abs() < 25, "its clock is wrong by {wrong} s and not {skew}");
    }
    let mut calls: Vec<(u64, u64)> = Vec::new();
    for mut worker in crowd {
        let said = worker.says().unwrap();
        let number = |text: &str| text.parse::<u64>().unwrap();
        let pair = |text: &str| text.split_once('-').map(|(a, b)| (number(a), number(b)));
        calls.extend(said.split_terminator(',').map(|text| pair(text).unwrap()));
        worker.ends();
    }
    assert_eq!(calls.len(), SKEWS.len() * CALLS, "everybody was served");
    let stamps: Vec<u64> = calls.iter().map(|(began, _)| *began).collect();
    assert_never_over(&stamps, usize::try_from(WINDOW.0).unwrap(), WINDOW.1);
    assert_bucket(&stamps);
    assert_slots(&calls);
    assert_whole(&store(&server.url()));
}

/// Between any two admissions there were no more than the burst and what came back meanwhile.
fn assert_bucket(stamps: &[u64]) {
    let mut stamps = stamps.to_vec();
    stamps.sort_unstable();
    for (first, begin) in stamps.iter().enumerate() {
        for (last, end) in stamps.iter().enumerate().skip(first) {
            let back = (end - begin) * REFILL.0 / REFILL.1.0;
            let taken = (last - first + 1) as u64;
            assert!(taken <= BURST + back, "{taken} of {} in {} µs", BURST + back, end - begin);
        }
    }
}

/// At no moment were more calls in flight than there are slots.
fn assert_slots(calls: &[(u64, u64)]) {
    let begins = calls.iter().map(|(began, _)| (*began, 1));
    let ends = calls.iter().map(|(_, ended)| (*ended, -1));
    let mut changes: Vec<(u64, i64)> = begins.chain(ends).collect();
    // An end before a beginning of the same microsecond: the log has them in that order.
    changes.sort_unstable();
    let mut flying = 0;
    for (at, change) in changes {
        flying += change;
        assert!(flying <= i64::try_from(SLOTS).unwrap(), "{flying} in flight at {at}");
    }
}
