//! What happened: pages with marks, and streams that are taken up again without loss or repeat,
//! while other processes write and the journal's files go round.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::daemon::support::{Daemon, Sse, until};
use crate::support::Home;

/// Reports a refusal by the command line, and lifts the pause.
fn throttle(home: &Home, pool: &str, agent: &str) {
    home.run(["throttle", pool, "--as", agent, "--retry-after", "1s"]).printed();
}

fn make(home: &Home, pool: &str) {
    let lease = home.run(["reserve", pool, "--limit", "parallel=1", "--ttl", "600s"]);
    home.run(["cancel", lease.printed()]).printed();
}

fn agents(page: &Value) -> Vec<String> {
    let events = page["events"].as_array().unwrap().iter();
    events.map(|event| event["agent"].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn pages_are_chosen_by_time_kind_pool_and_mark() {
    let home = Home::new();
    make(&home, "my/one");
    make(&home, "my/two");
    let daemon = Daemon::up(&home);
    for (pool, agent) in [("my/one", "a"), ("my/two", "b"), ("my/one", "c"), ("my/one", "d")] {
        throttle(&home, pool, agent);
    }
    let get = |query: &str| daemon.get(&format!("/v1/events?{query}")).ok(200);
    assert_eq!(agents(&get("kind=throttle")), ["a", "b", "c", "d"], "oldest first");
    assert_eq!(agents(&get("kind=throttle&pool=my/one")), ["a", "c", "d"]);
    assert_eq!(agents(&get("kind=throttle&limit=2")), ["c", "d"], "the newest");
    assert_eq!(agents(&get("kind=throttle&since=1h")), ["a", "b", "c", "d"]);
    assert_eq!(agents(&get("kind=throttle&since=2999-01-01T00:00:00Z")), [""; 0]);
    let third = get("kind=throttle")["events"][2]["at"].clone();
    assert_eq!(
        agents(&get(&format!("kind=throttle&since={}", third.as_str().unwrap()))),
        ["c", "d"]
    );
    let all = get("since=1h");
    let kinds: Vec<_> =
        all["events"].as_array().unwrap().iter().map(|e| e["kind"].clone()).collect();
    assert!(kinds.contains(&json!("pause")) && kinds.contains(&json!("config")), "{all}");
    for event in all["events"].as_array().unwrap() {
        assert!(event["at"].is_string() && event["pool"].is_string(), "{event}");
    }

    // Page by page, nothing twice, nothing missing.
    let (mut seen, mut after) = (Vec::new(), "0".to_owned());
    loop {
        let page = get(&format!("limit=2&after={after}"));
        after = page["next"].as_str().unwrap().to_owned();
        let events = page["events"].as_array().unwrap();
        seen.extend(events.clone());
        if events.len() < 2 {
            break;
        }
    }
    let sorted = |events: &[Value]| {
        let mut texts: Vec<String> = events.iter().map(Value::to_string).collect();
        texts.sort();
        texts
    };
    assert_eq!(sorted(&seen), sorted(get("since=1h")["events"].as_array().unwrap()));
    let none = get(&format!("after={after}"));
    assert_eq!((&none["events"], &none["next"]), (&json!([]), &json!(after)));
    throttle(&home, "my/two", "late");
    assert_eq!(agents(&get(&format!("kind=throttle&after={after}"))), ["late"]);
    let filtered = get(&format!("pool=my/one&after={after}"));
    assert_eq!(filtered["events"], json!([]));
    assert_ne!(filtered["next"], after, "what is not wanted need not be read again");
}

#[test]
fn a_stream_begins_now_or_in_the_past_and_is_live() {
    let home = Home::new();
    make(&home, "my/api");
    throttle(&home, "my/api", "before");
    let daemon = Daemon::up(&home);
    let mut live = daemon.stream("/v1/events?kind=throttle", &[]);
    let mut past = Sse::open(daemon.unix(), "/v1/events?kind=throttle&since=1h", &[]);
    let mut other = daemon.stream("/v1/events?pool=my/other&since=1h", &[]);
    let first = past.expect("throttle");
    assert_eq!(first.json()["agent"], "before");
    assert!(!first.id.is_empty(), "{first:?}");
    throttle(&home, "my/api", "after");
    assert_eq!(live.expect("throttle").json()["agent"], "after");
    assert_eq!(past.expect("throttle").json()["agent"], "after");
    let mut again =
        daemon.stream("/v1/events?kind=throttle", &[&format!("last-event-id: {}", first.id)]);
    assert_eq!(again.expect("throttle").json()["agent"], "after");
    let by_query = format!("/v1/events?kind=throttle&after={}", first.id);
    assert_eq!(daemon.stream(&by_query, &[]).expect("throttle").json()["agent"], "after");
    make(&home, "my/other");
    assert_eq!(other.expect("config").json()["pool"], "my/other", "only of that pool");
    let wrong = ["accept: text/event-stream", "last-event-id: never"];
    daemon.ask("GET", "/v1/events", &wrong, b"").problem(400, "invalid");
}

fn journal(home: &Home) -> PathBuf {
    home.path.join("state/journal.jsonl")
}

/// Adds old lines to the journal until the next event makes its files go round.
fn fill(home: &Home) {
    let path = journal(home);
    let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    let full = 4 << 20;
    let mut text = String::new();
    let mut size = usize::try_from(file.metadata().unwrap().len()).unwrap();
    let long = "x".repeat(60_000);
    while size < full {
        let line = format!(
            "{{\"at\":\"2026-01-01T00:00:00.000Z\",\"pool\":\"my/old\",\"kind\":\"store\",\
             \"what\":\"{long}\"}}"
        );
        let before = text.len();
        writeln!(text, "{line}").unwrap();
        size += text.len() - before;
    }
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn a_stream_is_taken_up_again_without_loss_or_repeat_while_files_go_round() {
    const WRITERS: usize = 2;
    const EACH: usize = 12;
    let home = Home::new();
    make(&home, "my/api");
    for writer in 0..WRITERS {
        make(&home, &format!("my/slots-{writer}"));
    }
    let daemon = Daemon::up(&home);
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    std::thread::scope(|scope| {
        let home = &home;
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    for turn in 0..EACH {
                        let agent = format!("w{writer}-{turn}");
                        throttle(home, "my/api", &agent);
                        // Its time is up at once, which the next one finds and writes down.
                        let pool = format!("my/slots-{writer}");
                        home.run(["reserve", &pool, "--as", &agent, "--ttl", "1ms"]).printed();
                        if writer == 0 && turn % 4 == 3 {
                            fill(home);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            home.run(["pause", "my/slots-0", "--for", "1h"]).printed();
            throttle(home, "my/api", "last");
        });
        let mut last = String::new();
        let (mut paused, mut throttled) = (false, false);
        while !(paused && throttled) {
            let header = format!("last-event-id: {last}");
            let mut stream = match last.as_str() {
                "" => daemon.stream("/v1/events?since=1h", &[]),
                _ => daemon.stream("/v1/events?since=1h", &[&header]),
            };
            // A few, and then it breaks off.
            for _ in 0..20 {
                let message = stream.next().unwrap();
                last.clone_from(&message.id);
                let event = message.json();
                if event["pool"] == "my/old" {
                    continue;
                }
                throttled |= event["agent"] == "last";
                paused |= event["kind"] == "pause" && event["pool"] == "my/slots-0";
                *seen.entry(message.data).or_default() += 1;
                if paused && throttled {
                    break;
                }
            }
        }
    });
    let page = daemon.get("/v1/events?since=1h&limit=10000").ok(200);
    let mut written: BTreeMap<String, u64> = BTreeMap::new();
    for event in page["events"].as_array().unwrap() {
        *written.entry(event.to_string()).or_default() += 1;
    }
    assert!(home.path.join("state/journal.2.jsonl").exists(), "the files went round twice");
    for writer in 0..WRITERS {
        for turn in 0..EACH {
            let agent = format!("\"w{writer}-{turn}\"");
            let there = |kind: &str| {
                let kind = format!("\"kind\":\"{kind}\"");
                seen.keys().filter(|data| data.contains(&agent) && data.contains(&kind)).count()
            };
            assert_eq!(there("throttle"), 1, "{agent}");
            if turn + 1 < EACH {
                assert_eq!(there("reclaim"), 1, "{agent}");
            }
        }
    }
    // What was written behind the last that was read is not asked for here.
    for (data, times) in &seen {
        assert_eq!(written.get(data), Some(times), "{data}");
    }
}

#[test]
fn a_stream_of_events_says_goodbye() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let mut stream = daemon.stream("/v1/events", &[]);
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(stream.expect("bye").json(), json!({"schema": 1, "reason": "stopping"}));
    assert_eq!(stream.next(), None);
    assert!(daemon.ended().success());
    until("its socket is gone", || {
        (!home.path.join("state/standpipe.sock").exists()).then_some(())
    });
}
