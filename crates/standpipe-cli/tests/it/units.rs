//! Units in costs and usage, on every face: a misspelled unit is an error with a suggestion, a
//! declared one is charged, a built-in one without a limit is counted for reports.

use serde_json::{Value, json};
use standpipe::{Error, Request, Unit};

use crate::daemon::support::{Daemon, lease, library, limit};
use crate::support::Home;

const FILE: &str = "version = 1\n[pool.\"my/api\"]\nrequests = \"1000/h\"\n\
                    [pool.\"my/api\".units]\nwidgets = \"50/h\"\n";

/// What was recorded of an agent's calls.
fn units_of(home: &Home, agent: &str) -> Value {
    let shown = home.run(["audit", "my/api", "--json"]).json();
    let agents = shown["pools"][0]["agents"].as_array().unwrap().clone();
    agents.into_iter().find(|known| known["agent"] == agent).unwrap()["units"].clone()
}

#[test]
fn the_command_line_rejects_a_misspelled_unit() {
    let home = Home::new();
    let limit = ["--limit", "requests=60/min"];
    for (cost, says) in [
        ("input_tokns=5", "did you mean `input_tokens`?"),
        ("request=5", "did you mean `requests`?"),
        ("gadgets=5", "[pool.\"my/api\".units]"),
    ] {
        for command in [&["reserve"][..], &["reserve", "--dry-run"]] {
            let args = command.iter().copied().chain(["my/api", "--cost", cost]).chain(limit);
            home.run(args).failed(2, &["has no unit", says]);
        }
        let args = ["hold", "my/api", "--cost", cost].into_iter().chain(limit);
        home.run(args.chain(["--", "true"])).failed(2, &["has no unit", says]);
    }
    assert_eq!(home.run(["status", "--json"]).json()["pools"], json!([]), "no pool came of it");

    home.configure(FILE);
    home.run(["reserve", "my/api", "--cost", "widget=5"]).failed(2, &["did you mean `widgets`?"]);
    home.run(["explain", "my/api", "--cost", "widget=5"]).failed(2, &["did you mean `widgets`?"]);
    let ran = home.run(["reserve", "my/api", "--cost", "widgets=5"]);
    let id = ran.printed();
    home.run(["commit", id, "--used", "wigdets=2"]).failed(2, &["did you mean `widgets`?"]);
    home.run(["commit", id, "--used", "wigdets=2", "--progress"]).failed(2, &["has no unit"]);
    home.run(["commit", id, "--used", "wigdets=2", "--status", "200"]).failed(2, &["has no unit"]);
    let status = home.status("my/api");
    assert_eq!(status["in_flight"], 1, "the lease is as it was: {status}");
    home.run(["commit", id, "--used", "widgets=2"]).printed();
    assert_eq!(limit_used(&home.status("my/api"), "widgets"), 2);
}

fn limit_used(status: &Value, unit: &str) -> u64 {
    limit(status, unit)["used"].as_u64().unwrap()
}

#[test]
fn the_daemon_rejects_a_misspelled_unit() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let limits = json!({"requests": "60/min", "widgets": "50/h"});
    for (unit, hint) in [("widgts", "did you mean `widgets`?"), ("zzzzzz", "units")] {
        let ask = json!({"pool": "my/api", "limits": limits, "cost": {unit: 1}});
        let wrong = daemon.reserve(&ask).problem(400, "invalid");
        assert!(wrong["detail"].as_str().unwrap().contains(unit), "{wrong}");
        assert!(wrong["hint"].as_str().unwrap().contains(hint), "{wrong}");
    }
    assert_eq!(daemon.get("/v1/pools").ok(200)["pools"], json!([]), "no pool came of it");
    let ask = json!({"pool": "my/api", "limits": limits, "cost": {"widgets": 0}});
    let id = lease(&daemon.reserve(&ask));
    // The pool has the unit by now, although the call does not state its limits.
    let other = lease(&daemon.reserve(&json!({"pool": "my/api", "cost": {"widgets": 3}})));
    daemon.settle(&other, "commit").ok(200);
    daemon.reserve(&json!({"pool": "my/api", "cost": {"tokns": 3}})).problem(400, "invalid");
    let path = format!("/v1/leases/{id}/commit");
    for more in [json!({}), json!({"progress": true}), json!({"status": 200})] {
        let mut said = json!({"used": {"widgts": 2}});
        said.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let wrong = daemon.post(&path, &said).problem(400, "invalid");
        assert_eq!(wrong["hint"], "did you mean `widgets`?", "{wrong}");
    }
    daemon.get("/v1/explain?pool=my/api&cost=tokns=3").problem(400, "invalid");
    daemon.post(&path, &json!({"used": {"widgets": 2}})).ok(200);
    assert_eq!(limit_used(&home.status("my/api"), "widgets"), 5);
}

#[test]
fn the_library_rejects_a_misspelled_unit() {
    let home = Home::new();
    let pool = library(&home).pool("my/api").unwrap();
    pool.limit(vec![standpipe::config::text::limit("requests=60/min").unwrap()])
        .blocking()
        .unwrap();
    let wrong = pool.reserve(Request::by("blog").unit("tokns", 1)).blocking().unwrap_err();
    assert!(matches!(wrong, Error::Invalid { .. }), "{wrong}");
    assert!(wrong.to_string().contains("did you mean `tokens`?"), "{wrong}");
    let lease = pool.reserve(Request::by("blog")).blocking().unwrap();
    let unit = Unit::named("tokns").unwrap();
    assert!(matches!(lease.progress([(unit.clone(), 1)]).blocking(), Err(Error::Invalid { .. })));
    assert!(matches!(lease.commit([(unit, 1)]).blocking(), Err(Error::Invalid { .. })));
    assert_eq!(pool.status().blocking().unwrap().in_flight, 0, "settled at its estimate");
}

#[test]
fn a_built_in_unit_without_a_limit_is_counted_for_reports() {
    let home = Home::new();
    home.configure("version = 1\n[pool.\"my/api\"]\nrequests = \"1000/h\"\n");
    let daemon = Daemon::up(&home);
    let ask = json!({"pool": "my/api", "agent": "blog", "cost": {"input_tokens": 900}});
    let id = lease(&daemon.reserve(&ask));
    let path = format!("/v1/leases/{id}/commit");
    daemon.post(&path, &json!({"used": {"input_tokens": 700, "output_tokens": 40}})).ok(200);
    daemon.stop();
    let ran = home.run(["reserve", "my/api", "--as", "blog", "--cost", "usd=0.25"]);
    home.run(["commit", ran.printed(), "--used", "input_tokens=30"]).printed();
    let units = units_of(&home, "blog");
    assert_eq!((&units["input_tokens"], &units["output_tokens"]), (&json!(730), &json!(40)));
    assert_eq!((&units["usd"], &units["requests"]), (&json!(250_000), &json!(2)), "{units}");
}
