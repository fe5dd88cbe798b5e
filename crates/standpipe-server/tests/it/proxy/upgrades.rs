//! WebSockets pass through and count as one call; other upgrades are rejected.

use super::*;

const REALTIME: &str = "/as/voice/openai/v1/realtime?model=gpt-realtime";
const POOL: &str = "[pool.\"openai/realtime\"]\nmodels = [\"gpt-realtime*\"]\nrequests = \"9/h\"\n\
    tokens = \"1000/h\"\nparallel = 1\n";
const UPGRADE: [&str; 4] = [
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
];

fn open(world: &World, headers: &[&str]) -> Client {
    let mut client = world.daemon.tcp();
    let mut all = UPGRADE.to_vec();
    all.extend(headers);
    client.start("GET", REALTIME, &all, b"");
    client
}

/// A message as a client sends it. A mask of zeros leaves the text readable.
fn message(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
    frame.extend(text.as_bytes());
    frame
}

/// The next event of the provider.
fn event(client: &mut Client) -> Value {
    let head = client.bytes(2);
    let length = match head[1] {
        126 => {
            let long = client.bytes(2);
            usize::from(u16::from_be_bytes([long[0], long[1]]))
        }
        short => usize::from(short),
    };
    serde_json::from_slice(&client.bytes(length)).unwrap()
}

/// Opens a session and reads its first event.
fn session(world: &World, headers: &[&str]) -> Client {
    let mut client = open(world, headers);
    let head = client.head().unwrap();
    assert_eq!(head.status, 101, "{head:?}");
    let created = event(&mut client);
    assert_eq!(created["type"], "session.created");
    assert_eq!(created["session"]["model"], "gpt-realtime");
    client
}

/// Asks for a response and reads its events.
fn respond(client: &mut Client) {
    client.send(&message("{\"type\":\"response.create\"}"));
    while event(client)["type"] != "response.done" {}
}

#[test]
fn a_websocket_passes_both_ways_and_is_one_call() {
    let world = World::with(Shape::OpenAi, Vec::new(), POOL);
    let mut client = open(&world, &[]);
    let head = client.head().unwrap();
    assert_eq!(head.status, 101, "{head:?}");
    assert_eq!(head.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(head.header("x-standpipe-pool"), Some("openai/realtime"));
    assert_eq!(event(&mut client)["type"], "session.created");
    for text in ["one", "two"] {
        client.send(&message(text));
        assert_eq!(client.bytes(text.len() + 2)[2..], *text.as_bytes());
    }
    let status = world.home.status("openai/realtime");
    assert_eq!((&status["in_flight"], &limit(&status, "requests")["used"]), (&json!(1), &json!(1)));
    // The slot is taken for as long as it is open.
    body(&open(&world, &["x-standpipe-wait: 0"]).answer(), 429);
    client.send(&[0x88, 0x80, 0, 0, 0, 0]);
    let status = world.settled("openai/realtime");
    assert_eq!(limit(&status, "requests")["used"], 1);
    assert_eq!(limit(&status, "tokens")["used"], 0);
    assert_eq!(world.provider.log().len(), 1);
    let totals = world.daemon.get("/v1/proxied").ok(200);
    assert_eq!(totals["agents"]["voice"]["calls"], 1);
}

#[test]
fn tokens_count_while_the_session_is_open_and_are_kept_when_it_ends() {
    let world = World::with(Shape::OpenAi, Vec::new(), POOL);
    // Without the offer of compression the usage can be read.
    let deflate = "sec-websocket-extensions: permessage-deflate";
    let mut client = session(&world, &["x-used-input: 70", "x-used-output: 30", deflate]);
    for used in [100, 200] {
        respond(&mut client);
        until("the tokens count", || {
            let status = world.home.status("openai/realtime");
            (limit(&status, "tokens")["used"] == used).then_some(())
        });
    }
    assert_eq!(world.home.status("openai/realtime")["in_flight"], 1);
    client.reset();
    let status = world.settled("openai/realtime");
    assert_eq!(limit(&status, "tokens")["used"], 200);
    assert_eq!(limit(&status, "requests")["used"], 1);
    let shown = world.daemon.get("/v1/proxied").ok(200);
    let last = &shown["recent"][0];
    assert_eq!((&last["status"], &last["model"]), (&json!(101), &json!("gpt-realtime")));
    assert_eq!((&last["input_tokens"], &last["output_tokens"]), (&json!(140), &json!(60)));
    assert_eq!(shown["agents"]["voice"]["input_tokens"], 140);
}

/// The provider would wait for a body that is not forwarded, and the slot would be taken.
#[test]
fn a_body_in_the_request_for_a_websocket_is_left_out() {
    let world = World::with(Shape::OpenAi, Vec::new(), POOL);
    let mut client = world.daemon.tcp();
    client.start("GET", REALTIME, &UPGRADE, b"a body");
    assert_eq!(client.head().unwrap().status, 101);
    assert_eq!(event(&mut client)["type"], "session.created");
    respond(&mut client);
}

#[test]
fn a_provider_that_breaks_the_session_frees_its_slot() {
    let world = World::with(Shape::OpenAi, Vec::new(), POOL);
    let mut client = session(&world, &["x-break-after: 1"]);
    respond(&mut client);
    client.send(&message("once more"));
    assert!(client.is_closed());
    let status = world.settled("openai/realtime");
    assert_eq!(limit(&status, "tokens")["used"], 25);
    session(&world, &[]);
}

#[test]
fn a_client_or_daemon_that_disconnects_ends_the_call() {
    let world = World::with(Shape::OpenAi, Vec::new(), POOL);
    let client = session(&world, &[]);
    client.reset();
    world.settled("openai/realtime");
    world.provider.wait_until(|log| log[0].finished.is_some());
    let mut client = session(&world, &[]);
    let (home, provider) = (world.home, world.provider);
    world.daemon.stop();
    assert!(client.is_closed());
    provider.wait_until(|log| log.len() == 2 && log[1].finished.is_some());
    assert_eq!(home.status("openai/realtime")["in_flight"], 0);
}

#[test]
fn a_provider_that_refuses_the_upgrade_is_reported() {
    let rule = Rule::Rolling { unit: Unit::Requests, amount: 0, period: 3_600_000_000 };
    let world = World::with(Shape::OpenAi, vec![rule], POOL);
    let answer = open(&world, &[]).answer();
    body(&answer, 429);
    assert_eq!(answer.header("x-standpipe-origin"), Some("provider"));
    world.settled("openai/realtime");
}

#[test]
fn other_upgrades_are_rejected_clearly() {
    let world = World::with(Shape::OpenAi, Vec::new(), POOL);
    let ask = |path: &str, upgrade: &str| {
        let headers = ["connection: upgrade", upgrade, "sec-websocket-version: 13"];
        world.daemon.ask("GET", path, &headers, b"")
    };
    ask("/openai/v1/models", "upgrade: websocket").problem(501, "upgrade");
    ask("/openai/v1/models", "upgrade: SPDY/3.1").problem(501, "upgrade");
    let error = body(&ask(REALTIME, "upgrade: TLS/1.0"), 501);
    assert!(error["error"]["message"].as_str().unwrap().contains("upgrade"), "{error}");
    // Codex begins with a WebSocket here, and uses HTTP at once after this status.
    let answer = ask("/as/coder/openai/v1/responses", "upgrade: websocket");
    assert_eq!((answer.status, answer.header("upgrade")), (426, Some("HTTP/1.1")));
    assert!(world.provider.log().is_empty());
    // Clients that offer HTTP/2 do not insist on it.
    assert_eq!(ask("/openai/v1/models", "upgrade: h2c").status, 200);
}
