//! Access: foreign pages and host names, tokens, permissions of files, secrets in views and logs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use crate::support::{Daemon, Home, Start, files, lease};

const JSON: &str = "content-type: application/json";
const TOKEN: &str = "swordfish-0123456789abcdef";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// A request with exactly these headers.
fn raw(daemon: &Daemon, line: &str, headers: &[String]) -> crate::support::Answer {
    let mut client = daemon.tcp();
    client.send(format!("{line}\r\n{}\r\n\r\n", headers.join("\r\n")).as_bytes());
    client.answer()
}

#[test]
fn foreign_names_are_not_answered_to() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let port = daemon.address.port();
    for path in ["/v1/pools", "/", "/healthz", "/metrics", "/openapi.json", "/nothing"] {
        let line = format!("GET {path} HTTP/1.1");
        for foreign in ["evil.example", "127.0.0.1.evil.example", "192.0.2.1", "", "localhost.evil"]
        {
            let header = format!("host: {foreign}:{port}");
            raw(&daemon, &line, &[header]).problem(403, "forbidden");
        }
        let unnamed = raw(&daemon, &line, &["accept: */*".to_owned()]);
        unnamed.problem(403, "forbidden");
    }
    for own in ["localhost", "127.0.0.1", "[::1]", "LocalHost", "localhost."] {
        for port in ["", ":80", ":8377"] {
            raw(&daemon, "GET /healthz HTTP/1.1", &[format!("host: {own}{port}")]).ok(200);
        }
    }
    let mut client = daemon.unix();
    client.send(b"GET /healthz HTTP/1.1\r\nhost: whatever\r\n\r\n");
    client.answer().ok(200);
}

#[test]
fn foreign_pages_are_not_answered() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let body = json!({"pool": "my/slots", "limits": {"parallel": 1}}).to_string();
    let own = format!("origin: http://{}", daemon.address);
    for foreign in [
        "origin: http://evil.example",
        "origin: null",
        "origin: https://127.0.0.1:1",
        "origin: http://localhost",
        "origin: file://",
        "origin:",
        "sec-fetch-site: cross-site",
        "sec-fetch-site: same-site",
    ] {
        for (method, path, body) in
            [("POST", "/v1/leases", body.as_str()), ("GET", "/v1/pools", "")]
        {
            let answer = daemon.ask(method, path, &[JSON, foreign], body.as_bytes());
            answer.problem(403, "forbidden");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let mut unix = daemon.unix();
    unix.start("GET", "/v1/pools", &["origin: http://evil.example"], b"");
    unix.answer().problem(403, "forbidden");
    let both = [own.as_str(), "sec-fetch-site: cross-site"];
    daemon.ask("GET", "/v1/pools", &both, b"").problem(403, "forbidden");
    assert_eq!(daemon.get("/v1/pools").ok(200)["pools"], json!([]), "nothing was done");
    let page = [JSON, own.as_str(), "sec-fetch-site: same-origin"];
    daemon.ask("POST", "/v1/leases", &page, body.as_bytes()).ok(201);
}

fn with_token(home: &Home, token: &str) {
    let file = home.path.join("token");
    std::fs::write(&file, format!("{token}\n")).unwrap();
    home.configure(&format!("open_pools = true\n[server]\ntoken_file = \"{}\"\n", file.display()));
}

/// All that can be asked, with as much of a body as it needs.
fn everything(lease: &str) -> Vec<(&'static str, String, String)> {
    let lease = |how: &str| format!("/v1/leases/{lease}{how}");
    let post = |path: &str, body: serde_json::Value| ("POST", path.to_owned(), body.to_string());
    let get = |path: &str| ("GET", path.to_owned(), String::new());
    vec![
        post("/v1/leases", json!({"pool": "my/slots", "limits": {"parallel": 50}})),
        post(&lease("/heartbeat"), json!({})),
        post(&lease("/commit"), json!({"used": {"requests": 1}})),
        post(&lease("/cancel"), json!({})),
        ("DELETE", lease(""), String::new()),
        post("/v1/throttle", json!({"pool": "my/slots", "retry_after_ms": 1})),
        post("/v1/observe", json!({"pool": "my/slots", "headers": {"x-ratelimit-limit": "60"}})),
        post("/v1/pause", json!({"pool": "my/slots", "for_ms": 1})),
        post("/v1/resume", json!({"pool": "my/slots"})),
        get("/v1/pools"),
        get("/v1/agents"),
        get("/v1/history"),
        get("/v1/explain?pool=my/slots"),
        get("/v1/events"),
        get("/metrics"),
        get("/openapi.json"),
        get("/nothing"),
    ]
}

#[test]
fn with_a_token_only_who_shows_it_is_answered_and_nothing_shows_it() {
    let home = Home::new();
    with_token(&home, TOKEN);
    let start = Start { listen: Some("0.0.0.0:0"), ..Start::default() };
    let daemon = Daemon::start(&home, start);
    assert_eq!(daemon.said["token"], true);
    let daemon_at = std::net::SocketAddr::from(([127, 0, 0, 1], daemon.address.port()));
    let ask = |method: &str, path: &str, headers: &[&str], body: &str| {
        let mut client = crate::support::Client::tcp(daemon_at);
        client.start(method, path, headers, body.as_bytes());
        client.answer()
    };
    let right = format!("authorization: Bearer {TOKEN}");
    let body = json!({"pool": "my/slots", "limits": {"parallel": 50}}).to_string();
    let id = lease(&ask("POST", "/v1/leases", &[JSON, &right], &body));
    let mut said = String::new();
    let basic = format!("authorization: Basic {TOKEN}");
    let longer = format!("authorization: Bearer {TOKEN}0");
    let query = format!("x-token: {TOKEN}");
    for (method, path, body) in everything(&id) {
        for wrong in [
            "accept: */*",
            "authorization: Bearer",
            &basic,
            &longer,
            &query,
            "authorization: Bearer swordfish-0123456789abcdeX",
        ] {
            let answer = ask(method, &path, &[JSON, wrong], &body);
            answer.problem(401, "unauthorized");
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
            said.push_str(&format!("{answer:?}"));
        }
    }
    for (method, path, body) in everything(&id) {
        let answer = ask(method, &path, &[JSON, &right], &body);
        assert!(![401, 403].contains(&answer.status), "{path}: {answer:?}");
        said.push_str(&format!("{answer:?}"));
        let wrong = ask(method, &path, &[JSON, &right], &format!("{{\"{TOKEN}\":"));
        assert!(wrong.status < 500, "{wrong:?}");
        let mut unix = daemon.unix();
        unix.start(method, &path, &[JSON], body.as_bytes());
        assert_ne!(unix.answer().status, 401, "the socket needs none: {path}");
    }
    for open in ["/", "/ui/app.js", "/healthz", "/readyz"] {
        let answer = ask("GET", open, &[], "");
        assert_eq!(answer.status, 200, "{open}");
        said.push_str(&String::from_utf8_lossy(&answer.body));
    }
    let host = [right.as_str(), "accept: */*"];
    assert_eq!(ask("GET", "/v1/pools", &host, "").status, 200);
    daemon.signal(rustix::process::Signal::HUP);
    daemon.until_said("configuration reloaded");
    daemon.signal(rustix::process::Signal::TERM);
    daemon.until_said("stopping");
    said.push_str(&daemon.log());
    assert!(daemon.ended().success());
    assert!(!said.contains("swordfish"), "the token was shown: {said}");
    for (path, text) in files(&home) {
        assert!(!text.contains("swordfish"), "the token is in {}", path.display());
    }
}

#[test]
fn keys_of_providers_that_come_with_an_answer_are_not_kept() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let key = "sk-ant-api03-verysecretverysecretverysecret";
    let limits = json!({"requests": "60/min"});
    let ask = json!({"pool": "anthropic/x", "limits": limits, "timeout_ms": 0});
    let headers = json!({
        "authorization": format!("Bearer {key}"), "x-api-key": key, "set-cookie": key,
        "anthropic-ratelimit-requests-limit": "50", "retry-after": "12"
    });
    for status in [200, 429] {
        let answer = daemon.reserve(&ask);
        if answer.status == 201 {
            let path = format!("/v1/leases/{}/commit", lease(&answer));
            daemon.post(&path, &json!({"status": status, "headers": headers})).ok(200);
        }
    }
    daemon.post("/v1/observe", &json!({"pool": "anthropic/x", "headers": headers})).ok(200);
    let throttle = json!({"pool": "anthropic/x", "status": 429, "headers": headers});
    daemon.post("/v1/throttle", &throttle).ok(200);
    for path in ["/v1/pools", "/v1/events?since=1h", "/metrics", "/v1/agents", "/v1/history"] {
        let said = daemon.get(path);
        assert!(!said.text().contains("verysecret"), "{path}: {said:?}");
    }
    assert!(!daemon.log().contains("verysecret"));
    assert!(daemon.stop().success());
    for (path, text) in files(&home) {
        assert!(!text.contains("verysecret"), "the key is in {}", path.display());
    }
}

#[test]
fn what_the_daemon_makes_is_private() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let state = home.path.join("state");
    assert_eq!(mode(&state), 0o700);
    assert_eq!(mode(&daemon.socket), 0o600);
    for file in ["daemon.pid", "daemon.json"] {
        assert_eq!(mode(&state.join(file)), 0o600, "{file}");
    }
}

#[test]
fn in_a_directory_of_a_group_its_members_may_use_the_socket() {
    let home = Home::new();
    let state = home.path.join("state");
    std::fs::create_dir(&state).unwrap();
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o2770)).unwrap();
    let daemon = Daemon::up(&home);
    assert_eq!(mode(&daemon.socket), 0o660);
    daemon.unix().get("/healthz").ok(200);
}

#[test]
fn requests_are_logged_without_secrets_headers_and_bodies() {
    let home = Home::new();
    let listen = Some("127.0.0.1:0");
    let daemon = Daemon::start(&home, Start { listen, level: Some("trace"), ..Start::default() });
    let key = "sk-ant-verysecret";
    let body = json!({"pool": "my/api", "agent": "blog", "limits": {"requests": "60/min"},
                      "model": "verysecret", "task": "verysecret", "id": "verysecret"});
    let secret = format!("authorization: Bearer {key}");
    let answer =
        daemon.ask("POST", "/v1/leases", &[JSON, &secret, &secret], body.to_string().as_bytes());
    let commit = json!({"status": 200, "headers": {"x-api-key": key}, "body": key});
    let id = lease(&answer);
    daemon.post(&format!("/v1/leases/{id}/commit"), &commit).ok(200);
    daemon.get("/verysecret?key=verysecret").problem(404, "not_found");
    daemon.post("/v1/pause", &json!({"pool": "my/api", "for_ms": 1_000})).ok(200);
    daemon.until_said("paused by hand");
    let lines: Vec<serde_json::Value> =
        daemon.log().lines().filter_map(|line| line.parse().ok()).collect();
    let answered: Vec<_> = lines.iter().filter(|line| line["message"] == "answered").collect();
    let of = |path: &str| *answered.iter().find(|line| line["path"] == path).unwrap();
    let reserved = of("/v1/leases");
    assert_eq!((&reserved["method"], &reserved["status"]), (&json!("POST"), &json!(201)));
    assert_eq!((&reserved["pool"], &reserved["agent"]), (&json!("my/api"), &json!("blog")));
    assert_eq!(of("/v1/leases/{id}/commit")["status"], 200);
    assert_eq!(of("other")["status"], 404);
    let log = daemon.log();
    assert!(!log.contains("verysecret") && !log.contains(&id), "{log}");
}
