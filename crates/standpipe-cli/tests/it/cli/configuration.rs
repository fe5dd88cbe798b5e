//! `config`, and what a configuration file does to commands.

use crate::support::{Home, Ran};

#[test]
fn init_writes_a_valid_file() {
    let home = Home::new();
    let written = home.run(["config", "init"]);
    let file = written.printed();
    assert!(file.ends_with("config/standpipe/standpipe.toml"), "{file}");
    assert!(home.run(["config", "check"]).printed().contains("fine"));
    home.run(["config", "init"]).failed(78, &["already", "--force"]);
    home.run(["config", "init", "--force"]).printed();
    let elsewhere = home.run(["config", "init", "here.toml"]);
    assert_eq!(elsewhere.printed(), "here.toml");
    assert!(home.run(["config", "check", "here.toml"]).printed().contains("here.toml: fine"));
}

#[test]
fn check_reports_all_errors_at_once() {
    let home = Home::new();
    home.configure(
        "stoer = \"file\"\n[pool.\"a/b\"]\nrequests = \"60/m\"\nparalel = 2\n\
         input_tokens = \"-1/s\"\n",
    );
    let ran = home.run(["config", "check"]);
    assert_eq!(ran.code, Some(78), "{ran:?}");
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!(lines.len(), 8, "{ran:?}");
    for (lines, words) in lines.chunks(2).zip([
        ["toml:1:", "`store`"],
        ["toml:3:", "min"],
        ["toml:4:", "`parallel`"],
        ["toml:5:", "-1"],
    ]) {
        assert!(lines[0].starts_with("error: ") && lines[1].starts_with("hint: "), "{lines:?}");
        for word in words {
            assert!(lines.concat().contains(word), "`{word}` is not in {lines:?}");
        }
    }
}

#[test]
fn a_file_in_the_working_directory_is_not_read_and_named() {
    let home = Home::new();
    let here = home.path.join("standpipe.toml");
    std::fs::write(&here, "[pool.\"my/api\"]\nrequests = \"60/min\"\n").unwrap();
    let usual = home.path.join("config/standpipe/standpipe.toml").display().to_string();
    let unread = "./standpipe.toml is not read";
    let remedy = format!("use --config ./standpipe.toml, or move it to {usual}");
    let ran = home.run(["config", "check"]);
    assert!(ran.printed().contains("no configuration file is in force"), "{ran:?}");
    assert!(ran.err.contains(unread) && ran.err.contains(&remedy), "{ran:?}");
    let doctor = home.run(["doctor"]);
    assert!(doctor.out.contains(unread), "{doctor:?}");
    let failed = home.run(["reserve", "my/api"]);
    failed.failed(78, &[&format!("describe it in {usual}; {unread}; {remedy}")]);
    // The file in force is another one, or this one.
    home.configure("open_pools = true\n");
    let ran = home.run(["config", "check"]);
    assert!(ran.err.contains(&format!("{unread}; use --config ./standpipe.toml; {usual} is in")));
    for words in [&["config", "check", "./standpipe.toml"][..], &["config", "check"]] {
        let named = [&["--config", "standpipe.toml"], words].concat();
        assert_eq!(home.run(named).err, "");
    }
}

#[test]
fn doctor_names_a_variable_that_is_not_read() {
    let home = Home::new();
    let mut command = home.command(["doctor"]);
    let command = command.env("STANDPIPE_HOEM", "/x").env("STANDPIPE_STORE", "redis://127.0.0.1");
    let ran = Ran::of(&command.output().unwrap());
    for text in
        ["$STANDPIPE_HOEM is not read", "did you mean $STANDPIPE_HOME?", "$STANDPIPE_STORE is"]
    {
        assert!(ran.out.contains(text), "{ran:?}");
    }
}

#[test]
fn check_warns_of_a_time_to_live_that_is_cut() {
    let home = Home::new();
    home.configure("[pool.\"a/b\"]\nrequests = \"60/min\"\nlease_ttl = \"2h\"\n");
    let ran = home.run(["config", "check"]);
    assert!(ran.printed().contains("fine"));
    let warned = "toml:3: `lease_ttl` of 2 h is longer than `longest_lease`: leases end after 1 h";
    assert!(ran.err.contains(warned), "{ran:?}");
    home.configure("[pool.\"a/b\"]\nrequests = \"60/min\"\nlongest_lease = \"5min\"\n");
    assert_eq!(home.run(["config", "check"]).err, "");
}

#[test]
fn a_file_that_is_no_toml_is_78_with_its_line() {
    let home = Home::new();
    home.configure("store = \"file\"\n[pool.\"a/b\"\n");
    home.run(["hold", "a/b", "--", "true"]).failed(78, &["standpipe.toml:2"]);
}

#[test]
fn no_file_is_fine() {
    let home = Home::new();
    assert!(home.run(["config", "check"]).printed().contains("none is needed"));
    home.run(["config", "show"]).printed();
    home.run(["config", "check", "missing.toml"]).failed(78, &["missing.toml"]);
}

#[test]
fn limits_come_from_the_file_and_an_unknown_pool_gets_a_suggestion() {
    let home = Home::new();
    home.configure("[pool.\"my/slots\"]\nparallel = 1\n");
    home.run(["hold", "my/slots", "--", "true"]).printed();
    assert_eq!(home.status("my/slots")["origin"]["source"], "file");
    home.run(["hold", "my/slot", "--", "true"]).failed(78, &["my/slot", "my/slots"]);
    home.run(["status", "my/slot"]).failed(78, &["my/slots"]);
}

/// Such a file refuses almost every call, and every command that a person would try says so.
#[test]
fn a_file_without_pools_is_warned_about() {
    let home = Home::new();
    home.configure(
        "open_pools = false\n[provider.anthropic]\nupstream = \"https://example.com\"\n",
    );
    let check = home.run(["config", "check"]);
    assert!(check.printed().ends_with("fine, 0 pools"), "{check:?}");
    assert!(check.err.contains("describes no pool and open_pools is false"), "{check:?}");
    let doctor = home.run(["doctor"]);
    assert!(doctor.out.contains("describes no pool"), "{doctor:?}");
    assert!(doctor.out.contains("none runs, and none is needed"), "{doctor:?}");
    let status = home.run(["status"]);
    assert!(status.out.contains("open_pools"), "{status:?}");
    assert!(!status.out.contains("The first `hold`"), "{status:?}");
    let refused = ["there is no pool `my/api`", "open_pools = true"];
    for command in ["status", "explain"] {
        home.run([command, "my/api"]).failed(78, &refused);
    }
    home.run(["hold", "my/api", "--limit", "parallel=1", "--", "true"]).failed(78, &refused);
    home.run(["hold", "anthropic/sonnet", "--", "true"]).printed();
}

#[test]
fn init_adds_a_provider_to_a_file_and_keeps_every_old_one() {
    let home = Home::new();
    let own = "# mine\nlisten = \"127.0.0.1:9\"\n\n[agent.blog]\npriority = \"critical\"\n";
    home.configure(own);
    let file = home.path.join("config/standpipe/standpipe.toml");
    let text = || std::fs::read_to_string(&file).unwrap();
    let added = home.run(["config", "init", "--for", "github"]);
    assert!(added.err.contains("3 pools added") && added.err.contains("errors from now on"));
    assert!(text().starts_with(own.trim_end()), "{}", text());
    let again = home.run(["config", "init", "--for", "github"]);
    assert!(again.err.contains("nothing to add"), "{again:?}");
    let commented = home.run(["config", "init", "--for", "openai"]);
    let said = "added a commented section for openai; Standpipe learns its limits";
    assert!(commented.err.contains(said), "{commented:?}");
    let again = home.run(["config", "init", "--for", "openai"]);
    assert!(again.err.contains("has what is known about openai already"), "{again:?}");
    home.run(["config", "check"]).printed();
    // A pool that only a file describes is not in use.
    home.run(["status"]).printed();
    for _ in 0..2 {
        home.run(["config", "init", "--for", "anthropic", "--force"]).printed();
    }
    assert!(!text().contains("In use"), "{}", text());
    let kept = |number: &str| {
        let kept = format!("{}.bak{number}", file.display());
        std::fs::read_to_string(kept).unwrap_or_default()
    };
    assert!(kept("").contains("# mine") && kept(".2").contains("anthropic/opus"));
    let other = ["hold", "my/other", "--limit", "parallel=1", "--", "true"];
    home.run(other).failed(78, &["there is no pool"]);
    home.configure("nonsense\n");
    home.run(["config", "init", "--for", "github"]).failed(78, &["not TOML"]);
    assert_eq!(text(), "nonsense\n");
    let directory = home.path.join("a-directory");
    std::fs::create_dir(&directory).unwrap();
    let hint = "hint: name a file in it: standpipe config init a-directory/standpipe.toml";
    home.run(["config", "init", "a-directory"]).failed(78, &["a-directory is a directory", hint]);
    let below = format!("{}/x.toml", file.display());
    home.run(["config", "init", &below]).failed(78, &["toml is a file, not a directory"]);
}

/// A file that names the store, an agent or the daemon's address is not about pools.
#[test]
fn a_file_without_pools_refuses_nothing() {
    let home = Home::new();
    home.configure("[agent.blog]\npriority = \"critical\"\n");
    let check = home.run(["config", "check"]);
    assert!(check.printed().ends_with("fine, 0 pools") && check.err.is_empty(), "{check:?}");
    home.run(["hold", "my/api", "--limit", "parallel=1", "--", "true"]).printed();
    assert_eq!(home.status("my/api")["in_flight"], 0);
}

#[test]
fn a_caller_with_ignored_limits_is_noted_which_apply() {
    let home = Home::new();
    let newer = home.path.join("newer.toml");
    std::fs::write(&newer, "version = 3\n[pool.\"my/slots\"]\nparallel = 1\n").unwrap();
    let mut first = home.command(["hold", "my/slots", "--", "true"]);
    assert!(first.env("STANDPIPE_CONFIG", &newer).status().unwrap().success());
    home.configure("version = 2\n[pool.\"my/slots\"]\nparallel = 9\n");
    let older = home.run(["hold", "my/slots", "--", "true"]);
    assert_eq!(older.code, Some(0), "{older:?}");
    for words in ["parallel=1", "of version 3 written 20", "standpipe.toml", "`version` above 3"] {
        assert!(older.err.contains(words), "`{words}` is not said: {older:?}");
    }
    let mut flags = home.command(["reserve", "my/slots", "--limit", "parallel=9"]);
    let flags = Ran::of(&flags.env("STANDPIPE_CONFIG", &newer).output().unwrap());
    for words in ["parallel=1 from a file", "not --limit parallel=9", "leave --limit out"] {
        assert!(flags.err.contains(words), "`{words}` is not said: {flags:?}");
    }
}

/// Who writes a file must still see, and be able to operate on, what was there before.
#[test]
fn a_pool_that_the_file_lacks_can_be_shown_and_operated_on() {
    let home = Home::new();
    home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "true"]).printed();
    home.configure("[pool.\"example/api\"]\nrequests = \"60/min\"\n");
    assert!(home.run(["status"]).printed().contains("my/slots"));
    for args in [
        &["status", "my/slots", "--check"][..],
        &["explain", "my/slots"],
        &["pause", "my/slots", "--for", "1h"],
        &["resume", "my/slots"],
        &["throttle", "my/slots", "--retry-after", "1ms"],
        &["store", "ping"],
        &["store", "dump", "my/slots"],
        &["store", "reset", "my/slots", "--yes"],
    ] {
        home.run(args.iter().copied()).printed();
    }
    home.run(["hold", "my/slots", "--limit", "parallel=1", "--", "true"]).failed(78, &["no pool"]);
    home.run(["reserve", "my/slots", "--limit", "parallel=1"]).failed(78, &["no pool"]);
    let dry = ["reserve", "my/slots", "--limit", "parallel=1", "--dry-run"];
    home.run(dry).failed(78, &["no pool"]);
}

/// A file makes other pools an error, so the first file has those in use, or leaves pools open.
#[test]
fn the_first_file_stops_nothing_that_worked() {
    let home = Home::new();
    let hold = ["hold", "my/slots", "--limit", "parallel=1", "--", "true"];
    home.run(["config", "init"]).printed();
    home.run(hold).printed();
    home.run(["config", "init", "--force"]).printed();
    home.run(["config", "check"]).printed();
    home.run(["hold", "my/slots", "--", "true"]).printed();
    home.run(["hold", "my/slot", "--limit", "parallel=1", "--", "true"])
        .failed(78, &["did you mean `my/slots`"]);
    for provider in ["anthropic", "openai", "github"] {
        home.run(["config", "init", "--for", provider, "--force"]).printed();
        home.run(["config", "check"]).printed();
        home.run(hold).printed();
    }
}

#[test]
fn pools_of_the_file_show_before_they_are_used() {
    let home = Home::new();
    home.configure("[pool.\"my/slots\"]\nparallel = 3\n");
    let ran = home.run(["status"]);
    assert!(ran.printed().contains("my/slots"), "{ran:?}");
    assert!(ran.printed().contains("idle"), "{ran:?}");
    assert!(ran.printed().contains("0 of 3"), "{ran:?}");
}

#[test]
fn show_prints_the_origin_of_values() {
    let home = Home::new();
    home.configure("[pool.\"my/slots\"]\nparallel = 3\n");
    assert!(home.run(["config", "show"]).printed().contains("parallel = 3"));
    let origins = home.run(["config", "show", "--origin"]);
    assert!(origins.printed().contains("standpipe.toml:2"), "{origins:?}");
    assert!(origins.printed().contains("default"), "{origins:?}");
    home.run(["config", "show", "--json"]).json();
}

#[test]
fn the_schema_is_json_schema() {
    let ran = Home::new().run(["config", "schema"]);
    let schema: serde_json::Value = serde_json::from_str(ran.printed()).unwrap();
    assert!(schema["$schema"].as_str().unwrap().contains("2020-12"));
}

/// The file describes agents and no pool: their settings count on every pool that they use.
#[test]
fn agents_of_the_file_count_on_pools_that_it_does_not_describe() {
    let home = Home::new();
    // A learned pool that was used before there was a file.
    home.run(["hold", "anthropic/sonnet", "--as", "x", "--", "true"]).printed();
    home.configure(
        "open_pools = true\n[agent.vip]\npriority = \"critical\"\ncap = { requests = \"3/min\" }\n\
         [agent.crawler]\npriority = \"background\"\nfloor = \"10%\"\n",
    );
    let call = ["my/api", "--limit", "requests=30/min", "--as", "vip"];
    for _ in 0..3 {
        home.run(["hold"].into_iter().chain(call).chain(["--", "true"])).printed();
    }
    let late = ["reserve"].into_iter().chain(call).chain(["--timeout", "0"]);
    home.run(late).failed(75, &["cap"]);
    let tier = |pool: &str, agent: &str| {
        home.run(["explain", pool, "--as", agent, "--json"]).json()["priority"].clone()
    };
    assert_eq!(tier("my/api", "vip"), "critical");
    home.run(["reserve", "anthropic/sonnet", "--as", "crawler", "--timeout", "0"]);
    assert_eq!(tier("anthropic/sonnet", "crawler"), "background");
    assert_eq!(tier("anthropic/sonnet", "other"), "standard");
}
