//! Calls that draw on several pools, by the file and by `--also`.

use rustix::process::Signal;
use serde_json::json;

use crate::daemon::support::until_waiting;
use crate::support::Home;

const FAMILY: &str = "[pool.\"my/org\"]\nparallel = 2\nrequests = \"100/h\"\nmargin = 0\n\
                      [pool.\"my/model\"]\nrequests = \"100/h\"\nmargin = 0\nwithin = \"my/org\"\n\
                      [pool.\"my/search\"]\nparallel = 1\n";

fn family() -> Home {
    let home = Home::new();
    home.configure(FAMILY);
    home
}

fn in_flight(home: &Home) -> [usize; 3] {
    ["my/model", "my/org", "my/search"]
        .map(|pool| home.status(pool)["leases"].as_array().unwrap().len())
}

#[test]
fn one_lease_on_all_pools_is_settled_by_its_id() {
    let home = family();
    for settle in ["commit", "cancel", "release"] {
        let granted = home.run(["reserve", "my/model", "--also", "my/search", "--json"]).json();
        assert_eq!(granted["pool"], "my/model");
        let pools = serde_json::json!(["my/model", "my/org", "my/search"]);
        assert_eq!(granted["pools"], pools);
        assert_eq!(in_flight(&home), [1, 1, 1]);
        let lease = granted["lease"].as_str().unwrap();
        home.run(["heartbeat", lease]).printed();
        home.run([settle, lease]).printed();
        assert_eq!(in_flight(&home), [0, 0, 0], "{settle}");
        home.run([settle, lease]).failed(66, &["has ended"]);
    }
}

#[test]
fn the_pool_that_lacks_room_is_named() {
    let home = family();
    home.run(["reserve", "my/search"]).printed();
    let refused = home.run(["reserve", "my/model", "--also", "my/search", "--timeout", "0"]);
    refused.failed(75, &["not admitted on `my/search`", "parallel"]);
    assert_eq!(in_flight(&home), [0, 0, 1]);
    let dry = home.run(["reserve", "my/model", "--also", "my/search", "--dry-run"]);
    dry.failed(75, &["my/search"]);
    home.run(["reserve", "my/model", "--dry-run"]).printed();
}

#[test]
fn hold_holds_all_pools_while_its_command_runs() {
    let home = family();
    let status = concat!(env!("CARGO_BIN_EXE_standpipe"), " status");
    let run = home.run(["hold", "my/model", "--also", "my/search", "--", "sh", "-c", status]);
    let printed = run.printed();
    let headings = printed.lines().filter(|line| line.starts_with("my/"));
    let busy = headings.filter(|line| line.contains(" · 1 in flight"));
    assert_eq!(busy.count(), 3, "{printed}");
    assert_eq!(printed.matches("for my/model").count(), 2, "{printed}");
    assert!(printed.contains("within my/org: every call draws on it too"), "{printed}");
    assert_eq!(in_flight(&home), [0, 0, 0]);
}

#[test]
fn invalid_sets_of_pools_are_usage_errors() {
    let home = family();
    home.run(["hold", "my/model", "--also", "my/model", "--", "true"])
        .failed(2, &["`my/model` is named twice", "name each pool once"]);
    home.run(["reserve", "my/model", "--also", "my/serach"])
        .failed(78, &["there is no pool `my/serach`", "did you mean `my/search`?"]);
    home.run(["reserve", "my/model", "--also", "search"]).failed(2, &["pool"]);
    home.configure("[pool.\"a/b\"]\nparallel = 1\nwithin = \"a/b\"\n");
    home.run(["config", "check"]).failed(78, &["standpipe.toml:3", "lies within itself"]);
    let home = Home::new();
    home.run(["reserve", "my/slots", "--limit", "parallel=1"]).printed();
    home.run(["reserve", "my/slots", "--also", "my/typo"])
        .failed(78, &["there is no pool `my/typo`", "name it as POOL with --limit"]);
    assert!(!home.run(["status", "--json"]).printed().contains("my/typo"), "it is not created");
}

#[test]
fn explain_walks_through_all_pools() {
    let home = family();
    home.run(["reserve", "my/model"]).printed();
    home.run(["reserve", "my/model"]).printed();
    let text = home.run(["explain", "my/model", "--as", "blog"]);
    for words in ["my/model would admit it now", "It also draws on my/org", "parallel has no room"]
    {
        assert!(text.printed().contains(words), "{words} in {}", text.printed());
    }
    let json = home.run(["explain", "my/model", "--as", "blog", "--json"]).json();
    assert_eq!(json["verdict"], "admitted");
    assert_eq!(json["others"][0]["pool"], "my/org");
    assert_eq!(json["others"][0]["verdict"], "waits");
}

/// A call that waits on the parent holds a lease on the pool it names, and has not been made.
#[test]
fn a_call_that_waits_on_the_parent_waits_on_every_pool() {
    let home = family();
    for _ in 0..2 {
        home.run(["reserve", "my/model", "--as", "busy"]).printed();
    }
    let waiter = home.start(["reserve", "my/model", "--as", "stuck", "--timeout", "60s"]);
    until_waiting(&home, "my/org", 1);
    let status = home.status("my/model");
    assert_eq!((&status["in_flight"], &status["waiting"]), (&json!(2), &json!(1)), "{status}");
    assert_eq!(status["tickets"][0]["on"], "my/org", "{status}");
    let shown = home.run(["status", "my/model"]).printed().to_owned();
    assert!(shown.contains("on my/org: parallel has no room"), "{shown}");
    let explained = home.run(["explain", "my/model", "--as", "stuck"]).printed().to_owned();
    assert!(explained.starts_with("A call of stuck on my/model (1 request, standard) waits\n"));
    let waits = "It has its units on my/model and waits for my/org: parallel has no room";
    assert!(explained.contains(waits), "{explained}");

    home.run(["pause", "my/org", "--for", "1h", "--as", "ops"]).printed();
    let shown = home.run(["status", "my/model"]).printed().to_owned();
    let heading = shown.lines().next().unwrap();
    assert!(heading.contains("paused"), "{shown}");
    assert!(shown.contains("my/org is paused until") && shown.contains("by ops"), "{shown}");
    assert!(shown.contains("`standpipe resume my/org` ends the pause"), "{shown}");
    waiter.signal(Signal::TERM);
    drop(waiter.end());
}

/// The same for a set of pools that the caller names.
#[test]
fn a_call_that_waits_on_a_named_pool_is_not_in_flight_on_the_others() {
    let home = family();
    home.run(["reserve", "my/search", "--as", "keeper"]).printed();
    let waiter = home.start([
        "reserve",
        "my/model",
        "--also",
        "my/search",
        "--as",
        "both",
        "--timeout",
        "60s",
    ]);
    until_waiting(&home, "my/search", 1);
    let shown = home.run(["status", "my/model"]).printed().to_owned();
    assert!(shown.contains("on my/search: parallel has no room"), "{shown}");
    let status = home.status("my/model");
    assert_eq!((&status["in_flight"], &status["waiting"]), (&json!(0), &json!(1)), "{status}");
    waiter.signal(Signal::TERM);
    drop(waiter.end());
}
