//! Everything that breaks on the way: clients, providers, the daemon itself.

use std::io::{Read, Write};

use standpipe_servers::{Options as ServerOptions, Server};

use super::*;

/// One slot, so that a call whose slot does not come back blocks the next one.
const ONE: &str = "parallel = 1\n";

impl World {
    fn one_slot() -> Self {
        Self::anthropic(&format!("{ROOM}{ONE}"))
    }

    /// The slot is free, and the provider answers the next call.
    #[track_caller]
    fn lives(&self) {
        self.settled("anthropic/sonnet");
        body(&self.post(MESSAGES, &["x-standpipe-wait: 50s"], &message(false)), 200);
    }
}

/// Reads a stream to its end, whichever way that comes, and returns what was read.
fn read(mut client: Client) -> String {
    assert_eq!(client.head().unwrap().status, 200);
    let mut text = String::new();
    while let Some(chunk) = client.chunk() {
        text.push_str(&String::from_utf8(chunk).unwrap());
    }
    text
}

#[test]
fn a_provider_that_resets_a_stream_is_charged_for_what_it_sent() {
    let world = World::one_slot();
    let headers = ["x-used-input: 50", "x-used-output: 900", "x-reset-after: 4", "x-chunk-ms: 20"];
    let text = read(world.begin(MESSAGES, &headers, &message(true)));
    assert!(!text.contains("message_stop"), "the client sees that it broke off: {text}");
    let status = world.settled("anthropic/sonnet");
    assert_eq!(limit(&status, "input_tokens")["used"], 50);
    assert!(limit(&status, "output_tokens")["used"].as_u64().unwrap() < 900, "{status}");
    world.lives();
}

/// The client's patience decides; when it leaves, so does the call at the provider.
#[test]
fn a_provider_that_stalls_holds_nothing_once_the_client_leaves() {
    let world = World::one_slot();
    let headers = ["x-used-input: 50", "x-stall-after: 3"];
    let mut client = world.begin(MESSAGES, &headers, &message(true));
    assert_eq!(client.head().unwrap().status, 200);
    let mut text = String::new();
    while !text.contains("text_delta") {
        text.push_str(&String::from_utf8(client.chunk().unwrap()).unwrap());
    }
    assert_eq!(world.home.status("anthropic/sonnet")["in_flight"], 1);
    drop(client);
    world.lives();
    // A provider that sends not even a head is the same.
    let client = world.begin(MESSAGES, &["x-service-ms: 600000"], &message(false));
    world.provider.wait_until(|log| log.len() == 3);
    drop(client);
    world.lives();
}

#[test]
fn a_truncated_answer_is_not_passed_on_as_a_whole_one() {
    let world = World::one_slot();
    let mut client = world.begin(MESSAGES, &["x-truncate: 40"], &message(false));
    let head = client.head().unwrap();
    let length: usize = head.header("content-length").unwrap().parse().unwrap();
    assert!(length > 40 && client.is_closed(), "{head:?}");
    world.lives();
}

#[test]
fn usage_that_cannot_be_true_harms_nobody() {
    let world = World::one_slot();
    for usage in [
        r#"{"input_tokens":-5,"output_tokens":-1}"#,
        r#"{"input_tokens":18446744073709551615,"output_tokens":99999999999999999999999}"#,
        r#"{"input_tokens":"many","output_tokens":[1]}"#,
        "null",
        "[]",
        r#"{"input_tokens":1e300,"output_tokens":0.5}"#,
    ] {
        let header = format!("x-usage: {usage}");
        for stream in [false, true] {
            let answer = world.post(MESSAGES, &[header.as_str()], &message(stream));
            assert_eq!(answer.status, 200, "{usage}");
            let status = world.settled("anthropic/sonnet");
            for unit in ["input_tokens", "output_tokens"] {
                let used = limit(&status, unit)["used"].as_u64().unwrap();
                assert!(used < 100_000, "{usage}: {used} of {unit}");
            }
        }
    }
    world.lives();
}

#[test]
fn a_head_of_a_megabyte_is_an_error_and_not_kept() {
    let world = World::one_slot();
    let headers = ["x-head-bytes: 1000000", "x-standpipe-wait: 0"];
    let answer = world.post(MESSAGES, &headers, &message(false));
    let error = body(&answer, 502);
    assert_eq!(error["error"]["type"], "api_error", "{error}");
    assert_eq!(answer.header("x-standpipe-origin"), Some("provider"));
    assert_eq!(answer.header("x-standpipe-reason"), Some("upstream"));
    world.lives();
    let answer = world.post(MESSAGES, &["x-head-bytes: 100000"], &message(false));
    assert_eq!(answer.status, 200, "large but bearable");
}

#[test]
fn a_host_that_cannot_be_resolved_is_named() {
    let upstream = "[provider.lost]\nupstream = \"http://no.such.host.invalid\"\n\
                    [pool.\"lost/api\"]\nrequests = \"10/h\"\n";
    let world = World::anthropic(&format!("{ROOM}{upstream}"));
    let answer = world.post("/lost/v1/things", &["x-standpipe-wait: 0"], &json!({}));
    let problem = body(&answer, 502);
    assert_eq!(problem["detail"], "lost did not answer: cannot resolve no.such.host.invalid");
    assert!(
        problem["hint"].as_str().unwrap().starts_with("check DNS, and `upstream` in [provider")
    );
}

#[test]
fn connections_that_the_provider_closes_when_idle_cost_no_call() {
    let world = World::one_slot();
    for _ in 0..20 {
        body(&world.post(MESSAGES, &["x-close: 1"], &message(false)), 200);
    }
    assert_eq!(world.provider.log().len(), 20, "none was sent twice");
}

#[test]
fn informational_answers_are_passed_over() {
    let world = World::one_slot();
    for status in ["100", "102", "103"] {
        let header = format!("x-informational: {status}");
        let answer = world.post(MESSAGES, &[header.as_str()], &message(false));
        body(&answer, 200);
        assert_eq!(answer.header("x-early"), None);
    }
    world.lives();
}

/// B30: a client that is connected and does not read holds its own slot, not the daemon's memory.
#[test]
fn b30_a_client_that_does_not_read_fills_no_memory_and_blocks_no_other() {
    let world = World::anthropic(ROOM);
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    let before = world.daemon.memory();
    let headers = ["x-body-bytes: 30000000"];
    let clients: Vec<Client> =
        (0..4).map(|_| world.begin(MESSAGES, &headers, &message(false))).collect();
    world
        .provider
        .wait_until(|log| log.len() == 5 && log.iter().all(|call| call.finished.is_some()));
    for _ in 0..5 {
        body(&world.post(MESSAGES, &[], &message(false)), 200);
    }
    let grown = world.daemon.memory().saturating_sub(before);
    assert!(grown < 40_000, "{grown} KiB for 120 MB of unread answers");
    clients.into_iter().for_each(Client::reset);
    world.settled("anthropic/sonnet");
}

/// The ledger outlives the daemon: leases of a killed one are settled, those of others stay.
#[test]
fn a_killed_daemon_leaves_no_slot_taken() {
    let world = World::one_slot();
    let other = world.home.library();
    let slots = other.pool("my/slots").unwrap();
    let text = standpipe::config::text::limit("parallel=2").unwrap();
    slots.limit(vec![text]).blocking().unwrap();
    let held = slots.reserve(standpipe::Request::by("other")).blocking().unwrap();
    let headers = ["x-used-input: 50", "x-stall-after: 3"];
    let mut client = world.begin(MESSAGES, &headers, &message(true));
    assert_eq!(client.head().unwrap().status, 200);
    // A head may be that of a stream that still waits.
    world.provider.wait_until(|log| !log.is_empty());
    let waiting = world.begin(MESSAGES, &["x-standpipe-wait: 10min"], &message(false));
    until("it waits", || (world.home.status("anthropic/sonnet")["waiting"] == 1).then_some(()));
    let World { home, daemon, provider } = world;
    daemon.signal(rustix::process::Signal::KILL);
    daemon.ended();
    drop((client, waiting));
    let config = home.path.join("config/standpipe/standpipe.toml");
    let start = Start { listen: Some("127.0.0.1:0"), config: Some(&config), ..Start::default() };
    let daemon = Daemon::start(&home, start);
    let world = World { home, daemon, provider };
    world.lives();
    assert_eq!(world.home.status("my/slots")["in_flight"], 1, "others are unaffected");
    held.commit([]).blocking().unwrap();
    let calls = world.provider.log();
    assert_eq!(calls.len(), 2, "the waiting call was never sent");
}

/// One refusal pauses everybody: then one call probes, then each tier has its window. The
/// provider's own stamps are compared, which are all after the instants of the daemon.
#[test]
fn after_a_refusal_nobody_calls_until_the_pause_is_over_and_then_one_by_one() {
    let world = World::anthropic(&format!(
        "{ROOM}return_windows = {{ critical = [\"0s\", \"300ms\"], standard = [\"300ms\", \"1s\"]\
         , background = [\"1s\", \"2s\"] }}\n"
    ));
    let path = |tier: &str, number: u32| {
        (format!("/as/{tier}{number}:{tier}/anthropic/v1/messages"), format!("x-agent: {tier}"))
    };
    let begin = |tier: &str, number, more: &[&str]| {
        let (path, agent) = path(tier, number);
        let mut headers = vec![agent.as_str(), "x-service-ms: 200"];
        headers.extend(more);
        world.begin(&path, &headers, &message(false))
    };
    let mut clients = vec![begin("standard", 0, &["x-refuse-once: 5 a"])];
    world.daemon.until_event("pause");
    for number in 1..4 {
        clients.push(begin("standard", number, &[]));
        clients.push(begin("background", number, &[]));
    }
    for client in &mut clients {
        body(&client.answer(), 200);
    }
    let log = world.provider.log();
    assert_eq!((log.len(), log[0].status), (8, Some(429)));
    let end = log[0].arrived + 5_000_000;
    let (probe, rest) = (&log[1], &log[2..]);
    assert!(probe.arrived >= end, "{log:?}");
    // Others follow when the probe is answered, or a second after its admission, which its tier's
    // window allows from 300 ms on.
    let answered = probe.finished.unwrap().min(end + 1_300_000);
    for call in rest {
        assert!(call.arrived >= answered, "only one call probes: {log:?}");
        let opens = if call.agent == "background" { 1_000_000 } else { 300_000 };
        assert!(call.arrived >= end + opens, "before its window: {log:?}");
    }
}

/// A server that answers every connection with these bytes, or closes it.
fn answers_with(bytes: &'static [u8]) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _request = connection.read(&mut [0; 4_096]);
            let _sent = connection.write_all(bytes);
        }
    });
    address
}

/// The error names what listens there, and which key of the file to change.
#[test]
fn what_does_not_answer_as_a_provider_is_described_in_own_words() {
    let tls = Server::start_with(ServerOptions { tls: true, ..ServerOptions::default() });
    let plain = answers_with(b"220 mail.example ready\r\n");
    let alert = answers_with(b"\x15\x03\x01\x00\x02\x02\x46");
    let silent = answers_with(b"");
    for (upstream, what, hint) in [
        (format!("http://{plain}"), "does not speak HTTP", "if it uses TLS, write https:// in"),
        (format!("http://{alert}"), "does not speak HTTP", "if it uses TLS, write https:// in"),
        (format!("http://{silent}"), "it closed the connection", "write https:// in"),
        (format!("https://{plain}"), "does not speak TLS", "write http:// in"),
        (
            tls.url().replace("rediss", "https"),
            "an unknown authority",
            "set `ca` in [provider.odd]",
        ),
        ("http://127.0.0.1:9".to_owned(), "nothing listens at 127.0.0.1:9", "start it, or check"),
    ] {
        let odd = format!("[provider.odd]\nupstream = \"{upstream}\"\n");
        let world = World::anthropic(&format!("{odd}[pool.\"odd/api\"]\nrequests = \"10/h\"\n"));
        let answer = world.post("/odd/v1/things", &["x-standpipe-wait: 0"], &json!({}));
        let problem = body(&answer, 502);
        let (said, to_do) =
            (problem["detail"].as_str().unwrap(), problem["hint"].as_str().unwrap());
        assert!(said.starts_with("odd did not answer: ") && said.contains(what), "{problem}");
        assert!(to_do.contains(hint) && to_do.contains("[provider.odd]"), "{problem}");
        for library in ["invalid HTTP", "peer certificate", "InvalidContentType", "os error"] {
            assert!(!said.contains(library), "{problem}");
        }
    }
}

/// The file is the operator's: clients learn which setting is wrong, and not where the file is.
#[test]
fn an_authority_that_cannot_be_used_is_named_without_its_path() {
    let odd = "[provider.odd]\nupstream = \"https://127.0.0.1:9\"\nca = \"standpipe.toml\"\n";
    let world = World::anthropic(&format!("{odd}[pool.\"odd/api\"]\nrequests = \"10/h\"\n"));
    let answer = world.post("/odd/v1/things", &["x-standpipe-wait: 0"], &json!({}));
    let problem = answer.problem(500, "internal");
    assert_eq!(problem["detail"], "the `ca` of [provider.odd] cannot be used");
    assert!(problem["hint"].as_str().unwrap().contains("standpipe config check"), "{problem}");
    assert!(world.daemon.log().contains("standpipe.toml contains no certificate"));
}

/// A path with a misspelled provider would be the error of a page that does not exist.
#[test]
fn a_misspelled_provider_is_suggested_in_the_form_of_its_api() {
    let world = World::anthropic(ROOM);
    for (path, meant) in [
        ("/antropic/v1/messages", "/anthropic/v1/messages"),
        ("/as/blog/Anthropic/v1/messages", "/as/blog/anthropic/v1/messages"),
    ] {
        let answer = world.post(path, &[], &message(false));
        let error = body(&answer, 404);
        let said = error["error"]["message"].as_str().unwrap();
        assert!(
            said.contains(&format!("did you mean the provider `anthropic`: {meant}")),
            "{said}"
        );
    }
    let answer = world.daemon.get("/v1/pool");
    assert!(answer.problem(404, "not_found")["hint"].as_str().unwrap().contains("GET /v1/pools"));
}

/// One form for everything that is wrong with a call: SDKs show the message of their own.
#[test]
fn headers_that_cannot_be_read_are_told_in_the_form_of_the_provider() {
    let world = World::anthropic(ROOM);
    for (path, header, says) in [
        (MESSAGES, "x-standpipe-priority: urgent", "`urgent` is not a priority"),
        (MESSAGES, "x-standpipe-wait: soon", "x-standpipe-wait: "),
        (
            "/anthropic/v1/messages",
            "x-standpipe-agent: a b",
            "`a b` cannot be the name of an agent",
        ),
        ("/as/a%20b/anthropic/v1/messages", "x: y", "is not a valid agent name"),
    ] {
        let answer = world.post(path, &[header], &message(false));
        let error = body(&answer, 400);
        assert_eq!(error["error"]["type"], "invalid_request_error", "{error}");
        assert!(error["error"]["message"].as_str().unwrap().contains(says), "{error}");
    }
}
