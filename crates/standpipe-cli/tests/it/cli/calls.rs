//! Leases by hand: reserve, commit, cancel, heartbeat, throttle, observe, pause, resume.

use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{Home, Ran};

const LIMITED: [&str; 4] = ["reserve", "my/api", "--limit", "tokens=1000/h"];

fn reserve(home: &Home, more: &[&str]) -> String {
    let args = LIMITED.iter().chain(more).copied();
    home.run(args.chain(["--as", "blog"])).printed().to_owned()
}

/// What ended a lease is in the journal, unless the caller itself did it.
#[test]
fn a_lease_that_has_ended_says_why_and_what_to_do() {
    let home = Home::new();
    let reserve = |more: &[&str]| {
        let words = [&["reserve", "my/slots", "--limit", "parallel=9"], more].concat();
        home.run(words).printed().to_owned()
    };
    let settled = reserve(&[]);
    home.run(["commit", &settled]).printed();
    let both = ["has ended: it was settled, or it expired\nhint: nothing changed; reserve again"];
    home.run(["commit", &settled]).failed(66, &both);
    let mut owner = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let owned = reserve(&["--owner", &owner.id().to_string()]);
    owner.kill().unwrap();
    owner.wait().unwrap();
    home.run(["status"]).printed();
    let ran = home.run(["heartbeat", &owned]);
    ran.failed(66, &["has ended: its owner ended at ", "hint: reserve again; --owner must be"]);
    let short = reserve(&["--ttl", "1ms"]);
    home.run(["status"]).printed();
    let ran = home.run(["cancel", &short]);
    ran.failed(66, &["has ended: it expired at ", "longer --ttl, or", "heartbeat"]);
    let rated = ["reserve", "my/rate", "--limit", "requests=60/min", "--ttl", "1ms"];
    let rated = home.run(rated).printed().to_owned();
    home.run(["status"]).printed();
    let bound = "with a longer --ttl (at most 1 h, the pool's `longest_lease`)";
    home.run(["cancel", &rated]).failed(66, &[bound]);
}

#[test]
fn the_one_who_settled_a_lease_of_another_process_is_named() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let lease = home.status("my/slots")["leases"][0]["id"].as_str().unwrap().to_owned();
    let mut first = home.command(["commit", &lease]);
    let first = Ran::of(&first.env("STANDPIPE_AGENT", "ops").output().unwrap());
    first.printed();
    let again = home.run(["commit", &lease]);
    again.failed(66, &["has ended: `ops` settled it at ", "hint: nothing changed"]);
    drop(holder);
}

#[test]
fn an_empty_lease_is_perhaps_an_empty_variable() {
    let home = Home::new();
    let hint = "a variable such as $lease may be empty";
    home.run(["commit", ""]).failed(66, &["the id of the lease is empty", hint]);
}

#[test]
fn a_misspelled_task_is_noted() {
    let home = Home::new();
    home.configure("[pool.\"a/b\"]\nparallel = 9\n[route]\nclassify = [\"a/b\"]\n");
    let reserve = |task| home.run(["reserve", "a/b", "--as", "blog", "--task", task]).err;
    assert!(reserve("clasify").contains("the task `clasify`; did you mean `classify`?"));
    assert_eq!((reserve("classify"), reserve("translate")), (String::new(), String::new()));
}

#[test]
fn only_a_missing_folder_is_named() {
    let home = Home::new();
    let hint = "there is no file `./build.sh`\nhint: check the path; nothing was reserved";
    home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "./build.sh"])
        .failed(127, &[hint]);
}

#[test]
fn a_refusal_is_listed_before_the_pause_that_it_causes() {
    let home = Home::new();
    home.run(["reserve", "my/api", "--limit", "requests=60/min"]).printed();
    home.run(["throttle", "my/api", "--retry-after", "30s"]).printed();
    let events = home.run(["events"]);
    let at = |kind: &str| events.printed().lines().position(|line| line.contains(kind));
    assert!(at("  throttle  ") < at("  pause  ") && at("  throttle  ").is_some(), "{events:?}");
}

#[test]
fn the_priority_comes_from_the_environment_unless_a_flag_states_it() {
    let home = Home::new();
    let reserve = |flags: &[&str], set: &str| {
        let words = [&["reserve", "my/slots", "--limit", "parallel=9", "--as", "a"], flags];
        let mut command = home.command(words.concat());
        Ran::of(&command.env("STANDPIPE_PRIORITY", set).output().unwrap())
    };
    let priority = || {
        let status = home.status("my/slots");
        status["leases"].as_array().unwrap().last().unwrap()["priority"].clone()
    };
    reserve(&[], "background").printed();
    assert_eq!(priority(), "background");
    reserve(&["--priority", "critical"], "background").printed();
    let all = home.status("my/slots")["leases"].to_string();
    assert!(all.contains("critical"), "{all}");
    reserve(&[], "urgent").failed(2, &["$STANDPIPE_PRIORITY is `urgent`", "use critical"]);
}

#[test]
fn a_lease_is_reserved_in_one_process_and_settled_in_another() {
    let home = Home::new();
    let lease = reserve(&home, &["--cost", "tokens=500"]);
    let before = home.status("my/api");
    assert_eq!(before["leases"][0]["id"], *lease);
    assert_eq!(before["leases"][0]["agent"], "blog");
    assert_eq!(before["leases"][0]["holder"], "ttl");
    assert_eq!(before["limits"][0]["used"], 500);

    assert_eq!(home.run(["commit", &lease, "--used", "tokens=120"]).printed(), "");
    let after = home.status("my/api");
    assert_eq!(after["leases"].as_array().unwrap().len(), 0);
    assert_eq!(after["limits"][0]["used"], 120);
}

/// A figure that no limit allows is charged, because it may be true, and noted.
#[test]
fn a_use_above_a_limit_is_noted() {
    let home = Home::new();
    let lease = reserve(&home, &["--cost", "tokens=500"]);
    let ran = home.run(["commit", &lease, "--used", "tokens=99999999"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for words in ["the call used more than tokens=", "standpipe store reset my/api --yes"] {
        assert!(ran.err.contains(words), "`{words}`: {ran:?}");
    }
    assert_eq!(home.status("my/api")["limits"][0]["used"], 99_999_999);
}

#[test]
fn settling_twice_is_66_and_changes_nothing() {
    let home = Home::new();
    let lease = reserve(&home, &["--cost", "tokens=500"]);
    home.run(["release", &lease]).printed();
    for again in ["commit", "release", "cancel", "heartbeat"] {
        home.run([again, &lease]).failed(66, &["has ended", "nothing changed"]);
    }
    assert_eq!(home.status("my/api")["limits"][0]["used"], 500);
}

#[test]
fn cancel_releases_everything() {
    let home = Home::new();
    let lease = reserve(&home, &["--cost", "tokens=500"]);
    home.run(["cancel", &lease]).printed();
    assert_eq!(home.status("my/api")["limits"][0]["used"], 0);
}

#[test]
fn a_lease_continues_after_progress_and_heartbeat() {
    let home = Home::new();
    let lease = reserve(&home, &["--cost", "tokens=500"]);
    home.run(["commit", &lease, "--used", "tokens=10", "--progress"]).printed();
    home.run(["heartbeat", &lease]).printed();
    let of_agent = home.run(["heartbeat", "--as", "blog", "my/api", "--json"]);
    assert_eq!(of_agent.json()["leases"], 1);
    home.run(["commit", &lease]).printed();
}

#[test]
fn a_lease_of_another_pool_or_another_store_is_66() {
    let home = Home::new();
    let lease = reserve(&home, &[]);
    home.run(["reserve", "my/other", "--limit", "tokens=10/h"]).printed();
    home.run(["throttle", "my/other", "--lease", &lease]).failed(66, &["my/api"]);
    let elsewhere = Home::new();
    elsewhere.run(["commit", &lease]).failed(66, &["no such lease", "my/api"]);
    assert_eq!(home.status("my/api")["leases"].as_array().unwrap().len(), 1);
}

#[test]
fn what_can_never_fit_is_65() {
    let home = Home::new();
    let args = LIMITED.iter().chain(&["--cost", "tokens=1001"]).copied();
    home.run(args).failed(65, &["never fit", "tokens"]);
}

#[test]
fn what_is_not_admitted_in_time_is_75_and_leaves_nothing() {
    let home = Home::new();
    reserve(&home, &["--cost", "tokens=700"]);
    let args = LIMITED.iter().chain(&["--cost", "tokens=700", "--timeout", "0"]).copied();
    home.run(args).failed(75, &["tokens", "ask again in"]);
    let status = home.status("my/api");
    assert_eq!(status["limits"][0]["used"], 700);
    assert_eq!(status["tickets"].as_array().unwrap().len(), 0);
}

#[test]
fn a_dry_run_reserves_nothing() {
    let home = Home::new();
    let ran = home.run(LIMITED.iter().chain(&["--dry-run"]).copied());
    assert!(ran.printed().contains("would be admitted"));
    assert_eq!(home.run(["status", "--json"]).json()["pools"].as_array().unwrap().len(), 0);

    reserve(&home, &["--cost", "tokens=700"]);
    let ran = home.run(["reserve", "my/api", "--cost", "tokens=700", "--dry-run"]);
    ran.failed(75, &["tokens"]);
    assert_eq!(home.status("my/api")["limits"][0]["used"], 700);
}

#[test]
fn the_same_id_gets_the_same_lease_and_a_settled_one_is_an_error() {
    let home = Home::new();
    let first = reserve(&home, &["--id", "job-1"]);
    assert_eq!(reserve(&home, &["--id", "job-1"]), first);
    home.run(["commit", &first]).printed();
    let args = LIMITED.iter().chain(&["--id", "job-1", "--as", "blog"]).copied();
    home.run(args).failed(66, &["already", "--id"]);
}

/// The lease of an owner that is gone comes back to whoever waits for it.
#[test]
fn an_owners_death_ends_its_lease() {
    let home = Home::new();
    let mut owner = home.start(["hold", "an/owner", "--limit", "parallel=1", "--", "cat"]);
    let pid = owner.child.id().to_string();
    let slot = ["reserve", "my/slots", "--limit", "parallel=1", "--owner", &pid];
    home.run(slot).printed();
    home.run(["reserve", "my/slots", "--timeout", "0"]).failed(75, &["parallel"]);
    owner.signal(Signal::KILL);
    owner.rest();
    owner.child.wait().unwrap();
    home.run(["reserve", "my/slots", "--timeout", "1min"]).printed();
}

/// Killed between grant and print: the pipe is full, so the id cannot be out yet.
#[test]
fn a_reserve_that_is_killed_before_it_prints_leaves_nothing() {
    let home = Home::new();
    let (kept, full) = std::io::pipe().unwrap();
    fill(&full);
    let mut command = home.command(["reserve", "my/slots", "--limit", "parallel=1"]);
    let mut child = command.stdout(full).spawn().unwrap();
    let in_flight = |n: usize| {
        let ran = home.run(["status", "--json"]);
        ran.json()["pools"][0]["leases"].as_array().is_some_and(|leases| leases.len() == n)
    };
    while !in_flight(1) {
        assert!(child.try_wait().unwrap().is_none(), "it ended with a full pipe");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(kept);
    home.run(["hold", "my/slots", "--timeout", "1min", "--", "true"]).printed();
}

/// Writes until no more goes in.
fn fill(pipe: &std::io::PipeWriter) {
    let flags = rustix::fs::fcntl_getfl(pipe).unwrap();
    rustix::fs::fcntl_setfl(pipe, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    for piece in [4_096, 1] {
        while rustix::io::write(pipe, &vec![b'x'; piece]).is_ok() {}
    }
    rustix::fs::fcntl_setfl(pipe, flags).unwrap();
}

/// Nobody reads the id: it is taken back.
#[test]
fn a_reserve_whose_output_is_closed_leaves_nothing() {
    let home = Home::new();
    let (closed, out) = std::io::pipe().unwrap();
    drop(closed);
    let mut command = home.command(["reserve", "my/slots", "--limit", "parallel=1"]);
    let ran = Ran::of(&command.stdout(out).stderr(Stdio::piped()).output().unwrap());
    assert_eq!(ran.code, Some(141), "{ran:?}");
    assert_eq!(home.status("my/slots")["leases"].as_array().unwrap().len(), 0);
}

#[test]
fn a_pause_stops_admission_until_it_is_lifted() {
    let home = Home::new();
    reserve(&home, &[]);
    let pause = ["pause", "my/api", "--for", "1h", "--as", "ops"];
    assert!(home.run(pause).err.contains("(1 h)"));
    let args = LIMITED.iter().chain(&["--timeout", "0"]).copied();
    let ends = "or give a longer --timeout; `standpipe resume my/api` ends the pause";
    home.run(args.clone()).failed(75, &["the pool is paused by ops", ends]);
    let pause = home.status("my/api")["pause"].take();
    assert!(pause["for_ms"].as_u64().unwrap() > 3_500_000);
    assert_eq!(pause["by"], "ops");
    assert!(pause["at"].is_string());
    let explained = home.run(["explain", "my/api", "--as", "blog"]);
    assert!(explained.printed().contains("paused by ops at "), "{explained:?}");
    assert!(home.run(["events", "--pool", "my/api"]).printed().contains("paused by ops for 1 h"));
    home.run(["resume", "my/api", "--as", "night"]).printed();
    assert!(home.run(["events", "--pool", "my/api"]).printed().contains("resumed by night"));
    home.run(args).printed();
}

#[test]
fn a_refusal_by_the_provider_is_recorded_and_shown() {
    let home = Home::new();
    let lease = reserve(&home, &[]);
    let report = ["throttle", "my/api", "--lease", &lease, "--retry-after", "30s"];
    assert_eq!(home.run(report).code, Some(0));
    let events = home.run(["events", "--kind", "throttle"]);
    assert!(events.printed().contains("my/api"), "{events:?}");
    assert!(events.printed().contains("30 s"), "{events:?}");
}

/// What a provider answered settles the call as it means, in the words of its provider.
#[test]
fn an_answer_settles_a_lease() {
    let home = Home::new();
    let lease = |pool: &str| {
        let reserve = ["reserve", pool, "--limit", "requests=100/min", "--timeout", "0"];
        home.run(reserve).printed().to_owned()
    };
    let answer = |lease: &str, text: &[u8]| {
        let mut running = home.start(["commit", lease, "--headers", "-", "--json"]);
        let mut input = running.child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, text).unwrap();
        drop(input);
        running.end()
    };
    let served = lease("anthropic/sonnet");
    let ok = b"HTTP/2 200\r\nanthropic-ratelimit-requests-limit: 40\r\n\r\n{\"usage\":{}}";
    assert_eq!(answer(&served, ok).json()["meaning"], "served");
    let status = home.run(["status", "anthropic/sonnet", "--json"]).json();
    let limit = &status["pools"][0]["limits"][0];
    assert_eq!((&limit["learned"], &limit["amount"]), (&40.into(), &100.into()), "{status}");

    let refused = lease("anthropic/sonnet");
    let no = b"HTTP/2 429\r\nretry-after: 17\r\n\r\n{\"type\":\"error\",\"error\":\
        {\"type\":\"rate_limit_error\",\"message\":\"too many\"}}";
    let meant = answer(&refused, no).json();
    assert_eq!((&meant["kind"], &meant["retry_after_ms"]), (&"quota".into(), &17_000.into()));
    let status = home.run(["status", "anthropic/sonnet", "--json"]).json();
    assert!(status["pools"][0]["pause"]["for_ms"].as_u64().unwrap() > 10_000, "{status}");
    let events = home.run(["events", "--kind", "throttle"]);
    assert!(events.printed().contains("too many"), "{events:?}");
    answer(&refused, no).failed(66, &["has ended"]);
}

/// A pool of a provider we know needs no limits: they are learned from its answers.
#[test]
fn limits_of_a_known_provider_are_learned() {
    let home = Home::new();
    let first = home.run(["reserve", "github/core", "--timeout", "0"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    home.run(["reserve", "github/core", "--timeout", "0"]).failed(75, &["limits are not known"]);
    let header = "x-ratelimit-limit: 5000";
    let heard = home.run(["observe", "github/core", "--header", header, "--json"]).json();
    assert_eq!((&heard["meaning"], &heard["limits"]), (&"served".into(), &1.into()));
    assert_eq!(home.run(["reserve", "github/core", "--timeout", "0"]).code, Some(0));
    home.run(["reserve", "gihub/core", "--timeout", "0"]).failed(78, &["there is no pool"]);
}

#[test]
fn headers_are_recorded_from_flags_and_from_input() {
    let home = Home::new();
    reserve(&home, &[]);
    let header = "X-RateLimit-Remaining: 4312";
    assert_eq!(home.run(["observe", "my/api", "--header", header]).code, Some(0));
    let mut running = home.start(["observe", "my/api", "-"]);
    let mut input = running.child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, b"HTTP/1.1 200 OK\r\nretry-after: 7\r\n\r\n").unwrap();
    drop(input);
    assert_eq!(running.end().code, Some(0));
    let events = home.run(["events", "--kind", "observe"]);
    assert!(events.printed().contains("4312"), "{events:?}");
    assert!(events.printed().contains("retry-after: 7"), "{events:?}");
}

/// An agent downstream of a throttled one gets its back-pressure, on another pool too.
#[test]
fn a_workflow_reports_back_pressure_downstream() {
    let home = Home::new();
    home.configure(
        "[pool.\"my/model\"]\nparallel = 5\n[pool.\"my/repo\"]\nparallel = 5\n\
         [workflow.build]\nagents = [\"picard\", \"data\"]\n",
    );
    home.run(["reserve", "my/model", "--as", "picard"]).printed();
    let throttle = ["throttle", "my/model", "--as", "picard", "--retry-after", "30s"];
    assert_eq!(home.run(throttle).code, Some(0));
    let answer = home.run(["reserve", "my/repo", "--as", "data", "--json"]);
    assert!(answer.err.contains("`picard`, which this depends on, is throttled"), "{answer:?}");
    let answer = answer.json();
    assert_eq!(answer["backpressure"]["agent"], "picard");
    assert_eq!(answer["backpressure"]["pool"], "my/model");
    let status = home.run(["status"]);
    assert!(status.printed().contains("workflows: picard is throttled on my/model"), "{status:?}");
    let refused = home.run(["reserve", "my/model", "--as", "data", "--timeout", "0", "--json"]);
    assert_eq!(refused.json()["backpressure"]["agent"], "picard");
}

/// A pipe that brought nothing is no success: the lease stays, and nothing is believed.
#[test]
fn an_empty_answer_is_an_error() {
    let home = Home::new();
    let lease = reserve(&home, &[]);
    for text in [&b""[..], b"not an answer", b"HTTP/1.1 abc\r\n\r\n", b"{\"error\":{}}"] {
        let mut running = home.start(["commit", &lease, "--headers", "-"]);
        let mut input = running.child.stdin.take().unwrap();
        std::io::Write::write_all(&mut input, text).unwrap();
        drop(input);
        let cancel = format!("standpipe cancel {lease}");
        running.end().failed(2, &["no response", "curl -si", &cancel]);
    }
    assert_eq!(home.run(["commit", &lease]).code, Some(0), "it was still there");
}

/// A refusal may be the first thing that is heard of a pool of a known provider.
#[test]
fn a_429_may_be_the_first_report() {
    let home = Home::new();
    let throttle = ["throttle", "anthropic/fresh", "--as", "blog", "--retry-after", "30s"];
    assert_eq!(home.run(throttle).code, Some(0));
    home.run(["reserve", "anthropic/fresh", "--timeout", "0"]).failed(75, &["the pool is paused"]);
}

/// A lease knows whose call was refused; one that was settled before pauses the pool all the same.
#[test]
fn a_refusal_by_its_lease_alone() {
    let home = Home::new();
    let lease = home.run(["reserve", "my/api", "--as", "picard", "--limit", "requests=9/min"]);
    let lease = lease.printed().to_owned();
    assert_eq!(home.run(["throttle", "my/api", "--lease", &lease]).code, Some(0));
    let events = home.run(["events", "--kind", "throttle"]);
    assert!(events.printed().contains("picard was refused"), "{events:?}");
    let again = home.run(["throttle", "my/api", "--lease", &lease]);
    again.failed(66, &["settled before", "the refusal is recorded on `my/api`"]);
}

/// A pause by hand does not shorten one that is in force, and does not claim so.
#[test]
fn a_shorter_pause_leaves_the_longer_one() {
    let home = Home::new();
    home.run(["hold", "my/api", "--limit", "requests=30/min", "--", "true"]).printed();
    let long = home.run(["pause", "my/api", "--for", "1h"]);
    assert!(long.err.contains("is paused until") && long.err.contains("(1 h)"), "{long:?}");
    let short = home.run(["pause", "my/api", "--for", "2s"]);
    assert!(short.err.contains("stays paused until"), "{short:?}");
    assert!(!short.err.contains("(2 s)"), "{short:?}");
}

#[test]
fn a_misspelled_agent_is_noted() {
    let home = Home::new();
    home.configure("open_pools = true\n[agent.release]\npriority = \"critical\"\n");
    let call = |agent: &str| {
        let limit = ["hold", "my/api", "--limit", "requests=30/min", "--as", agent, "--", "true"];
        home.run(limit).err
    };
    assert!(call("relese").contains("did you mean `release`?"));
    assert_eq!((call("release").as_str(), call("blog").as_str()), ("", ""));
}

/// The provider counts the points of a call that it refuses, so the audit does.
#[test]
fn a_refused_call_has_its_points_in_the_audit() {
    let home = Home::new();
    let limits = ["--limit", "requests=60/min", "--limit", "points=900/min"];
    let call = ["reserve", "my/api", "--cost", "points=5"].into_iter().chain(limits);
    let lease = home.run(call).printed().to_owned();
    home.run(["throttle", "my/api", "--lease", &lease]).printed();
    let audit = home.run(["audit", "--json"]).json();
    let units = &audit["pools"][0]["agents"][0]["units"];
    assert_eq!(units["requests"], 1, "{audit}");
    assert_eq!(units["points"], 5, "{audit}");
}

/// The refusal that set the end of the pause is named, and a resume warns that the provider asked
/// for more time.
#[test]
fn the_refusal_that_lengthens_a_pause_is_named() {
    let home = Home::new();
    home.run(["hold", "my/api", "--limit", "requests=30/min", "--", "true"]).printed();
    let refused = |agent: &str, after: &str| {
        home.run(["throttle", "my/api", "--retry-after", after, "--as", agent]).printed();
        home.run(["status", "my/api"]).printed().to_owned()
    };
    assert!(refused("first", "30s").contains("first got a 429"));
    assert!(refused("second", "1h").contains("second got a 429"));
    assert!(refused("third", "1s").contains("second got a 429"));
    let late = home.run(["reserve", "my/api", "--timeout", "1s"]);
    late.failed(75, &["paused: second got a 429 (quota)"]);
    home.run(["pause", "my/api", "--for", "2h", "--as", "ops"]).printed();
    // Late in the day the end has a date, and the line breaks elsewhere.
    let both = home.run(["status", "my/api"]);
    let both = both.printed().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(both.contains("by ops at") && both.contains("the provider refused second"), "{both}");
    let resumed = home.run(["resume", "my/api"]).err;
    assert!(resumed.contains("refused second") && resumed.contains("may refuse again"));
}

/// A call that began a moment ago probably still runs, so its slot is no leak yet.
#[test]
fn a_young_slot_that_no_process_holds_is_no_leak() {
    let home = Home::new();
    let call = ["reserve", "my/slots", "--limit", "parallel=1", "--as", "leaky", "--ttl", "1h"];
    home.run(call).printed();
    let status = home.run(["status", "my/slots"]).printed().to_owned();
    assert!(!status.contains("without a process"), "{status}");
    assert!(status.contains("holds  leaky  1 request"), "{status}");
}
