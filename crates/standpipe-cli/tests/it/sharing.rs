//! Fair order and slots by weight, on every face.

use serde_json::{Value, json};
use standpipe::Request;

use crate::daemon::support::{Daemon, library, limit, line_of, until_waiting};
use crate::support::Home;

const FAIR: &str = "version = 1\n[pool.\"my/slots\"]\nparallel = 1\norder = \"fair\"\n\
                    [agent.data]\nweight = 5\n";

fn wants(agent: &str) -> Value {
    let long = 60_000;
    json!({"pool": "my/slots", "agent": agent, "ttl_ms": long, "timeout_ms": long})
}

/// Two calls of one agent wait, then one of another: it stands between them, and every view says
/// behind whom.
#[test]
fn fair_order_is_named_on_every_face() {
    let home = Home::new();
    home.configure(FAIR);
    let daemon = Daemon::up(&home);
    let held = home.run(["reserve", "my/slots", "--as", "first"]);
    let mut begun = Vec::new();
    for (count, agent) in [(1, "blog"), (2, "blog"), (3, "news")] {
        begun.push(daemon.begin(&wants(agent)));
        until_waiting(&home, "my/slots", count);
    }
    let status = home.status("my/slots");
    assert_eq!(line_of(&status), ["blog", "news", "blog"], "{status}");
    assert_eq!(status["tickets"][1]["behind"], "blog", "{status}");
    assert_eq!(status["tickets"][2]["behind"], json!(null), "not behind itself: {status}");

    let shown = home.run(["status", "my/slots"]);
    assert!(shown.printed().contains("behind blog by fair order for parallel"), "{shown:?}");
    let shown = home.run(["explain", "my/slots", "--as", "mail"]);
    let behind = "behind 3 calls (blog and news) by fair order for parallel";
    assert!(shown.printed().contains(behind), "{shown:?}");
    let shown = home.run(["explain", "my/slots", "--as", "mail", "--json"]).json();
    assert_eq!(shown["why"]["behind"], "blog", "{shown}");
    let ask = json!({"pool": "my/slots", "agent": "mail", "timeout_ms": 0});
    let no = daemon.reserve(&ask).problem(429, "not_in_time");
    assert_eq!((&no["reason"], &no["behind"]), (&json!("order"), &json!("blog")), "{no}");
    home.run(["reserve", "my/slots", "--as", "mail", "--timeout", "0"])
        .failed(75, &["behind blog by fair order for parallel"]);
    // A larger weight is a smaller tag: it would be first.
    let shown = home.run(["explain", "my/slots", "--as", "data", "--json"]).json();
    assert_eq!(shown["why"]["position"], 1, "{shown}");

    home.run(["commit", held.printed()]).printed();
    for at in [0, 2, 1] {
        let granted = begun[at].answer().ok(201);
        daemon.settle(granted["lease"].as_str().unwrap(), "commit").ok(200);
    }
}

#[test]
fn a_cost_names_its_slots_on_every_face() {
    let home = Home::new();
    home.configure(
        "version = 1\n[pool.\"my/slots\"]\nparallel = 4\n[agent.data]\ncap = { parallel = 2 }",
    );
    let daemon = Daemon::up(&home);
    let in_use = || {
        let status = home.status("my/slots");
        limit(&status, "parallel")["held"].as_u64().unwrap()
    };
    let ran = home.run(["reserve", "my/slots", "--cost", "parallel=3", "--json"]);
    let granted = ran.json();
    assert_eq!((granted["cost"]["parallel"].as_u64(), in_use()), (Some(3), 3), "{granted}");
    home.run(["reserve", "my/slots", "--cost", "parallel=2", "--timeout", "0"])
        .failed(75, &["parallel has no room (short by 1)"]);
    home.run(["commit", granted["lease"].as_str().unwrap(), "--used", "parallel=1"])
        .failed(2, &["until it ends"]);
    home.run(["commit", granted["lease"].as_str().unwrap()]).printed();
    let ran = home.run(["hold", "my/slots", "--cost", "parallel=3", "--", "sh", "-c", "exit 7"]);
    assert_eq!(ran.code, Some(7), "{ran:?}");

    let ask = json!({"pool": "my/slots", "cost": {"parallel": 3}, "timeout_ms": 0});
    let granted = daemon.reserve(&ask).ok(201);
    assert_eq!((granted["cost"]["parallel"].as_u64(), in_use()), (Some(3), 3), "{granted}");
    let pool = library(&home).pool("my/slots").unwrap();
    let none = pool.reserve(Request::by("x").unit("parallel", 0)).blocking().unwrap();
    assert_eq!(in_use(), 3, "a call of no slots holds none");
    none.commit([]).blocking().unwrap();
    daemon.settle(granted["lease"].as_str().unwrap(), "commit").ok(200);

    home.run(["reserve", "my/slots", "--cost", "parallel=5"]).failed(65, &["can never fit"]);
    let capped = ["reserve", "my/slots", "--as", "data", "--timeout", "0", "--cost"];
    home.run(capped.into_iter().chain(["parallel=3"])).failed(65, &["can never fit"]);
    home.run(capped.into_iter().chain(["parallel=2"])).printed();
    home.run(capped.into_iter().chain(["parallel=1"])).failed(75, &["own cap on parallel"]);
    let shown = home.run(["audit", "my/slots", "--json"]).json();
    assert!(!shown.to_string().contains("\"parallel\":3"), "slots are not used up: {shown}");
}
