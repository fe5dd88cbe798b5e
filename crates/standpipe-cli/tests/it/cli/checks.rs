//! `audit` and `doctor` after real calls.

use serde_json::{Value, json};

use crate::support::{Home, Ran};

const SHADOW: &str = "[pool.\"web/push\"]\nrequests = \"100/min\"\nenforce = false\n";
const HELD_BACK: &str = "[pool.\"web/push\"]\nrequests = \"100/min\"\n";

fn call(home: &Home, pool: &str, agent: &str) {
    let limit = ["--limit", "requests=100/min", "-q"];
    home.run(["hold", pool, "--as", agent].into_iter().chain(limit).chain(["--", "true"]))
        .printed();
}

/// What was found of one check.
fn found(report: &Value, check: &str) -> Vec<Value> {
    let all = report["findings"].as_array().unwrap();
    all.iter().filter(|finding| finding["check"] == check).cloned().collect()
}

/// Lines fit 80 columns, but for paths, which are as long as they are.
#[track_caller]
fn fits(ran: &Ran) {
    let mut lines = ran.out.lines().filter(|line| !line.contains("standpipe-cli-"));
    assert!(lines.all(|line| line.chars().count() <= 80), "{}", ran.out);
}

#[test]
fn an_empty_audit_suggests_a_command() {
    let home = Home::new();
    let ran = home.run(["audit"]);
    for words in ["Nothing was recorded", "standpipe hold", "enforce = false"] {
        assert!(ran.printed().contains(words), "{words} in {}", ran.out);
    }
    fits(&ran);
    assert_eq!(home.run(["audit", "--json"]).json()["pools"], json!([]));
    let compared = home.run(["audit", "--compare"]);
    assert!(compared.printed().contains("enforce = false"), "{compared:?}");
    assert_eq!(home.run(["audit", "--compare", "--json"]).json()["pools"], json!([]));
    home.run(["audit", "my/apy"]).failed(78, &["there is no pool"]);
}

#[test]
fn an_audit_has_every_agent_and_all_of_them_together() {
    let home = Home::new();
    for agent in ["blog", "engage", "blog"] {
        call(&home, "my/api", agent);
    }
    let ran = home.run(["audit"]);
    for words in ["my/api", "3 calls", "blog", "engage", "together", "of the 100 stated", "3 %"] {
        assert!(ran.printed().contains(words), "{words} in {}", ran.out);
    }
    fits(&ran);
    let report = home.run(["audit", "my/api", "--since", "1h", "--json"]).json();
    let pool = &report["pools"][0];
    assert_eq!((&pool["calls"], &pool["refused"]), (&json!(3), &json!(0)));
    assert_eq!(
        (&pool["agents"][0]["agent"], &pool["agents"][0]["calls"]),
        (&json!("blog"), &json!(2))
    );
    let limit = &pool["limits"][0];
    assert_eq!(limit["limit"], "requests per 1min");
    assert_eq!(
        (&limit["stated"], &limit["aim"], &limit["peak"]),
        (&json!(100), &json!(80), &json!(3))
    );
    assert_eq!(pool["findings"][0]["level"], "ok");
}

#[test]
fn usage_of_a_script_is_recorded_when_it_settles() {
    let home = Home::new();
    let args = ["reserve", "my/api", "--as", "blog", "--limit", "tokens=10k/min"];
    let ran = home.run(args.into_iter().chain(["--cost", "tokens=900"]));
    let lease = ran.printed();
    home.run(["commit", lease, "--used", "tokens=300"]).printed();
    let report = home.run(["audit", "--json"]).json();
    let limits = report["pools"][0]["limits"].as_array().unwrap();
    let tokens = limits.iter().find(|limit| limit["unit"] == "tokens").unwrap();
    assert_eq!((&tokens["peak"], &tokens["peak_percent"]), (&json!(300), &json!(3)));
}

#[test]
fn refusals_are_reported_with_a_remedy() {
    let home = Home::new();
    call(&home, "my/api", "blog");
    for level in ["note", "warning"] {
        home.run(["throttle", "my/api", "--as", "blog", "--retry-after", "1s", "-q"]);
        let report = home.run(["audit", "--json"]).json();
        let refused = found(&report["pools"][0], "429s");
        assert_eq!((&refused[0]["level"], &refused[0]["agent"]), (&json!(level), &json!("blog")));
        assert!(!refused[0]["remedy"].is_null());
    }
}

#[test]
fn before_and_after_are_shown_side_by_side() {
    let home = Home::new();
    home.configure(SHADOW);
    for agent in ["ralph", "data", "ralph"] {
        call(&home, "web/push", agent);
    }
    home.run(["throttle", "web/push", "--as", "data", "-q"]);
    let half = home.run(["audit", "--compare"]);
    assert!(half.printed().contains("No after for web/push"), "{half:?}");
    assert_eq!(home.run(["audit", "--json"]).json()["pools"][0]["enforce"], false);

    home.configure(HELD_BACK);
    home.run(["resume", "web/push", "-q"]);
    call(&home, "web/push", "ralph");
    let ran = home.run(["audit", "--compare", "web/push"]);
    for words in ["before", "after", "peak send rate", "429s", "retries", "wall clock", "1 (33 %)"]
    {
        assert!(ran.printed().contains(words), "{words} in {}", ran.out);
    }
    fits(&ran);
    let report = home.run(["audit", "--compare", "--json"]).json();
    let pool = &report["pools"][0];
    assert_eq!((&pool["before"]["calls"], &pool["after"]["calls"]), (&json!(3), &json!(1)));
    assert_eq!((&pool["before"]["refused"], &pool["after"]["refused"]), (&json!(1), &json!(0)));
    let left_out = home.run(["audit"]);
    assert!(left_out.printed().contains("3 calls in shadow mode are left out"), "{left_out:?}");
}

#[test]
fn a_comparison_is_of_the_last_run_in_each_mode() {
    let home = Home::new();
    // Two trials, one after the other: only the second is compared.
    for (file, calls) in [(SHADOW, 3), (HELD_BACK, 2), (SHADOW, 1), (HELD_BACK, 4)] {
        home.configure(file);
        (0..calls).for_each(|_| call(&home, "web/push", "ralph"));
    }
    let report = home.run(["audit", "--compare", "--json"]).json();
    let pool = &report["pools"][0];
    assert_eq!((&pool["before"]["calls"], &pool["after"]["calls"]), (&json!(1), &json!(4)));
    assert_eq!(pool["earlier_calls"], 5);
    let ran = home.run(["audit", "--compare", "web/push"]);
    for words in ["began", "5 calls of earlier runs are left out"] {
        assert!(ran.printed().contains(words), "{words} in {}", ran.out);
    }
    // A zone without daylight saving, eight hours behind: another day or hour than UTC.
    let mut elsewhere = home.command(["audit", "--compare", "web/push"]);
    let elsewhere = Ran::of(&elsewhere.env("TZ", "<-08>8").output().unwrap());
    let began = |ran: &Ran| ran.out.lines().find(|line| line.contains("began")).unwrap().to_owned();
    assert_ne!(began(&ran), began(&elsewhere), "local time");
    assert!(!began(&elsewhere).contains('Z'), "{}", began(&elsewhere));
    fits(&ran);
    let nothing = home.run(["audit", "--compare", "--since", "0", "--json"]).json();
    assert_eq!(nothing["pools"], json!([]), "{nothing}");
}

#[test]
fn usage_events_are_shown_on_request() {
    let home = Home::new();
    call(&home, "my/api", "blog");
    assert!(!home.run(["events"]).printed().contains("usage"));
    let usage = home.run(["events", "--kind", "usage"]);
    assert!(usage.printed().contains("blog: 1 call, used 1 request"), "{usage:?}");
}

#[test]
fn usage_events_have_priority_waits_and_refusals() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let ask = ["reserve", "my/slots", "--as", "blog", "--priority", "background"];
    for _ in 0..2 {
        let hasty = home.run(ask.into_iter().chain(["--timeout", "0"]));
        assert_eq!(hasty.code, Some(75), "{hasty:?}");
    }
    // Long enough to be queued on a busy machine: starting the command counts.
    let late = home.run(ask.into_iter().chain(["--timeout", "2s"]));
    assert_eq!(late.code, Some(75), "{late:?}");
    holder.end();
    let ran = home.run(["events", "--kind", "usage", "--json"]);
    let lines: Vec<Value> =
        ran.printed().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |agent: &'static str| lines.iter().filter(move |line| line["agent"] == agent);
    let denied = |reason: &str| {
        of("blog").map(|line| line["refusals"][reason].as_u64().unwrap_or(0)).sum::<u64>()
    };
    assert_eq!((denied("limit"), denied("deadline")), (2, 1), "{}", ran.out);
    assert!(of("blog").all(|line| line["priority"] == "background"), "{}", ran.out);
    let waits: u64 = of("blog")
        .flat_map(|line| line["waits"].as_array().cloned())
        .flatten()
        .filter_map(|waits| waits.as_u64())
        .sum();
    assert_eq!(waits, 1, "one of them waited: {}", ran.out);
    let held = of("holder").find(|line| line["calls"] == 1).unwrap();
    assert_eq!((&held["waits"], &held["priority"]), (&json!([1]), &json!("standard")));
    let report = home.run(["events", "--kind", "usage"]);
    assert!(report.printed().contains("blog: 1 not admitted (1 limit)"), "{report:?}");
}

#[test]
fn doctor_checks_everything_and_succeeds() {
    let home = Home::new();
    call(&home, "my/api", "blog");
    let ran = home.run(["doctor"]);
    for group in ["configuration", "store", "file system", "clocks", "stale state", "429s"] {
        assert!(ran.printed().contains(group), "{group} in {}", ran.out);
    }
    fits(&ran);
    assert_eq!(ran.err, "");
    let report = home.run(["doctor", "--json"]).json();
    let keys: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["schema", "at", "config", "store", "findings"]);
    for finding in report["findings"].as_array().unwrap() {
        let keys: Vec<&str> = finding.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["level", "check", "pool", "agent", "what", "remedy"]);
    }
}

#[test]
fn an_invalid_configuration_is_78_and_the_rest_is_checked() {
    let home = Home::new();
    call(&home, "my/api", "blog");
    home.configure("[pool.\"a/b\"]\nrequests = \"60/m\"\nparalel = 3\n");
    let ran = home.run(["doctor"]);
    ran.failed(78, &["configuration", "2 failures"]);
    for words in ["standpipe.toml:2", "standpipe.toml:3", "did you mean `parallel`", "journal"] {
        assert!(ran.out.contains(words), "{words} in {}", ran.out);
    }
    let ran = home.run(["doctor", "--json"]);
    assert_eq!((ran.code, found(&ran.json(), "configuration").len()), (Some(78), 2));
    assert_eq!(found(&ran.json(), "store")[0]["level"], "ok");
}

#[test]
fn an_unusable_store_is_69() {
    let home = Home::new();
    std::fs::write(home.path.join("state"), b"a file").unwrap();
    let ran = home.run(["doctor"]);
    ran.failed(69, &["store"]);
    for words in ["is a file, not a", "choose another directory", "configuration  ok"] {
        assert!(ran.out.contains(words), "{words} in {}", ran.out);
    }
    home.configure("paralel = 3\n");
    assert_eq!(home.run(["doctor"]).code, Some(78), "the file may be why");
}

#[test]
fn doctor_finds_nested_retries_and_limits_that_are_too_high() {
    let home = Home::new();
    call(&home, "my/api", "blog");
    for _ in 0..3 {
        home.run(["throttle", "my/api", "--as", "blog", "-q"]);
    }
    let report = home.run(["doctor", "--json"]).json();
    let refusals = &found(&report, "429s")[0];
    assert_eq!((&refusals["level"], &refusals["pool"]), (&json!("warning"), &json!("my/api")));
    let retries = &found(&report, "retries")[0];
    assert_eq!((&retries["level"], &retries["agent"]), (&json!("warning"), &json!("blog")));
    assert!(retries["remedy"].as_str().unwrap().contains("max_retries=0"));
}

#[test]
fn a_damaged_ledger_is_reported_while_its_file_exists() {
    let home = Home::new();
    call(&home, "my/api", "blog");
    let file = home.path.join("state/pools/my+api.pool");
    std::fs::write(&file, vec![0xa5; 4 << 20]).unwrap();
    for check in ["store", "stale state"] {
        let report = home.run(["doctor", "--json"]).json();
        let warnings = found(&report, check);
        let damaged = |finding: &Value| {
            finding["level"] == "warning" && finding["what"].as_str().unwrap().contains("damaged")
        };
        assert!(warnings.iter().any(damaged), "{check}: {report:#}");
    }
}

#[test]
fn doctor_changes_nothing() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    home.configure("[pool.\"new/pool\"]\nparallel = 3\n");
    let before = home.status("my/slots");
    let ran = home.run(["doctor", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let undescribed = &found(&ran.json(), "configuration")[1];
    assert_eq!(
        (&undescribed["level"], &undescribed["pool"]),
        (&json!("warning"), &json!("my/slots"))
    );
    let after = home.status("my/slots");
    for key in ["limits", "origin", "tickets", "pause"] {
        assert_eq!(before[key], after[key], "{key}");
    }
    assert!(!home.path.join("state/pools/new+pool.pool").exists(), "no pool is made");
    assert_eq!(holder.end().code, Some(0));
}

#[test]
fn a_cancelled_call_is_listed_and_is_no_call() {
    let home = Home::new();
    let reserve = ["reserve", "my/api", "--as", "blog", "--limit", "requests=100/min"];
    let lease = home.run(reserve).printed().to_owned();
    home.run(["cancel", &lease]).printed();
    let text = home.run(["audit"]).printed().to_owned();
    assert!(text.contains("cancelled") && text.contains("blog"), "{text}");
    call(&home, "my/api", "blog");
    let pool = home.run(["audit", "--json"]).json()["pools"][0].clone();
    assert_eq!((&pool["calls"], &pool["limits"][0]["peak"]), (&json!(1), &json!(1)), "{pool}");
}

#[test]
fn a_unit_that_no_agent_used_has_no_table() {
    let home = Home::new();
    let limits = ["--limit", "requests=100/min", "--limit", "points=90/min", "-q", "--", "true"];
    for (pool, points, shown) in [("my/free", "points=0", false), ("my/api", "points=2", true)] {
        let hold = ["hold", pool, "--as", "blog", "--cost", points];
        home.run(hold.into_iter().chain(limits)).printed();
        let ran = home.run(["audit", pool]);
        assert_eq!(ran.printed().contains("points per 1min"), shown, "{ran:?}");
    }
}

#[test]
fn an_audit_states_until_when_its_records_are_complete() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let running = home.run(["audit"]);
    assert!(running.printed().contains("1 call · the last day"), "{running:?}");
    assert!(running.printed().contains("may be missing"), "the slot: {running:?}");
    call(&home, "my/api", "blog");
    let ran = home.run(["audit"]);
    assert!(ran.printed().contains("1 call · the last day"), "{ran:?}");
    assert!(ran.printed().contains("may be missing"), "the slot: {ran:?}");
    assert!(!home.run(["audit", "my/api"]).printed().contains("may be missing"));
    holder.end();
    let ran = home.run(["audit"]);
    assert!(!ran.printed().contains("may be missing"), "all is written: {ran:?}");
}
