//! How pools stand, as the daemon shows it: the same as the command line, streams, metrics, and the
//! document that describes it all.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::support::{Client, Daemon, Home, Sse, lease, until};

/// A daemon with a pool that has one call in flight and one that waits.
fn busy(home: &Home) -> (Daemon, Client) {
    let daemon = Daemon::up(home);
    let limits = json!({"parallel": 1, "requests": "100/h"});
    let ask = json!({"pool": "my/slots", "agent": "first", "limits": limits, "ttl_ms": 600_000});
    daemon.reserve(&ask).ok(201);
    let waits =
        daemon.begin(&json!({"pool": "my/slots", "agent": "second", "timeout_ms": 600_000}));
    until("one waits", || (daemon.pool("my/slots")["waiting"] == 1).then_some(()));
    (daemon, waits)
}

#[test]
fn agents_are_listed_by_pool() {
    let home = Home::new();
    let (daemon, _waits) = busy(&home);
    let agents = daemon.get("/v1/agents").ok(200)["agents"].clone();
    let all = agents.as_array().unwrap();
    assert!(all.iter().all(|one| one["pool"] == "my/slots"), "{agents}");
    let of = |name: &str| all.iter().find(|one| one["name"] == name).unwrap();
    assert_eq!((all.len(), &of("second")["waiting"]), (2, &json!(1)), "{agents}");
    assert_eq!(of("first")["in_flight"], 1, "{agents}");
    let usage = json!([
        {"limit": "requests per 1h", "used": 1, "held": 0},
        {"limit": "parallel", "used": 0, "held": 1},
    ]);
    let both = |name: &str| of(name)["usage"].as_array().map(Vec::len);
    assert_eq!((both("first"), both("second")), (Some(2), None), "{agents}");
    let of_first = of("first")["usage"].as_array().unwrap();
    assert!(usage.as_array().unwrap().iter().all(|one| of_first.contains(one)), "{agents}");
}

#[test]
fn the_past_of_limits_is_kept() {
    let home = Home::new();
    let (daemon, _waits) = busy(&home);
    let past = until("two samples are taken", || {
        let past = daemon.get("/v1/history?pool=my/slots").ok(200);
        let samples = past["pools"][0]["limits"][0]["samples"].as_array().map_or(0, Vec::len);
        (samples >= 2).then_some(past)
    });
    assert_eq!(past["every_ms"], 2_000);
    assert_eq!(past["pools"][0]["pool"], "my/slots");
    let limits = past["pools"][0]["limits"].as_array().unwrap();
    let of =
        |unit: &str| limits.iter().find(|limit| limit["unit"] == unit).unwrap()["samples"].clone();
    let (parallel, requests) = (of("parallel"), of("requests"));
    // What calls used, what others used, and the base of both.
    let figures = |sample: &Value| [sample[1].clone(), sample[2].clone(), sample[3].clone()];
    assert_eq!(figures(&parallel[1]), [1, 0, 1].map(|n| json!(n)), "{past}");
    assert_eq!(figures(&requests[1]), [1, 0, 80].map(|n| json!(n)), "{past}");
    assert!(parallel[0][0].as_u64() < parallel[1][0].as_u64(), "oldest first: {past}");
    // Who used it, once for samples in a row; the call that waits uses nothing.
    for limit in limits {
        let by = limit["agents"].as_array().unwrap();
        assert_eq!(by.last().unwrap()["used"], json!({"first": 1}), "{past}");
        assert_eq!(by[0]["at"], limit["samples"][0][0], "{past}");
        assert!(by.len() <= 2, "{past}");
    }
    assert_eq!(daemon.get("/v1/history?pool=no/where").ok(200)["pools"], json!([]));
}

#[test]
fn a_stream_of_pools_shows_what_changes_and_says_goodbye() {
    let home = Home::new();
    let (daemon, waits) = busy(&home);
    let paths = ["/v1/pools", "/v1/pools?pool=my/slots", "/v1/pools?rows=1"];
    let mut streams: Vec<Sse> = paths.iter().map(|path| daemon.stream(path, &[])).collect();
    streams.push(Sse::open(daemon.unix(), "/v1/pools", &[]));
    for stream in &mut streams {
        let first = stream.expect("pools").json();
        assert_eq!((&first["schema"], &first["pools"][0]["waiting"]), (&json!(1), &json!(1)));
    }
    drop(waits);
    for stream in &mut streams {
        while stream.expect("pools").json()["pools"][0]["waiting"] != 0 {}
    }
    daemon.signal(rustix::process::Signal::TERM);
    for stream in &mut streams {
        let last = loop {
            let message = stream.next().expect("it ended without a goodbye");
            if message.event != "pools" {
                break message;
            }
        };
        assert_eq!((last.event.as_str(), &last.json()["reason"]), ("bye", &json!("stopping")));
        assert_eq!(stream.next(), None, "and closes");
    }
    assert!(daemon.ended().success());
}

#[test]
fn a_stream_of_a_pool_that_is_not_there_is_a_problem() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let stream = ["accept: text/html, text/event-stream;q=0.9"];
    daemon.ask("GET", "/v1/pools?pool=no/where", &stream, b"").problem(404, "no_pool");
    daemon.ask("GET", "/v1/events?kind=party", &stream, b"").problem(400, "invalid");
}

#[test]
fn health_and_readiness_say_who_it_is() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for mut client in [daemon.tcp(), daemon.unix()] {
        let alive = client.get("/healthz").ok(200);
        assert_eq!((&alive["status"], &alive["server"]), (&json!("ok"), &json!("standpipe")));
        assert_eq!(alive["pid"], daemon.pid());
        assert_eq!(client.get("/readyz").ok(200)["status"], "ready");
    }
    assert_eq!(daemon.said["pid"], daemon.pid());
}

/// Families by name: their type, and the names of their samples.
fn families(text: &str) -> BTreeMap<String, (String, Vec<String>)> {
    let mut found: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            current = name.to_owned();
            let old = found.insert(current.clone(), (kind.to_owned(), Vec::new()));
            assert_eq!(old, None, "{name} comes twice");
        } else if !line.starts_with("# HELP ") {
            let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no sample: {line}"));
            let name = &line[..end];
            let value = line.rsplit(' ').next().unwrap();
            assert!(value == "+Inf" || value.parse::<f64>().is_ok(), "no figure: {line}");
            assert!(name.starts_with(&current), "{line} is not of {current}");
            found.get_mut(&current).unwrap().1.push(name.to_owned());
        }
    }
    found
}

#[test]
fn metrics_can_be_read_and_have_their_names() {
    let home = Home::new();
    let (daemon, _waits) = busy(&home);
    let answer = daemon.get("/metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let found = families(answer.text());
    for (name, (kind, samples)) in &found {
        assert!(name.starts_with("standpipe_"), "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        let own = |sample: &String| match kind.as_str() {
            "histogram" => ["_bucket", "_sum", "_count"].contains(&&sample[name.len()..]),
            _ => sample == name,
        };
        assert!(samples.iter().all(own), "{name}: {samples:?}");
    }
    // Those that the operators' files go by are there; the suite `deploy` has the others.
    for name in ["standpipe_in_flight", "standpipe_waiting", "standpipe_build_info"] {
        let known = found.keys().any(|key| key.starts_with(name));
        assert!(known, "{name} is not in {:?}", found.keys());
    }
    let waiting = r#"pool="my/slots""#;
    assert!(answer.text().contains(waiting), "{}", answer.text());
}

/// What there is, by hand: a path that is added is added here too.
const ROUTES: &[(&str, &str)] = &[
    ("/healthz", "get"),
    ("/metrics", "get"),
    ("/openapi.json", "get"),
    ("/readyz", "get"),
    ("/v1/agents", "get"),
    ("/v1/events", "get"),
    ("/v1/explain", "get"),
    ("/v1/history", "get"),
    ("/v1/leases", "post"),
    ("/v1/leases/{id}", "delete"),
    ("/v1/leases/{id}/cancel", "post"),
    ("/v1/leases/{id}/commit", "post"),
    ("/v1/leases/{id}/heartbeat", "post"),
    ("/v1/observe", "post"),
    ("/v1/pause", "post"),
    ("/v1/pools", "get"),
    ("/v1/proxied", "get"),
    ("/v1/resume", "post"),
    ("/v1/throttle", "post"),
];

#[test]
fn the_document_lists_exactly_what_is_answered() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let answer = daemon.get("/openapi.json");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let document = answer.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut listed: Vec<(&str, &str)> = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        listed.extend(
            methods.as_object().unwrap().keys().map(|method| (path.as_str(), method.as_str())),
        );
    }
    listed.sort_unstable();
    assert_eq!(listed, ROUTES);
    let methods = ["GET", "POST", "PUT", "DELETE", "PATCH"];
    for path in ROUTES.iter().map(|(path, _)| *path).collect::<BTreeSet<_>>() {
        for method in methods {
            let there = ROUTES.contains(&(path, method.to_lowercase().as_str()));
            let status = daemon.ask(method, path, &[], b"").status;
            assert_eq!(status != 405, there, "{method} {path}: {status}");
        }
    }
}

#[test]
fn head_is_get_without_a_body() {
    let home = Home::new();
    let (daemon, _waits) = busy(&home);
    for path in ["/healthz", "/v1/pools", "/metrics", "/openapi.json", "/"] {
        let mut client = daemon.tcp();
        client.start("HEAD", path, &["connection: close"], b"");
        let head = client.head().unwrap();
        assert_eq!(head.status, 200, "{path}: {head:?}");
        assert_eq!(client.chunk(), None, "{path}: no body");
    }
    let id = lease(&daemon.reserve(&json!({"pool": "my/other", "limits": {"parallel": 1}})));
    daemon.settle(&id, "cancel").ok(200);
}
