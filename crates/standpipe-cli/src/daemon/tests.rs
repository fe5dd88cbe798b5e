//! The client against sockets that send fixed replies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use serde_json::json;

use super::*;

/// Reads a request with its body, sends the reply, and returns the request.
fn serve<S: Read + Write>(mut stream: S, answer: &str) -> String {
    let mut asked = String::new();
    let mut length = 0;
    let mut reads = BufReader::new(&mut stream);
    loop {
        let mut line = String::new();
        reads.read_line(&mut line).unwrap();
        if let Some(stated) = line.strip_prefix("content-length: ") {
            length = stated.trim().parse().unwrap();
        }
        asked += &line;
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reads.read_exact(&mut body).unwrap();
    asked += &String::from_utf8(body).unwrap();
    stream.write_all(answer.as_bytes()).unwrap();
    asked
}

fn once(answer: &'static str) -> (DaemonClient, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let served = std::thread::spawn(move || serve(listener.accept().unwrap().0, answer));
    (DaemonClient::new(address, Some(Token("secret".to_owned()))), served)
}

#[test]
fn a_request_is_sent_whole_and_its_reply_returned() {
    let (daemon, served) = once("HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{\"a\":1}");
    let body = json!({ "pool": "a/b", "for_ms": 1 });
    assert_eq!(daemon.post("/v1/pause", &body).unwrap(), json!({ "a": 1 }));
    let asked = served.join().unwrap();
    assert!(asked.starts_with("POST /v1/pause HTTP/1.1\r\nhost: 127.0.0.1:"), "{asked}");
    for line in ["authorization: Bearer secret\r\n", "content-type: application/json\r\n"] {
        assert!(asked.contains(line), "{asked}");
    }
    assert!(asked.ends_with("\r\n\r\n{\"pool\":\"a/b\",\"for_ms\":1}"), "{asked}");
    assert!(!format!("{daemon:?}").contains("secret"));
}

#[test]
fn a_unix_socket_works_too() {
    let name = format!("standpipe-client-{}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _left_behind = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let served = std::thread::spawn(move || serve(listener.accept().unwrap().0, answer));
    let daemon = DaemonClient::new(Address::Unix(path.clone()), None);
    assert_eq!(daemon.delete("/v1/leases/x").unwrap(), json!({}));
    let asked = served.join().unwrap();
    assert!(asked.starts_with("DELETE /v1/leases/x HTTP/1.1\r\nhost: localhost\r\n"), "{asked}");
    std::fs::remove_file(&path).unwrap();
    let error = daemon.get("/v1/pools").unwrap_err();
    assert!(error.contains("does not answer") && error.contains("standpipe-client"), "{error}");
}

#[test]
fn a_daemon_that_never_answers_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let timeout = Duration::from_millis(30);
    let daemon = DaemonClient { address, token: None, timeout };
    let error = daemon.get("/v1/pools").unwrap_err();
    assert!(error.contains("does not answer"), "{error}");
    drop(listener);
    let error = daemon.get("/v1/pools").unwrap_err();
    assert!(error.contains("does not answer (Connection refused"), "{error}");
}

#[test]
fn text_of_the_daemon_is_escaped_on_one_line() {
    let (daemon, served) =
        once("HTTP/1.1 410 Gone\r\n\r\n{\"detail\":\"a\\u001b[31m\\nb\",\"hint\":\"c\"}");
    assert_eq!(daemon.get("/x").unwrap_err(), r"a\u{1b}[31m\nb; c");
    served.join().unwrap();
}

#[test]
fn a_token_is_one_visible_word() {
    let name = format!("standpipe-token-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    for (text, good) in [("abc-123\n", true), ("", false), ("a b", false), ("a\r\nx: y", false)] {
        std::fs::write(&path, text).unwrap();
        let read = read_token(&path);
        assert_eq!(read.is_ok(), good, "{text:?}");
    }
    std::fs::write(&path, "x".repeat(5_000)).unwrap();
    assert!(read_token(&path).is_err());
    std::fs::remove_file(&path).unwrap();
    let missing = read_token(&path).unwrap_err();
    assert!(missing.joined().contains("cannot be read"), "{missing:?}");
}

/// What a client makes of a raw reply: the outcome of one request, whose connection then closes.
fn reply_to(raw: String, at_once: usize) -> Result<serde_json::Value, String> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let served = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4_096];
        let _read = stream.read(&mut request).unwrap();
        for piece in raw.as_bytes().chunks(at_once) {
            // A client that has seen enough closes the connection.
            if stream.write_all(piece).is_err() {
                break;
            }
        }
    });
    let outcome = DaemonClient::new(address, None).get("/x");
    served.join().unwrap();
    outcome
}

#[track_caller]
fn is(raw: &str, body: &serde_json::Value) {
    for at_once in [1, 7, 100_000] {
        assert_eq!(reply_to(raw.to_owned(), at_once).as_ref(), Ok(body), "{raw}");
    }
}

#[track_caller]
fn is_not(raw: &str, why: &str) {
    for at_once in [7, 100_000] {
        let error = reply_to(raw.to_owned(), at_once).unwrap_err();
        assert!(error.contains(why), "{error}: {raw:.100}");
    }
}

#[test]
fn bodies_of_every_framing_are_read() {
    is("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}left over", &json!({}));
    is("HTTP/1.0 200 OK\r\n\r\n[\"to the end\"]", &json!(["to the end"]));
    is("HTTP/1.1 204 No Content\r\n\r\n", &json!(null));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n";
    is(
        &format!("{chunked}2\r\n[1\r\nA;x=y\r\n,2,3,4,5,6\r\n1\r\n]\r\n0\r\n\r\n"),
        &json!([1, 2, 3, 4, 5, 6]),
    );
    is(&format!("{chunked}0\r\n\r\n"), &json!(null));
    is("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\ncontent-length: 2\n\n[]", &json!([]));
}

#[test]
fn invalid_replies_are_reported() {
    let incomplete = "the reply is incomplete";
    let invalid = "the reply is not HTTP";
    is_not("", incomplete);
    is_not("SSH-2.0-OpenSSH_9.2\r\n", invalid);
    is_not("HTTP/2 200\r\n\r\n", invalid);
    is_not("HTTP/1.1 2000 OK\r\n\r\n", invalid);
    is_not("HTTP/1.1 200 OK\r\nodd\r\n\r\n", invalid);
    is_not("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc", incomplete);
    is_not("HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nabcde", invalid);
    is_not("HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab", invalid);
    is_not("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", "body is too long");
    is_not("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n\u{1f}", "not JSON");
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    is_not(&format!("{chunked}-1\r\n"), "Invalid chunk size line");
    is_not(&format!("{chunked}2\r\nabc\r\n0\r\n\r\n"), "Invalid chunk body CR");
    is_not(&format!("{chunked}2\r\nab\r\n"), incomplete);
    let long = "y".repeat(1 << 20);
    is_not(&format!("HTTP/1.1 200 OK\r\nx: {long}\r\n\r\n"), "head is too long");
    is_not(&format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(200_000)), "head is too long");
}

#[test]
fn a_body_without_end_is_cut_off() {
    let body = "x".repeat(33 << 20);
    let error = reply_to(format!("HTTP/1.1 200 OK\r\n\r\n{body}"), 1 << 20).unwrap_err();
    assert!(error.contains("body is too long"), "{error}");
}
