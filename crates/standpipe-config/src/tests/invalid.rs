//! Invalid files: the line, the problem and the remedy that are reported.

use super::*;

/// Checks the one problem of a line in an otherwise valid pool.
#[track_caller]
fn in_pool(line: &str, message: &str) {
    let messages = problems(&format!("[pool.\"a/b\"]\nparallel = 1\n{line}\n"));
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with("s.toml:3: "), "{}", messages[0]);
    assert!(messages[0].contains(message), "{}\ndoes not contain\n{message}", messages[0]);
}

/// Checks the one problem of a file.
#[track_caller]
fn reports(text: &str, line: usize, message: &str) {
    let messages = problems(text);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with(&format!("s.toml:{line}: ")), "{}", messages[0]);
    assert!(messages[0].contains(message), "{}\ndoes not contain\n{message}", messages[0]);
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_the_file() {
    let messages = problems(
        "stoer = \"file\"\nversion = -1\n[agent.x]\nfloor = \"120%\"\n\
         [pool.\"a/b\"]\nrequests = \"60/m\"\nmagrin = 0.2\nfallback = [\"a/c\"]\n",
    );
    let expected = [
        "s.toml:1: unknown key `stoer` at the top of the file; did you mean `store`?",
        "s.toml:2: `version` is -1, not a version; write a whole number, for example 1",
        "s.toml:4: `floor`: \"120%\" is more than 100 %; write at most \"100%\"",
        "s.toml:6: `requests`: \"m\" is not a unit of time in \"60/m\"; write 60/min or 60/ms",
        "s.toml:7: unknown key `magrin` in a pool; did you mean `margin`?",
        "s.toml:8: there is no pool `a/c`; did you mean `a/b`?",
    ];
    assert_eq!(messages, expected);
}

#[test]
fn unknown_keys_in_every_table() {
    in_pool("paralell = 5", "did you mean `parallel`?");
    in_pool("request = \"60/min\"", "did you mean `requests`?");
    in_pool("gpu_seconds = \"5/min\"", "declare a unit of your own in the pool's `units` table");
    in_pool("colour = true", "known here: provider, models, account, requests, ");
    in_pool("requests = { rate = \"5/s\", burts = 3 }", "did you mean `burst`?");
    in_pool("backoff = { bases = 3 }", "did you mean `base`?");
    in_pool("return_windows = { critcal = [0, 1] }", "did you mean `critical`?");
    reports("[agent.x]\nprioritty = \"standard\"", 2, "did you mean `priority`?");
    reports("[store]\nurll = \"file\"", 2, "did you mean `url`?");
    reports("[server]\ntokenfile = \"x\"", 2, "did you mean `token_file`?");
    reports("[provider.x]\nkeyfile = \"x\"", 2, "did you mean `key_file`?");
    reports("[workflow.x]\nagents = [\"a\", \"b\"]\nholds = true", 3, "did you mean `hold`?");
    reports("pools = {}", 1, "did you mean `pool`?");
}

#[test]
fn keys_of_another_place() {
    let top = "`listen` belongs at the top of the file, before every [table]";
    reports("[server]\nlisten = \"127.0.0.1:1\"", 2, top);
    in_pool("open_pools = true", "`open_pools` belongs at the top of the file");
    reports("[server]\ntoken = \"hunter2\"", 2, "did you mean `token_file`?");
    reports("[server]\nport = 9000", 2, "write listen = \"127.0.0.1:9000\" at the top of the");
    reports("port = 9000", 1, "write listen = \"127.0.0.1:9000\"");
}

#[test]
fn a_pool_without_a_table_of_its_name() {
    let meant = "write [pool.\"a/b\"], and its limits below that line";
    reports("pool = \"a/b\"", 1, meant);
    reports("[[pool]]\nname = \"a/b\"\nrequests = \"5/min\"", 1, meant);
    reports("[pool]\nname = \"a/b\"\nrequests = \"5/min\"", 1, meant);
    reports("[pool]\nrequests = \"5/min\"", 1, "write [pool.\"my/api\"]");
}

#[test]
fn a_comma_behind_a_value() {
    for line in ["requests = \"5/min\",", "parallel = 5,", "requests = \"5/min\", # all"] {
        in_pool(line, "has a comma behind its value; remove the comma");
    }
    in_pool("requests = \"5/min\", tokens = 3", "write one key per line");
}

#[test]
fn invalid_amounts_rates_and_durations() {
    in_pool("requests = \"-5/min\"", "`requests`: \"-5\" is negative");
    in_pool("requests = \"0/min\"", "admits no call");
    in_pool("requests = \"1.5/min\"", "is not a whole number");
    in_pool("requests = \"99999999999G/min\"", "is too large");
    in_pool("requests = 60", "has no period; write for example \"60/min\"");
    in_pool("requests = true", "is a boolean; write for example requests = \"60/min\"");
    in_pool(
        "retry_budget = true",
        "write retry_budget = false, or for example retry_budget = \"25%\"",
    );
    in_pool("keepalive = true", "write keepalive = false, or for example keepalive = \"500ms\"");
    in_pool("backoff = true", "write backoff = false, or a table: [pool.\"a/b\".backoff]");
    in_pool("margin = true", "write for example margin = \"20%\"");
    in_pool("lease_ttl = []", "is a list; write for example lease_ttl = \"500ms\"");
    in_pool("requests = []", "is an empty list");
    in_pool("requests = [\"5/min\", \"6/min\"]", "two limits of the same unit, kind and period");
    in_pool("requests = { pace = \"1s\" }", "the limit has no rate");
    in_pool(
        "requests = { rate = \"5/s\", kind = \"window\", burst = 5 }",
        "burst has no meaning for a window",
    );
    in_pool("requests = { rate = \"5/s\", kind = \"bucket\", burst = 0 }", "holds nothing");
    in_pool("requests = { rate = \"5/s\", kind = \"windw\" }", "did you mean \"window\"?");
    in_pool("requests = { rate = \"5/s\", pace = 0 }", "is zero; write a longer duration");
    in_pool(
        "requests = { rate = \"5/s\", kind = \"bucket\", resets = \"provider\" }",
        "a bucket refills and does not reset",
    );
    in_pool("lease_ttl = \"5m\"", "write 5min or 5ms");
    in_pool("lease_ttl = -5", "is negative");
    in_pool("order = \"fare\"", "write one of arrival, fair");
    in_pool("lease_ttl = 1e3", "is not a unit of time");
    in_pool("lease_ttl = inf", "is not a duration");
    in_pool("lease_ttl = 0", "\"0\" is zero; write a longer duration");
    in_pool("lease_ttl = 2024-01-01", "is a date or time");
    in_pool("slack = \"401d\"", "is too long");
    in_pool("price = { input_tokens = -3 }", "is not a price");
    in_pool("price = { usd = 3 }", "unknown key `usd` in price");
    in_pool("price = { widgets = 3 }", "unknown key `widgets` in price");
}

#[test]
fn invalid_numbers_of_calls_in_flight() {
    for (line, messages) in [
        ("0", "admits no call"),
        ("-3", "is negative"),
        ("2.5", "is not a whole number"),
        ("\"5/min\"", "is a rate"),
        ("99999999999999999999", "is too large"),
        ("0xffffffffffffffff", "is too large"),
        ("[1]", "is a list"),
    ] {
        reports(&format!("[pool.\"a/b\"]\nparallel = {line}"), 2, messages);
    }
    let hex = settings("[pool.\"a/b\"]\nparallel = 0x10");
    assert_eq!(hex.pools[&pool_name("a/b")].limits[0].stated(), 16);
}

#[test]
fn invalid_shares() {
    reports("[agent.x]\nfloor = \"0%\"", 2, "the share is zero");
    reports("[agent.x]\nfloor = \"10/min\"", 2, "name the unit: { requests = \"10/min\" }");
    reports("[agent.x]\nfloor = 25", 2, "is not a percentage; write for example \"25%\"");
    reports("[agent.x]\ncap = { parallel = 0 }", 2, "admits no call");
    reports("[agent.x]\nweight = 0", 2, "write a whole number from 1 to 1000");
    reports("[agent.x]\nweight = 1.5", 2, "not a weight");
    reports("[agent.x]\ncap = { request = \"1/min\" }", 2, "did you mean `requests`?");
    reports("[agent.x]\ncap = { \"a/b\" = \"5%\" }", 2, "there is no pool `a/b`");
    reports("[agent.x]\ncap = { \"a//b\" = \"5%\" }", 2, "is not the name of a pool");
    reports("[agent.x]\npriority = \"urgent\"", 2, "write one of critical, standard, background");
}

#[test]
fn invalid_margins() {
    let example = "write \"auto\", or for example \"20%\" or 0.2";
    in_pool("margin = 20", "`margin`: \"20\" leaves nothing usable; write \"20%\" or 0.2");
    in_pool("margin = \"12.5\"", "leaves nothing usable; write \"12.5%\" or 0.125");
    in_pool("margin = 1", "leaves nothing usable; write \"1%\" or 0.01");
    in_pool("margin = 1.0", "leaves nothing usable; write \"1.0%\" or 0.01");
    for all in ["100", "1e3", "99999999999999999999", "\"100%\"", "\"150%\""] {
        in_pool(&format!("margin = {all}"), example);
    }
    in_pool("margin = -0.2", "\"-0.2\" is negative; write 0 to use the whole rate");
    in_pool("margin = \"-20%\"", "is negative");
    in_pool("margin = 0.1234", "is finer than a tenth of a percent");
    in_pool("margin = \"most\"", &format!("\"most\" is not a share; {example}"));
    in_pool("margin = true", "`margin` is a boolean");
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
        let messages = problems(&format!("[pool.\"a/b\"]\nparallel = 1\nheadroom = {old}\n"));
        let expected = "s.toml:3: `headroom` is now `margin`, the share that is left unused";
        assert_eq!(messages, [format!("{expected}; write margin = {new}")]);
        settings(&format!("[pool.\"a/b\"]\nparallel = 1\nmargin = {new}\n"));
    }
    for odd in ["0", "80", "-1", "\"most\"", "true", "[]"] {
        in_pool(&format!("headroom = {odd}"), "left unused; write for example margin = \"20%\"");
    }
}

#[test]
fn a_floor_above_the_same_agent_s_cap() {
    let pool = "[pool.\"a/b\"]\nrequests = \"100/min\"\nparallel = 10\n[agent.x]\n";
    for (shares, messages) in [
        ("floor = \"30%\"\ncap = \"20%\"", "the floor of `x` is above its cap"),
        ("floor = \"25%\"\ncap = { requests = \"10/min\" }", "(requests of 25/min) is above"),
        // A cap has a period of its own: 20 in ten minutes are two in one.
        ("floor = \"3%\"\ncap = { requests = \"20/10min\" }", "(requests of 3/min) is above"),
        ("floor = { parallel = 5 }\ncap = { parallel = 4 }", "(5 calls in flight) is above"),
        ("floor = { \"a/b\" = \"30%\" }\ncap = \"20%\"", "on `a/b` (requests of 30/min) is above"),
        ("floor = { requests = \"1/s\" }\ncap = { \"a/b\" = \"50%\" }", "(requests of 60/min)"),
    ] {
        reports(&format!("{pool}{shares}"), 5, messages);
        reports(&format!("{pool}{shares}"), 5, "lower the floor to what the cap allows, or raise");
    }
    for shares in [
        "floor = \"20%\"\ncap = \"20%\"",
        "floor = \"10%\"\ncap = { requests = \"10/min\" }",
        "floor = \"10%\"\ncap = { requests = \"1/s\", parallel = 1 }",
        "floor = { \"a/b\" = \"1%\" }\ncap = \"0.1%\"",
    ] {
        settings(&format!("{pool}{shares}"));
    }
    // Shares can be compared even if the limits are learned.
    reports("[agent.x]\nfloor = \"30%\"\ncap = \"20%\"", 2, "above its cap");
}

#[test]
fn floors_that_exceed_a_limit_together() {
    let pool = "[pool.\"a/b\"]\nrequests = \"100/min\"\nparallel = 4\n";
    let three =
        "[agent.z]\nfloor = \"60%\"\n[agent.y]\nfloor = \"30%\"\n[agent.x]\nfloor = \"20%\"";
    reports(
        &format!("{pool}{three}"),
        9,
        "with `x` the floors on `a/b` add up to more than its requests of 100/min",
    );
    let rates = "[agent.x]\nfloor = { requests = \"60/min\" }\n\
                 [agent.y]\nfloor = { \"a/b\" = { requests = \"1/s\" } }";
    reports(&format!("{pool}{rates}"), 7, "with `y` the floors");
    let slots = "[agent.x]\nfloor = { parallel = 5 }";
    reports(&format!("{pool}{slots}"), 5, "more than its 4 calls in flight");
    settings(&format!("{pool}[agent.x]\nfloor = \"50%\"\n[agent.y]\nfloor = \"50%\""));
}

#[test]
fn invalid_names() {
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
        for messages in agent.iter().chain(&pool).chain(&workflow) {
            assert!(messages.len() < 400 && !messages.chars().any(char::is_control), "{messages}");
        }
    }
    reports("[pool.sonnet]\nparallel = 1", 1, "a pool is named `provider/scope`");
    reports(
        "[pool.anthropic.sonnet]\nparallel = 1",
        1,
        "did you mean [pool.\"anthropic/sonnet\"]?",
    );
    reports("[pool.\"a/b\".units]\nGPU = \"5/s\"", 2, "write `gpu`");
    reports("[pool.\"a/b\".units]\nrequests = \"5/s\"", 2, "move `requests` up");
    reports("[provider.metrics]", 1, "serves something else under that name");
    reports("[provider.v1]", 1, "serves something else under that name");
    in_pool("provider = \"a b\"", "is not the name of a provider");
    in_pool("provider = \"antropic\"", "no provider `antropic`; did you mean `anthropic`?");
    in_pool("provider = \"intranet\"", "add [provider.intranet] with its upstream");
    in_pool("models = [\"\"]", "is empty, too long or not printable");
}

#[test]
fn values_of_the_wrong_type() {
    reports("pool = 5", 1, "`pool` is a number; write a table: [pool]");
    reports("[[pool]]\nx = 1", 1, "`pool` is a list");
    reports("[pool]\n\"a/b\" = \"60/min\"", 2, "`a/b` is a string; write a table: [pool.\"a/b\"]");
    reports("open_pools = \"true\"", 1, "write true or false, without quotes");
    reports("store = 5", 1, "write a string in quotes");
    in_pool("enforce = 1", "write true or false");
    in_pool("models = \"claude-*\"", "is a string; write a list");
    in_pool("fallback = [5]", "write a string in quotes");
    in_pool("zones = \"on\"", "write \"auto\", true or false");
    in_pool("on_store_failure = \"opne\"", "did you mean \"open\"?");
    in_pool("backoff = 5", "write a table");
    in_pool("backoff = { factor = 0.5 }", "shrinks");
    in_pool("backoff = { base = 10, cap = 5 }", "the cap is shorter than the base");
    in_pool("return_windows = { critical = [1] }", "is not a start and an end");
    in_pool("return_windows = { critical = [5, 1] }", "`critical` ends before it starts");
    reports("listen = \"localhost:80\"", 1, "write for example \"127.0.0.1:8377\"");
    reports("version = 1.5", 1, "not a version");
}

#[test]
fn invalid_references() {
    in_pool("fallback = [\"a/b\"]", "falls back on itself");
    in_pool("fallback = [\"a/x\", \"a/x\"]\n[pool.\"a/x\"]\nparallel = 1", "is named twice");
    reports("[route]\nclassify = [\"a/b\"]", 2, "add [pool.\"a/b\"] with a limit such as requests");
    reports("[route]\nclassify = []", 2, "name at least one pool");
    reports("[workflow.x]\nagents = [\"a\"]", 1, "name at least two");
    reports("[workflow.x]", 1, "name at least two");
    reports("[workflow.x]\nagents = [\"a\", \"a\"]", 2, "is in the chain twice");
    reports("[workflow.x]\nagents = [\"a\", \"b c\"]", 2, "is not the name of an agent");
    reports("[pool.\"a/b\"]", 1, "has no limit, and no provider to learn one from");
    settings("open_pools = true\n[route]\nclassify = [\"a/b\"]");
}

/// A chain of pools that each lie within the next; the last lies within `top`.
fn nested(names: &[&str], top: &str) -> String {
    let parents = names[1..].iter().chain([&top]);
    let each = names.iter().zip(parents);
    each.map(|(name, within)| format!("[pool.\"{name}\"]\nparallel = 1\nwithin = \"{within}\"\n"))
        .collect()
}

#[test]
fn invalid_parents() {
    in_pool("within = \"a/b\"", "`a/b` lies within itself; name another pool");
    in_pool("within = \"a/c\"", "there is no pool `a/c`");
    in_pool("within = \"nopool\"", "is not the name of a pool");
    in_pool("within = [\"a/c\"]", "is a list; write a string in quotes");
    let circle = problems(&nested(&["a/a", "a/b"], "a/a"));
    assert_eq!(
        circle,
        [
            "s.toml:3: `within`: `a/a` lies within itself by `a/b`; the pools refer to each \
             other in a circle: remove one `within`",
            "s.toml:6: `within`: `a/b` lies within itself by `a/a`; the pools refer to each \
             other in a circle: remove one `within`",
        ]
    );
    let top = "[pool.\"a/top\"]\nparallel = 1\n";
    let deep = format!("{}{top}", nested(&["a/1", "a/2", "a/3", "a/4", "a/5"], "a/top"));
    reports(&deep, 3, "`a/1` lies within more than 4 pools; remove a pool in between");
    settings(&format!("{}{top}", nested(&["a/2", "a/3", "a/4", "a/5"], "a/top")));
}

#[test]
fn a_rejected_value_is_named() {
    in_pool("spread = \"maybe\"", "`spread` is \"maybe\"; write \"auto\", true or false");
    in_pool("cascade = { agents = 0 }", "`agents` is 0, not a number of agents");
    reports("[agent.x]\nweight = 0", 2, "`weight` is 0, not a weight; write a whole number");
    reports("[agent.x]\nweight = \"a\"", 2, "`weight` is \"a\", not a weight");
    reports("version = true", 1, "`version` is a boolean, not a version");
    let price = "\"cheap\" is not a price; write dollars per million units, for example 3 or 0.25";
    in_pool("price = { input_tokens = \"cheap\" }", price);
}

#[test]
fn a_floor_that_keeps_nothing_is_reported() {
    let pool = "[pool.\"a/b\"]\nrequests = \"60/min\"\n";
    let floor = |floor: &str| format!("{pool}[agent.x]\nfloor = {floor}\n");
    let message = "the floor of `x` keeps nothing: 20/h is less than 1/min; limits of requests \
                   are per 1min: write at least requests = \"1/min\", or add a limit with a longer \
                   period";
    reports(&floor("{ requests = \"20/h\" }"), 4, message);
    reports(&floor("{ \"a/b\" = { requests = \"20/h\" } }"), 4, message);
    settings(&floor("{ requests = \"60/h\" }"));
    // One of several limits keeps it.
    settings(&format!("{}[pool.\"a/c\"]\nrequests = \"90/h\"", floor("{ requests = \"20/h\" }")));
}

#[test]
fn syntax_errors() {
    reports("[pool.anthropic/sonnet]", 1, "put the name in quotes: [pool.\"anthropic/sonnet\"]");
    reports("[pool.\"a/b\"]\nparallel = 1\nparallel = 2\n", 3, "keep one of the two");
    reports("[pool.\"a/b\"]\nrequests = 60/min\n", 2, "`requests` is not in quotes; write");
    reports("[pool.\"a/b\"]\nrequests = 60/min\n", 2, "; write requests = \"60/min\"");
    reports("open_pools = yes", 1, "write open_pools = true");
    reports("store = hunter2", 1, "is not in quotes; put strings in quotes: store = \"…\"");
    reports("\n\nstore = \"file", 3, "this is not TOML: `store` has no closing quote");
    reports("[pool.\"a/b\"\nparallel = 1", 1, "this is not TOML: the table has no closing");
    reports("store =", 1, "this is not TOML: `store` has no value");
    reports("nonsense", 1, "the line is neither key = value");
    reports("store = \"file\"\nstore = \"memory\"", 2, "`store` is given twice; keep one");
    reports("[pool.\"a/b\"]\nparallel = 1\n[pool.\"a/b\"]", 3, "the table is given twice");
    reports("[pool.\"a/b\"]\nunits = { a = \"1/s\"", 2, "the value of `units` cannot be read");
    reports("a/b = 5", 1, "the part before `=` is not a key");
    reports("store = \"file\" x", 1, "`store` has more after its string");
    let several = "[pool.\"a/b\"]\nrequests = \"60/min\" parallel = 3\n";
    reports(several, 2, "`requests` has another key behind it; write one key per line");
    let yaml = "`requests` has a colon instead of `=`; write requests = \"60/min\"";
    reports("[pool.\"a/b\"]\nrequests: \"60/min\"\n", 2, yaml);
    reports("[pool.\"a/b\"]\nrequests: 60/min\n", 2, yaml);
    reports("open_pools: true", 1, "write open_pools = true");
    reports("store: redis://u:hunter2@h", 1, "instead of `=`; write store = and then the value");
    let messages = problems("a b\nversion = 1\nc d\n");
    let lines: Vec<&str> = messages.iter().map(|messages| &messages[..9]).collect();
    assert_eq!(lines, ["s.toml:1:", "s.toml:3:"], "{messages:?}");
}

#[test]
fn exceeded_bounds() {
    let agents: String = (0..257).map(|n| format!("[agent.a{n}]\n")).collect();
    reports(&format!("\n{agents}"), 2, "257 agents are described; at most 256 are supported");
    let rates: Vec<String> = (1..=17).map(|n| format!("\"5/{n}s\"")).collect();
    reports(
        &format!("[pool.\"a/b\"]\nrequests = [{}]", rates.join(", ")),
        2,
        "a pool has at most 16 limits",
    );
    let caps: String = (0..200).map(|n| format!("[agent.a{n}]\ncap = \"50%\"\n")).collect();
    let pool = format!("[pool.\"a/b\"]\nrequests = [{}]\n", rates[..16].join(", "));
    reports(&format!("{pool}{caps}"), 1, "fewer floors and caps that concern this pool");
}

#[test]
fn invalid_stores() {
    reports("store = \"fil\"", 1, "did you mean file, or file:/path?");
    reports("store = \"mysql://u:p@h\"", 1, "write file, file:/path, memory, redis://host");
    reports("store = \"redis:\"", 1, "did you mean redis://host?");
    reports("store = \"redis://\"", 1, "names no host");
    reports("store = \"redis://u:p@\"", 1, "names no host");
    reports("store = \"file:here\"", 1, "is not an absolute path");
    reports("store = \"\"", 1, "the store is not known");
    reports("[store]\nprefix = \"a b\"", 2, "use 1 to 64 of");
    reports("[store]\nwait_replicas = 100", 2, "at most 64");
}

#[test]
fn invalid_calls() {
    let calls = |text: &str, wanted: &str| {
        let pool = "[pool.\"shop/api\"]\nrequests = \"9/s\"\nunits = { rows = \"9/s\" }";
        reports(&format!("{pool}\n[[provider.shop.calls]]\n{text}"), 5, wanted);
    };
    calls("path = [\"/v2\"]", "did you mean `paths`?");
    calls("paths = [\"v2\"]", "`paths`: \"v2\" is not the pattern of a path; begin with a slash");
    calls("paths = [\"/v2?x\"]", "omit the query");
    calls("methods = [\"post\"]", "\"post\" is not a method of HTTP; write \"POST\"");
    calls("methods = [\"\"]", "use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
    calls("methods = [\"FETCH\"]", "\"FETCH\" is not a method of HTTP; use GET, HEAD, POST");
    calls("methods = [\"PSOT\"]", "\"PSOT\" is not a method of HTTP; write \"POST\"");
    calls("pool = \"shop/apis\"", "there is no pool `shop/apis`; did you mean `shop/api`?");
    calls("cost = { point = 1 }", "no pool counts the unit `point`; did you mean `points`?");
    calls("cost = { points = -1 }", "is negative");
    calls("cost = { Rows = 1 }", "write `rows`");
    reports(
        "[[provider.shop.calls]]\ncounted = false\ncost = { points = 1 }",
        1,
        "has counted = false together with a pool or a cost",
    );
}

#[test]
fn invalid_providers() {
    reports("[provider.x]\nupstream = \"api.example.com\"", 2, "is not a URL of http or https");
    reports("[provider.x]\nupstream = \"https://\"", 2, "has no host");
    reports("[provider.x]\nkey_file = \"~/key\"", 2, "write the whole path");
    reports("[provider.x]\nkey_file = \"\"", 2, "is not a path");
    reports("[provider.x]\nkey_file = \"a\"\nkey_env = \"B\"", 1, "keep one of them");
}

/// The remedy of one mistake is not the next mistake.
#[test]
fn names_of_other_programs_are_understood() {
    in_pool("concurrency = 3", "unknown key `concurrency` in a pool; did you mean parallel = 3?");
    in_pool("slots = 4", "did you mean parallel = 4?");
    in_pool("rpm = 60", "did you mean requests = \"60/min\"?");
    in_pool("tpm = \"400k\"", "did you mean tokens = \"400k/min\"?");
    in_pool("limit = \"60/min\"", "unknown key `limit` in a pool; name the unit: requests = \"60/");
    in_pool("units = { slots = \"x\" }", "\"x\" is not a rate");
    reports("[pool.\"a/b\"]\nparallel = -1", 2, "\"-1\" is negative; write a number above 0");
    reports("[pool.\"a/b\"]\nparallel = \"two\"", 2, "write a whole number, for example 5");
}

#[test]
fn a_misspelled_limit_is_the_only_mistake_of_its_pool() {
    for key in ["request = \"60/min\"", "rpm = 60", "limit = \"60/min\""] {
        let messages = problems(&format!("[pool.\"a/b\"]\n{key}\n"));
        assert_eq!(messages.len(), 1, "{messages:?}");
        assert!(messages[0].starts_with("s.toml:2: unknown key"), "{messages:?}");
    }
}

#[test]
fn what_is_not_toml_has_a_remedy_that_works() {
    let pool = "[pool.\"a/b\"]\n";
    for (line, message) in [
        ("requests = \"60/min\", parallel = 2", "has another key behind it; write one key per"),
        ("requests = “60/min”", "is in curly quotes; use straight quotes"),
        ("enforce = no", "is neither true nor false; write enforce = false"),
        ("enforc = no", "did you mean enforce = false?"),
    ] {
        reports(&format!("{pool}{line}"), 2, message);
    }
    reports("openpools = yes", 1, "neither true nor false; did you mean open_pools = true?");
    reports("[pool.“my/api”]", 1, "use straight quotes: [pool.\"my/api\"]");
}

#[test]
fn the_offending_value_is_named_if_it_cannot_be_a_secret() {
    in_pool("enforce = \"yes\"", "`enforce` is the string \"yes\"; write true or false");
    in_pool("enforce = \"sk-ant-api03-x\"", "`enforce` is a string; write true or false");
    for (store, message) in [
        ("floppy", "there is no store `floppy`; write file"),
        ("redis:/127.0.0.1", "did you mean redis://127.0.0.1?"),
        ("redis:host:6379/2", "did you mean redis://host:6379/2?"),
        ("/tmp/foo", "`/tmp/foo` is not the URL of a store; did you mean file:/tmp/foo?"),
        ("me:secret@host", "the store is not known"),
        ("redis:secret@host", "the store is not known"),
    ] {
        reports(&format!("store = \"{store}\""), 1, message);
    }
    let upstream = |url: &str, message: &str| {
        reports(&format!("[provider.anthropic]\nupstream = \"{url}\""), 2, message);
    };
    upstream("api.example.com", "\"api.example.com\" is not a URL of http or https");
    upstream("me:secret@api.example.com", "`upstream` is not a URL of http or https");
}
