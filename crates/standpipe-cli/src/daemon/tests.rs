//! The client against sockets that answer as they are told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::thread::JoinHandle;

use serde_json::json;

use super::*;

/// Reads a request with its body, gives the answer, and answers what was asked.
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

fn once(answer: &'static str) -> (Daemon, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let served = std::thread::spawn(move || serve(listener.accept().unwrap().0, answer));
    (Daemon::new(address, Some(Token("secret".to_owned()))), served)
}

#[test]
fn a_call_says_what_it_wants_and_hears_the_answer() {
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
fn a_unix_socket_is_as_good() {
    let name = format!("standpipe-client-{}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    let _left_behind = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let served = std::thread::spawn(move || serve(listener.accept().unwrap().0, answer));
    let daemon = Daemon::new(Address::Unix(path.clone()), None);
    assert_eq!(daemon.delete("/v1/leases/x").unwrap(), json!({}));
    let asked = served.join().unwrap();
    assert!(asked.starts_with("DELETE /v1/leases/x HTTP/1.1\r\nhost: localhost\r\n"), "{asked}");
    std::fs::remove_file(&path).unwrap();
    let error = daemon.get("/v1/pools").unwrap_err();
    assert!(error.contains("does not answer") && error.contains("standpipe-client"), "{error}");
}

#[test]
fn one_who_never_answers_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    let whole = Duration::from_millis(30);
    let daemon = Daemon { address, token: None, whole };
    let error = daemon.get("/v1/pools").unwrap_err();
    assert!(error.contains("does not answer"), "{error}");
    drop(listener);
    let error = daemon.get("/v1/pools").unwrap_err();
    assert!(error.contains("does not answer (Connection refused"), "{error}");
}

#[test]
fn what_others_say_stays_on_one_line_and_out_of_the_terminal() {
    let (daemon, served) =
        once("HTTP/1.1 410 Gone\r\n\r\n{\"detail\":\"a\\u001b[31m\\nb\",\"hint\":\"c\"}");
    assert_eq!(daemon.get("/x").unwrap_err(), r"a\u{1b}[31m\nb; c");
    served.join().unwrap();
}

#[test]
fn a_token_is_one_word() {
    let name = format!("standpipe-token-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    for (text, good) in [("abc-123\n", true), ("", false), ("a b", false), ("a\r\nx: y", false)] {
        std::fs::write(&path, text).unwrap();
        let read = token(&path);
        assert_eq!(read.is_ok(), good, "{text:?}");
    }
    std::fs::write(&path, "x".repeat(5_000)).unwrap();
    assert!(token(&path).is_err());
    std::fs::remove_file(&path).unwrap();
    let missing = token(&path).unwrap_err();
    assert!(missing.lines[0].contains("cannot be read"), "{missing:?}");
}
