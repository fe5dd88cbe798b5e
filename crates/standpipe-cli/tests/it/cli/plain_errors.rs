//! Errors in the program's own words, and notes about limits that are true.

use crate::support::Home;

/// The stated amounts of a pool's limits, in their order.
fn amounts(home: &Home, pool: &str) -> Vec<u64> {
    let status = home.status(pool);
    let limits = status["limits"].as_array().unwrap().iter();
    limits.map(|limit| limit["amount"].as_u64().unwrap()).collect()
}

#[test]
fn a_call_that_can_never_fit_leaves_the_limits_of_the_pool() {
    let home = Home::new();
    let ask = |more: &[&'static str]| home.run([&["reserve", "my/api"], more].concat());
    ask(&["--limit", "requests=60/min", "--limit", "tokens=900/min"]).printed();
    // Too large for its own limit, and for one that the pool has already.
    ask(&["--limit", "requests=30/min", "--cost", "requests=31"]).failed(65, &["31"]);
    ask(&["--limit", "requests=30/min", "--cost", "tokens=901"]).failed(65, &["901"]);
    assert_eq!(amounts(&home, "my/api"), [60, 900]);
    // A new pool gets no limits by it.
    let new = ["reserve", "my/new", "--limit", "requests=30/min", "--cost", "requests=31"];
    home.run(new).failed(65, &["my/new"]);
    home.run(["reserve", "my/new", "--limit", "requests=60/min"]).printed();
    assert_eq!(amounts(&home, "my/new"), [60]);
    // A call that only has to wait tightens it, as before.
    ask(&["--limit", "requests=40/min", "--cost", "tokens=5", "--timeout", "0"]).printed();
    assert_eq!(amounts(&home, "my/api"), [40, 900]);
}

#[test]
fn a_note_names_limits_that_stay_beside_those_that_apply() {
    let home = Home::new();
    home.run(["reserve", "my/api", "--limit", "requests=30/min"]).printed();
    let both = ["--limit", "requests=60/min", "--limit", "tokens=90k/min", "--cost", "tokens=7"];
    let ran = home.run([&["reserve", "my/api"], &both[..]].concat());
    ran.printed();
    let applies = "`my/api` has one more limit for every caller: tokens=90k/min (also: ";
    let stays = "requests=30/min stays, because --limit requests=60/min is looser";
    assert!(ran.err.contains(applies) && ran.err.contains(stays), "{ran:?}");
}

#[test]
fn a_note_about_a_unit_that_the_call_does_not_name_has_what_is_charged() {
    let home = Home::new();
    let ran = home.run(["reserve", "my/api", "--limit", "tokens=100/min"]);
    ran.printed();
    let note = "--limit tokens=… counts only 1 for this call, which names no tokens; add --cost";
    assert!(ran.err.contains(note), "{ran:?}");
    assert_eq!(home.status("my/api")["limits"][0]["used"], 1);
}

#[test]
fn a_call_without_tokens_on_a_pool_of_the_file_that_limits_them_is_noted() {
    let home = Home::new();
    home.configure("[pool.\"my/api\"]\nrequests = \"60/min\"\ntokens = \"9k/min\"\n");
    let note = "`my/api` limits tokens, and this call, which names none, is charged only 1";
    assert!(home.run(["hold", "my/api", "--", "true"]).err.contains(note));
    assert!(home.run(["reserve", "my/api"]).err.contains(note));
    for size in [["--cost", "tokens=900"], ["--bytes", "4000"]] {
        let ran = home.run([&["hold", "my/api"][..], &size, &["--", "true"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    }
}

#[test]
fn errors_of_the_system_are_in_plain_words_with_a_hint() {
    let home = Home::new();
    let elsewhere = "hint: choose another directory for the ledger (STANDPIPE_HOME, or --store";
    for (store, why) in [
        (
            "file:/dev/null/x",
            "cannot create the state directory /dev/null/x: a part of the path is",
        ),
        ("file:/proc/foo", "cannot create the state directory /proc/foo: its file system takes no"),
    ] {
        let ran = home.run(["--store", store, "status"]);
        ran.failed(69, &[why, elsewhere]);
        assert!(!ran.err.contains("os error"), "{ran:?}");
    }
    let full = home.run_by(&["sh", "-c", "exec \"$@\" > /dev/full", "sh"], ["man"]);
    full.failed(74, &["cannot write the output: no space is left on the device", "hint: "]);
    assert!(!full.err.contains("os error"), "{full:?}");
}

#[test]
fn a_host_that_cannot_be_resolved_has_a_hint() {
    let home = Home::new();
    let ran = home.run(["--store", "redis://no.such.host.invalid", "status"]);
    ran.failed(69, &["no.such.host.invalid", "cannot be resolved", "hint: check the host in"]);
}

#[test]
fn events_take_instants_and_reject_unknown_pools() {
    let home = Home::new();
    home.run(["reserve", "my/slots", "--limit", "parallel=1"]).printed();
    let all = home.run(["events", "--since", "2020-01-31T12:00:00Z"]);
    assert!(all.printed().contains("limits from code or flags: applied"), "{all:?}");
    let none = home.run(["events", "--since", "2099-01-31T12:00:00Z"]);
    assert!(none.printed().is_empty() && none.err.contains("no events since 2099-01-31"));
    home.run(["events", "--since", "2026-13-45"]).failed(2, &["not an instant", "31T12:00:00Z"]);
    for follow in [&[][..], &["--follow"]] {
        let ran = home.run([&["events", "--pool", "my/slotz"], follow].concat());
        ran.failed(78, &["there is no pool `my/slotz`", "did you mean `my/slots`?"]);
    }
    home.run(["events", "--pool", "my/slots"]).printed();
}

#[test]
fn names_that_mean_nothing_are_rejected() {
    let home = Home::new();
    let both = ["reserve", "my/b", "--limit", "parallel=1", "--also", "my/b"];
    home.run(both).failed(2, &["`my/b` is named twice", "name each pool once"]);
    home.run(["reserve", "my/b", "--ttl", "0"]).failed(2, &["--ttl must be longer than 0"]);
}

#[test]
fn a_command_that_does_not_exist_has_a_hint_that_fits_how_it_is_written() {
    let home = Home::new();
    let hold = |command: &str| home.run(["hold", "my/tt", "--limit", "parallel=1", "--", command]);
    let words = "hint: write its words separately, or a script: sh -c 'echo hi'; nothing was";
    hold("echo hi").failed(127, &["there is no command `echo hi`", words]);
    hold("no-such-program").failed(127, &["hint: check its name and $PATH; nothing was reserved"]);
    for (path, gone) in [("/etc/no/such.sh", "/etc/no"), ("./none/such.sh", "./none")] {
        let what = format!("there is no file `{path}`");
        let ran = hold(path);
        ran.failed(127, &[&what, &format!("check the path: `{gone}` does not exist")]);
        assert!(!ran.err.contains("$PATH"), "{ran:?}");
    }
}

/// What logs in to a store may be on another machine, so `config check` only warns.
#[test]
fn a_missing_password_or_authority_of_the_store_is_an_error_of_the_file() {
    let home = Home::new();
    for (key, says, hint) in [
        (
            "password_file = \"/nope/pw\"",
            "password_file /nope/pw does not exist",
            "create the file",
        ),
        ("ca = \"/nope/ca.pem\"", "ca /nope/ca.pem does not exist", "create the file"),
        (
            "password_env = \"STANDPIPE_TEST_NO_PASSWORD\"",
            "$STANDPIPE_TEST_NO_PASSWORD, which password_env of [store] names, is not set here",
            "set it where Standpipe runs",
        ),
    ] {
        home.configure(&format!("[store]\nurl = \"redis://127.0.0.1:9\"\n{key}\n"));
        let check = home.run(["config", "check"]);
        check.printed();
        let at = format!("toml:3: {says}");
        assert!(check.err.contains("warning:") && check.err.contains(&at), "{check:?}");
        let ping = home.run(["store", "ping"]);
        ping.failed(78, &[&at, &format!("hint: {hint}")]);
        assert!(!ping.err.contains("os error"), "{ping:?}");
        let problem = home.run(["store", "ping", "--json"]).json();
        assert_eq!(problem["type"], "config", "{problem}");
        let doctor = home.run(["doctor", "--json"]).json();
        let found = doctor["findings"].as_array().unwrap();
        let named = found.iter().filter(|one| one["what"].as_str().unwrap().contains(says));
        let levels: Vec<&str> = named.map(|one| one["level"].as_str().unwrap()).collect();
        assert_eq!(levels, ["failure"], "once: {doctor}");
    }
}

#[test]
fn the_event_of_a_call_that_can_never_fit_has_how_much_it_is_too_large() {
    let home = Home::new();
    let limits = ["--limit", "tokens=10k/min", "--limit", "parallel=2"];
    home.run([&["reserve", "my/big", "--cost", "tokens=1"], &limits[..]].concat()).printed();
    let ask =
        |cost| home.run(["reserve", "my/big", "--as", "cron", "--timeout", "0", "--cost", cost]);
    ask("tokens=20000").failed(65, &["it takes 20,000 tokens"]);
    ask("parallel=9").failed(65, &["9 slots"]);
    let events = home.run(["events", "--kind", "refuse"]);
    for words in ["it takes 10,000 more than tokens per 1min ever allows", "it takes 7 more than"] {
        assert!(events.printed().contains(words), "{events:?}");
    }
    let lines = home.run(["events", "--kind", "refuse", "--json"]);
    for field in ["\"short_by\":10000", "\"short_by\":7"] {
        assert!(lines.printed().contains(field), "{lines:?}");
    }
}

#[test]
fn an_empty_variable_is_one_that_is_not_set() {
    let home = Home::new();
    for name in ["STANDPIPE_AGENT", "STANDPIPE_PRIORITY", "STANDPIPE_CONFIG"] {
        let empty = format!("{name}=");
        let with = ["env", empty.as_str()];
        home.run_by(&with, ["reserve", "my/slots", "--limit", "parallel=9"]).printed();
    }
}

#[test]
fn a_file_that_is_no_ca_of_a_provider_is_a_warning() {
    let home = Home::new();
    let provider = "[provider.x]\nupstream = \"https://api.example\"\n";
    for (file, says) in [
        ("standpipe.toml", "standpipe.toml contains no certificate"),
        ("/nope/ca.pem", "toml:3: ca /nope/ca.pem cannot be read: it does not exist"),
    ] {
        home.configure(&format!("{provider}ca = \"{file}\"\n"));
        let check = home.run(["config", "check"]);
        check.printed();
        assert!(check.err.contains("warning:") && check.err.contains(says), "{check:?}");
    }
}
