//! Slow, broken and hostile clients: they are refused or dropped, and no other client is affected.

use serde_json::json;

use crate::support::{Answer, Client, Daemon, Home, lease, until};

const JSON: &str = "content-type: application/json";

/// What comes of exactly these bytes: an answer, or a closed connection.
fn say(daemon: &Daemon, bytes: &[u8]) -> Option<Answer> {
    let mut client = daemon.tcp();
    // It may be closed before all is said.
    let _closed = client.try_send(bytes);
    client.answer_if_any()
}

fn lives(daemon: &Daemon) {
    daemon.get("/healthz").ok(200);
    let ask = json!({"pool": "my/api", "limits": {"requests": "100000/h"}, "timeout_ms": 0});
    let id = lease(&daemon.reserve(&ask));
    daemon.settle(&id, "cancel").ok(200);
}

#[test]
fn bodies_that_are_too_large_are_refused_however_they_come() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let large = vec![b' '; 256 * 1024 + 1];
    daemon.ask("POST", "/v1/leases", &[JSON], &large).problem(413, "too_large");
    let head = "POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let declared = format!("{head}content-length: 99999999999\r\n\r\n");
    say(&daemon, declared.as_bytes()).unwrap().problem(413, "too_large");
    let mut client = daemon.tcp();
    client.send(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes());
    for _ in 0..5 {
        let piece =
            [format!("{:x}\r\n", 64 * 1024).into_bytes(), vec![b' '; 64 * 1024], b"\r\n".to_vec()];
        // Refused before all is said, it may be closed.
        if client.try_send(&piece.concat()).is_err() {
            break;
        }
    }
    client.answer().problem(413, "too_large");
    let mut fits = json!({"pool": "my/api", "limits": {"parallel": 1}}).to_string();
    fits.push_str(&" ".repeat(256 * 1024 - fits.len()));
    daemon.ask("POST", "/v1/leases", &[JSON], fits.as_bytes()).ok(201);
}

#[test]
fn broken_bodies_are_rejected() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let head = "POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    for chunks in
        ["zz\r\n{}\r\n0\r\n\r\n", "2\r\n{}xx0\r\n\r\n", "ffffffffffffffffff\r\n", "-1\r\n{}\r\n"]
    {
        let bytes = format!("{head}transfer-encoding: chunked\r\n\r\n{chunks}");
        if let Some(answer) = say(&daemon, bytes.as_bytes()) {
            answer.problem(400, "invalid");
        }
    }
    // A body that is cut short changes nothing.
    let mut client = daemon.tcp();
    client.send(format!("{head}content-length: 500\r\n\r\n{{\"pool\":\"my/api\"").as_bytes());
    drop(client);
    let pieces = json!({"pool": "my/api", "limits": {"parallel": 9}}).to_string();
    let (one, two) = pieces.split_at(7);
    let chunked = format!(
        "{head}transfer-encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    say(&daemon, chunked.as_bytes()).unwrap().ok(201);
    lives(&daemon);
}

#[test]
fn requests_that_are_none_are_refused_and_the_daemon_lives() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let long = "x".repeat(1 << 20);
    let many: String = (0..150).map(|number| format!("x-{number}: y\r\n")).collect();
    let lines = [
        "nonsense\r\n\r\n".to_owned(),
        "GET\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\u{0}\u{5}".to_owned() + "hello\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost localhost\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n : x\r\n\r\n".to_owned(),
        format!("GET /{long} HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {long}\r\n\r\n"),
        format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\n{many}\r\n"),
        "POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\
         content-length: 6\r\n\r\nhello!"
            .to_owned(),
        "POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ncontent-length: -5\r\n\r\n".to_owned(),
        "POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: gzip\r\n\r\n".to_owned(),
        "CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_owned(),
        "GET http://evil.example/v1/pools HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_owned(),
        "GET http://evil.example/v1/pools HTTP/1.1\r\n\r\n".to_owned(),
        "GET /v1/pools HTTP/1.0\r\n\r\n".to_owned(),
    ];
    for line in &lines {
        if let Some(answer) = say(&daemon, line.as_bytes()) {
            let shown: String = line.chars().take(80).collect();
            assert!((400..500).contains(&answer.status), "{shown:?}: {answer:?}");
        }
    }
    for bytes in [
        &b"GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\n\r\n"[..],
        b"GET /v1/pools?pool=\xff HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: \xff\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\norigin: \xff\r\n\r\n",
        b"GET /v1/pools HTTP/1.1\r\nhost: localhost\r\nx-standpipe-agent: \x00\r\n\r\n",
    ] {
        if let Some(answer) = say(&daemon, bytes) {
            assert!((400..500).contains(&answer.status), "{bytes:?}: {answer:?}");
        }
    }
    lives(&daemon);
}

#[test]
fn odd_but_lawful_requests_are_answered() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let old = say(&daemon, b"GET /healthz HTTP/1.0\r\nhost: localhost\r\n\r\n").unwrap();
    old.ok(200);
    let absolute = b"GET http://localhost/healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    say(&daemon, absolute).unwrap().ok(200);
    let odd = b"get /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    assert_eq!(say(&daemon, odd).unwrap().status, 405, "methods are case-sensitive");
    // Several requests at once are answered one after the other, in order.
    let mut client = daemon.tcp();
    let one = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let two = "GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    client.send(format!("{one}{two}{one}").as_bytes());
    for status in ["ok", "ready", "ok"] {
        assert_eq!(client.answer().ok(200)["status"], status);
    }
    let expects = "POST /v1/leases HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n\
                   content-type: application/json\r\ncontent-length: 2\r\n\r\n";
    client.send(expects.as_bytes());
    assert_eq!(client.head().unwrap().status, 100);
    client.send(b"{}");
    client.answer().problem(400, "invalid");
}

#[test]
fn incomplete_requests_block_no_other_client() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let starts: [&[u8]; 4] = [
        b"",
        b"GET /v1/po",
        b"POST /v1/leases HTTP/1.1\r\nhost: localhost\r\n",
        b"POST /v1/leases HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
          content-length: 100\r\n\r\n{",
    ];
    let mut silent: Vec<Client> = Vec::new();
    for turn in 0..200 {
        let mut client = daemon.tcp();
        client.send(starts[turn % starts.len()]);
        silent.push(client);
    }
    lives(&daemon);
    let connections = || {
        let text = daemon.get("/metrics").text().to_owned();
        let line = text.lines().find(|line| line.starts_with("standpipe_http_connections "));
        line.unwrap().rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    until("all are counted", || (connections() >= 200).then_some(()));
    silent.clear();
    until("and none is left", || (connections() == 1).then_some(()));
}

#[test]
fn clients_that_do_not_read_block_no_other_client() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    // A pool whose picture is large: many leases by many agents.
    let mut client = daemon.unix();
    for number in 0..600 {
        let limits = json!({"requests": "1000000/h"});
        let ask = json!({"pool": "my/api", "agent": format!("agent-{number}"), "limits": limits,
                         "model": "m".repeat(60), "task": "t".repeat(60)});
        client.post("/v1/leases", &ask).ok(201);
    }
    // They ask for megabytes, and for streams, and read nothing of it.
    let mut deaf: Vec<Client> = Vec::new();
    for turn in 0..40 {
        let mut client = daemon.tcp();
        match turn % 2 {
            0 => (0..10).for_each(|_| client.start("GET", "/v1/pools", &[], b"")),
            _ => client.start("GET", "/v1/pools", &["accept: text/event-stream"], b""),
        }
        deaf.push(client);
    }
    for _ in 0..5 {
        lives(&daemon);
    }
    let mut stream = daemon.stream("/v1/pools", &[]);
    for _ in 0..3 {
        stream.expect("pools");
    }
    assert!(daemon.memory() < 200 * 1024, "{} KiB", daemon.memory());
}
