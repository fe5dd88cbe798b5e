//! What bad files are told: the line, what is wrong, and what to do.

use super::*;

/// One slip in an otherwise good pool, on line 3.
#[track_caller]
fn slip(line: &str, told: &str) {
    let said = problems(&format!("[pool.\"a/b\"]\nparallel = 1\n{line}\n"));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("s.toml:3: "), "{}", said[0]);
    assert!(said[0].contains(told), "{}\ndoes not say\n{told}", said[0]);
}

/// One slip in a file of its own, on the given line.
#[track_caller]
fn told(text: &str, line: usize, told: &str) {
    let said = problems(text);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with(&format!("s.toml:{line}: ")), "{}", said[0]);
    assert!(said[0].contains(told), "{}\ndoes not say\n{told}", said[0]);
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_file() {
    let said = problems(
        "stoer = \"file\"\nversion = -1\n[agent.x]\nfloor = \"120%\"\n\
         [pool.\"a/b\"]\nrequests = \"60/m\"\nmagrin = 0.2\nfallback = [\"a/c\"]\n",
    );
    let expected = [
        "s.toml:1: unknown key `stoer` at the top of the file; did you mean `store`?",
        "s.toml:2: `version`: is not a version; write a whole number, for example 1",
        "s.toml:4: `floor`: \"120%\" is more than 100 %; write at most \"100%\"",
        "s.toml:6: `requests`: \"m\" is not a unit of time in \"60/m\"; min or ms?",
        "s.toml:7: unknown key `magrin` in a pool; did you mean `margin`?",
        "s.toml:8: there is no pool `a/c`; did you mean `a/b`?",
    ];
    assert_eq!(said, expected);
}

#[test]
fn unknown_keys_everywhere() {
    slip("paralell = 5", "did you mean `parallel`?");
    slip("request = \"60/min\"", "did you mean `requests`?");
    slip("gpu_seconds = \"5/min\"", "declare a unit of your own in the pool's `units` table");
    slip("colour = true", "known here: requests, ");
    slip("requests = { rate = \"5/s\", burts = 3 }", "did you mean `burst`?");
    slip("backoff = { bases = 3 }", "did you mean `base`?");
    slip("return_windows = { critcal = [0, 1] }", "did you mean `critical`?");
    told("[agent.x]\nprioritty = \"standard\"", 2, "did you mean `priority`?");
    told("[store]\nurll = \"file\"", 2, "did you mean `url`?");
    told("[server]\ntokenfile = \"x\"", 2, "did you mean `token_file`?");
    told("[provider.x]\nkeyfile = \"x\"", 2, "did you mean `key_file`?");
    told("[workflow.x]\nagents = [\"a\", \"b\"]\nholds = true", 3, "did you mean `hold`?");
    told("pools = {}", 1, "did you mean `pool`?");
}

#[test]
fn amounts_rates_and_durations() {
    slip("requests = \"-5/min\"", "`requests`: \"-5\" is negative");
    slip("requests = \"0/min\"", "admits no call");
    slip("requests = \"1.5/min\"", "is not a whole number");
    slip("requests = \"99999999999G/min\"", "is too large");
    slip("requests = 60", "has no period; write for example \"60/min\"");
    slip("requests = true", "is true or false; write a text in quotes, or a number");
    slip("requests = []", "is an empty list");
    slip("requests = [\"5/min\", \"6/min\"]", "two limits of the same unit, kind and period");
    slip("requests = { pace = \"1s\" }", "the limit has no rate");
    slip(
        "requests = { rate = \"5/s\", kind = \"window\", burst = 5 }",
        "burst means nothing for a window",
    );
    slip("requests = { rate = \"5/s\", kind = \"bucket\", burst = 0 }", "holds nothing");
    slip("requests = { rate = \"5/s\", kind = \"windw\" }", "did you mean \"window\"?");
    slip("requests = { rate = \"5/s\", pace = 0 }", "is no time at all");
    slip(
        "requests = { rate = \"5/s\", kind = \"bucket\", resets = \"provider\" }",
        "a bucket refills and does not reset",
    );
    slip("lease_ttl = \"5m\"", "min or ms?");
    slip("lease_ttl = -5", "is negative");
    slip("lease_ttl = 1e3", "is not a unit of time");
    slip("lease_ttl = inf", "is not a duration");
    slip("lease_ttl = 0", "is no time at all");
    slip("lease_ttl = 2024-01-01", "is a date or time");
    slip("slack = \"401d\"", "is too long");
    slip("price = { input_tokens = -3 }", "is negative");
    slip("price = { usd = 3 }", "unknown key `usd` in price");
    slip("price = { widgets = 3 }", "unknown key `widgets` in price");
}

#[test]
fn numbers_of_calls_in_flight() {
    for (line, said) in [
        ("0", "admits no call"),
        ("-3", "is negative"),
        ("2.5", "is not a whole number"),
        ("\"5/min\"", "is a rate"),
        ("99999999999999999999", "is too large"),
        ("0xffffffffffffffff", "is too large"),
        ("[1]", "is a list"),
    ] {
        told(&format!("[pool.\"a/b\"]\nparallel = {line}"), 2, said);
    }
    let hex = settings("[pool.\"a/b\"]\nparallel = 0x10");
    assert_eq!(hex.pools[&pool_name("a/b")].limits[0].stated(), 16);
}

#[test]
fn shares_and_floors() {
    told("[agent.x]\nfloor = \"0%\"", 2, "is nothing");
    told("[agent.x]\nfloor = \"10/min\"", 2, "name the unit: { requests = \"10/min\" }");
    told("[agent.x]\nfloor = 25", 2, "is not a percentage; write for example \"25%\"");
    told("[agent.x]\ncap = { parallel = 0 }", 2, "admits no call");
    told("[agent.x]\ncap = { request = \"1/min\" }", 2, "did you mean `requests`?");
    told("[agent.x]\ncap = { \"a/b\" = \"5%\" }", 2, "there is no pool `a/b`");
    told("[agent.x]\ncap = { \"a//b\" = \"5%\" }", 2, "is not the name of a pool");
    told("[agent.x]\npriority = \"urgent\"", 2, "write one of critical, standard, background");
}

#[test]
fn margins_that_are_no_share_or_leave_nothing_usable() {
    let example = "write \"auto\", or for example \"20%\" or 0.2";
    slip("margin = 20", "`margin`: \"20\" leaves nothing usable; write \"20%\" or 0.2");
    slip("margin = \"12.5\"", "leaves nothing usable; write \"12.5%\" or 0.125");
    slip("margin = 1", "leaves nothing usable; write \"1%\" or 0.01");
    slip("margin = 1.0", "leaves nothing usable; write \"1.0%\" or 0.01");
    for all in ["100", "1e3", "99999999999999999999", "\"100%\"", "\"150%\""] {
        slip(&format!("margin = {all}"), example);
    }
    slip("margin = -0.2", "\"-0.2\" is negative; write 0 to use the whole rate");
    slip("margin = \"-20%\"", "is negative");
    slip("margin = 0.1234", "is finer than a tenth of a percent");
    slip("margin = \"most\"", &format!("\"most\" is not a share; {example}"));
    slip("margin = true", "is true or false");
}

#[test]
fn the_old_key_headroom_is_rejected_with_the_margin_that_means_the_same() {
    for (old, new) in [
        ("0.8", "\"20%\""),
        ("\"80%\"", "\"20%\""),
        ("0.875", "\"12.5%\""),
        ("0.001", "\"99.9%\""),
        ("1.0", "0"),
        ("1", "0"),
        ("\"auto\"", "\"auto\""),
    ] {
        let said = problems(&format!("[pool.\"a/b\"]\nparallel = 1\nheadroom = {old}\n"));
        let expected = "s.toml:3: `headroom` is now `margin`, the share that is left unused";
        assert_eq!(said, [format!("{expected}; write margin = {new}")]);
        settings(&format!("[pool.\"a/b\"]\nparallel = 1\nmargin = {new}\n"));
    }
    for odd in ["0", "80", "-1", "\"most\"", "true", "[]"] {
        slip(&format!("headroom = {odd}"), "left unused; write for example margin = \"20%\"");
    }
}

#[test]
fn a_floor_above_the_same_agent_s_cap() {
    let pool = "[pool.\"a/b\"]\nrequests = \"100/min\"\nparallel = 10\n[agent.x]\n";
    for (shares, said) in [
        ("floor = \"30%\"\ncap = \"20%\"", "the floor of `x` is above its cap"),
        ("floor = \"25%\"\ncap = { requests = \"10/min\" }", "(requests of 25/min) is above"),
        // A cap has a period of its own: 20 in ten minutes are two in one.
        ("floor = \"3%\"\ncap = { requests = \"20/10min\" }", "(requests of 3/min) is above"),
        ("floor = { parallel = 5 }\ncap = { parallel = 4 }", "(5 calls in flight) is above"),
        ("floor = { \"a/b\" = \"30%\" }\ncap = \"20%\"", "on `a/b` (requests of 30/min) is above"),
        ("floor = { requests = \"1/s\" }\ncap = { \"a/b\" = \"50%\" }", "(requests of 60/min)"),
    ] {
        told(&format!("{pool}{shares}"), 5, said);
        told(&format!("{pool}{shares}"), 5, "lower the floor to what the cap allows, or raise");
    }
    for shares in [
        "floor = \"20%\"\ncap = \"20%\"",
        "floor = \"10%\"\ncap = { requests = \"10/min\" }",
        "floor = \"10%\"\ncap = { requests = \"1/s\", parallel = 1 }",
        "floor = { \"a/b\" = \"1%\" }\ncap = \"0.1%\"",
    ] {
        settings(&format!("{pool}{shares}"));
    }
    // Where the limits are learned, shares can be compared all the same.
    told("[agent.x]\nfloor = \"30%\"\ncap = \"20%\"", 2, "above its cap");
}

#[test]
fn floors_that_add_up_to_more_than_there_is() {
    let pool = "[pool.\"a/b\"]\nrequests = \"100/min\"\nparallel = 4\n";
    let three =
        "[agent.z]\nfloor = \"60%\"\n[agent.y]\nfloor = \"30%\"\n[agent.x]\nfloor = \"20%\"";
    told(
        &format!("{pool}{three}"),
        9,
        "with `x` the floors on `a/b` add up to more than its requests of 100/min",
    );
    let rates = "[agent.x]\nfloor = { requests = \"60/min\" }\n\
                 [agent.y]\nfloor = { \"a/b\" = { requests = \"1/s\" } }";
    told(&format!("{pool}{rates}"), 7, "with `y` the floors");
    let slots = "[agent.x]\nfloor = { parallel = 5 }";
    told(&format!("{pool}{slots}"), 5, "more than its 4 calls in flight");
    settings(&format!("{pool}[agent.x]\nfloor = \"50%\"\n[agent.y]\nfloor = \"50%\""));
}

#[test]
fn names_that_are_none() {
    let long = "x".repeat(10_000);
    for name in ["", "line\\nbreak", "🚰", &long, "a b"] {
        let agent = problems(&format!("[agent.\"{name}\"]\n"));
        assert_eq!(agent.len(), 1, "{agent:?}");
        assert!(agent[0].starts_with("s.toml:1: \""), "{}", agent[0]);
        assert!(agent[0].contains("is not the name of an agent; use 1 to 64 of"), "{}", agent[0]);
        let pool = problems(&format!("[pool.\"{name}\"]\nparallel = 1\n"));
        assert!(pool[0].contains("is not the name of a pool"), "{}", pool[0]);
        let workflow = problems(&format!("[workflow.\"{name}\"]\nagents = [\"a\", \"b\"]\n"));
        assert!(workflow[0].contains("is not the name of a workflow"), "{}", workflow[0]);
        for said in agent.iter().chain(&pool).chain(&workflow) {
            assert!(said.len() < 400 && !said.chars().any(char::is_control), "{said}");
        }
    }
    told("[pool.sonnet]\nparallel = 1", 1, "a pool is named `provider/scope`");
    told("[pool.anthropic.sonnet]\nparallel = 1", 1, "did you mean [pool.\"anthropic/sonnet\"]?");
    told("[pool.\"a/b\".units]\nGPU = \"5/s\"", 2, "write `gpu`");
    told("[pool.\"a/b\".units]\nrequests = \"5/s\"", 2, "move `requests` up");
    told("[provider.metrics]", 1, "serves something else under that name");
    told("[provider.v1]", 1, "serves something else under that name");
    slip("provider = \"a b\"", "is not the name of a provider");
    slip("models = [\"\"]", "is empty, too long or not printable");
}

#[test]
fn values_of_the_wrong_kind() {
    told("pool = 5", 1, "`pool`: is a number; write a table: [pool]");
    told("[[pool]]\nx = 1", 1, "`pool`: is a list");
    told("[pool]\n\"a/b\" = \"60/min\"", 2, "`a/b`: is a text; write a table: [pool.\"a/b\"]");
    told("open_pools = \"true\"", 1, "write true or false, without quotes");
    told("store = 5", 1, "write a text in quotes");
    slip("enforce = 1", "write true or false");
    slip("models = \"claude-*\"", "is a text; write a list");
    slip("fallback = [5]", "write a text in quotes");
    slip("zones = \"on\"", "write \"auto\", true or false");
    slip("on_store_failure = \"opne\"", "did you mean \"open\"?");
    slip("backoff = 5", "write a table");
    slip("backoff = { factor = 0.5 }", "shrinks");
    slip("backoff = { base = 10, cap = 5 }", "the cap is shorter than the base");
    slip("return_windows = { critical = [1] }", "is not a beginning and an end");
    slip("return_windows = { critical = [5, 1] }", "ends before it begins");
    told("listen = \"localhost:80\"", 1, "write for example \"127.0.0.1:8377\"");
    told("version = 1.5", 1, "is not a version");
}

#[test]
fn names_that_lead_nowhere() {
    slip("fallback = [\"a/b\"]", "falls back on itself");
    slip("fallback = [\"a/x\", \"a/x\"]\n[pool.\"a/x\"]\nparallel = 1", "is named twice");
    told("[route]\nclassify = [\"a/b\"]", 2, "add [pool.\"a/b\"], or write open_pools = true");
    told("[route]\nclassify = []", 2, "name at least one pool");
    told("[workflow.x]\nagents = [\"a\"]", 1, "name at least two");
    told("[workflow.x]", 1, "name at least two");
    told("[workflow.x]\nagents = [\"a\", \"a\"]", 2, "is in the chain twice");
    told("[workflow.x]\nagents = [\"a\", \"b c\"]", 2, "is not the name of an agent");
    told("[pool.\"a/b\"]", 1, "has no limit, and no provider to learn one from");
    settings("open_pools = true\n[route]\nclassify = [\"a/b\"]");
}

#[test]
fn what_is_not_toml() {
    told("[pool.anthropic/sonnet]", 1, "put the name in quotes: [pool.\"anthropic/sonnet\"]");
    told("[pool.\"a/b\"]\nparallel = 1\nparallel = 2\n", 3, "keep one of the two");
    told("[pool.\"a/b\"]\nrequests = 60/min\n", 2, "this is not TOML");
    told("open_pools = yes", 1, "put texts in quotes");
    told("\n\nstore = \"file", 3, "this is not TOML");
    told("[pool.\"a/b\"\nparallel = 1", 1, "this is not TOML");
    let said = problems("a b\nversion = 1\nc d\n");
    let lines: Vec<&str> = said.iter().map(|said| &said[..9]).collect();
    assert_eq!(lines, ["s.toml:1:", "s.toml:3:"], "{said:?}");
}

#[test]
fn too_much_of_something() {
    let agents: String = (0..257).map(|n| format!("[agent.a{n}]\n")).collect();
    told(&format!("\n{agents}"), 2, "257 agents are described; at most 256 are kept");
    let rates: Vec<String> = (1..=17).map(|n| format!("\"5/{n}s\"")).collect();
    told(&format!("[pool.\"a/b\"]\nrequests = [{}]", rates.join(", ")), 2, "the 16 that are kept");
    let caps: String = (0..200).map(|n| format!("[agent.a{n}]\ncap = \"50%\"\n")).collect();
    let pool = format!("[pool.\"a/b\"]\nrequests = [{}]\n", rates[..16].join(", "));
    told(&format!("{pool}{caps}"), 1, "fewer floors and caps that concern this pool");
}

#[test]
fn stores_that_are_none() {
    told("store = \"fil\"", 1, "did you mean file, or file:/path?");
    told("store = \"mysql://u:p@h\"", 1, "write file, file:/path, memory, redis://host");
    told("store = \"redis:\"", 1, "did you mean redis://host?");
    told("store = \"redis://\"", 1, "names no host");
    told("store = \"redis://u:p@\"", 1, "names no host");
    told("store = \"file:here\"", 1, "is not an absolute path");
    told("store = \"\"", 1, "no store that is known");
    told("[store]\nprefix = \"a b\"", 2, "use 1 to 64 of");
    told("[store]\nwait_replicas = 100", 2, "at most 64");
}

#[test]
fn providers_that_cannot_be_reached() {
    told("[provider.x]\nupstream = \"api.example.com\"", 2, "is not a URL of http or https");
    told("[provider.x]\nupstream = \"https://\"", 2, "has no host");
    told("[provider.x]\nkey_file = \"~/key\"", 2, "write the whole path");
    told("[provider.x]\nkey_file = \"\"", 2, "is not a path");
    told("[provider.x]\nkey_file = \"a\"\nkey_env = \"B\"", 1, "keep one of them");
}
