//! `hold`: a command that runs while a lease is held.

use std::time::Duration;

use crate::support::{Home, Ran};

#[test]
fn exit_code_and_output_are_passed_through() {
    let home = Home::new();
    for code in [0, 1, 2, 75, 255] {
        let script = format!("echo out; echo err >&2; exit {code}");
        let ran =
            home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "sh", "-c", &script]);
        assert_eq!((ran.code, &*ran.out, &*ran.err), (Some(code), "out\n", "err\n"));
    }
}

#[test]
fn a_command_killed_by_a_signal_is_128_and_its_number() {
    let home = Home::new();
    for (signal, code) in [("TERM", 143), ("KILL", 137), ("INT", 130)] {
        let script = format!("kill -{signal} $$");
        let ran =
            home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "sh", "-c", &script]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
}

#[test]
fn input_is_passed_through() {
    let home = Home::new();
    let mut running = home.start(["hold", "my/slots", "--limit", "parallel=1", "--", "cat"]);
    let mut input = running.child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"through\n").unwrap();
    assert_eq!(running.line(), "through");
    drop(input);
    assert_eq!(running.end().code, Some(0));
}

#[test]
fn flags_after_the_separator_belong_to_the_command() {
    let home = Home::new();
    let ran = home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "echo", "--json", "--"]);
    assert_eq!(ran.printed(), "--json --");
}

#[test]
fn a_second_one_with_timeout_zero_fails_at_once() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let second = ["hold", "my/slots", "--timeout", "0", "--", "echo", "ran"];
    home.run(second).failed(75, &["my/slots", "parallel"]);
    let with_code = ["hold", "my/slots", "--timeout", "0", "--busy-exit", "9", "--", "true"];
    home.run(with_code).failed(9, &["my/slots"]);
    assert_eq!(holder.end().code, Some(0));
    assert_eq!(home.run(second).printed(), "ran");
}

#[test]
fn a_second_one_waits_for_the_first() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let mut waiter = home.start(["hold", "my/slots", "--as", "waiter", "--", "echo", "my turn"]);
    while home.status("my/slots")["tickets"].as_array().unwrap().is_empty() {
        assert!(waiter.child.try_wait().unwrap().is_none(), "it did not wait");
    }
    let status = home.status("my/slots");
    assert_eq!(status["tickets"][0]["agent"], "waiter");
    assert_eq!(status["tickets"][0]["limit"], "parallel");
    assert_eq!(status["leases"][0]["agent"], "holder");
    assert_eq!(holder.end().code, Some(0));
    assert_eq!(waiter.line(), "my turn");
    assert_eq!(waiter.end().code, Some(0));
}

#[test]
fn a_killed_holder_frees_its_slot() {
    let home = Home::new();
    let mut holder = home.hold_the_slot();
    holder.signal(rustix::process::Signal::KILL);
    holder.child.wait().unwrap();
    home.run(["hold", "my/slots", "--timeout", "1min", "--", "true"]).printed();
}

#[test]
fn the_slot_of_a_killed_holder_is_free_at_once() {
    let home = Home::new();
    let mut holder = home.hold_the_slot();
    holder.signal(rustix::process::Signal::KILL);
    holder.child.wait().unwrap();
    home.run(["status", "--check"]).printed();
    let mut holder = home.hold_the_slot();
    holder.signal(rustix::process::Signal::KILL);
    holder.child.wait().unwrap();
    home.run(["hold", "my/slots", "--timeout", "0", "--", "true"]).printed();
}

#[test]
fn a_lease_whose_owner_is_dead_is_free_at_once() {
    let home = Home::new();
    let mut owner = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let pid = owner.id().to_string();
    home.run(["reserve", "my/slots", "--limit", "parallel=1", "--owner", &pid]).printed();
    let next = ["reserve", "my/slots", "--timeout", "0"];
    home.run(next).failed(75, &["parallel"]);
    owner.kill().unwrap();
    owner.wait().unwrap();
    home.run(next).printed();
}

#[test]
fn the_command_dies_with_a_holder_that_is_killed() {
    let home = Home::new();
    let script = "echo held; exec sleep 600";
    let mut holder =
        home.start(["hold", "my/slots", "--limit", "parallel=1", "--", "sh", "-c", script]);
    assert_eq!(holder.line(), "held");
    holder.signal(rustix::process::Signal::KILL);
    // The output ends when the last process that has it is gone.
    assert_eq!(holder.rest(), "");
    holder.child.wait().unwrap();
}

#[test]
fn a_rate_is_kept_by_independent_processes() {
    let home = Home::new();
    let hold = ["hold", "my/api", "--limit", "requests=5/d", "--timeout", "0", "--", "true"];
    // Four fifths of a stated rate are used.
    let codes: Vec<_> = (0..6).map(|_| home.run(hold).code).collect();
    assert_eq!(codes, [0, 0, 0, 0, 75, 75].map(Some));
}

#[test]
fn existing_limits_are_kept_over_looser_flags() {
    let home = Home::new();
    home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "true"]).printed();
    let looser = home.run(["hold", "my/slots", "--limit", "parallel=9", "--", "true"]);
    assert_eq!(looser.code, Some(0));
    for words in ["parallel=1 from earlier", "not --limit parallel=9", "store reset my/slots"] {
        assert!(looser.err.contains(words), "`{words}` is not said: {looser:?}");
    }
    assert_eq!(home.status("my/slots")["limits"][0]["amount"], 1);
    let quiet = ["hold", "my/slots", "-q", "--limit", "parallel=9", "--", "true"];
    assert_eq!(home.run(quiet).err, "");
    let more = ["--limit", "requests=9/min", "--limit", "parallel=1", "--", "true"];
    home.run(["hold", "my/slots"].into_iter().chain(more)).printed();
    let same = home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "true"]);
    assert_eq!(same.err, "", "what it says is in force, with more");
}

#[test]
fn the_agent_is_the_flag_then_the_environment_then_the_caller() {
    let home = Home::new();
    let agents = |home: &Home| -> Vec<String> {
        let status = home.status("my/slots");
        let agents = status["agents"].as_array().unwrap();
        agents.iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
    };
    let hold = ["hold", "my/slots", "--limit", "parallel=1", "--", "true"];
    home.command(hold).env("STANDPIPE_AGENT", "by-environment").status().unwrap();
    assert_eq!(agents(&home), ["by-environment"]);
    home.run(["hold", "my/slots", "--as", "by-flag", "--", "true"]).printed();
    assert!(agents(&home).contains(&"by-flag".to_owned()));
    home.run(hold).printed();
    assert_eq!(agents(&home).len(), 3, "and one that is named after this very program");
    home.run_by(&["timeout", "60"], hold).printed();
    assert_eq!(agents(&home).len(), 3, "whatever runs it in between");
}

/// A program that handles its 429s itself is recognised by a line it prints, or by its exit code;
/// then the pool pauses.
#[test]
fn a_throttled_command_pauses_the_pool() {
    let says = "echo 'API rate limit exceeded, try again in 40 seconds' >&2; exit 3";
    let pattern = "rate limit.* in (?<wait>\\d+)";
    let flags: [&[&str]; 2] =
        [&["--throttled-match", pattern], &["--throttled-exit", "9", "--throttled-exit", "3"]];
    for (flags, at_least) in flags.into_iter().zip([30_000, 5_000]) {
        let home = Home::new();
        let hold = ["hold", "my/api", "--limit", "requests=100/min"];
        let run = |command: &str| {
            let words = hold.iter().chain(flags).chain(&["--timeout", "0", "--"]);
            home.run(words.chain(&["sh", "-c", command]).copied())
        };
        assert_eq!(run("echo fine >&2").code, Some(0));
        let throttled = run(says);
        assert_eq!(throttled.code, Some(3), "its code is passed through");
        assert!(throttled.err.contains("rate limit exceeded"), "{throttled:?}");
        assert!(throttled.err.contains("`my/api` pauses for every caller"), "{throttled:?}");
        run("true").failed(75, &["the pool is paused"]);
        let status = home.run(["status", "--json"]).json();
        let pause = status["pools"][0]["pause"]["for_ms"].as_u64().unwrap();
        assert!(pause > at_least, "{status}");
        assert_eq!(status["pools"][0]["trouble"]["incident"]["kind"], "quota");
        assert!(home.run(["resume", "my/api"]).code == Some(0) && run("true").code == Some(0));
    }
}

#[test]
fn an_invalid_pattern_is_an_error() {
    let home = Home::new();
    home.run(["hold", "my/api", "--throttled-match", "(", "--", "true"]).failed(2, &["("]);
}

/// A command that outlasts the longest lease keeps its slot: `hold` reports progress.
#[test]
fn a_long_command_keeps_its_slot() {
    let home = Home::new();
    home.configure("[pool.\"my/api\"]\nrequests = \"9/min\"\nlongest_lease = \"6s\"\n");
    let script = "echo held; read -r line; exit 0";
    let mut holder = home.start(["hold", "my/api", "--", "sh", "-c", script]);
    assert_eq!(holder.line(), "held");
    let age = || home.status("my/api")["leases"][0]["age_ms"].as_u64();
    while age().expect("it is still held") < 8_000 {
        // A loop without a pause would keep `hold` from running on a busy machine.
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(holder.end().code, Some(0));
    let reclaimed = home.run(["events", "--kind", "reclaim"]);
    assert_eq!(reclaimed.printed(), "", "nothing was taken back");
}

/// Nothing runs beside the command; `hold` keeps the lease alive on its own thread.
#[test]
fn it_starts_no_thread() {
    let home = Home::new();
    // The first one writes to the journal that the limit is new.
    let hold = ["hold", "my/slots", "--limit", "parallel=1", "--"];
    assert_eq!(home.run(hold.into_iter().chain(["true"])).code, Some(0));
    let script = "grep Threads /proc/$PPID/status";
    let ran = home.run(hold.into_iter().chain(["sh", "-c", script]));
    assert_eq!(ran.printed(), "Threads:\t1");
}

#[test]
fn a_lease_is_restored_while_the_command_runs_if_its_pool_is_deleted() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    std::fs::remove_dir_all(home.path.join("state/pools")).unwrap();
    // Commands that look at the pool learn nothing of the lease; its own process has to restore it.
    let holder_of = |ran: &Ran| ran.json()["pools"][0]["leases"][0]["agent"].clone();
    loop {
        let ran = home.run(["status", "my/slots", "--json"]);
        if ran.code == Some(0) && holder_of(&ran) == "holder" {
            break;
        }
    }
    assert_eq!(holder.end().code, Some(0));
}
