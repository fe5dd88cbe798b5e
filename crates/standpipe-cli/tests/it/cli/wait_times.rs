//! When a refused call may be admitted: an exact instant, a lower bound, or what must happen first.

use serde_json::{Value, json};

use crate::support::{Home, Ran};

/// The keys of a problem that are set, of those that say when.
fn set_keys(problem: &Value) -> Vec<&'static str> {
    let keys = ["until", "not_before", "waiting_for"];
    keys.into_iter().filter(|key| !problem[*key].is_null()).collect()
}

fn ask<'a>(home: &Home, tokens: &'a str, more: &[&'a str]) -> Ran {
    let args = ["reserve", "my/api", "--limit", "tokens=1000/h", "--cost", tokens];
    home.run(args.into_iter().chain(["--timeout", "0"]).chain(more.iter().copied()))
}

#[test]
fn an_exact_instant_is_until_and_a_bound_is_not_before() {
    let home = Home::new();
    ask(&home, "tokens=800", &[]).printed();
    let exact = ask(&home, "tokens=700", &["--json"]);
    let room = "(short by 700); 800 of 800 usable are used (limit 1,000, margin 20 %)";
    exact.failed(75, &[room, "hint: ask again in "]);
    let problem = exact.json();
    assert_eq!(set_keys(&problem), ["until"], "{problem}");
    assert!(problem["retry_after_ms"].as_u64().unwrap() > 3_000_000, "{problem}");
    let explained = home.run(["explain", "my/api", "--cost", "tokens=700"]);
    let text = explained.printed().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("(short by 700), used by "), "{text}");

    let args = ["reserve", "my/api", "--cost", "tokens=700", "--timeout", "2h", "-q"];
    let mut waiter = home.start(args);
    while home.status("my/api")["tickets"].as_array().unwrap().is_empty() {
        assert!(waiter.child.try_wait().unwrap().is_none(), "it did not wait");
    }
    let bound = ask(&home, "tokens=100", &["--json"]);
    bound.failed(75, &["hint: ask again not before ", " (in "]);
    assert!(!bound.err.contains("Z (in"), "people read the time of this machine: {bound:?}");
    let problem = bound.json();
    assert_eq!(set_keys(&problem), ["not_before"], "{problem}");
    assert!(problem["retry_after_ms"].as_u64().unwrap() > 3_000_000, "{problem}");
    let explained = home.run(["explain", "my/api", "--cost", "tokens=100"]);
    let text = explained.printed().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(" in the queue for tokens per 1h; expected in "), "{text}");
    waiter.child.kill().unwrap();
    waiter.child.wait().unwrap();
}

#[test]
fn what_needs_a_call_to_end_has_no_instant() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let no = home.run(["reserve", "my/slots", "--timeout", "0", "--json"]);
    no.failed(
        75,
        &["hint: holder (pid ", ") holds it; give a longer --timeout", "status my/slots"],
    );
    let problem = no.json();
    assert_eq!(set_keys(&problem), ["waiting_for"], "{problem}");
    assert_eq!(problem["waiting_for"], "a call in flight to end");
    assert_eq!(problem["retry_after_ms"], Value::Null);

    let mut waiter = home.start(["hold", "my/slots", "--as", "waiter", "--", "true"]);
    while home.status("my/slots")["tickets"].as_array().unwrap().is_empty() {
        assert!(waiter.child.try_wait().unwrap().is_none(), "it did not wait");
    }
    let ticket = &home.status("my/slots")["tickets"][0];
    assert_eq!((set_keys(ticket), &ticket["until_ms"]), (vec!["waiting_for"], &json!(null)));
    let status = home.run(["status", "my/slots"]);
    let text = status.printed().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("in use by holder; waiting for a call in flight to end"), "{text}");
    assert_eq!(holder.end().code, Some(0));
    assert_eq!(waiter.end().code, Some(0));
}
