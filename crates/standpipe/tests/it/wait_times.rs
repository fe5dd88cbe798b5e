//! When a refused call may be admitted: an exact instant, a lower bound, or what must happen first.

use std::time::Duration;

use serde_json::{Value, json};
use standpipe::policy::Charged;
use standpipe::{Limit, Reason, Refused, Request, Span, Throttle, ThrottleKind, Unit};

use crate::support::{Hand, World, at_once, file, parallel, patient, per_minute, refused};

/// Returns which of the keys about an instant are set in an object.
fn keys_set(object: &Value) -> Vec<&'static str> {
    let keys = ["until", "not_before", "waiting_for"];
    keys.into_iter().filter(|key| !object[*key].is_null()).collect()
}

#[track_caller]
fn assert_waits_for(no: &Refused, event: &str) {
    assert_eq!((no.waiting_for(), no.until, no.retry_after), (Some(event), None, None), "{no}");
    assert!(no.to_string().ends_with(&format!("; waiting for {event}")), "{no}");
    let json = serde_json::to_value(no).unwrap();
    assert_eq!((keys_set(&json), &json["waiting_for"]), (vec!["waiting_for"], &json!(event)));
    assert_eq!(json["retry_after_ms"], Value::Null);
}

#[test]
fn a_full_window_has_an_exact_instant() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/rate", vec![per_minute(Unit::Requests, 1)]);
    drop(pool.reserve(at_once()).blocking().unwrap());
    let no = refused(pool.reserve(at_once()).blocking());
    assert_eq!((no.exact, no.waiting_for()), (true, None), "{no}");
    assert!(no.to_string().contains("; ask again in 1 min ("), "{no}");
    let json = serde_json::to_value(&no).unwrap();
    assert_eq!((keys_set(&json), &json["retry_after_ms"]), (vec!["until"], &json!(60_000)));
    let explanation = pool.explain(&at_once()).blocking().unwrap();
    let step = serde_json::to_value(&explanation.steps[5].noes[0]).unwrap();
    assert_eq!((keys_set(&step), &step["until_ms"]), (vec!["until"], &json!(60_000)));
    assert!(step["not_before_ms"].is_null());
}

#[test]
fn behind_others_the_instant_is_a_bound() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/rate", vec![per_minute(Unit::Requests, 1)]);
    drop(pool.reserve(at_once()).blocking().unwrap());
    // A caller that gives up before its instant blocks no other.
    let wait = || Hand::new(pool.reserve(patient().timeout(Duration::from_secs(600))));
    let mut waiters = [wait(), wait()];
    assert!(waiters.iter_mut().all(|waiter| waiter.poll().is_pending()));
    let no = refused(pool.reserve(at_once()).blocking());
    assert_eq!((no.reason, no.exact, no.waiting_for()), (Reason::Order, false, None), "{no}");
    assert!(no.until.is_some() && no.to_string().contains("; not before "), "{no}");
    let json = serde_json::to_value(&no).unwrap();
    assert_eq!((keys_set(&json), &json["retry_after_ms"]), (vec!["not_before"], &json!(60_000)));
    let status = pool.status().blocking().unwrap();
    let second = serde_json::to_value(&status.tickets[1]).unwrap();
    assert_eq!((keys_set(&second), &second["not_before_ms"]), (vec!["not_before"], &json!(60_000)));
    // A forecast: the first waiter is admitted a period earlier.
    assert_eq!(second["expected_ms"], json!(120_000));
    assert!(status.tickets[1].when.to_string().starts_with("expected in 2 min"), "{second}");
    let explanation = pool.explain(&at_once()).blocking().unwrap();
    let order = serde_json::to_value(&explanation.steps[4].noes[0]).unwrap();
    assert_eq!(order["waiting_for"], "the calls before it in the queue");
    assert_eq!(keys_set(&order), ["waiting_for"]);
}

#[test]
fn a_refusal_that_waits_for_a_call_to_end_has_no_instant() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/slots", vec![parallel(1)]);
    let _held = pool.reserve(at_once()).blocking().unwrap();
    assert_waits_for(&refused(pool.reserve(at_once()).blocking()), "a call in flight to end");
    let mut waiter = Hand::new(pool.reserve(patient()));
    assert!(waiter.poll().is_pending());
    let behind = refused(pool.reserve(at_once()).blocking());
    assert_waits_for(&behind, "the calls before it in the queue");
    let status = pool.status().blocking().unwrap();
    assert_eq!(status.tickets[0].when.to_string(), "waiting for a call in flight to end");
    world.passes(Span::secs(61), &[&process]);
    assert_waits_for(&refused(waiter.run()), "a call in flight to end");

    // Output counts when it is known: until then the call in flight holds it.
    let output = Limit { charged: Charged::End, ..per_minute(Unit::OutputTokens, 100) };
    let pool = process.limited("t/output", vec![output]);
    let request = || at_once().unit("output_tokens", 80);
    let _held = pool.reserve(request()).blocking().unwrap();
    assert_waits_for(&refused(pool.reserve(request()).blocking()), "a call in flight to end");
}

#[test]
fn a_stop_without_an_end_waits_for_resume() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/api", vec![parallel(1)]);
    pool.throttle(&Throttle::new(ThrottleKind::Terminal)).blocking().unwrap();
    assert_waits_for(&refused(pool.reserve(at_once()).blocking()), "`standpipe resume`");
}

#[test]
fn a_probe_waits_for_its_answer_and_not_for_its_end() {
    let world = World::new();
    let process = world.process_with(file("[pool.\"t/api\"]\nrequests = \"100/min\"\n", 1));
    let pool = process.pool("t/api");
    let lease = pool.reserve(at_once()).blocking().unwrap();
    lease.throttled(Throttle::default().retry_after(Duration::from_secs(20))).blocking().unwrap();
    let paused = refused(pool.reserve(at_once()).blocking());
    assert!(paused.until.is_some() && paused.waiting_for().is_none(), "{paused}");
    world.passes(Span::secs(40), &[&process]);
    let _probe = pool.reserve(at_once()).blocking().unwrap();
    let no = refused(pool.reserve(Request::by("next").timeout(Duration::ZERO)).blocking());
    assert_eq!(no.reason, Reason::Probe, "{no}");
    assert_waits_for(&no, "the probe to be answered");
}

#[test]
fn what_never_fits_waits_for_nothing() {
    let world = World::new();
    let process = world.process();
    let pool = process.limited("t/api", vec![per_minute(Unit::Tokens, 100)]);
    let no = refused(pool.reserve(at_once().unit("tokens", 101)).blocking());
    assert!(no.is_never() && no.waiting_for().is_none() && no.when().is_empty(), "{no}");
    let json = serde_json::to_value(&no).unwrap();
    assert_eq!((keys_set(&json), &json["retry_after_ms"]), (vec![], &Value::Null));
}
