//! Invalid input of every kind: a clear error, the right exit code, and no change.

use crate::support::Home;

/// Arguments, the code, and words that the line must have.
type Bad = (&'static [&'static str], i32, &'static [&'static str]);

const BAD: &[Bad] = &[
    // Commands and flags.
    (&["hlod", "my/slots", "--", "true"], 2, &["hlod", "hold"]),
    (&["hold"], 2, &["POOL"]),
    (&["hold", "my/slots"], 2, &["COMMAND"]),
    (&["hold", "my/slots", "true"], 2, &["true", "`--`"]),
    (&["hold", "my/slots", "--limt", "parallel=1", "--", "true"], 2, &["--limt", "--limit"]),
    (&["pause", "my/slots"], 2, &["--for"]),
    (&["status", "--chek"], 2, &["--chek", "--check"]),
    (&["observe", "my/slots"], 2, &["--header"]),
    (&["store", "pong"], 2, &["pong", "ping"]),
    // Names of pools.
    (&["hold", "slots", "--limit", "parallel=1", "--", "true"], 2, &["provider/scope"]),
    (&["hold", "", "--limit", "parallel=1", "--", "true"], 2, &["provider/scope"]),
    (&["hold", "my/a\nb", "--limit", "parallel=1", "--", "true"], 2, &["not allowed"]),
    (&["hold", "my/🚰", "--limit", "parallel=1", "--", "true"], 2, &["not allowed"]),
    (&["pause", "a//b", "--for", "1s"], 2, &["empty or too long"]),
    // Limits and rates.
    (&["hold", "my/slots", "--limit", "parallel=0", "--", "true"], 2, &["--limit"]),
    (&["hold", "my/slots", "--limit", "parallel=-1", "--", "true"], 2, &["--limit"]),
    (&["hold", "my/slots", "--limit", "parallel=1.5", "--", "true"], 2, &["--limit"]),
    (&["hold", "my/slots", "--limit", "parallel", "--", "true"], 2, &["--limit"]),
    (&["hold", "my/slots", "--limit", "requests=60", "--", "true"], 2, &["--limit"]),
    (&["hold", "my/slots", "--limit", "requests=60/m", "--", "true"], 2, &["min", "ms"]),
    (&["hold", "my/slots", "--limit", "requests=0/s", "--", "true"], 2, &["--limit"]),
    (&["hold", "my/slots", "--limit", "requests=60/0s", "--", "true"], 2, &["--limit"]),
    (&["hold", "my/slots", "--limit", "requests=9e9/s", "--", "true"], 2, &["--limit"]),
    (
        &["hold", "my/slots", "--limit", "requests=99999999999999999999/s", "--", "true"],
        2,
        &["--limit"],
    ),
    (&["hold", "my/slots", "--limit", "Requests=1/s", "--", "true"], 2, &["Requests"]),
    // Units that are probably slips.
    (&["hold", "my/api", "--limit", "request=2/min", "--", "true"], 2, &["request", "`requests`"]),
    (&["reserve", "my/api", "--limit", "gpu=2/min"], 2, &["uses no `gpu`", "--cost gpu=1"]),
    (&["reserve", "my/api", "--limit", "gpus=2/min", "--cost", "gpu=1"], 2, &["`gpus`"]),
    // Costs.
    (&["reserve", "my/slots", "--cost", "tokens=-5"], 2, &["--cost"]),
    (&["reserve", "my/slots", "--cost", "tokens=0.5"], 2, &["--cost"]),
    (&["reserve", "my/slots", "--cost", "tokens"], 2, &["--cost"]),
    (&["reserve", "my/slots", "--cost", "tokens=1,tokens=2"], 2, &["twice"]),
    (&["reserve", "my/slots", "--cost", "99bottles=1"], 2, &["99bottles"]),
    (&["reserve", "my/slots", "--cost", "tokens=99999999999999999999999"], 2, &["--cost"]),
    // Times.
    (&["reserve", "my/slots", "--timeout", "5m"], 2, &["min", "ms"]),
    (&["reserve", "my/slots", "--timeout", "-1s"], 2, &["--timeout"]),
    (&["reserve", "my/slots", "--timeout", "soon"], 2, &["soon"]),
    (&["pause", "my/slots", "--for", "500d"], 2, &["--for"]),
    (&["pause", "my/slots", "--for", "0"], 2, &["resume"]),
    (&["reserve", "my/slots", "--ttl", "0", "--limit", "parallel=1"], 2, &["--ttl"]),
    // Agents and other words.
    (&["reserve", "my/slots", "--as", ""], 2, &["agent"]),
    (&["reserve", "my/slots", "--as", "a b"], 2, &["agent"]),
    (&["reserve", "my/slots", "--as", "two\nlines"], 2, &["agent"]),
    (&["reserve", "my/slots", "--as", "🚰"], 2, &["agent"]),
    (&["reserve", "my/slots", "--priority", "urgent"], 2, &["critical", "background"]),
    (&["reserve", "my/slots", "--owner", "0"], 2, &["--owner"]),
    (&["reserve", "my/slots", "--owner", "me"], 2, &["--owner"]),
    (&["reserve", "my/slots", "--limit", "parallel=1", "--owner", "2147483647"], 2, &["$$"]),
    (&["reserve", "my/slots", "--cost", "tokens=1", "--cost", "tokens=2"], 2, &["twice"]),
    (&["throttle", "my/slots", "--kind", "angry"], 2, &["quota", "terminal"]),
    (&["observe", "my/slots", "--header", "nonsense"], 2, &["name: value"]),
    (&["events", "--kind", "party"], 2, &["party", "wait"]),
    // Pools without limits, and pools that are not there.
    (&["hold", "my/slots", "--", "true"], 78, &["--limit", "parallel"]),
    (&["reserve", "my/slots", "--dry-run"], 78, &["no pool"]),
    (&["status", "my/slots"], 78, &["no pool"]),
    (&["explain", "my/slots"], 78, &["no pool"]),
    (&["pause", "my/slots", "--for", "1s"], 78, &["no pool"]),
    (&["resume", "my/slots"], 78, &["no pool"]),
    (&["throttle", "my/slots"], 78, &["no pool"]),
    (&["observe", "my/slots", "--header", "x-ratelimit-limit: 5"], 78, &["no pool"]),
    (&["heartbeat", "--as", "a", "my/slots"], 78, &["no pool"]),
    (&["store", "dump", "my/slots"], 78, &["no pool"]),
    (&["store", "reset", "my/slots", "--yes"], 78, &["no pool"]),
    // Leases.
    (
        &["commit", "garbage"],
        66,
        &["`garbage`: not a lease id\nhint: use the id that `reserve` printed", "lease1_\n"],
    ),
    (&["commit", ""], 66, &["lease"]),
    (&["release", "lease1_AAAA"], 66, &["lease"]),
    (&["cancel", "🚰"], 66, &["lease"]),
    (&["heartbeat", "two\nlines"], 66, &["lease"]),
    (&["heartbeat", "my/slots"], 2, &["--as"]),
    (&["throttle", "my/slots", "--lease", "garbage"], 66, &["garbage"]),
    // Commands that cannot be run.
    (
        &["hold", "my/slots", "--limit", "parallel=1", "--", "no-such-command-here"],
        127,
        &["no-such-command-here", "$PATH"],
    ),
    (&["hold", "my/slots", "--limit", "parallel=1", "--", "/etc/passwd"], 126, &["/etc/passwd"]),
    (&["hold", "my/slots", "--limit", "parallel=1", "--", ""], 127, &["no command"]),
    // Configuration and stores.
    (&["--config", "missing.toml", "status"], 78, &["missing.toml"]),
    (&["--store", "floppy:/a", "status"], 2, &["floppy"]),
];

#[test]
fn invalid_input_is_an_error_and_changes_nothing() {
    let home = Home::new();
    for (args, code, says) in BAD {
        let ran = home.run(args.iter().copied());
        ran.failed(*code, says);
        assert_eq!(ran.out, "", "{args:?}");
        assert!(pools(&home).is_empty(), "{args:?} made a pool");
    }
}

#[test]
fn names_of_ten_kilobytes_are_refused() {
    let home = Home::new();
    let long = "x".repeat(10_000);
    let pool = format!("my/{long}");
    let cases: [(&[&str], i32); 6] = [
        (&["hold", &pool, "--limit", "parallel=1", "--", "true"], 2),
        (&["reserve", "my/slots", "--limit", "parallel=1", "--as", &long], 2),
        (&["reserve", "my/slots", "--limit", "parallel=1", "--model", &long], 2),
        (&["reserve", "my/slots", "--limit", "parallel=1", "--id", &long], 2),
        (&["reserve", "my/slots", "--limit", "parallel=1", "--cost", &long], 2),
        (&["commit", &long], 66),
    ];
    for (args, code) in cases {
        let ran = home.run(args.iter().copied());
        ran.failed(code, &[]);
        assert!(pools(&home).is_empty(), "{} made a pool", args[0]);
    }
}

#[test]
fn an_unknown_unit_is_an_error_and_a_built_in_one_without_a_limit_is_not() {
    let home = Home::new();
    let reserve = |cost: &str| {
        let limits = ["--limit", "input_tokens=9k/d", "--limit", "gpu=9/d", "--cost", cost];
        home.run(["reserve", "my/api"].into_iter().chain(limits))
    };
    let slip = reserve("input_tokns=5,gpu=1");
    slip.failed(2, &["`input_tokns`", "mean `input_tokens`"]);
    assert_eq!(reserve("input_tokens=5,output_tokens=5,gpu=1").err, "");
}

/// Bad input on a pool that is there leaves it as it was.
#[test]
fn an_existing_pool_is_unchanged() {
    let home = Home::new();
    home.run(["hold", "my/slots", "--limit", "requests=9/d", "--", "true"]).printed();
    let before = home.state();
    for (args, _, _) in BAD.iter().filter(|(_, code, _)| *code == 2 || *code == 66) {
        home.run(args.iter().copied());
        let same = home
            .state()
            .iter()
            .filter(|(path, _)| is_ledger(path))
            .eq(before.iter().filter(|(path, _)| is_ledger(path)));
        assert!(same, "{args:?} changed the ledger");
    }
}

/// A pool's file, not the journal or the locks of sessions.
fn is_ledger(path: &std::path::Path) -> bool {
    path.to_string_lossy().contains("slots")
}

#[test]
fn an_agent_from_the_environment_is_checked() {
    let home = Home::new();
    let mut command = home.command(["reserve", "my/slots", "--limit", "parallel=1"]);
    let output = command.env("STANDPIPE_AGENT", "a b").output().unwrap();
    crate::support::Ran::of(&output).failed(2, &["STANDPIPE_AGENT", "a b"]);
}

#[test]
fn a_store_that_cannot_be_reached_is_69() {
    let home = Home::new();
    std::fs::write(home.path.join("a-file"), "").unwrap();
    let mut command = home.command(["status"]);
    let output = command.env("STANDPIPE_HOME", home.path.join("a-file")).output().unwrap();
    let ran = crate::support::Ran::of(&output);
    ran.failed(69, &["a-file", "choose another directory"]);
    assert!(!ran.err.contains("remove"), "whatever that file is, it stays: {ran:?}");
}

#[test]
fn a_relative_home_is_rejected_and_creates_nothing() {
    let home = Home::new();
    let mut command = home.command(["status"]);
    let output = command.env("STANDPIPE_HOME", "relative").output().unwrap();
    crate::support::Ran::of(&output).failed(2, &["$STANDPIPE_HOME", "`relative`", "absolute"]);
    assert!(!home.path.join("relative").exists());
}

fn pools(home: &Home) -> Vec<serde_json::Value> {
    let ran = home.run(["status", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.json()["pools"].as_array().unwrap().clone()
}

#[test]
fn an_unknown_log_level_is_rejected_with_the_known_ones() {
    let home = Home::new();
    let levels = "error, warn, info, debug, trace";
    home.run(["up", "--log-level", "loud"]).failed(2, &["`loud`", levels]);
    home.run(["up", "--log-format", "xml"]).failed(2, &["`xml`", "human, json"]);
    assert_eq!(home.state(), []);
}
