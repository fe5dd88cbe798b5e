//! Hints that work when they are followed, and commands that an invalid file does not stop.

use serde_json::Value;

use crate::daemon::support::Daemon;
use crate::support::{Home, Ran};

const LIMIT: [&str; 2] = ["--limit", "requests=60/min"];

#[test]
fn a_pool_is_not_moved_onto_itself() {
    let home = Home::new();
    home.run(["hold", "my/api", "--limit", "requests=5/d", "--", "true"]).printed();
    let own = format!("file:{}", home.path.join("state").display());
    for words in [&["my/api"][..], &["my/api", "--yes"]] {
        let ran = home.run([&["store", "move", "--to", &own], words].concat());
        ran.failed(2, &["`my/api` is already in file:/", "hint: there is nothing to move"]);
    }
    home.run(["store", "move", "--to", &own, "--yes"]).failed(2, &["the pools are already in"]);
    assert_eq!(home.status("my/api")["limits"][0]["used"], 1);
}

#[test]
fn a_pool_of_the_same_name_elsewhere_is_named_with_its_store() {
    let home = Home::new();
    let there = format!("file:{}", home.path.join("there").display());
    let hold = ["hold", "my/api", "--limit", "requests=5/d", "--", "true"];
    home.run(hold).printed();
    home.run(["--store", &there].into_iter().chain(hold)).printed();
    let moved = ["store", "move", "my/api", "--to", &there, "--yes"];
    let hint = format!("standpipe --store {there} store reset my/api --yes");
    home.run(moved).failed(69, &["already has a pool `my/api`", "the copy there", &hint]);
    let followed = hint.split(' ').skip(1);
    home.run(followed).printed();
    home.run(moved).printed();
}

#[test]
fn a_move_lists_what_it_would_move() {
    let home = Home::new();
    for pool in ["my/api", "my/other"] {
        home.run(["hold", pool, "--limit", "requests=5/d", "--", "true"]).printed();
    }
    let all = home.run(["store", "move", "--to", "file:/nowhere"]);
    all.failed(2, &["every pool to file:/nowhere: `my/api`, `my/other`", "add --yes", "POOL"]);
    let one = home.run(["store", "move", "my/api", "--to", "file:/nowhere"]);
    one.failed(2, &["this moves `my/api` to file:/nowhere", "add --yes", "nothing was changed"]);
}

/// What `up` and the proxy cannot use is no fine file.
#[test]
fn check_and_doctor_report_what_a_daemon_cannot_use() {
    let home = Home::new();
    let pool = "[pool.\"my/api\"]\nrequests = \"60/min\"\n";
    for (text, says) in [
        (
            "[provider.fake]\n",
            &["toml:4: the provider `fake` has no `upstream`", "add upstream"][..],
        ),
        ("[provider.mistrl]\n", &["no `upstream`, and is not a known one", "[provider.mistral]?"]),
    ] {
        home.configure(&format!("version = 1\n{pool}{text}"));
        home.run(["config", "check"]).failed(78, says);
        let doctor = home.run(["doctor"]);
        assert_eq!(doctor.code, Some(78), "{doctor:?}");
        assert!(doctor.out.contains("failure") && !doctor.out.contains("valid, 1 pool"));
        home.run(["up", "--listen", "127.0.0.1:0"]).failed(78, says);
    }
    // The token may be where the daemon runs, and not here.
    home.configure(&format!("version = 1\n{pool}[server]\ntoken_file = \"nope\"\n"));
    let check = home.run(["config", "check"]);
    assert_eq!(check.code, Some(0), "{check:?}");
    for says in ["toml:5: token_file /", "nope does not exist"] {
        assert!(check.err.contains("warning:") && check.err.contains(says), "{check:?}");
        home.run(["up", "--listen", "127.0.0.1:0"]).failed(78, &[says]);
    }
    home.configure(&format!("listen = \"0.0.0.0:8399\"\n{pool}"));
    let says = ["toml:1: 0.0.0.0:8399 is reachable from other machines", "token_file"];
    home.run(["config", "check"]).failed(78, &says);
    home.run(["up"]).failed(78, &says);
}

#[test]
fn check_and_doctor_warn_of_keys_that_cannot_be_used() {
    let home = Home::new();
    home.configure(
        "[pool.\"my/api\"]\nrequests = \"60/min\"\n\
         [provider.openai]\nkey_env = \"STANDPIPE_TEST_NO_KEY\"\n",
    );
    let check = home.run(["config", "check"]);
    assert!(check.printed().ends_with("fine, 1 pool"), "{check:?}");
    let key =
        "toml:4: $STANDPIPE_TEST_NO_KEY, which key_env of [provider.openai] names, is not set";
    for words in [key, "may be elsewhere", "get 403, and only the Unix socket works"] {
        assert!(check.err.contains(words), "`{words}`: {check:?}");
    }
    assert!(home.run(["config", "check", "--json"]).json()["warnings"][1].is_string());
    let doctor = home.run(["doctor", "--json"]).json();
    let all = doctor["findings"].as_array().unwrap().iter();
    let warned = |words: &str| {
        all.clone()
            .any(|one| one["level"] == "warning" && one["what"].as_str().unwrap().contains(words))
    };
    assert!(warned("is not set here") && warned("get 403"), "{doctor}");
}

/// The proxy refuses calls that nothing limits, so their pool is missing.
#[test]
fn check_warns_of_a_provider_whose_calls_have_no_limits() {
    let home = Home::new();
    let shop = "[provider.shop]\nupstream = \"https://shop.example\"\n";
    let calls = "[[provider.shop.calls]]\npaths = [\"/v2/*\"]\n";
    let warned = |text: String| {
        home.configure(&text);
        let check = home.run(["config", "check"]);
        check.printed();
        let missing = "toml:1: no pool has limits for the calls of [provider.shop]";
        check.err.contains(missing) && check.err.contains("add [pool.\"shop/api\"]")
    };
    assert!(warned(shop.to_owned()));
    assert!(warned(format!("{shop}{calls}cost = {{ requests = 2 }}\n")));
    assert!(!warned(format!("{shop}{calls}counted = false\n")));
    assert!(!warned(format!("{shop}[pool.\"shop/api\"]\nrequests = \"60/min\"\n")));
    let learned = shop.replace("shop", "openrouter");
    assert!(!warned(learned), "its limits are learned");
}

/// The note about a file names what checks that file, and a file that is missing has no mistakes.
#[test]
fn the_note_about_an_unusable_file_names_it() {
    let home = Home::new();
    home.run([&["reserve", "my/api"], &LIMIT[..]].concat()).printed();
    let file = home.path.join("other.toml");
    std::fs::write(&file, "[pool.\"my/api\"]\nparalel = 2\n").unwrap();
    let file = file.to_str().unwrap();
    let noted = home.run(["--config", file, "status"]).err;
    assert!(noted.contains(&format!("`standpipe config check {file}`")), "{noted}");
    let store = format!("file:{}", home.path.join("state").display());
    let missing = home.run(["--config", "/no/such.toml", "--store", &store, "status"]);
    missing.printed();
    assert!(missing.err.contains("/no/such.toml"), "{missing:?}");
    assert!(!missing.err.contains("is invalid"), "{missing:?}");
}

/// A file that is being edited must not keep anybody from stopping a daemon or a pool.
#[test]
fn an_invalid_file_does_not_stop_commands_that_need_only_the_ledger() {
    let home = Home::new();
    let lease = home.run([&["reserve", "my/api"], &LIMIT[..]].concat()).printed().to_owned();
    home.configure("[pool.\"my/api\"]\nparalel = 2\n");
    for words in [
        &["status"][..],
        &["status", "my/api", "--json"],
        &["events"],
        &["pause", "my/api", "--for", "1h"],
        &["resume", "my/api"],
        &["audit"],
        &["explain", "my/api"],
        &["commit", &lease, "--progress", "--used", "requests=1"],
        &["heartbeat", &lease],
        &["throttle", "my/api", "--kind", "overload"],
        &["commit", &lease],
    ] {
        let ran = home.run(words.iter().copied());
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let note = ran.err.lines().next().unwrap();
        for part in ["standpipe: the configuration file is invalid", "toml:2: unknown key", "check"]
        {
            assert!(note.contains(part), "`{part}`: {ran:?}");
        }
        assert_eq!(ran.err.matches("is invalid").count(), 1, "{ran:?}");
    }
    assert_eq!(home.status("my/api")["limits"][0]["amount"], 60);
    home.run(["hold", "my/api", "--", "true"]).failed(78, &["unknown key"]);
    // A table with a mistake does not hide the store, which is stated before it or not at all.
    home.configure("[pool.\"my/api\"\n");
    home.run(["status"]).printed();
    // Which ledger is meant is not certain.
    for uncertain in ["stoer = \"redis://h\"\n", "store = \"floppy\"\n"] {
        home.configure(uncertain);
        let hint = "`--store URL` reads the ledger without the file";
        home.run(["status"]).failed(78, &[hint]);
        home.run(["pause", "my/api", "--for", "1s"]).failed(78, &[hint]);
        let state = format!("file:{}", home.path.join("state").display());
        let ran = home.run(["status", "--store", &state]);
        assert!(ran.printed().contains("my/api") && ran.err.contains("is invalid"), "{ran:?}");
    }
}

#[test]
fn an_invalid_file_does_not_keep_a_daemon_running() {
    let home = Home::new();
    for text in ["[pool.\"my/api\"]\nparalel = 2\n", "store = \n"] {
        home.configure("open_pools = true\n");
        let daemon = Daemon::up(&home);
        home.configure(text);
        home.run(["down"]).printed();
        assert_eq!(daemon.ended().code(), Some(0));
    }
    home.run(["down"]).failed(69, &["no daemon runs on /", "--store file:/path"]);
}

#[test]
fn a_changed_limit_is_noted_with_its_options_and_as_what_it_is() {
    let home = Home::new();
    let reserve = |limit: &str| home.run(["reserve", "my/api", "--limit", limit, "--timeout", "0"]);
    reserve("requests=60/min").printed();
    reserve("parallel=9").printed();
    let more = reserve("requests=60/min,burst=500").err;
    let note = "`my/api` has one more limit for every caller: requests=60/min,burst=500 (also: \
                requests=60/min, parallel=9); to loosen it";
    assert!(more.contains(note), "{more}");
    assert_eq!(reserve("requests=60/min,burst=500").err, "");
    let replaced = reserve("requests=60/min,burst=400").err;
    let note = "--limit requests=60/min,burst=400 now applies to every caller of `my/api` (before: \
                requests=60/min,burst=500); to loosen it";
    assert!(replaced.contains(note), "{replaced}");
    let longer = reserve("requests=500/h").err;
    assert!(longer.contains("one more limit for every caller: requests=500/h (also: "), "{longer}");
}

/// The first of several processes creates the pool, and changes nothing for the others.
#[test]
fn equal_limits_on_a_new_pool_of_a_known_provider_are_no_change() {
    let home = Home::new();
    for pool in ["github/alpha", "github/bravo", "github/charlie"] {
        let hold = ["hold", pool, "--limit", "requests=50/s", "--", "true"];
        let started: Vec<_> = (0..6).map(|_| home.start(hold)).collect();
        for ran in started.into_iter().map(crate::support::Running::end) {
            assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
        }
    }
}

#[test]
fn a_status_alone_is_an_answer() {
    let home = Home::new();
    home.run([&["reserve", "my/api"], &LIMIT[..]].concat()).printed();
    let ran = home.run(["observe", "my/api", "--status", "429"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("`my/api` is paused"), "{ran:?}");
}

#[test]
fn the_title_of_a_problem_is_that_of_its_type() {
    let home = Home::new();
    let title = |words: &[&str]| {
        let problem = home.run(words.iter().copied().chain(["--json"])).json();
        (problem["type"].as_str().unwrap().to_owned(), problem["title"].clone())
    };
    assert_eq!(title(&["down"]), ("no_daemon".to_owned(), Value::from("no daemon runs")));
    assert_eq!(title(&["env"]), ("no_daemon".to_owned(), Value::from("no daemon runs")));
    let no_pool = ("no_pool".to_owned(), Value::from("no such pool"));
    assert_eq!(title(&["status", "nope/x"]), no_pool);
    assert_eq!(title(&["reserve", "nope/x"]), no_pool);
    assert_eq!(title(&["commit", "garbage"]).1, "no such lease");
}

#[test]
fn programs_get_the_same_hint_as_people() {
    let home = Home::new();
    let holder = home.hold_the_slot();
    let words = ["reserve", "my/slots", "--timeout", "0", "--json"];
    let ran = home.run(words);
    let hint = ran.json()["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("holder (pid ") && hint.contains("give a longer --timeout"), "{hint}");
    assert!(ran.err.contains(&format!("hint: {hint}")), "{ran:?}");
    // With --busy-exit 0 it is no failure that the command did not run.
    let busy = ["hold", "my/slots", "--timeout", "0", "--busy-exit", "0"];
    let ran = home.run(busy.into_iter().chain(["--", "false"]));
    assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{ran:?}");
    assert!(ran.err.starts_with("standpipe: the command did not run: not admitted"), "{ran:?}");
    let quiet = home.run(busy.into_iter().chain(["-q", "--", "false"]));
    assert_eq!((quiet.code, quiet.err.as_str()), (Some(0), ""), "{quiet:?}");
    let json = home.run(busy.into_iter().chain(["-q", "--json", "--", "false"]));
    assert_eq!((json.code, &json.json()["type"]), (Some(0), &Value::from("not_in_time")));
    holder.end();
}

#[test]
fn a_command_without_an_agent_needs_no_valid_name() {
    let home = Home::new();
    home.run([&["reserve", "my/api"], &LIMIT[..]].concat()).printed();
    let with = |words: &[&str]| {
        let mut command = home.command(words.iter().copied());
        Ran::of(&command.env("STANDPIPE_AGENT", "a b").output().unwrap())
    };
    assert!(with(&["status"]).printed().contains("my/api"));
    with(&["pause", "my/api", "--for", "1h"]).failed(2, &["$STANDPIPE_AGENT", "`a b`"]);
    with(&["up", "--listen", "127.0.0.1:0"]).failed(2, &["$STANDPIPE_AGENT", "`a b`"]);
    assert_eq!(with(&["doctor"]).code, Some(78), "it is reported there");
}

/// An interactive shell or a scheduler says nothing about a call.
#[test]
fn a_held_command_is_named_after_itself_if_only_a_shell_calls() {
    let home = Home::new();
    let agents = |pool: &str| {
        let status = home.status(pool);
        let agents = status["agents"].as_array().unwrap().iter();
        agents.map(|agent| agent["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let by_shell = ["sh", "-c", "\"$@\"; exit $?", "sh"];
    let hold = |pool| ["hold", pool, "--limit", "requests=60/h", "--", "true"];
    home.run_by(&by_shell, hold("my/shell")).printed();
    assert_eq!(agents("my/shell"), ["true"]);
    let script = home.path.join("nightly.sh");
    std::fs::write(&script, "#!/bin/sh\n\"$@\"\nexit $?\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    home.run_by(&[script.to_str().unwrap()], hold("my/script")).printed();
    assert_eq!(agents("my/script"), ["nightly.sh"]);
    // `reserve` runs nothing, so it has the calling program's name.
    home.run_by(&by_shell, ["reserve", "my/reserved", "--limit", "requests=60/h"]).printed();
    assert_eq!(agents("my/reserved"), ["sh"]);
}

#[test]
fn a_ledger_in_memory_is_no_shared_one() {
    let home = Home::new();
    let memory = ["--store", "memory"];
    let limit = ["--limit", "parallel=1"];
    let held = home.run([&memory[..], &["hold", "my/s"], &limit[..], &["--", "true"]].concat());
    assert_eq!(held.code, Some(0), "{held:?}");
    assert!(held.err.contains("the store `memory` limits only this process"), "{held:?}");
    let reserved = home.run([&memory[..], &["reserve", "my/s"], &limit[..]].concat());
    reserved.failed(2, &["the store `memory` ends with this process", "standpipe hold"]);
}

#[test]
fn a_pool_that_does_not_exist_is_said_not_to_exist() {
    let home = Home::new();
    home.run([&["reserve", "my/api"], &LIMIT[..]].concat()).printed();
    let near = home.run(["hold", "my/ap", "--", "true"]);
    near.failed(78, &["there is no pool `my/ap`", "did you mean `my/api`? to create it"]);
    home.run(["hold", "no/where", "--", "true"])
        .failed(78, &["to create it, name it as POOL with --limit"]);
}

#[test]
fn a_call_that_can_never_fit_is_described_with_units_and_maximum() {
    let home = Home::new();
    home.run(["reserve", "my/api", "--limit", "tokens=900/min", "--cost", "tokens=1"]).printed();
    let daemon = Daemon::up(&home);
    let text = "this call can never fit `my/api`: it takes 90,000 tokens, and tokens per 1min \
                allows 900 at most";
    let hint = "make it smaller or raise the limit";
    home.run(["reserve", "my/api", "--cost", "tokens=90k"]).failed(65, &[text, hint]);
    let body = serde_json::json!({"pool": "my/api", "cost": {"tokens": 90_000}});
    let problem = daemon.reserve(&body).problem(422, "never");
    assert_eq!((&problem["detail"], &problem["hint"]), (&Value::from(text), &Value::from(hint)));
}
