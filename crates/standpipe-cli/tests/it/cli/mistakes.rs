//! Typical mistakes of a newcomer, and what the program prints about them.
//!
//! `tests/snapshots/mistakes.txt` has each command with its output. `STANDPIPE_BLESS=1` rewrites
//! it.

use std::path::Path;

use crate::support::{Home, Ran};

/// Each mistake in a home that has the pools `my/slots` and `anthropic/sonnet`, used by `blog`.
const MISTAKES: &[&str] = &[
    "hodl my/slots -- true",
    "reset my/slots",
    "hold my/slots true",
    "run python3 x.py",
    "run --limit requests=10/min -- true",
    "up --port 9000",
    "up --port=9000",
    "hold my/slots --limit parallel=1 -- no-such-program",
    "status my/slot",
    "reserve anthropic/sonet --as blog",
    "reserve my/api --limit toekns=100/min",
    "reserve my/api --limit requests=60/m",
    "reserve my/api --limit paralel=2",
    "reserve my/api --limit requests=0.5/s",
    "reserve my/api --limits requests=30/min",
    "hold my/api --limit tokens=100/min -- true",
    "hold my/slots",
    "hold -- echo",
    "run",
    "hold my/slotz -- true",
    "reserve my/slots --owner abc",
    "reserve my/api --limit requests=-5/min",
    "reserve my/api --limit requests=30/min,margin=0",
    "reserve my/api --limit requests=30/min --cost requests=31",
    "resume my/slots",
    "events --kind throttle",
    "reserve my/slots --cost slots=1",
    "reserve my/slots --cost requests=-1",
    "reserve my/slots --cost requests=99999999999999999999",
    "reserve my/slots --priority urgent",
    "reserve my/slots --timeout 5minutes",
    "reserve slots",
    "explain my/slots --as blgo",
    "events --kind trottle",
    "events --as blgo",
    "throttle my/slots --kind qota",
    "commit lease1_nonsense",
    "pause my/slots --for 0s",
    "pause my/slots",
    "pause",
    "store reset my/slots",
    "config check",
    "--store redsi://localhost status",
    "reserve my/slots --as blog --timeout 0s",
    "reserve my/big --as blog --limit tokens=10k/min --bytes 9M",
    "reserve my/api --limit requests=5/min,burst",
    "reserve my/slots --timeout 1h30m",
    "reserve my/slots --cost \"\"",
    "hold my/slots -- ./no/such.sh",
    "pause my/slots 5min",
    "commit lease1_a lease1_b",
    "cancel lease1_a --used requests=1",
    "top --daemon foo",
    "--store redis+unix:///nope.sock status",
];

#[test]
fn mistakes_are_answered_with_what_is_wrong_and_what_to_do() {
    let home = Home::new();
    let limit = ["--as", "blog", "--limit", "parallel=1"];
    home.run([&["reserve", "my/slots"], &limit[..]].concat()).printed();
    let limit = ["--as", "blog", "--limit", "requests=60/min"];
    home.run([&["reserve", "anthropic/sonnet"], &limit[..]].concat()).printed();
    let mut text = String::new();
    for line in MISTAKES {
        if *line == "config check" {
            home.configure("open_pools = true\n[pool.\"my/api\"]\nreqests = \"60/min\"\n");
        }
        let ran = home.run(line.split(' '));
        if *line == "config check" {
            home.configure("open_pools = true\n");
        }
        text += &format!("$ standpipe {line}\n{}", shown(&home, &ran));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/mistakes.txt");
    if std::env::var_os("STANDPIPE_BLESS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, wanted, "{text}");
}

/// What was printed, with the exit code; without what differs from run to run.
fn shown(home: &Home, ran: &Ran) -> String {
    let mut text = String::new();
    for line in ran.out.lines().chain(ran.err.lines()) {
        let line = line.replace(home.path.to_str().unwrap(), "~");
        // The age of a call in flight, and when its lease ends.
        let line = match line.split_once(" for ").filter(|_| line.starts_with("  holds")) {
            Some((holds, _)) => format!("{holds} for …"),
            None => line,
        };
        let words = line.split(' ').map(|word| match word.starts_with("lease1_") {
            true if word.len() > 30 => "lease1_…",
            _ => word,
        });
        text += &format!("{}\n", words.collect::<Vec<_>>().join(" ").trim_end());
    }
    format!("{text}[exit {}]\n\n", ran.code.unwrap_or(-1))
}
