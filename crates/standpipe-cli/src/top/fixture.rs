//! View data for tests: three pools, of which one is paused, one amber, and one stopped for good.

use serde_json::{Value, json};

use super::data::{ViewData, parse};

/// Ids as a ledger made them; what they say is only read whole.
pub(super) const LEASES: [&str; 3] = [
    "lease1_QBS5ZQCJyacoTMj_AAAAAAAAAANhbnRocm9waWMvc29ubmV0",
    "lease1_lBk_uQAsWDvnKNQcAAAAAAAAAAFhbnRocm9waWMvc29ubmV0",
    "lease1_TcxdAgDNqakfGeiVAAAAAAAAAANnaXRodWIvY29yZQ",
];

const AT: &str = "2026-01-31T12:00:00.000Z";
const THEN: &str = "2026-01-31T12:00:42.000Z";

pub(super) fn view_data() -> ViewData {
    let snapshot = json!({
        "schema": 1,
        "store": "file:/var/lib/standpipe",
        "pools": [sonnet(), github(), images()],
        "backpressure": [
            { "agent": "crawler", "pool": "github/core", "until": THEN, "until_ms": 42_000 },
        ],
        "unreadable": [{ "pool": "old/pool", "detail": "its file is of a newer version" }],
    });
    parse(snapshot, events(), json!({ "recent": proxied() }))
}

fn proxied() -> Value {
    json!([
        {
            "at": AT, "agent": "blog", "session": "nightly", "pool": "anthropic/sonnet",
            "model": "claude-sonnet-4", "status": 200, "input_tokens": 12_400,
            "output_tokens": 820, "micro_usd": 49_500, "waited_ms": 0,
        },
        {
            "at": "2026-01-31T11:59:42.000Z", "agent": "crawler", "pool": "anthropic/sonnet",
            "model": "claude-sonnet-4", "status": 429, "input_tokens": 0, "output_tokens": 0,
            "micro_usd": 0, "waited_ms": 2_300,
        },
        {
            "at": "2026-01-31T11:58:10.000Z", "agent": "poller", "pool": "github/core",
            "status": 200, "input_tokens": 0, "output_tokens": 0, "micro_usd": 0,
            "waited_ms": 0,
        },
    ])
}

fn sonnet() -> Value {
    let mut pool = pool("anthropic/sonnet");
    pool["zone"] = json!("amber");
    pool["pause"] = json!({ "until": THEN, "for_ms": 42_000 });
    pool["trouble"]["incident"] =
        json!({ "kind": "quota", "agent": "blog", "at": AT, "ago_ms": 18_000 });
    pool["trouble"]["streak"] = json!(2);
    pool["money"] = json!({ "spent_micro_usd": 12_340_000, "wasted_micro_usd": 500_000 });
    pool["limits"] = json!([
        limit("requests", 60, 48, 30, 3),
        limit("input_tokens", 400_000, 320_000, 289_000, 4_200),
    ]);
    pool["limits"][1]["outside"] = json!(12_000);
    pool["in_flight"] = json!(2);
    pool["leases"] = json!([
        lease(LEASES[0], "blog", "standard", 12_000, Some(4_711)),
        lease(LEASES[1], "crawler", "background", 3_100, None),
    ]);
    pool["leases"][0]["task"] = json!("extract\u{1b}[2J");
    pool["waiting"] = json!(2);
    pool["tickets"] = json!([
        ticket(1, "deploy", "critical", "pause", None, exact(42_000)),
        ticket(2, "crawler", "background", "yield", Some("requests per 1min"), bound(42_000)),
    ]);
    pool["agents"] = json!([
        agent("blog", "standard", 1, 0, 12_000),
        agent("deploy", "critical", 0, 1, 900),
        agent("crawler", "background", 1, 1, 3_100),
    ]);
    pool["agents"][1]["floor"] = json!(["requests 10/min"]);
    pool["agents"][2]["cap"] = json!(["20%"]);
    pool
}

fn github() -> Value {
    let mut pool = pool("github/core");
    pool["limits"] = json!([limit("requests", 5_000, 4_000, 120, 0)]);
    pool["limits"][0]["period_ms"] = json!(3_600_000);
    pool["limits"][0]["limit"] = json!("requests per 1h");
    pool["in_flight"] = json!(1);
    pool["leases"] = json!([lease(LEASES[2], "poller", "standard", 600_000, None)]);
    pool["agents"] = json!([agent("poller", "standard", 1, 0, 600_000)]);
    pool
}

fn images() -> Value {
    let mut pool = pool("openai/images");
    pool["terminal"] = json!({ "until": null, "for_ms": null, "look_ms": 3_600_000 });
    pool["limits"] = json!([{
        "limit": "parallel", "unit": "parallel", "kind": "parallel", "amount": 4, "burst": null,
        "period_ms": null, "learned": null, "effective": 4, "used": 0, "held": 0, "left": 4,
        "margin_per_mille": null, "outside": 0, "full_again_ms": null, "pace_ms": null,
        "next_grant_ms": null,
    }]);
    pool
}

fn pool(name: &str) -> Value {
    json!({
        "pool": name, "provider": null, "at": AT, "position": 7, "enforce": true,
        "margin_per_mille": 200, "margin_auto": true,
        "origin": { "source": "code", "version": null, "written": null, "changes": 0 },
        "pause": null, "terminal": null, "learning": null,
        "trouble": {
            "incident": null, "streak": 0, "overloads": 0, "coming_back": null, "probe": null,
            "one_at_a_time": null, "speed_per_mille": null, "cautious": null,
            "learned_concurrency": null,
            "retries": null,
        },
        "zone": "green", "breaker": "closed", "money": null, "limits": [], "in_flight": 0,
        "leases": [], "waiting": 0, "tickets": [], "agents": [], "skipped": 0, "cut_off": null,
    })
}

fn limit(unit: &str, amount: u64, effective: u64, used: u64, held: u64) -> Value {
    json!({
        "limit": format!("{unit} per 1min"), "unit": unit, "kind": "window", "amount": amount,
        "burst": null, "period_ms": 60_000, "learned": null, "effective": effective, "used": used,
        "held": held, "left": effective - used - held, "margin_per_mille": 200, "outside": 0,
        "full_again_ms": 51_000, "pace_ms": null, "next_grant_ms": null,
    })
}

fn lease(id: &str, agent: &str, priority: &str, age: u64, pid: Option<u32>) -> Value {
    json!({
        "id": id, "agent": agent, "priority": priority,
        "cost": { "requests": 1, "input_tokens": 1_200 }, "since": AT, "age_ms": age,
        "holder": if pid.is_some() { "session" } else { "ttl" }, "pid": pid,
        "expires_ms": 540_000, "model": "sonnet-4", "task": null,
    })
}

fn ticket(
    position: usize,
    agent: &str,
    priority: &str,
    reason: &str,
    limit: Option<&str>,
    when: Value,
) -> Value {
    let mut ticket = json!({
        "agent": agent, "priority": priority, "cost": { "requests": 1 }, "position": position,
        "since": AT, "waits_ms": 8_000 * position, "reason": reason, "limit": limit,
        "short_by": 1, "pid": 99 + position, "deadline_ms": 290_000, "model": null,
        "task": "größe",
    });
    for (key, value) in when.as_object().into_iter().flatten() {
        ticket[key] = value.clone();
    }
    ticket
}

fn exact(ms: u64) -> Value {
    json!({ "until": THEN, "until_ms": ms })
}

fn bound(ms: u64) -> Value {
    json!({ "not_before": THEN, "not_before_ms": ms })
}

fn agent(name: &str, priority: &str, in_flight: usize, waiting: usize, active: u64) -> Value {
    json!({
        "name": name, "priority": priority, "in_flight": in_flight, "waiting": waiting,
        "floor": [], "cap": [], "active_ms": active, "denied_ms": null, "promoted": false,
    })
}

fn events() -> Vec<Value> {
    let event = |second: u32, pool: &str, more: Value| {
        let at = format!("2026-01-31T11:59:{second:02}.000Z");
        let mut event = json!({ "at": at, "pool": pool });
        for (key, value) in more.as_object().unwrap() {
            event[key] = value.clone();
        }
        event
    };
    vec![
        event(1, "openai/images", json!({ "kind": "stop" })),
        event(2, "github/core", json!({ "kind": "zone", "zone": "green" })),
        event(
            42,
            "anthropic/sonnet",
            json!({
                "kind": "throttle", "agent": "blog", "about": "quota", "retry_after_ms": 60_000,
                "said": "slow\u{7}down",
            }),
        ),
        event(42, "anthropic/sonnet", json!({ "kind": "pause", "for_ms": 60_000, "until": THEN })),
    ]
}
