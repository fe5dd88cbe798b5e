//! The provider as a program, called by other programs.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use super::client::Client;

const PROGRAM: &str = env!("CARGO_BIN_EXE_provider");

#[test]
fn it_prints_its_address_and_ends_with_its_input() {
    let mut command = Command::new(PROGRAM);
    command.args(["--requests", "1/h", "--parallel", "3", "--shape", "github", "--stdin"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let address: SocketAddr = line.trim().strip_prefix("http://").unwrap().parse().unwrap();
    let mut client = Client::new(address);
    for status in [201, 403] {
        client.call(&[("x-agent", "blog")]);
        assert_eq!(client.answer().status, status, "as GitHub answers");
    }
    client.send(b"GET /log HTTP/1.1\r\n\r\n");
    let log = client.answer().body;
    assert!(log.lines().all(|line| line.contains("\"agent\":\"blog\"")), "{log}");
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nothing but its address");
}

#[test]
fn what_it_does_not_understand_it_says() {
    for words in [&["--requests", "10"][..], &["--request", "1/s"], &["--shape", "x"], &["--port"]]
    {
        let ran = Command::new(PROGRAM).args(words).output().unwrap();
        let said = String::from_utf8(ran.stderr).unwrap();
        assert_eq!((ran.status.code(), ran.stdout.len()), (Some(2), 0), "{words:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains("usage:"), "{words:?}: {said}");
    }
}
