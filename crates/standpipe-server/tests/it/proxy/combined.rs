//! Several things go wrong at once: every path still ends with the lease settled and the slot free.

use rustix::process::Signal;

use super::*;

const SONNET: &str = "anthropic/sonnet";

/// One slot, so that a lease that stays in flight shows.
fn one_slot() -> World {
    World::anthropic(&format!("{ROOM}parallel = 1\n"))
}

fn pause(world: &World) {
    world.daemon.post("/v1/pause", &json!({"pool": SONNET, "for_ms": 60_000})).ok(200);
}

fn resume(world: &World) {
    world.daemon.post("/v1/resume", &json!({"pool": SONNET})).ok(200);
}

#[track_caller]
fn until_waiting(world: &World, many: u64) {
    until("it waits", || (world.home.status(SONNET)["waiting"] == many).then_some(()));
}

/// The rest of a stream.
fn rest(client: &mut Client) -> String {
    let mut text = String::new();
    while let Some(chunk) = client.chunk() {
        text.push_str(&String::from_utf8(chunk).unwrap());
    }
    text
}

/// The daemon reloads while a refused call waits for its next try; then its client disconnects.
#[test]
fn a_client_that_disconnects_between_two_tries_across_a_reload_leaves_nothing() {
    let world = one_slot();
    for (stream, tries) in [(false, 1), (true, 3)] {
        let refused = format!("x-refuse-once: 60 {stream}");
        let client = world.begin(MESSAGES, &[&refused], &message(stream));
        // After the resume a call may also wait before its first try.
        until("it was refused", || (world.provider.log().len() == tries).then_some(()));
        until_waiting(&world, 1);
        let text = std::fs::read_to_string(world.config()).unwrap();
        let changed = text.replace("requests = \"1000/h\"", "requests = \"900/h\"");
        std::fs::write(world.config(), if stream { text } else { changed }).unwrap();
        world.daemon.signal(Signal::HUP);
        world.daemon.until_said("configuration reloaded");
        assert_eq!(world.home.status(SONNET)["waiting"], 1, "the reload drops no call");
        client.reset();
        world.settled(SONNET);
        resume(&world);
        body(&world.post(MESSAGES, &[], &message(false)), 200);
    }
    let log = world.provider.log();
    assert_eq!(log.len(), 4, "the calls whose clients left were not tried again: {log:?}");
}

/// A reload while a call waits does not lose it.
#[test]
fn a_call_that_waits_across_a_reload_is_answered() {
    let world = one_slot();
    let mut whole = world.begin(MESSAGES, &["x-refuse-once: 60 a"], &message(false));
    until_waiting(&world, 1);
    let mut streamed = world.begin(MESSAGES, &[], &message(true));
    until_waiting(&world, 2);
    world.daemon.signal(Signal::HUP);
    world.daemon.until_said("configuration reloaded");
    resume(&world);
    assert_eq!(whole.answer().status, 200);
    assert_eq!(streamed.head().unwrap().status, 200);
    assert!(rest(&mut streamed).contains("message_stop"));
    world.settled(SONNET);
}

/// The stream of a call that was rewritten to a fallback breaks off.
#[test]
fn a_stream_of_a_fallback_that_breaks_off_is_charged_there() {
    // The head is not sent before the call is admitted.
    let room = ROOM.replace("50ms", "10s");
    let world = World::anthropic(&format!(
        "{room}rewrite = true\nfallback = [\"anthropic/haiku\"]\n[pool.\"anthropic/haiku\"]\n\
         models = [\"claude-haiku-4-5\"]\ninput_tokens = \"1M/h\"\noutput_tokens = \"1M/h\"\n\
         parallel = 1\n"
    ));
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    let before = world.settled(SONNET);
    pause(&world);
    for fault in ["x-break-after: 4", "x-reset-after: 4", "x-error-after: 4"] {
        let headers = ["x-used-input: 50", "x-used-output: 900", fault];
        let mut client = world.begin(MESSAGES, &headers, &message(true));
        let head = client.head().unwrap();
        assert_eq!(head.header("x-standpipe-model"), Some("claude-haiku-4-5"), "{head:?}");
        rest(&mut client);
        world.settled("anthropic/haiku");
    }
    let status = world.settled("anthropic/haiku");
    assert_eq!(limit(&status, "input_tokens")["used"], 150);
    let output = limit(&status, "output_tokens")["used"].as_u64().unwrap();
    assert!((3..2_700).contains(&output), "{output}");
    let after = world.settled(SONNET);
    assert_eq!(limit(&after, "output_tokens")["used"], limit(&before, "output_tokens")["used"]);
}

/// A stream gets comments while it waits, then an error of the provider, as its last event.
#[test]
fn comments_and_then_an_error_of_the_provider_are_a_stream_that_ends() {
    let world = one_slot();
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    for (status, kind) in [(400, "invalid_request_error"), (401, "authentication_error")] {
        pause(&world);
        let fails = format!("x-fail: {status}");
        let mut client = world.begin(MESSAGES, &[&fails], &message(true));
        assert_eq!(client.head().unwrap().status, 200);
        assert_eq!(client.chunk().unwrap(), b": keepalive\n\n");
        resume(&world);
        let text = rest(&mut client);
        let last = text.trim_end().rsplit("\n\n").next().unwrap();
        assert!(last.starts_with("event: error\ndata: {"), "{text}");
        assert!(last.contains(kind), "{text}");
        assert_eq!(text.matches("event: ").count(), 1, "{text}");
        world.settled(SONNET);
    }
}

/// A stream gets comments, is refused, gets more comments, and then its answer.
#[test]
fn a_refusal_behind_comments_is_tried_again_unseen() {
    let world = one_slot();
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    pause(&world);
    let mut client = world.begin(MESSAGES, &["x-refuse-once: 1 behind"], &message(true));
    assert_eq!(client.head().unwrap().status, 200);
    assert_eq!(client.chunk().unwrap(), b": keepalive\n\n");
    resume(&world);
    world.provider.wait_until(|log| log.len() == 2);
    let text = rest(&mut client);
    assert!(text.contains("message_stop") && !text.contains("error"), "{text}");
    world.settled(SONNET);
    assert_eq!(world.provider.log().len(), 3);
}

/// The daemon stops while a stream waits behind comments: it ends with an error event.
#[test]
fn a_daemon_that_stops_ends_a_waiting_stream_with_an_error() {
    let world = one_slot();
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    pause(&world);
    let mut client = world.begin(MESSAGES, &[], &message(true));
    assert_eq!(client.head().unwrap().status, 200);
    assert_eq!(client.chunk().unwrap(), b": keepalive\n\n");
    world.daemon.signal(Signal::TERM);
    let text = rest(&mut client);
    assert!(text.contains("event: error\ndata: "), "{text}");
    let home = world.home;
    until("no ticket is left", || (home.status(SONNET)["waiting"] == 0).then_some(()));
}

/// Each call names another session: what is kept of them is bounded, and nothing is lost.
#[test]
fn many_sessions_are_bounded_and_their_sum_is_right() {
    const MANY: usize = 1_100;
    let world = World::anthropic("");
    let mut client = world.daemon.tcp();
    let text = json!({"model": "claude-sonnet-4-5", "max_tokens": 1, "messages": []}).to_string();
    for number in 0..MANY {
        let session = format!("x-claude-code-session-id: s-{number}");
        let all = ["content-type: application/json", KEY, "x-used-output: 1", &session];
        client.start("POST", MESSAGES, &all, text.as_bytes());
        assert_eq!(client.answer().status, 200);
    }
    let blog = world.daemon.get("/v1/proxied").ok(200)["agents"]["blog"].clone();
    let sessions = blog["sessions"].as_object().unwrap();
    assert!(sessions.len() <= 1_025, "{}", sessions.len());
    assert!(sessions.contains_key("blog/other") && sessions.contains_key("blog/s-1099"));
    let sum: u64 = sessions.values().map(|each| each["output_tokens"].as_u64().unwrap()).sum();
    assert_eq!((blog["output_tokens"].as_u64(), sum), (Some(sum), MANY as u64));
}

/// A client that sends half a body and disconnects has reserved nothing.
#[test]
fn half_a_body_reserves_nothing() {
    let world = one_slot();
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    let before = world.settled(SONNET);
    let mut client = world.daemon.tcp();
    let host = world.daemon.address;
    let head =
        format!("POST {MESSAGES} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 1000\r\n\r\n{{");
    client.send(head.as_bytes());
    client.reset();
    let after = world.settled(SONNET);
    assert_eq!(limit(&after, "requests")["used"], limit(&before, "requests")["used"]);
    body(&world.post(MESSAGES, &[], &message(false)), 200);
}
