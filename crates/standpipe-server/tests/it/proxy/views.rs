//! Proxied calls in the views: model, tokens and money, as they happen.

use super::*;

const PRICED: &str = "[pool.\"anthropic/sonnet\"]\nmodels = [\"claude-sonnet-*\"]\n\
    requests = \"1000/h\"\nprice = { input_tokens = 3.0, output_tokens = 15.0 }\n";

#[test]
fn a_call_is_shown_with_model_tokens_and_money() {
    let world = World::anthropic(PRICED);
    let headers = ["x-claude-code-session-id: s1", "x-used-input: 1000", "x-used-output: 200"];
    body(&world.post(MESSAGES, &headers, &message(false)), 200);
    let refused = ["x-standpipe-wait: 0", "x-refuse-once: 60 a"];
    body(&world.post(MESSAGES, &refused, &message(false)), 429);
    world.settled("anthropic/sonnet");
    let totals = world.daemon.get("/v1/proxied").ok(200);
    let recent = totals["recent"].as_array().unwrap();
    assert_eq!(recent.len(), 2, "{totals}");
    let (last, first) = (&recent[0], &recent[1]);
    assert_eq!((&last["status"], &last["output_tokens"]), (&json!(429), &json!(0)), "{totals}");
    assert_eq!((&first["status"], &first["agent"]), (&json!(200), &json!("blog")), "{totals}");
    assert_eq!(first["model"], "claude-sonnet-4-5");
    assert_eq!(first["session"], "blog/s1");
    assert_eq!((&first["input_tokens"], &first["output_tokens"]), (&json!(1_000), &json!(200)));
    assert_eq!(first["micro_usd"], 6_000, "{totals}");
    let model = &totals["models"]["claude-sonnet-4-5"];
    assert_eq!((&model["calls"], &model["errors"]), (&json!(2), &json!(1)), "{totals}");
    let metrics = world.daemon.get("/metrics").text().to_owned();
    for line in [
        "standpipe_proxied_calls_total{model=\"claude-sonnet-4-5\"} 2",
        "standpipe_proxied_errors_total{model=\"claude-sonnet-4-5\"} 1",
        "standpipe_proxied_tokens_total{model=\"claude-sonnet-4-5\",unit=\"output_tokens\"} 200",
        "standpipe_proxied_usd_total{model=\"claude-sonnet-4-5\"} 0.006",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
    let spent = world.home.status("anthropic/sonnet")["money"]["spent_micro_usd"].clone();
    assert_eq!(spent, 6_000, "the ledger has the same");
    // The journal has it when the daemon's ten seconds are over, or with its end.
    let World { home, daemon, .. } = world;
    daemon.stop();
    let journal: String = files(&home).into_iter().map(|(_, text)| text).collect();
    let usage = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let usage: Vec<Value> = usage.filter(|event| event["kind"] == "usage").collect();
    let of_model = usage.iter().find(|event| event["model"] == "claude-sonnet-4-5");
    let units = &of_model.unwrap_or_else(|| panic!("{usage:?}"))["units"];
    assert_eq!((&units["output_tokens"], &units["usd"]), (&json!(200), &json!(6_000)), "{usage:?}");
}

#[test]
fn a_call_that_standpipe_refused_is_not_sent() {
    let world = World::anthropic(PRICED);
    let stop = json!({"pool": "anthropic/sonnet", "kind": "terminal"});
    world.daemon.post("/v1/throttle", &stop).ok(200);
    body(&world.post(MESSAGES, &[], &message(false)), 429);
    let totals = world.daemon.get("/v1/proxied").ok(200);
    assert_eq!(totals["recent"][0]["not_sent"], "terminal", "{totals}");
    world.daemon.post("/v1/resume", &json!({"pool": "anthropic/sonnet"})).ok(200);
    let refused = ["x-standpipe-wait: 0", "x-refuse-once: 60 a"];
    body(&world.post(MESSAGES, &refused, &message(false)), 429);
    let totals = world.daemon.get("/v1/proxied").ok(200);
    let last = &totals["recent"][0];
    assert_eq!((&last["status"], &last["not_sent"]), (&json!(429), &Value::Null), "{totals}");
}
