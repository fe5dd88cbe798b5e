//! When a refused call may be admitted: an exact instant, a lower bound, or what must happen first.

use serde_json::{Value, json};

use crate::support::{Answer, Daemon, Home, until_waiting};

/// The keys of a problem that say when.
fn said(problem: &Value) -> Vec<&'static str> {
    let keys = ["until", "not_before", "waiting_for"];
    keys.into_iter().filter(|key| problem.get(*key).is_some()).collect()
}

/// Header and body name the same wait, which is about a minute.
#[track_caller]
fn assert_a_minute(answer: &Answer) {
    let millis = answer.json()["retry_after_ms"].as_u64().unwrap();
    assert!((50_000..=60_200).contains(&millis), "{answer:?}");
    let seconds = millis.div_ceil(1_000).to_string();
    assert_eq!(answer.header("retry-after"), Some(seconds.as_str()), "{answer:?}");
}

fn call(tokens: u64, timeout: u64) -> Value {
    let (cost, limits) = (json!({"tokens": tokens}), json!({"tokens": "1000/min"}));
    json!({"pool": "my/api", "cost": cost, "limits": limits, "timeout_ms": timeout})
}

#[test]
fn an_exact_instant_is_until_and_a_bound_is_not_before() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    daemon.reserve(&call(800, 0)).ok(201);
    let exact = daemon.reserve(&call(700, 0));
    let problem = exact.problem(429, "not_in_time");
    assert_eq!((said(&problem), &problem["reason"]), (vec!["until"], &json!("limit")));
    assert!(problem["hint"].as_str().unwrap().starts_with("ask again in "), "{problem}");
    assert_a_minute(&exact);

    let _waits = daemon.begin(&call(700, 300_000));
    until_waiting(&home, "my/api", 1);
    let bound = daemon.reserve(&call(100, 0));
    let problem = bound.problem(429, "not_in_time");
    assert_eq!((said(&problem), &problem["reason"]), (vec!["not_before"], &json!("order")));
    assert!(problem["hint"].as_str().unwrap().starts_with("not before "), "{problem}");
    assert_a_minute(&bound);
    let answer_body = daemon.get("/v1/explain?pool=my/api&cost=tokens%3D100").ok(200);
    let why = &answer_body["why"];
    assert!(why["not_before"].is_string() && why["until"].is_null(), "{answer_body}");
}

#[test]
fn what_needs_a_call_to_end_has_no_instant() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let ask = json!({"pool": "my/slots", "limits": {"parallel": 1}, "timeout_ms": 0});
    daemon.reserve(&ask).ok(201);
    let refused = daemon.reserve(&ask);
    let problem = refused.problem(429, "not_in_time");
    assert_eq!(said(&problem), ["waiting_for"], "{problem}");
    assert_eq!(problem["waiting_for"], "a call in flight to end");
    assert_eq!(problem["hint"], "waiting for a call in flight to end");
    assert_eq!((refused.header("retry-after"), problem.get("retry_after_ms")), (None, None));

    let stop = json!({"pool": "my/slots", "kind": "terminal"});
    daemon.post("/v1/throttle", &stop).ok(200);
    let stopped = daemon.reserve(&ask).problem(429, "terminal");
    assert_eq!(said(&stopped).len(), 1, "{stopped}");
    let never = json!({"pool": "my/api", "cost": {"tokens": 9}, "limits": {"tokens": "1/h"}});
    let never = daemon.reserve(&never).problem(422, "never");
    assert!(said(&never).is_empty(), "{never}");
}

#[test]
fn the_document_names_the_three_cases() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let document = daemon.get("/openapi.json").json();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in ["ProblemDetails", "Refused", "When"] {
        let properties = schemas[name]["properties"].as_object().unwrap();
        for key in ["until", "not_before", "waiting_for"] {
            assert!(properties.contains_key(key), "{key} of {name}");
        }
    }
}
