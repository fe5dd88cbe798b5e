//! Limits without a file, tasks and models of held commands, and what a wait leaves in the journal.

use serde_json::{Value, json};

use standpipe::{Error, Limit, Rule, Span, Unit};

use crate::daemon::support::{Daemon, library, limit, until_waiting};
use crate::support::Home;

/// What the journal has of waits.
fn waits(home: &Home) -> Vec<Value> {
    let shown = home.run(["events", "--kind", "wait", "--json"]);
    shown.printed().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_bucket_with_a_burst_is_given_on_the_command_line() {
    let home = Home::new();
    let ask = ["reserve", "my/api", "--limit", "requests=60/h,burst=3", "--timeout", "0"];
    for _ in 0..2 {
        home.run(ask).printed();
    }
    let status = home.status("my/api");
    let bucket = limit(&status, "requests");
    assert_eq!((&bucket["kind"], &bucket["burst"]), (&json!("bucket"), &json!(3)), "{bucket}");
    assert_eq!((&bucket["amount"], &bucket["used"]), (&json!(60), &json!(2)), "{bucket}");
    for (wrong, says) in [
        ("requests=60/h,brust=3", "did you mean `burst`?"),
        ("requests=60/h,tokens=5/h", "--limit of its own"),
        ("requests=60/h,burst=0", "at least 1"),
    ] {
        let ran = home.run(["reserve", "my/api", "--limit", wrong, "--timeout", "0"]);
        ran.failed(2, &[says]);
    }
}

#[test]
fn a_bucket_with_a_burst_is_given_over_http() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    for (pool, given) in [
        ("my/text", json!("60/h,burst=3")),
        ("my/object", json!({"rate": "60/h", "burst": 3})),
        ("my/list", json!([{"rate": "60/h", "kind": "bucket", "burst": "3"}, "1000/d"])),
    ] {
        let ask = json!({"pool": pool, "limits": {"requests": given}, "timeout_ms": 0});
        daemon.reserve(&ask).ok(201);
        let status = home.status(pool);
        let bucket = limit(&status, "requests");
        assert_eq!((&bucket["kind"], &bucket["burst"]), (&json!("bucket"), &json!(3)), "{bucket}");
    }
    for (given, says) in [
        (json!({"rate": "60/h", "brust": 3}), "did you mean `burst`?"),
        (json!({"burst": 3}), "rate"),
        (json!("60/h,kind=window,burst=3"), "leave"),
        (json!("0/h"), "pause"),
        (json!(true), "\"requests\": \"60/min\""),
    ] {
        let ask = json!({"pool": "my/wrong", "limits": {"requests": given}});
        let wrong = daemon.reserve(&ask).problem(400, "invalid");
        assert!(wrong["hint"].as_str().unwrap().contains(says), "{wrong}");
    }
}

#[test]
fn hold_names_a_task_and_a_model() {
    let home = Home::new();
    home.configure(
        "version = 1\n[pool.\"my/large\"]\nparallel = 2\n[pool.\"my/small\"]\nparallel = 2\n\
         [route]\nclassify = [\"my/small\"]\n",
    );
    let args = ["hold", "my/large", "--task", "classify", "--model", "tiny", "--as", "blog", "--"];
    let held = home.start(args.into_iter().chain(["sh", "-c", "echo on; read line"]));
    let mut held = held;
    assert_eq!(held.line(), "on");
    let status = home.status("my/small");
    let lease = &status["leases"][0];
    assert_eq!((&lease["task"], &lease["model"]), (&json!("classify"), &json!("tiny")), "{status}");
    assert_eq!(home.status("my/large")["in_flight"], 0);
    held.signal(rustix::process::Signal::TERM);
    let ended = held.end();
    assert!(ended.err.contains("routed to `my/small`"), "{ended:?}");
}

#[test]
fn a_wait_is_recorded_with_the_limit_and_how_full_it_was() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let args = ["hold", "my/slots", "--as", "late", "--model", "m", "--", "true"];
    let late = home.start(args);
    until_waiting(&home, "my/slots", 1);
    holder.signal(rustix::process::Signal::TERM);
    holder.end();
    late.end();
    let all = waits(&home);
    let wait = all.iter().find(|wait| wait["agent"] == "late").unwrap();
    assert_eq!((&wait["reason"], &wait["limit"]), (&json!("limit"), &json!("parallel")), "{wait}");
    assert_eq!((&wait["used"], &wait["usable"]), (&json!(1), &json!(1)), "{wait}");
    assert_eq!((&wait["position"], &wait["model"]), (&json!(1), &json!("m")), "{wait}");
    let shown = home.run(["events", "--kind", "wait"]);
    assert!(shown.printed().contains("parallel has no room: 1 of 1 used"), "{shown:?}");

    let rate = ["--limit", "tokens=1000/h", "--as", "rate", "--cost", "tokens=700"];
    home.run(["reserve", "my/api"].into_iter().chain(rate)).printed();
    let in_vain = ["reserve", "my/api", "--timeout", "200ms"].into_iter().chain(rate);
    assert_eq!(home.run(in_vain).code, Some(75));
    let all = waits(&home);
    let wait = all.iter().find(|wait| wait["agent"] == "rate").unwrap();
    assert_eq!(wait["limit"], "tokens per 1h", "{wait}");
    assert_eq!((&wait["used"], &wait["usable"]), (&json!(700), &json!(800)), "{wait}");
}

/// A budget of 0 is an error on every face and never reads as unlimited.
#[test]
fn b65_a_limit_of_zero_is_an_error_on_every_face() {
    let home = Home::new();
    for limit in ["usd=0/d", "usd=0.0/d", "requests=0/min", "parallel=0", "requests=5/s,burst=0"] {
        let ran = home.run(["reserve", "my/api", "--limit", limit, "--timeout", "0"]);
        ran.failed(2, &["admits no"]);
    }
    let daemon = Daemon::up(&home);
    for given in [json!({"usd": "0/d"}), json!({"parallel": 0}), json!({"tokens": {"rate": "0/s"}})]
    {
        let ask = json!({"pool": "my/api", "limits": given, "timeout_ms": 0});
        let wrong = daemon.reserve(&ask).problem(400, "invalid");
        assert!(wrong["detail"].as_str().unwrap().contains("admits no call"), "{wrong}");
        assert!(wrong["hint"].as_str().unwrap().contains("above 0"), "{wrong}");
    }
    daemon.stop();
    let pool = library(&home).pool("my/api").unwrap();
    let rule = Rule::Window { unit: Unit::Usd, amount: 0, period: Span::secs(86_400) };
    let bucket = Rule::Bucket { unit: Unit::Usd, amount: 5, period: Span::secs(60), burst: 0 };
    for rule in [rule, bucket, Rule::Parallel { amount: 0 }] {
        let wrong = pool.limit(vec![Limit::new(rule)]).blocking().unwrap_err();
        assert!(matches!(wrong, Error::Invalid { .. }), "{wrong}");
    }
    for (table, says) in [
        ("[pool.\"a/b\"]\nusd = \"0/d\"", "admits no call"),
        ("[pool.\"a/b\"]\nparallel = 0", "admits no call"),
        ("[pool.\"a/b\"]\nrequests = { rate = \"5/s\", burst = 0 }", "admits nothing"),
        (
            "[pool.\"a/b\"]\nrequests = \"5/s\"\n[agent.x]\ncap = { usd = \"0/d\" }",
            "admits no call",
        ),
        ("[pool.\"a/b\"]\nrequests = \"5/s\"\n[agent.x]\ncap = \"0%\"", "the share is zero"),
        ("[pool.\"a/b\"]\nrequests = \"5/s\"\n[agent.x]\ncap = { parallel = 0 }", "admits no call"),
    ] {
        home.configure(&format!("version = 1\n{table}\n"));
        home.run(["config", "check"]).failed(78, &[says]);
    }
}

#[test]
fn the_holder_of_slots_is_first_and_its_slots_are_drawn() {
    let home = Home::new();
    let two = ["--limit", "parallel=5", "--cost", "parallel=2", "--ttl", "1h"];
    for agent in ["holder", "holder", "other"] {
        let cost = if agent == "holder" { &two[..] } else { &["--ttl", "1h"] };
        home.run([&["reserve", "my/slots", "--as", agent], cost].concat()).printed();
    }
    let waiter = home.start(["hold", "my/slots", "--as", "waiter", "--", "true"]);
    until_waiting(&home, "my/slots", 1);
    let shown = home.run(["status", "my/slots"]);
    let lines: Vec<&str> = shown.printed().lines().collect();
    let at = lines.iter().position(|line| line.starts_with("  used by")).unwrap();
    assert_eq!(lines[at], "  used by  holder  ████████░░  4 of 5 slots · 2 in flight", "{shown:?}");
    assert_eq!(lines[at + 1], "           other   ██░░░░░░░░  1 of 5 in flight", "{shown:?}");
    assert!(lines[at + 2].starts_with("  waits  1.  waiter"), "{shown:?}");
    waiter.signal(rustix::process::Signal::TERM);
    waiter.end();
}

/// A stricter `--limit` applies to all, so its caller gets a note, also if it is not admitted.
#[test]
fn the_caller_who_lowers_a_limit_gets_a_note() {
    let home = Home::new();
    let reserve = |limit: &str| {
        let words = ["reserve", "my/slots", "--limit", limit, "--timeout", "0"];
        home.run(words)
    };
    for _ in 0..2 {
        assert_eq!(reserve("parallel=5").err, "", "a new limit and the same one are no change");
    }
    let lowered = reserve("parallel=1");
    assert_eq!(lowered.code, Some(75), "{lowered:?}");
    let note = "--limit parallel=1 now applies to every caller of `my/slots` (before: parallel=5)";
    assert!(lowered.err.contains(note), "{lowered:?}");
    assert!(!reserve("parallel=1").err.contains("now applies"));
    let kept = reserve("parallel=9");
    assert!(!kept.err.contains("now applies"), "{kept:?}");

    let held = |limit: &str| home.run(["hold", "my/api", "--limit", limit, "--", "true"]);
    assert_eq!(held("requests=100/min").err, "");
    let lowered = held("parallel=2");
    let note = "`my/api` has one more limit for every caller: parallel=2 (also: requests=100/min)";
    assert!(lowered.err.contains(note), "{lowered:?}");
}

/// The one that creates the pool changes nothing for the others, which state the same.
#[test]
fn equal_limits_that_start_together_are_not_noted_as_a_change() {
    let home = Home::new();
    let hold = ["hold", "my/new", "--limit", "parallel=3", "--", "true"];
    let started: Vec<_> = (0..10).map(|_| home.start(hold)).collect();
    for running in started {
        let ran = running.end();
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    }
}
