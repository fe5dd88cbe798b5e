//! Errors in the program's own words, and notes about limits that are true.

use crate::support::Home;

/// The stated amounts of a pool's limits, in their order.
fn amounts(home: &Home, pool: &str) -> Vec<u64> {
    let status = home.status(pool);
    let limits = status["limits"].as_array().unwrap().iter();
    limits.map(|limit| limit["amount"].as_u64().unwrap()).collect()
}

#[test]
fn a_call_that_can_never_fit_leaves_the_limits_of_the_pool() {
    let home = Home::new();
    let ask = |more: &[&'static str]| home.run([&["reserve", "my/api"], more].concat());
    ask(&["--limit", "requests=60/min", "--limit", "tokens=900/min"]).printed();
    // Too large for its own limit, and for one that the pool has already.
    ask(&["--limit", "requests=30/min", "--cost", "requests=31"]).failed(65, &["31"]);
    ask(&["--limit", "requests=30/min", "--cost", "tokens=901"]).failed(65, &["901"]);
    assert_eq!(amounts(&home, "my/api"), [60, 900]);
    // A new pool gets no limits by it.
    let new = ["reserve", "my/new", "--limit", "requests=30/min", "--cost", "requests=31"];
    home.run(new).failed(65, &["my/new"]);
    home.run(["reserve", "my/new", "--limit", "requests=60/min"]).printed();
    assert_eq!(amounts(&home, "my/new"), [60]);
    // A call that only has to wait tightens it, as before.
    ask(&["--limit", "requests=40/min", "--cost", "tokens=5", "--timeout", "0"]).printed();
    assert_eq!(amounts(&home, "my/api"), [40, 900]);
}

#[test]
fn a_note_names_limits_that_stay_beside_those_that_apply() {
    let home = Home::new();
    home.run(["reserve", "my/api", "--limit", "requests=30/min"]).printed();
    let both = ["--limit", "requests=60/min", "--limit", "tokens=90k/min", "--cost", "tokens=7"];
    let ran = home.run([&["reserve", "my/api"], &both[..]].concat());
    ran.printed();
    let applies = "`my/api` has one more limit for every caller: tokens=90k/min (also: ";
    let stays = "requests=30/min stays, because --limit requests=60/min is looser";
    assert!(ran.err.contains(applies) && ran.err.contains(stays), "{ran:?}");
}

#[test]
fn a_note_about_a_unit_that_the_call_does_not_name_has_what_is_charged() {
    let home = Home::new();
    let ran = home.run(["reserve", "my/api", "--limit", "tokens=100/min"]);
    ran.printed();
    let note = "--limit tokens=… counts only 1 for this call, which names no tokens; add --cost";
    assert!(ran.err.contains(note), "{ran:?}");
    assert_eq!(home.status("my/api")["limits"][0]["used"], 1);
}

#[test]
fn errors_of_the_system_are_in_plain_words_with_a_hint() {
    let home = Home::new();
    let elsewhere = "hint: choose another directory for the ledger (STANDPIPE_HOME, or --store";
    for (store, why) in [
        (
            "file:/dev/null/x",
            "cannot create the state directory /dev/null/x: a part of the path is",
        ),
        ("file:/proc/foo", "cannot create the state directory /proc/foo: its file system takes no"),
    ] {
        let ran = home.run(["--store", store, "status"]);
        ran.failed(69, &[why, elsewhere]);
        assert!(!ran.err.contains("os error"), "{ran:?}");
    }
    let full = home.run_by(&["sh", "-c", "exec \"$@\" > /dev/full", "sh"], ["man"]);
    full.failed(74, &["cannot write the output: no space is left on the device", "hint: "]);
    assert!(!full.err.contains("os error"), "{full:?}");
}

#[test]
fn a_host_that_cannot_be_resolved_has_a_hint() {
    let home = Home::new();
    let ran = home.run(["--store", "redis://no.such.host.invalid", "status"]);
    ran.failed(69, &["no.such.host.invalid", "cannot be resolved", "hint: check the host in"]);
}

#[test]
fn events_take_instants_and_reject_unknown_pools() {
    let home = Home::new();
    home.run(["reserve", "my/slots", "--limit", "parallel=1"]).printed();
    let all = home.run(["events", "--since", "2020-01-31T12:00:00Z"]);
    assert!(all.printed().contains("limits from code or flags: applied"), "{all:?}");
    let none = home.run(["events", "--since", "2099-01-31T12:00:00Z"]);
    assert!(none.printed().is_empty() && none.err.contains("no events since 2099-01-31"));
    home.run(["events", "--since", "2026-13-45"]).failed(2, &["not an instant", "31T12:00:00Z"]);
    for follow in [&[][..], &["--follow"]] {
        let ran = home.run([&["events", "--pool", "my/slotz"], follow].concat());
        ran.failed(78, &["there is no pool `my/slotz`", "did you mean `my/slots`?"]);
    }
    home.run(["events", "--pool", "my/slots"]).printed();
}

#[test]
fn names_that_mean_nothing_are_rejected() {
    let home = Home::new();
    let both = ["reserve", "my/b", "--limit", "parallel=1", "--also", "my/b"];
    home.run(both).failed(2, &["`my/b` is named twice", "name each pool once"]);
    home.run(["reserve", "my/b", "--ttl", "0"]).failed(2, &["--ttl must be longer than 0"]);
}
