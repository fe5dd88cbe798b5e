//! `top` on a pseudo-terminal: it shows leases, performs actions by keys, and always restores the
//! terminal.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::Home;

/// How long anything may take before the test gives up. Nothing waits this long when all is well.
const PATIENCE: Duration = Duration::from_secs(60);

/// A shell on a terminal of 80 by 24, made by `script`, and what is on its screen.
struct Terminal {
    child: Child,
    keys: ChildStdin,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// All that came, for what a screen forgets.
    all: Vec<u8>,
}

impl Terminal {
    /// Runs a line of shell there. `$TOP` is the program, with nothing of this machine's settings.
    fn run(home: &Home, line: &str) -> Self {
        let ours = home.command([]);
        let line = format!("stty rows 24 cols 80; {line}");
        let mut script = Command::new("script");
        script.args(["-qfc", &line, "/dev/null"]).current_dir(&home.path);
        for (name, value) in ours.get_envs() {
            match value {
                Some(value) => script.env(name, value),
                None => script.env_remove(name),
            };
        }
        script.env("TERM", "xterm-256color").env("SHELL", "/bin/sh");
        script.env("TOP", ours.get_program());
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().unwrap();
        let keys = child.stdin.take().unwrap();
        let mut out = child.stdout.take().unwrap();
        let (sender, output) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4_096];
            while let Ok(count @ 1..) = out.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        let (rows, columns) = (24.try_into().unwrap(), 80.try_into().unwrap());
        let screen = vt100::Parser::new(rows, columns, 0);
        Self { child, keys, output, screen, all: Vec::new() }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Reads until all of this is on the screen at once.
    #[track_caller]
    fn shows(&mut self, texts: &[&str]) {
        let until = Instant::now() + PATIENCE;
        loop {
            let seen = self.screen.screen().contents();
            if texts.iter().all(|text| seen.contains(text)) {
                return;
            }
            match self.output.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.take(&bytes),
                Err(_) => panic!("{texts:?} never came:\n{seen}"),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.screen.process(bytes);
        self.all.extend_from_slice(bytes);
    }

    /// Reads to the end; answers all that came.
    fn end(mut self) -> String {
        let until = Instant::now() + PATIENCE;
        while let Ok(bytes) =
            self.output.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            self.take(&bytes);
        }
        drop(self.keys);
        self.child.wait().unwrap();
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen(), "the other screen is left");
        assert!(!screen.hide_cursor(), "the cursor is back");
        String::from_utf8_lossy(&self.all).into_owned()
    }
}

/// Runs `top` between two looks at the terminal's attributes, which it prints at the end.
const BETWEEN: &str = "before=$(stty -g); sh -c 'echo $$ > pid; exec \"$TOP\" top'; code=$?; \
                       test \"$before\" = \"$(stty -g)\" && echo restored, code $code";

fn pid(home: &Home) -> Pid {
    let text = std::fs::read_to_string(home.path.join("pid")).unwrap();
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

#[test]
fn a_lease_is_shown_and_settled_by_keys_and_the_terminal_restored() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let mut terminal = Terminal::run(&home, BETWEEN);
    terminal.shows(&["standpipe top", "ledger file:", "my/slots", "1 of 1", "full"]);
    terminal.press("2");
    terminal.shows(&["held for", "> holder", "pid "]);
    terminal.press("x");
    terminal.shows(&["settle the lease of holder on my/slots", "is not stopped"]);
    terminal.press("y");
    terminal.shows(&["is settled at its estimate", "no call is in flight"]);
    assert_eq!(home.status("my/slots")["in_flight"], 0);
    terminal.press("q");
    let all = terminal.end();
    assert!(all.contains("restored, code 0"), "{all:?}");
    holder.end();
}

#[test]
fn names_with_invisible_characters_are_escaped() {
    let home = Home::new();
    let odd = "a\u{202e}b\u{200b}";
    let words = ["reserve", "my/slots", "--limit", "parallel=1", "--as", "blog", "--task", odd];
    home.run(words).printed();
    let mut terminal = Terminal::run(&home, BETWEEN);
    terminal.shows(&["> my/slots"]);
    terminal.press("2");
    terminal.shows(&[r"a\u{202e}b\u{200b}"]);
    terminal.press("q");
    let all = terminal.end();
    assert!(!all.contains(['\u{202e}', '\u{200b}']), "{all:?}");
}

#[test]
fn a_pool_is_paused_and_resumed_by_keys() {
    let home = Home::new();
    home.hold_the_slot().end();
    let mut terminal = Terminal::run(&home, BETWEEN);
    terminal.shows(&["> my/slots"]);
    terminal.press("p\x157min\r");
    terminal.shows(&["`my/slots` admits no calls for 7 min", "paused"]);
    assert!(home.status("my/slots")["pause"]["for_ms"].as_u64().unwrap() > 60_000);
    terminal.press("r");
    terminal.shows(&["`my/slots` admits calls again"]);
    assert!(home.status("my/slots")["pause"].is_null());
    terminal.press("?");
    terminal.shows(&["freeze the view"]);
    terminal.press("\x03");
    assert!(terminal.end().contains("restored, code 0"));
}

#[test]
fn signals_end_it_and_the_terminal_is_as_before() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let home = Home::new();
        let mut terminal = Terminal::run(&home, BETWEEN);
        terminal.shows(&["standpipe top", "No pools yet"]);
        kill_process(pid(&home), signal).unwrap();
        let all = terminal.end();
        assert!(all.contains(&format!("restored, code {code}")), "{signal:?}: {all:?}");
    }
}

#[test]
fn a_panic_restores_the_terminal_before_its_message() {
    for (at, code) in [("draw", 101), ("watch", 70)] {
        let home = Home::new();
        let line = format!("export STANDPIPE_TEST_PANIC={at}; {BETWEEN}");
        let all = Terminal::run(&home, &line).end();
        assert!(all.contains(&format!("restored, code {code}")), "{at}: {all:?}");
        let (_, after) = all.rsplit_once("\x1b[?1049l").unwrap();
        assert!(after.contains(&format!("panicked at {at}")), "{at}: {all:?}");
    }
}

#[test]
fn it_stops_and_continues_in_a_shell() {
    let home = Home::new();
    let line = "set -m; before=$(stty -g); \"$TOP\" top; \
                test \"$before\" = \"$(stty -g)\" && echo meanwhile; read -r go; fg > /dev/null; \
                test \"$before\" = \"$(stty -g)\" && echo restored";
    let mut terminal = Terminal::run(&home, line);
    terminal.shows(&["No pools yet"]);
    terminal.press("\x1a");
    terminal.shows(&["meanwhile"]);
    assert!(!terminal.screen.screen().alternate_screen());
    terminal.press("go\n");
    terminal.shows(&["standpipe top", "No pools yet"]);
    terminal.press("q");
    assert!(terminal.end().contains("restored"));
}

#[test]
fn without_a_terminal_it_points_to_status() {
    let home = Home::new();
    home.run(["top"]).failed(2, &["needs a terminal", "standpipe status"]);
    home.run(["top", "--interval", "1ms"]).failed(2, &["200ms"]);
    home.run(["top", "--daemon", "http://example.org"]).failed(2, &["ssh -NL"]);
}

/// Looking adds nothing to what a pool's ledger has seen.
#[test]
fn watching_changes_nothing() {
    let home = Home::new();
    let reserve = ["reserve", "my/api", "--limit", "requests=9/min", "--ttl", "1h"];
    assert_eq!(home.run(reserve).code, Some(0));
    let before = home.status("my/api")["position"].clone();
    let mut terminal = Terminal::run(&home, "\"$TOP\" top --interval 200ms");
    terminal.shows(&["my/api", "1 in flight"]);
    terminal.press("2345/x");
    terminal.shows(&["filter: x"]);
    // An escape and a key at once would be another key.
    terminal.press("\x1b");
    terminal.shows(&["q quit"]);
    terminal.press(" s");
    terminal.shows(&["events: by kind", "frozen"]);
    terminal.press("q");
    terminal.end();
    assert_eq!(home.status("my/api")["position"], before);
}

#[test]
fn an_unavailable_daemon_is_reported_and_retried() {
    let home = Home::new();
    let socket = home.path.join("daemon.sock");
    let line = format!("\"$TOP\" top --interval 200ms --daemon unix:{}", socket.display());
    let mut terminal = Terminal::run(&home, &line);
    terminal.shows(&["daemon unix:", "unavailable, retrying", "no data yet"]);
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        let body = r#"{"schema":1,"store":"x","pools":[],"backpressure":[]}"#;
        let length = body.len();
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // What is asked does not matter here, and one who has left need not hear it.
            let _asked = stream.read(&mut [0; 4_096]);
            let _left = stream.write_all(answer.as_bytes());
        }
    });
    terminal.shows(&["No pools yet"]);
    assert!(!terminal.screen.screen().contents().contains("unavailable"));
    terminal.press("q");
    terminal.end();
}

/// With a store in memory only the daemon knows: it is found, shown, acted on, and missed.
#[test]
fn the_daemon_of_a_memory_store_is_found_automatically() {
    let home = Home::new();
    home.configure("store = \"memory\"\nopen_pools = true\n");
    let mut daemon = home.start(["up", "--listen", "127.0.0.1:0", "--json"]);
    assert!(daemon.line().contains("\"socket\""));
    let body = r#"{"pool":"my/slots","agent":"blog","limits":{"parallel":1}}"#;
    let length = body.len();
    let ask = format!(
        "POST /v1/leases HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    let socket = home.path.join("state/standpipe.sock");
    let mut stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
    stream.write_all(ask.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");

    let mut terminal = Terminal::run(&home, BETWEEN);
    terminal.shows(&["daemon unix:", "my/slots", "1 in flight"]);
    terminal.press("2");
    terminal.shows(&["> blog"]);
    terminal.press("xy");
    terminal.shows(&["is settled at its estimate", "no call is in flight"]);
    terminal.press("1");
    terminal.shows(&["> my/slots"]);
    terminal.press("p\r");
    terminal.shows(&["`my/slots` admits no calls for 1 min", "paused "]);
    terminal.press("r");
    terminal.shows(&["`my/slots` admits calls again", "active"]);
    daemon.signal(Signal::TERM);
    terminal.shows(&["unavailable, retrying: the daemon does not answer"]);
    terminal.press("q");
    assert!(terminal.end().contains("restored, code 0"));
    daemon.end();
}
