//! The proxy, with the enforcing provider behind it. The provider's log is the referee.

mod combined;
mod faults;
mod github;
mod keys;
mod media;
mod other_apis;
mod retries;
mod rewriting;
mod security;
mod sessions;
mod upgrades;
mod views;

use std::path::PathBuf;

use serde_json::{Value, json};
use standpipe_sim::{ProviderServer, Rule, ServerOptions, Shape, Unit};

use crate::support::{Answer, Client, Daemon, Home, Sse, Start, files, lease, limit, until};

const MESSAGES: &str = "/as/blog/anthropic/v1/messages";
const CHAT: &str = "/as/blog/openai/v1/chat/completions";
const KEY: &str = "x-api-key: sk-ant-planted-secret";

struct World {
    home: Home,
    daemon: Daemon,
    provider: ProviderServer,
}

impl World {
    /// A daemon with a provider of this shape; `more` is added to its configuration.
    fn with(shape: Shape, rules: Vec<Rule>, more: &str) -> Self {
        Self::serving(ServerOptions::new(shape, rules), more)
    }

    fn serving(options: ServerOptions, more: &str) -> Self {
        let provider = ProviderServer::start(options).unwrap();
        let home = Home::new();
        let address = provider.address();
        let text = format!(
            "open_pools = true\n[provider.anthropic]\nupstream = \"http://{address}\"\n\
             [provider.github]\nupstream = \"http://{address}\"\n\
             [provider.openai]\nupstream = \"http://{address}\"\n\
             [provider.nowhere]\nupstream = \"http://127.0.0.1:9\"\n{more}"
        );
        let config = home.configure(&text);
        let start =
            Start { listen: Some("127.0.0.1:0"), config: Some(&config), ..Start::default() };
        let daemon = Daemon::start(&home, start);
        Self { home, daemon, provider }
    }

    fn config(&self) -> PathBuf {
        self.home.path.join("config/standpipe/standpipe.toml")
    }

    /// The same world with a daemon that has another configuration.
    fn reconfigured(self, text: &str) -> Self {
        self.daemon.stop();
        let config = self.home.configure(text);
        let start =
            Start { listen: Some("127.0.0.1:0"), config: Some(&config), ..Start::default() };
        let daemon = Daemon::start(&self.home, start);
        Self { daemon, ..self }
    }

    fn anthropic(more: &str) -> Self {
        Self::with(Shape::Anthropic, Vec::new(), more)
    }

    fn post(&self, path: &str, headers: &[&str], body: &Value) -> Answer {
        self.begin(path, headers, body).answer()
    }

    fn begin(&self, path: &str, headers: &[&str], body: &Value) -> Client {
        let mut client = self.daemon.tcp();
        let mut all = vec!["content-type: application/json", KEY];
        all.extend(headers);
        client.start("POST", path, &all, body.to_string().as_bytes());
        client
    }

    /// Waits until nothing of the pool is in flight, and returns it.
    #[track_caller]
    fn settled(&self, pool: &str) -> Value {
        until("all is settled", || {
            let status = self.home.status(pool);
            (status["in_flight"] == 0 && status["waiting"] == 0).then_some(status)
        })
    }
}

/// The body of an answer with this status, in the provider's own format.
#[track_caller]
fn body(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    answer.json()
}

fn message(stream: bool) -> Value {
    json!({"model": "claude-sonnet-4-5", "max_tokens": 800, "stream": stream,
           "messages": [{"role": "user", "content": "a planted prompt"}]})
}

/// A pool with limits that no test reaches.
const ROOM: &str = "[pool.\"anthropic/sonnet\"]\nmodels = [\"claude-sonnet-*\"]\n\
    requests = \"1000/h\"\ninput_tokens = \"1M/h\"\noutput_tokens = \"1M/h\"\n\
    keepalive = \"50ms\"\n";

#[test]
fn a_call_is_reserved_forwarded_and_settled_with_its_usage() {
    let world = World::anthropic(ROOM);
    let used = ["x-used-input: 120", "x-used-output: 34"];
    let answer = world.post(MESSAGES, &used, &message(false));
    assert_eq!(body(&answer, 200)["usage"]["output_tokens"], 34);
    assert_eq!(answer.header("x-standpipe-pool"), Some("anthropic/sonnet"));
    assert_eq!(answer.header("x-standpipe-attempts"), Some("1"));
    assert_eq!(answer.header("x-standpipe-zone"), Some("green"));
    let status = world.settled("anthropic/sonnet");
    assert_eq!(limit(&status, "requests")["used"], 1);
    assert_eq!(limit(&status, "input_tokens")["used"], 120);
    assert_eq!(limit(&status, "output_tokens")["used"], 34);
    let log = world.provider.log();
    assert_eq!((log.len(), log[0].key.as_str()), (1, "sk-ant-planted-secret"), "the key passes");
    assert_eq!(log[0].path, "/v1/messages");
    let totals = world.daemon.get("/v1/proxied").ok(200);
    assert_eq!(totals["agents"]["blog"]["output_tokens"], 34);
}

#[test]
fn a_stream_passes_unchanged_and_is_settled_with_its_usage() {
    let world = World::anthropic(ROOM);
    let client = world.begin(MESSAGES, &["x-used-input: 50", "x-used-output: 9"], &message(true));
    let mut events = Vec::new();
    let mut stream = Sse::begun(client);
    while let Some(event) = stream.next() {
        events.push(event.event);
    }
    assert_eq!(events.first().map(String::as_str), Some("message_start"));
    assert_eq!(events.last().map(String::as_str), Some("message_stop"));
    let status = world.settled("anthropic/sonnet");
    assert_eq!(limit(&status, "output_tokens")["used"], 9);
    assert_eq!(limit(&status, "input_tokens")["used"], 50);
}

/// The provider states the usage only if it is asked; a client that did not ask does not see it.
#[test]
fn usage_of_a_chat_stream_is_asked_for_and_hidden() {
    let pool = "[pool.\"openai/gpt-4o\"]\nmodels = [\"gpt-4o*\"]\nrequests = \"1000/h\"\n\
                input_tokens = \"1M/h\"\noutput_tokens = \"1M/h\"\n";
    let world = World::with(Shape::OpenAi, Vec::new(), pool);
    let chat = |more: Value| {
        let mut body = json!({"model": "gpt-4o", "stream": true, "messages": []});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let chunks = |body: &Value| {
        let mut client = world.begin(CHAT, &["x-used-output: 21"], body);
        assert_eq!(client.head().unwrap().status, 200);
        let mut text = String::new();
        while let Some(chunk) = client.chunk() {
            text.push_str(&String::from_utf8(chunk).unwrap());
        }
        text
    };
    let plain = chunks(&chat(json!({})));
    assert!(!plain.contains("completion_tokens") && plain.ends_with("data: [DONE]\n\n"), "{plain}");
    let asked = chunks(&chat(json!({"stream_options": {"include_usage": true}})));
    assert!(asked.contains("\"completion_tokens\":21"), "{asked}");
    let status = world.settled("openai/gpt-4o");
    assert_eq!(limit(&status, "output_tokens")["used"], 42, "both are known to the ledger");
}

#[test]
fn a_stream_that_breaks_off_counts_what_was_seen() {
    let world = World::anthropic(ROOM);
    let headers = ["x-used-input: 50", "x-used-output: 900", "x-break-after: 4"];
    let mut client = world.begin(MESSAGES, &headers, &message(true));
    assert_eq!(client.head().unwrap().status, 200);
    while client.chunk().is_some() {}
    let status = world.settled("anthropic/sonnet");
    assert_eq!(limit(&status, "input_tokens")["used"], 50, "it was stated at the start");
    let output = limit(&status, "output_tokens")["used"].as_u64().unwrap();
    assert!((1..900).contains(&output), "{output}");
}

/// B63: a client that hangs up is charged for what was produced.
#[test]
fn b63_a_client_that_hangs_up_is_charged_and_frees_its_slot() {
    let world = World::anthropic(&format!("{ROOM}parallel = 1\n"));
    let mut client =
        world.begin(MESSAGES, &["x-chunk-ms: 100", "x-used-input: 50"], &message(true));
    assert_eq!(client.head().unwrap().status, 200);
    // The text has begun.
    let mut seen = String::new();
    while !seen.contains("text_delta") {
        seen.push_str(&String::from_utf8(client.chunk().unwrap()).unwrap());
    }
    drop(client);
    let status = world.settled("anthropic/sonnet");
    assert_eq!(limit(&status, "input_tokens")["used"], 50);
    assert!(limit(&status, "output_tokens")["used"].as_u64().unwrap() >= 1, "{status}");
}

#[test]
fn a_stream_that_waits_gets_comments_then_its_answer() {
    let world = World::anthropic(ROOM);
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    let pause = json!({"pool": "anthropic/sonnet", "for_ms": 60_000});
    world.daemon.post("/v1/pause", &pause).ok(200);
    let mut client = world.begin(MESSAGES, &[], &message(true));
    let head = client.head().unwrap();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    for _ in 0..3 {
        assert_eq!(client.chunk().unwrap(), b": keepalive\n\n");
    }
    world.daemon.post("/v1/resume", &json!({"pool": "anthropic/sonnet"})).ok(200);
    let mut text = String::new();
    while let Some(chunk) = client.chunk() {
        text.push_str(&String::from_utf8(chunk).unwrap());
    }
    assert!(text.contains("message_stop"), "{text}");
}

#[test]
fn a_stream_that_is_never_admitted_ends_with_an_error_event() {
    let world = World::anthropic(&format!("{ROOM}parallel = 1\n"));
    let held = world.daemon.reserve(&json!({"pool": "anthropic/sonnet", "agent": "holder"}));
    let mut client = world.begin(MESSAGES, &["x-standpipe-wait: 2s"], &message(true));
    assert_eq!(client.head().unwrap().status, 200);
    let mut text = String::new();
    while let Some(chunk) = client.chunk() {
        text.push_str(&String::from_utf8(chunk).unwrap());
    }
    assert!(text.starts_with(": keepalive\n\n"), "{text}");
    let last = text.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.starts_with("event: error\ndata: {\"type\":\"error\""), "{text}");
    assert!(last.contains("rate_limit_error"), "{text}");
    world.daemon.settle(&lease(&held), "cancel").ok(200);
    world.settled("anthropic/sonnet");
    assert!(world.provider.log().is_empty());
}

#[test]
fn a_refusal_of_the_ledger_has_the_provider_s_format() {
    let world = World::anthropic(ROOM);
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    let pause = json!({"pool": "anthropic/sonnet", "for_ms": 60_000});
    world.daemon.post("/v1/pause", &pause).ok(200);
    let answer = world.post(MESSAGES, &["x-standpipe-wait: 0"], &message(false));
    let error = body(&answer, 429);
    assert_eq!(
        (&error["type"], &error["error"]["type"]),
        (&json!("error"), &json!("rate_limit_error"))
    );
    assert_eq!(answer.header("x-standpipe-origin"), Some("ledger"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(answer.header("x-standpipe-reason"), Some("pause"));
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() <= 70);
    assert_eq!(world.provider.log().len(), 1, "it was not forwarded");
}

#[test]
fn a_refused_call_is_tried_again_after_the_pause_and_nobody_else_starts() {
    // Two calls in flight are one too many; the pool does not know that.
    let world = World::with(Shape::Anthropic, vec![Rule::Concurrency { amount: 1 }], ROOM);
    let slow = world.begin(MESSAGES, &["x-service-ms: 2000"], &message(false));
    world.provider.wait_until(|log| !log.is_empty());
    let answer = world.post(MESSAGES, &[], &message(false));
    body(&answer, 200);
    assert_ne!(answer.header("x-standpipe-attempts"), Some("1"));
    let mut slow = slow;
    body(&slow.answer(), 200);
    let refused = world.provider.log().iter().filter(|call| call.refused_by.is_some()).count();
    assert!(refused >= 1);
    let totals = world.daemon.get("/v1/proxied").ok(200);
    assert_eq!(totals["agents"]["blog"]["refused"], refused);
    world.settled("anthropic/sonnet");
}

#[test]
fn a_waiting_client_that_hangs_up_leaves_no_ticket() {
    let world = World::anthropic(ROOM);
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    let pause = json!({"pool": "anthropic/sonnet", "for_ms": 60_000});
    world.daemon.post("/v1/pause", &pause).ok(200);
    for stream in [false, true] {
        let client = world.begin(MESSAGES, &["x-standpipe-wait: 10min"], &message(stream));
        until("it waits", || (world.home.status("anthropic/sonnet")["waiting"] == 1).then_some(()));
        drop(client);
        world.settled("anthropic/sonnet");
    }
    assert_eq!(world.provider.log().len(), 1);
}

#[test]
fn an_upstream_that_cannot_be_reached_takes_nothing() {
    let world = World::anthropic("[pool.\"nowhere/api\"]\nrequests = \"10/h\"\n");
    let answer = world.post("/nowhere/anything", &["x-standpipe-wait: 0"], &json!({}));
    let problem = answer.problem(502, "upstream");
    assert!(problem["detail"].as_str().unwrap().contains("nowhere did not answer"), "{problem}");
    assert_eq!(answer.header("x-standpipe-reason"), Some("upstream"));
    let status = world.settled("nowhere/api");
    assert_eq!(limit(&status, "requests")["used"], 0, "it was never sent");
}

#[test]
fn a_failure_that_is_not_retried_keeps_its_cause() {
    let world = World::anthropic("[pool.\"nowhere/api\"]\nrequests = \"10/h\"\n");
    let mut answers = (0..3).map(|_| world.post("/as/blog/nowhere/any", &[], &json!({})));
    let is_last = |answer: &Answer| answer.header("x-standpipe-reason") == Some("retry_budget");
    let answer = answers.find(is_last).expect("the budget is three retries");
    assert_eq!(answer.status, 502);
    let totals = &world.daemon.get("/v1/proxied").ok(200)["agents"]["blog"];
    let why = totals["last_failure"].as_str().unwrap();
    assert!(why.starts_with("nowhere did not answer"), "{why}");
    let budget =
        ", not retried: not admitted on `nowhere/api`: too many of the last minute's calls";
    assert!(why.contains(budget), "{why}");
}

/// An SDK reports a 404 as a model that does not exist.
#[test]
fn a_pool_that_the_file_does_not_describe_is_an_error_of_the_configuration() {
    let world = World::anthropic(ROOM);
    let address = world.provider.address();
    let upstream = format!("[provider.anthropic]\nupstream = \"http://{address}\"\n");
    let world = world.reconfigured(&format!("{upstream}{ROOM}"));
    let haiku = json!({"model": "claude-haiku-4-5", "max_tokens": 8, "messages": []});
    let error = body(&world.post(MESSAGES, &[], &haiku), 400);
    assert_eq!(error["error"]["type"], "invalid_request_error", "{error}");
    let text = error["error"]["message"].as_str().unwrap();
    let file = world.home.path.join("config/standpipe/standpipe.toml");
    let file = format!("{}: ", file.display());
    let start = format!("{file}there is no pool `anthropic/haiku`; add [pool.");
    assert!(text.starts_with(&start), "{text}");
    let totals = &world.daemon.get("/v1/proxied").ok(200)["agents"]["blog"];
    assert_eq!(
        (&totals["failed"], &totals["last_failure"]),
        (&json!(1), &json!(text.strip_prefix(&file)))
    );
    // A file that describes no pool of a known provider leaves its pools to be learned.
    let world = world.reconfigured(&format!("{upstream}[pool.\"my/api\"]\nparallel = 1\n"));
    body(&world.post(MESSAGES, &[], &haiku), 200);
}

#[test]
fn only_configured_upstreams_and_plain_paths_are_reached() {
    let world = World::anthropic(ROOM);
    world.daemon.get("/unknown/v1/messages").problem(404, "not_found");
    world.daemon.get("/as/blog/evil.example/x").problem(404, "not_found");
    world.daemon.get("/http://evil.example/x").problem(404, "not_found");
    for odd in ["/anthropic/v1/../admin", "/anthropic//v1/messages", "/anthropic/v1%2fmessages"] {
        world.daemon.get(odd).problem(400, "invalid");
    }
    let foreign = ["origin: http://evil.example", KEY];
    let answer = world.post(MESSAGES, &foreign, &message(false));
    answer.problem(403, "forbidden");
    body(&world.post("/as/no%20body/anthropic/v1/messages", &[], &message(false)), 400);
    assert!(world.provider.log().is_empty());
}

#[test]
fn headers_of_the_connection_and_of_standpipe_stay_behind() {
    let world = World::anthropic(ROOM);
    let headers =
        ["connection: x-hop", "x-hop: 1", "x-standpipe-priority: critical", "x-agent: seen"];
    body(&world.post(MESSAGES, &headers, &message(false)), 200);
    let log = world.provider.log();
    assert_eq!(log[0].agent, "seen", "headers of the client pass");
    let events = world.daemon.get("/v1/agents").ok(200);
    assert!(events.to_string().contains("blog"), "{events}");
    body(&world.post(MESSAGES, &["x-standpipe-priority: urgent"], &message(false)), 400);
}

#[test]
fn calls_that_use_no_quota_pass_through() {
    let world = World::anthropic("");
    let answer = world.post("/anthropic/v1/messages/count_tokens", &[], &message(false));
    assert_eq!((answer.status, answer.header("x-standpipe-pool")), (200, None));
    assert_eq!(world.provider.log()[0].path, "/v1/messages/count_tokens");
    assert_eq!(world.home.library().pools().blocking().unwrap(), [], "no pool comes of it");
}

#[test]
fn secrets_and_prompts_are_written_nowhere() {
    let world = World::anthropic(ROOM);
    body(&world.post(MESSAGES, &[], &message(false)), 200);
    world.post(MESSAGES, &["x-service-ms: oops"], &message(true));
    world.post("/nowhere/x?key=planted-query", &["x-standpipe-wait: 0"], &json!({}));
    world.settled("anthropic/sonnet");
    let mut outputs = vec![
        world.daemon.get("/metrics").text().to_owned(),
        world.daemon.get("/v1/events?since=1h").text().to_owned(),
        world.daemon.get("/v1/pools").text().to_owned(),
        world.daemon.log(),
    ];
    outputs.extend(files(&world.home).into_iter().map(|(_, text)| text));
    for output in outputs {
        for secret in ["planted-secret", "planted prompt", "planted-query"] {
            assert!(!output.contains(secret), "{secret} in {output}");
        }
    }
}

/// A key that the daemon adds is a credential: only who may use the daemon may use it.
#[test]
fn a_configured_key_is_added_only_for_clients_with_the_token() {
    let home = Home::new();
    let provider = ProviderServer::start(ServerOptions::new(Shape::Anthropic, Vec::new())).unwrap();
    let secret = |name: &str, text: &str| {
        let path = home.path.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        path.display().to_string()
    };
    let (key, token) =
        (secret("key", "sk-ant-injected\n"), secret("token", "a-daemon-token-of-24-chars\n"));
    let upstream = format!(
        "open_pools = true\n[provider.anthropic]\nupstream = \"http://{}\"\nkey_file = \"{key}\"\n",
        provider.address()
    );
    let ask = |daemon: &Daemon, mut client: Client, header: &str| {
        let _up = daemon.pid();
        let body = message(false).to_string();
        let headers = ["content-type: application/json", KEY, header];
        client.start("POST", MESSAGES, &headers, body.as_bytes());
        client.answer()
    };
    let start = |config| Start { listen: Some("127.0.0.1:0"), config, ..Start::default() };
    let config = home.configure(&upstream);
    let daemon = Daemon::start(&home, start(Some(&config)));
    let refused = body(&ask(&daemon, daemon.tcp(), "x-none: 1"), 403);
    assert_eq!(refused["error"]["type"], "permission_error");
    body(&ask(&daemon, daemon.unix(), "x-none: 1"), 200);
    assert_eq!(provider.log()[0].key, "sk-ant-injected", "in place of the client's own");
    daemon.stop();
    let config = home.configure(&format!("{upstream}[server]\ntoken_file = \"{token}\"\n"));
    let daemon = Daemon::start(&home, start(Some(&config)));
    ask(&daemon, daemon.tcp(), "x-none: 1").problem(401, "unauthorized");
    ask(&daemon, daemon.tcp(), "x-standpipe-token: wrong").problem(401, "unauthorized");
    body(&ask(&daemon, daemon.tcp(), "x-standpipe-token: a-daemon-token-of-24-chars"), 200);
    assert_eq!(provider.log().len(), 2);
}

/// The variable may be set in the shell of the user and not where the daemon runs.
#[test]
fn a_key_that_the_daemon_does_not_have_is_named() {
    let home = Home::new();
    home.configure(
        "open_pools = true\n[provider.fake]\nupstream = \"http://127.0.0.1:9\"\n\
         key_env = \"STANDPIPE_TEST_NO_KEY\"\n[pool.\"fake/api\"]\nrequests = \"60/min\"\n",
    );
    let daemon = Daemon::up(&home);
    let mut client = daemon.unix();
    client.start("GET", "/fake/x", &[], b"");
    let problem = client.answer().problem(500, "no_key");
    let detail = problem["detail"].as_str().unwrap();
    let named = "$STANDPIPE_TEST_NO_KEY, which key_env of [provider.fake] names, is not set";
    assert_eq!(detail, named, "{problem}");
}
