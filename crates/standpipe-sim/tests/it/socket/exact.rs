//! Limits over a socket are the limits of the oracle, per key and path, told as the provider does.

use standpipe_sim::{Rule, Shape, Unit};

use super::client::{Client, call};
use super::crowd::{PERIOD, check};
use super::{SECOND, requests, server};

const UNITS: [(Unit, u64); 4] =
    [(Unit::Requests, 6), (Unit::Tokens, 1_500), (Unit::Input, 1_500), (Unit::Output, 1_500)];

#[test]
fn a_token_bucket_is_enforced_exactly() {
    for (unit, amount) in UNITS {
        check(&[Rule::Bucket { unit, amount, period: PERIOD, burst: amount }]);
        check(&[Rule::Bucket { unit, amount, period: 7_000_001, burst: amount / 2 }]);
    }
}

#[test]
fn a_rolling_window_is_enforced_exactly() {
    for (unit, amount) in UNITS {
        check(&[Rule::Rolling { unit, amount, period: PERIOD }]);
    }
}

#[test]
fn concurrency_is_enforced_exactly() {
    for amount in [1, 2, 4] {
        check(&[Rule::Concurrency { amount }]);
    }
}

#[test]
fn several_limits_are_enforced_together() {
    check(&[
        Rule::Concurrency { amount: 4 },
        requests(8, PERIOD),
        Rule::Bucket { unit: Unit::Tokens, amount: 2_500, period: PERIOD, burst: 1_500 },
    ]);
}

#[test]
fn each_key_and_path_is_counted_by_itself() {
    let (server, _clock) = server(&[requests(1, SECOND)], Shape::Anthropic);
    let mut client = Client::new(server.address());
    let mut status = |path: &str, key: (&str, &str)| {
        client.send(&call(path, &[key]));
        client.answer().status
    };
    let one = ("x-api-key", "one");
    assert_eq!((status("/v1/x", one), status("/v1/x?a=b", one)), (200, 429));
    // The same key in the place where other clients put it.
    assert_eq!(status("/v1/x", ("authorization", "Bearer one")), 429);
    assert_eq!(status("/v1/y", one), 200);
    assert_eq!(status("/v1/x", ("api-key", "two")), 200);
    let log = server.stop();
    let keys: Vec<_> = log.iter().map(|call| (call.key.as_str(), call.path.as_str())).collect();
    let wanted = [("one", "/v1/x"), ("one", "/v1/x"), ("one", "/v1/x"), ("one", "/v1/y")];
    assert_eq!(keys, [&wanted[..], &[("two", "/v1/x")]].concat());
}

#[test]
fn replies_have_the_headers_and_bodies_of_the_provider() {
    let (server, clock) = server(&[requests(1, 60 * SECOND)], Shape::Anthropic);
    let mut client = Client::new(server.address());
    client.call(&[("x-input-tokens", "1000")]);
    let served = client.answer();
    assert_eq!(served.header("anthropic-ratelimit-requests-remaining"), Some("0"));
    assert!(served.body.contains("\"input_tokens\":1000"), "{served:?}");
    clock.advance_to(3 * SECOND);
    client.call(&[]);
    let refused = client.answer();
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("57")));
    assert!(refused.body.contains("rate_limit_error"), "{refused:?}");
}

#[test]
fn the_log_is_read_over_http() {
    let (server, clock) = server(&[requests(1, SECOND)], Shape::Plain);
    let mut client = Client::new(server.address());
    let held = [("x-agent", "blog"), ("x-lease", "sp1.abc"), ("x-service-ms", "250")];
    client.call(&held);
    server.wait_until(|log| log.len() == 1);
    let mut other = Client::new(server.address());
    other.call(&[("x-agent", "data")]);
    assert_eq!(other.answer().status, 429);
    other.send(b"GET /log HTTP/1.1\r\n\r\n");
    let answer = other.answer();
    let lines: Vec<serde_json::Value> =
        answer.body.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(lines.len(), 2, "asking for the log is no call: {answer:?}");
    assert_eq!((&lines[0]["agent"], &lines[0]["lease"]), (&"blog".into(), &"sp1.abc".into()));
    assert_eq!(lines[0]["admitted"], true);
    assert!(lines[0]["finished_us"].is_null(), "it is being served: {answer:?}");
    assert_eq!((&lines[1]["refused_by"], &lines[1]["rule"]), (&0.into(), &"rolling".into()));
    clock.advance_to(SECOND / 4);
    assert_eq!(client.answer().status, 200);
    other.send(b"GET /log?after=1 HTTP/1.1\r\n\r\n");
    assert_eq!(other.answer().body.lines().count(), 1);
    assert_eq!(server.log()[0].finished, Some(SECOND / 4));
}

/// What is over a limit is admitted and marked: for harnesses that count what a real provider, one
/// that is not exact, would have let pass.
#[test]
fn a_lenient_provider_marks_what_is_over() {
    let mut options = standpipe_sim::ServerOptions::new(Shape::Plain, vec![requests(1, SECOND)]);
    options.options.lenient = true;
    let (server, _clock) = super::serve(options);
    let mut client = Client::new(server.address());
    for _ in 0..3 {
        client.call(&[]);
        assert_eq!(client.answer().status, 200);
    }
    let over: Vec<_> = server.log().iter().map(|call| call.json()["over"].clone()).collect();
    assert_eq!(over, [false, true, true]);
}

#[test]
fn a_path_can_have_rules_of_its_own() {
    let mut options = standpipe_sim::ServerOptions::new(Shape::Plain, vec![requests(1, SECOND)]);
    options.paths.insert("/v1/wide".to_owned(), vec![requests(2, SECOND)]);
    let (server, _clock) = super::serve(options);
    let mut client = Client::new(server.address());
    let mut status = |path: &str| {
        client.send(&call(path, &[]));
        client.answer().status
    };
    assert_eq!((status("/v1/x"), status("/v1/x")), (200, 429));
    assert_eq!((status("/v1/wide"), status("/v1/wide"), status("/v1/wide")), (200, 200, 429));
}
