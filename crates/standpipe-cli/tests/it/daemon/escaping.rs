//! What came from outside cannot forge a line, move a cursor or turn a text in anything that people
//! read: every view shows such characters written out, and JSON keeps the values.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::daemon::support::{Daemon, files};
use crate::support::{Home, Ran};

/// A second line that looks like one of ours, sequences of both kinds, and text that hides.
const FORGED: &str = "7\r\n2026-01-01 00:00:00Z  resume        my/api  pause lifted by root\
                      \u{1b}[2J\u{9b}31m\u{7f}\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}";
/// What a name may hold: no control characters, but the rest.
const TURNED: &str = "a\u{202e}b\u{200b}c\u{2066}d\u{ad}";
const TURNED_SHOWN: &str = r"a\u{202e}b\u{200b}c\u{2066}d\u{ad}";

/// Control and format characters; a regular expression of another crate than the one under test.
fn hidden(text: &str) -> Vec<char> {
    let class = regex::Regex::new(r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]").unwrap();
    let found = class.find_iter(text).flat_map(|found| found.as_str().chars().collect::<Vec<_>>());
    found.filter(|c| *c != '\n').collect()
}

#[track_caller]
fn is_plain(text: &str) {
    assert!(hidden(text).is_empty(), "{text:?}");
    let forged = text.lines().any(|line| line.starts_with("2026-01-01"));
    assert!(!forged, "a line was forged: {text:?}");
}

#[track_caller]
fn shows(ran: &Ran, words: &[&str]) {
    is_plain(&ran.out);
    is_plain(&ran.err);
    for word in words {
        assert!(ran.out.contains(word) || ran.err.contains(word), "{word} in {ran:?}");
    }
}

#[test]
fn events_have_one_line_each_whatever_a_header_says() {
    let home = Home::new();
    let daemon = Daemon::up(&home);
    let limits = json!({"requests": "100/h"});
    let ask = json!({"pool": "my/api", "agent": "blog", "limits": limits, "model": TURNED});
    daemon.reserve(&ask).ok(201);
    let headers = json!({"x-ratelimit-remaining-requests": FORGED, "retry-after": FORGED});
    daemon.post("/v1/observe", &json!({"pool": "my/api", "headers": headers})).ok(200);
    let refused = json!({"pool": "my/api", "status": 429, "headers": headers});
    daemon.post("/v1/throttle", &refused).ok(200);
    let written = ["observe", "throttle", "anomaly"].map(|kind| daemon.until_event(kind));
    let ran = home.run(["events"]);
    shows(&ran, &[r"7\r\n2026-01-01", r"\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\u{2066}\u{200b}"]);
    let events = home.run(["events", "--json"]);
    assert_eq!(ran.printed().lines().count(), events.out.lines().count(), "{ran:?}");
    // Programs get the value as it was, in a form that a terminal cannot be reached by.
    is_plain(&events.out);
    let values: Vec<Value> = events.out.lines().map(|line| line.parse().unwrap()).collect();
    assert!(values.iter().any(|value| value.to_string().contains('\u{202e}')), "{values:?}");
    for event in written {
        let same = |value: &&Value| value["kind"] == event["kind"] && value["at"] == event["at"];
        assert!(values.iter().any(|value| same(&value)), "{event}");
    }
    for view in ["status", "audit", "doctor"] {
        shows(&home.run([view]), &[]);
    }
}

#[test]
fn names_of_models_and_tasks_are_escaped_in_status_and_explain() {
    let home = Home::new();
    let reserve = |agent| {
        let limits = ["--limit", "parallel=2", "--timeout", "0"];
        let words = ["reserve", "my/api", "--as", agent, "--model", TURNED, "--task", TURNED];
        home.run(words.into_iter().chain(limits))
    };
    reserve("blog").printed();
    let ran = home.run(["status"]);
    shows(&ran, &[TURNED_SHOWN, "blog"]);
    shows(&home.run(["explain", "my/api", "--as", "blog"]), &["blog asks my/api"]);
    for args in [["store", "dump"], ["status", "--json"]] {
        let shown = home.run(args);
        is_plain(&shown.out);
        assert_eq!(shown.json()["pools"][0]["leases"][0]["model"], TURNED);
    }
}

/// The journal is a file: a writer of it must not reach the terminal of its reader.
#[test]
fn what_stands_in_the_journal_is_escaped_in_events_and_audits() {
    let home = Home::new();
    for agent in ["blog", "other-agent"] {
        let words = ["hold", "my/api", "--as", agent, "--limit", "requests=100/min", "-q"];
        home.run(words.into_iter().chain(["--", "true"])).printed();
    }
    let forged = serde_json::to_string(FORGED).unwrap();
    let forged = forged.trim_matches('"');
    let replace = |word: &str| {
        for (path, text) in files(&home) {
            if path.extension().is_some_and(|ending| ending == "jsonl") {
                fs::write(path, text.replace(word, forged)).unwrap();
            }
        }
    };
    replace("blog");
    shows(&home.run(["events", "--kind", "usage"]), &[r"7\r\n2026-01-01"]);
    shows(&home.run(["audit"]), &[r"7\r\n2026-01-01"]);
    shows(&home.run(["doctor"]), &[]);
    replace("my/api");
    shows(&home.run(["events", "--kind", "usage"]), &[r"7\r\n2026-01-01"]);
    shows(&home.run(["audit"]), &[]);
    shows(&home.run(["audit", "--compare"]), &[r"7\r\n2026-01-01"]);
    shows(&home.run(["doctor"]), &[]);
}

#[test]
fn words_of_the_command_line_and_paths_are_escaped_in_errors() {
    let home = Home::new();
    let odd = "no\u{202e}such\nstandpipe: all is well\u{1b}[2J";
    let shown = r"no\u{202e}such";
    for words in [
        &["status", "--config", odd][..],
        &["config", "check", odd],
        &["hold", "my/api", "--limit", "parallel=1", "--", odd],
        &["events", "--kind", odd],
        &["commit", odd],
        &["status", odd],
        &["reserve", "my/api", "--limit", odd],
        &["--store", odd, "status"],
        &[odd],
    ] {
        let ran = home.run(words.iter().copied());
        assert_ne!(ran.code, Some(0), "{words:?}: {ran:?}");
        shows(&ran, &[]);
        let lines: Vec<&str> = ran.err.lines().collect();
        assert!(lines[0].starts_with("error: ") && lines.len() <= 2, "{words:?}: {ran:?}");
        assert!(lines[1..].iter().all(|line| line.starts_with("hint: ")), "{words:?}: {ran:?}");
        assert!(ran.err.contains(shown) || words[0] == "commit", "{words:?}: {ran:?}");
    }
    let mut command = home.command(["doctor"]);
    let directory = home.path.join(odd);
    command.env("STANDPIPE_HOME", &directory);
    shows(&Ran::of(&command.output().unwrap()), &[shown]);
    let mut command = home.command(["explain", "my/api"]);
    command.env("STANDPIPE_AGENT", odd);
    shows(&Ran::of(&command.output().unwrap()), &[shown]);
}

/// A file that is not UTF-8 stays readable too.
#[test]
fn a_path_that_is_no_text_is_shown() {
    let home = Home::new();
    let mut command = home.command(["config", "check"]);
    command.arg(std::ffi::OsStr::from_bytes(b"no\xff\x1b[2J\xe2\x80\xae"));
    shows(&Ran::of(&command.output().unwrap()), &[r"\u{1b}[2J\u{202e}"]);
}

/// The daemon's own lines name files.
#[test]
fn the_daemon_s_log_and_its_welcome_are_escaped() {
    let home = Home::new();
    let directory = home.path.join("odd\u{202e}\nstandpipe is down\u{1b}[2J");
    fs::create_dir(&directory).unwrap();
    let config = directory.join("standpipe.toml");
    fs::write(&config, "[pool.\"my/api\"]\nparallel = 1\n").unwrap();
    let mut command = home.command(["up", "--listen", "127.0.0.1:0", "--config"]);
    command.arg(&config).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut welcome = String::new();
    while !welcome.contains("Ctrl-C") {
        assert_ne!(out.read_line(&mut welcome).unwrap(), 0, "it ended: {welcome}");
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    fs::write(&config, "[pool.\"my/api\"]\nparallel = \"x\u{9b}\"\n").unwrap();
    kill_process(pid, Signal::HUP).unwrap();
    // The line about the file that cannot be used ends with what is wrong in it.
    while !said.contains("parallel") {
        assert_ne!(log.read_line(&mut said).unwrap(), 0, "it ended: {said}");
    }
    kill_process(pid, Signal::TERM).unwrap();
    log.read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    is_plain(&welcome);
    is_plain(&said);
    assert!(said.contains(r"odd\u{202e}\nstandpipe is down\u{1b}[2J"), "{said}");
    assert!(welcome.contains(r"odd\u{202e}\nstandpipe is down\u{1b}[2J"), "{welcome}");
}
