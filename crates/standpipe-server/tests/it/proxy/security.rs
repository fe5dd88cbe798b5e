//! What must not pass the proxy: other upstreams, hidden requests, web pages, secrets.

use super::*;

/// Sends exactly these bytes and returns the statuses of the answers until the connection ends.
fn statuses(world: &World, request: &str) -> Vec<u16> {
    let mut client = world.daemon.tcp();
    // It may be closed before all of it is sent.
    let _sent =
        client.try_send(request.replace("HOST", &world.daemon.address.to_string()).as_bytes());
    let mut found = Vec::new();
    while let Some(answer) = client.answer_if_any() {
        found.push(answer.status);
        if answer.header("connection") == Some("close") || answer.status >= 400 {
            break;
        }
    }
    found
}

/// Whichever way a second request hides in the first one's body, the provider sees one at most.
#[test]
fn no_request_hides_in_another() {
    let world = World::anthropic(ROOM);
    let hidden = "GET /v1/hidden HTTP/1.1\r\nhost: x\r\n\r\n";
    let post = |path: &str, headers: &str, rest: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: HOST\r\ncontent-type: application/json\r\n\
             connection: close\r\n{headers}\r\n{rest}"
        )
    };
    let chunked = "transfer-encoding: chunked\r\n";
    let body = message(false).to_string();
    let both = format!("content-length: {}\r\n{chunked}", body.len() + hidden.len() + 12);
    let two = format!("content-length: {}\r\ncontent-length: 5\r\n", body.len());
    for path in [MESSAGES, "/anthropic/v1/messages/count_tokens", "/nowhere/x"] {
        for (headers, rest) in [
            (both.as_str(), format!("{:x}\r\n{body}\r\n0\r\n\r\n{hidden}", body.len())),
            (two.as_str(), format!("{body}{hidden}")),
            (chunked, format!("{:x}zz\r\n{body}\r\n0\r\n\r\n{hidden}", body.len())),
            (chunked, format!("fffffffffffffffff\r\n{body}\r\n0\r\n\r\n{hidden}")),
            (chunked, format!("{:x}\r\n{body}{hidden}", body.len())),
            ("transfer-encoding: chunked, identity\r\n", format!("0\r\n\r\n{hidden}")),
            ("transfer-encoding: xchunked\r\n", format!("0\r\n\r\n{hidden}")),
            ("content-length: +5\r\n", format!("12345{hidden}")),
            ("content-length: 5, 6\r\n", format!("12345{hidden}")),
            ("x: a\r\n transfer-encoding: chunked\r\n", hidden.to_owned()),
            ("x: a\ntransfer-encoding: chunked\n", format!("0\r\n\r\n{hidden}")),
            ("content-length : 5\r\n", format!("12345{hidden}")),
        ] {
            let before = world.provider.log().len();
            statuses(&world, &post(path, headers, &rest));
            let log = world.provider.log();
            assert!(log.len() <= before + 1, "{headers:?}: {log:?}");
            assert!(log.iter().all(|call| !call.path.contains("hidden")), "{headers:?}: {log:?}");
        }
    }
    world.settled("anthropic/sonnet");
}

#[test]
fn nothing_but_configured_upstreams_is_reached() {
    let other = ProviderServer::start(ServerOptions::new(Shape::Plain, Vec::new())).unwrap();
    let world = World::anthropic(ROOM);
    let evil = other.address();
    let get = |target: &str, host: &str| {
        statuses(
            &world,
            &format!("GET {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"),
        )
    };
    for target in [
        format!("http://{evil}/v1/x"),
        format!("http://{evil}/anthropic/v1/models"),
        format!("http://HOST@{evil}/anthropic/v1/models"),
        format!("//{evil}/v1/x"),
        format!("/anthropic/@{evil}/../x"),
        format!("/anthropic@{evil}/v1/x"),
        format!("/anthropic/../{evil}/x"),
        format!("/http://{evil}/x"),
        format!("/as/a/http:%2f%2f{evil}/x"),
        "/anthropic/v1/..;/..;/x".to_owned(),
        format!("/anthropic/\\{evil}/x"),
        "/anthropic/%0d%0ahost:%20evil/x".to_owned(),
        "/as/..%2f..%2f/anthropic/v1/models".to_owned(),
    ] {
        for host in ["HOST", &format!("HOST@{evil}"), &evil.to_string()] {
            let found = get(&target, host);
            assert!(found.iter().all(|status| (400..500).contains(status)), "{target}: {found:?}");
        }
    }
    let connect = format!("CONNECT {evil} HTTP/1.1\r\nhost: HOST\r\n\r\n");
    assert!(statuses(&world, &connect).iter().all(|status| *status >= 400));
    // Neither the host of a path nor that of a header changes where a call goes.
    let headers = [format!("x-forwarded-host: {evil}"), format!("forwarded: host={evil}")];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    body(&world.post(MESSAGES, &headers, &message(false)), 200);
    let path = format!("/anthropic/v1/models/@{evil}");
    assert_eq!(world.daemon.get(&path).status, 200, "it is a path like any other");
    assert!(other.log().is_empty(), "{:?}", other.log());
    assert_eq!(world.provider.log().len(), 2);
}

#[test]
fn a_web_page_cannot_use_the_proxy() {
    let world = World::anthropic(ROOM);
    let ask = |method: &str, path: &str, headers: &[&str]| {
        let mut client = world.daemon.tcp();
        client.start(method, path, headers, b"{}");
        client.answer().status
    };
    let preflight = ["origin: http://evil.example", "access-control-request-method: POST"];
    assert_eq!(ask("OPTIONS", MESSAGES, &preflight), 403);
    assert_eq!(ask("POST", MESSAGES, &["origin: null", "content-type: text/plain"]), 403);
    assert_eq!(ask("POST", MESSAGES, &["origin: http://localhost:1", "x: y"]), 403);
    assert_eq!(ask("GET", "/anthropic/v1/models", &["sec-fetch-site: cross-site"]), 403);
    assert_eq!(ask("GET", "/anthropic/v1/models", &["sec-fetch-site: same-site"]), 403);
    let upgrade = ["connection: upgrade", "upgrade: websocket", "origin: http://evil.example"];
    assert_eq!(ask("GET", "/openai/v1/realtime?model=m", &upgrade), 403);
    // A name that was pointed at this machine is not one of its own.
    let rebound = "POST /anthropic/v1/messages HTTP/1.1\r\nhost: evil.example\r\n\
                   content-length: 2\r\n\r\n{}";
    assert_eq!(statuses(&world, rebound), [403]);
    assert!(world.provider.log().is_empty());
}

/// Secrets in every place where a client can put one, and every output of the daemon, at its most
/// talkative.
#[test]
fn planted_secrets_appear_nowhere() {
    let world = World::anthropic(ROOM);
    let config = world.config();
    world.daemon.signal(rustix::process::Signal::TERM);
    let World { home, daemon, provider } = world;
    daemon.ended();
    let start = Start {
        listen: Some("127.0.0.1:0"),
        config: Some(&config),
        level: Some("trace"),
        ..Start::default()
    };
    let world = World { daemon: Daemon::start(&home, start), home, provider };
    let path = format!("{MESSAGES}?key=planted-query");
    let headers = [
        "authorization: Bearer sk-planted-bearer",
        "x-goog-api-key: planted-google",
        "cookie: session=planted-cookie",
        "x-claude-code-session-id: 3f2a",
    ];
    let planted = json!({
        "model": "claude-sonnet-4-5", "max_tokens": 9, "system": "planted system",
        "messages": [{"role": "user", "content": "planted prompt"}],
        "metadata": {"user_id": "planted-user"}, "tools": [{"name": "planted_tool"}],
    });
    body(&world.post(&path, &headers, &planted), 200);
    for fault in ["x-refuse-once: 1 a", "x-head-bytes: 1000000", "x-truncate: 9"] {
        let mut all = headers.to_vec();
        all.extend([fault, "x-standpipe-wait: 5s", "connection: close"]);
        world.begin(&path, &all, &planted).is_closed();
    }
    world.post("/nowhere/planted-path?x=planted-query", &["x-standpipe-wait: 0"], &planted);
    world.settled("anthropic/sonnet");
    let views = ["/metrics", "/v1/events?since=1h", "/v1/pools", "/v1/agents", "/v1/proxied", "/"];
    let mut outputs: Vec<String> =
        views.iter().map(|view| world.daemon.get(view).text().to_owned()).collect();
    outputs.push(world.daemon.log());
    outputs.extend(files(&world.home).into_iter().map(|(_, text)| text));
    assert!(world.daemon.log().contains("answered"), "the log is at its most talkative");
    for output in outputs {
        assert!(!output.contains("planted"), "{output}");
    }
}

/// AWS would answer that the signature does not match; nothing is sent there.
#[test]
fn a_call_with_an_aws_signature_is_rejected_with_the_reason() {
    let world = World::anthropic(
        "[provider.bedrock]\nupstream = \"https://bedrock-runtime.us-east-1.amazonaws.com\"\n",
    );
    let signed = "authorization: AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host";
    let body = json!({"messages": []}).to_string();
    let headers = ["content-type: application/json", signed];
    let path = "/as/blog/bedrock/model/m/converse";
    let answer = world.daemon.ask("POST", path, &headers, body.as_bytes());
    let error = super::body(&answer, 400);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("AWS signature") && message.contains("API key"), "{message}");
    assert_eq!(answer.header("x-standpipe-origin"), Some("ledger"));
}

/// Any provider would answer so; only an emulator, or a proxy that signs again, takes it.
#[test]
fn a_signature_is_rejected_for_every_provider_and_forwarded_over_plain_http() {
    let world = World::anthropic(&format!(
        "{ROOM}[provider.claude]\nupstream = \"https://claude.example\"\n"
    ));
    let signed = "authorization: AWS4-HMAC-SHA256 Credential=AKIA/x, SignedHeaders=host";
    let answer = world.post("/as/blog/claude/v1/messages", &[signed], &message(false));
    let error = super::body(&answer, 400);
    let said = error["error"]["message"].as_str().unwrap();
    assert!(said.contains("AWS signature") && said.contains("an API key of claude"), "{said}");
    super::body(&world.post(MESSAGES, &[signed], &message(false)), 200);
    assert_eq!(world.provider.log().len(), 1);
}
