//! SDKs that retry on top of the proxy: noticed, and without effect on the provider.

use super::*;

/// The findings of `doctor` about retries.
fn findings(world: &World) -> Vec<String> {
    let tap = standpipe::Standpipe::builder().settings(standpipe::Settings::default());
    let store = standpipe::StoreUrl::File(Some(world.home.state()));
    let diagnosis = tap.home(world.home.state()).store(store).diagnose();
    let all = diagnosis.findings.iter().filter(|finding| finding.check == "retries");
    all.map(|finding| format!("{}; {}", finding.what, finding.remedy.as_deref().unwrap_or("")))
        .collect()
}

/// Refuses whatever comes, as the ledger does during a pause.
fn paused() -> World {
    let world = World::anthropic(ROOM);
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    let pause = json!({"pool": "anthropic/sonnet", "for_ms": 600_000});
    world.daemon.post("/v1/pause", &pause).ok(200);
    world
}

#[test]
fn retries_of_an_sdk_reach_no_provider_and_doctor_names_the_switch() {
    let world = paused();
    let call = |count: &str| {
        let headers = ["user-agent: Anthropic/Python 0.75.0", "x-standpipe-wait: 0", count];
        body(&world.post(MESSAGES, &headers, &message(false)), 429);
    };
    call("x-stainless-retry-count: 0");
    assert_eq!(findings(&world), ["no retries outside Standpipe; "]);
    for count in ["x-stainless-retry-count: 1", "x-stainless-retry-count: 2"] {
        call(count);
    }
    world.daemon.until_event("client_retry");
    let found = findings(&world);
    assert_eq!(found.len(), 1, "one line for many retries: {found:?}");
    assert!(found[0].starts_with("blog (Anthropic/Python) retries on its own"), "{found:?}");
    assert!(found[0].ends_with("set max_retries=0 on the client"), "{found:?}");
    assert_eq!(world.provider.log().len(), 1, "no amplification");
}

/// A client that counts nothing is noticed by what it repeats.
#[test]
fn a_client_that_repeats_a_refused_call_is_noticed() {
    let world = paused();
    let headers = ["user-agent: my-loop/1.0", "x-standpipe-wait: 0"];
    let call = |text: &str| {
        let message = json!({"model": "claude-sonnet-4-5", "messages": [{"content": text}]});
        body(&world.post(MESSAGES, &headers, &message), 429);
    };
    call("one");
    call("two");
    assert_eq!(findings(&world), ["no retries outside Standpipe; "], "they are different calls");
    call("one");
    let event = world.daemon.until_event("client_retry");
    assert_eq!((&event["agent"], &event["client"]), (&json!("blog"), &json!("my-loop")));
    assert_eq!(world.provider.log().len(), 1, "no amplification");
}

/// A client that gets the provider's error learns why the proxy did not try again.
#[test]
fn an_error_that_is_not_tried_again_says_why() {
    let world = World::anthropic(ROOM);
    let answer = world.post(MESSAGES, &["x-fail: 429", "x-standpipe-wait: 0"], &message(false));
    body(&answer, 429);
    assert_eq!(answer.header("x-standpipe-origin"), Some("provider"));
    assert_eq!(answer.header("x-standpipe-attempts"), Some("1"));
    assert_eq!(answer.header("x-standpipe-reason"), Some("pause"));
    assert_eq!(world.provider.log().len(), 1);
}
