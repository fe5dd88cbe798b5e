//! Sessions, sub-agents and users of an agent, and the prompts that its provider has cached.

use super::*;

const CODER: &str = "/as/coder/anthropic/v1/messages";

#[test]
fn use_is_attributed_to_sessions_and_sub_agents() {
    let world = World::anthropic(ROOM);
    let session = "x-claude-code-session-id: 3f2a91bc-5d";
    let sub = ["x-claude-code-agent-id: explore", "x-claude-code-parent-agent-id: main"];
    let call = |headers: &[&str]| {
        let mut all = vec![session, "x-used-input: 10", "x-used-output: 4"];
        all.extend(headers);
        body(&world.post(CODER, &all, &message(false)), 200);
    };
    call(&[]);
    call(&sub);
    call(&sub);
    world.settled("anthropic/sonnet");
    let totals = world.daemon.get("/v1/proxied").ok(200);
    let coder = &totals["agents"]["coder"];
    assert_eq!((&coder["calls"], &coder["output_tokens"]), (&json!(3), &json!(12)), "{totals}");
    let sessions = &coder["sessions"];
    assert_eq!(sessions["coder/3f2a91bc-5d"]["calls"], 1, "{totals}");
    let sub = &sessions["coder/3f2a91bc-5d/explore"];
    assert_eq!((&sub["input_tokens"], &sub["parent"]), (&json!(20), &json!("main")), "{totals}");
    let status = world.home.status("anthropic/sonnet");
    let agents = status["agents"].as_array().unwrap();
    assert_eq!(agents.len(), 1, "the ledger has one agent: {status}");
}

#[test]
fn a_user_is_shown_only_where_that_is_configured() {
    let chat = json!({"model": "gpt-4o", "messages": [], "user": "ann"});
    let headers = ["openai-organization: org-1"];
    let sessions = |more: &str| {
        let world = World::with(Shape::OpenAi, Vec::new(), "");
        let text = std::fs::read_to_string(world.config()).unwrap();
        let text = text.replace("[provider.nowhere]", &format!("{more}\n[provider.nowhere]"));
        let world = world.reconfigured(&text);
        body(&world.post(CHAT, &headers, &chat), 200);
        world.settled("openai/gpt-4o");
        world.daemon.get("/v1/proxied").ok(200)["agents"]["blog"]["sessions"].clone()
    };
    assert_eq!(sessions(""), Value::Null);
    let found = sessions("split_by = [\"organization\", \"user\"]");
    assert_eq!(found["blog/org-1/ann"]["calls"], 1, "{found}");
}

/// What a call in flight has reserved of the input tokens.
fn reserved(world: &World, session: &str, text: &str) -> u64 {
    let used = || {
        let status = world.home.status("anthropic/sonnet");
        limit(&status, "input_tokens")["used"].as_u64().unwrap()
    };
    let (before, earlier) = (world.provider.log().len(), used());
    let body = json!({"model": "claude-sonnet-4-5", "max_tokens": 8,
                      "messages": [{"role": "user", "content": text}]});
    let headers = [session, "x-service-ms: 60000"];
    let client = world.begin(CODER, &headers, &body);
    world.provider.wait_until(|log| log.len() > before);
    let reserved = used() - earlier;
    drop(client);
    world.settled("anthropic/sonnet");
    reserved
}

/// Only new input counts of a prompt that is cached, so later calls of a session reserve little.
#[test]
fn later_calls_of_a_session_are_estimated_without_the_cached_prompt() {
    let world = World::anthropic(ROOM);
    let text = "a word ".repeat(6_000);
    let call = |session: &str, input: &str, cached: &str| {
        let content = json!([{"role": "user", "content": text}]);
        let message = json!({"model": "claude-sonnet-4-5", "max_tokens": 8, "messages": content});
        body(&world.post(CODER, &[session, input, cached], &message), 200);
        world.settled("anthropic/sonnet");
    };
    let one = "x-claude-code-session-id: one";
    call(one, "x-used-input: 10500", "x-used-cache-read: 0");
    call(one, "x-used-input: 200", "x-used-cache-read: 10300");
    let later = reserved(&world, one, &text);
    assert!((1..=400).contains(&later), "{later}");
    let first = reserved(&world, "x-claude-code-session-id: two", &text);
    assert!(first > 9_000, "all of a first prompt counts: {first}");
}
