//! Nothing is left behind by a test process that is killed and can clean up nothing itself.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use standpipe_servers::{Namespace, Options, Server};

const WITHIN: &str = "STANDPIPE_SERVERS_ORPHANS";

fn gone(what: &str, is_gone: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_gone() {
        assert!(began.elapsed() < Duration::from_secs(10), "{what} is still there");
        std::thread::yield_now();
    }
}

/// The process that is killed: this same test, run by itself.
#[expect(clippy::print_stderr, reason = "how it tells its parent")]
fn victim() {
    let namespace = Namespace::new();
    let server = Server::start();
    let options = Options { namespace: Some(namespace.name()), ..Options::default() };
    let inside = Server::start_with(options);
    let (one, two) = (server.process_id(), inside.process_id());
    eprintln!("ready {one} {two} {} {}", namespace.name(), server.directory().display());
    loop {
        std::thread::park();
    }
}

#[test]
fn servers_and_networks_end_with_a_process_that_is_killed() {
    if std::env::var_os(WITHIN).is_some() {
        victim();
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--nocapture",
            "--exact",
            "orphans::servers_and_networks_end_with_a_process_that_is_killed",
        ])
        .env(WITHIN, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap()).lines();
    let ready = said.map_while(Result::ok).find(|line| line.starts_with("ready ")).unwrap();
    let words: Vec<&str> = ready.split(' ').collect();
    let servers = [words[1], words[2]].map(|id| PathBuf::from("/proc").join(id));
    let network = PathBuf::from("/run/netns").join(words[3]);
    let directory = PathBuf::from(words[4]);
    assert!(directory.exists());
    assert!(servers.iter().all(|server| server.exists()) && network.exists());
    child.kill().unwrap();
    child.wait().unwrap();
    for server in &servers {
        gone("a server", || !server.exists());
    }
    gone("a directory", || !directory.exists());
    gone("a network", || !network.exists());
}
