//! The output of `standpipe config`: values, origins, schema and reference, without secrets.

use super::*;
use serde_json::Value;

fn row<'a>(described: &'a Value, key: &str) -> &'a Value {
    let rows = described["settings"].as_array().unwrap();
    rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no {key}"))
}

fn keys(of: &Value) -> Vec<String> {
    let mut keys: Vec<String> = of.as_object().unwrap().keys().cloned().collect();
    keys.sort_unstable();
    keys
}

fn sorted<'a>(known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut known: Vec<String> = known.into_iter().map(str::to_owned).collect();
    known.sort_unstable();
    known
}

#[test]
fn the_example_is_valid_with_and_without_its_comments() {
    let example = settings(Settings::example());
    assert!(example.pool_config(&pool_name("example/api")).is_some());
    let wanted = |line: &str| match line.strip_prefix('#') {
        Some(rest) if !rest.starts_with(' ') => format!("{rest}\n"),
        _ => format!("{line}\n"),
    };
    let all = settings(&Settings::example().lines().map(wanted).collect::<String>());
    assert_eq!((all.pools.len(), all.agents.len()), (3, 2));
    assert!(Settings::example().lines().all(|line| line.len() <= 100));
}

#[test]
fn each_value_has_its_origin() {
    let described = settings(FULL).describe();
    assert_eq!(described["file"], "/x/standpipe.toml");
    let sonnet = |key: &str| format!("pool.\"anthropic/sonnet\".{key}");
    for (key, value, origin) in [
        ("listen".to_owned(), Value::from("127.0.0.1:9000"), "/x/standpipe.toml:2"),
        ("store.prefix".to_owned(), "team".into(), "/x/standpipe.toml:7"),
        (
            sonnet("requests"),
            serde_json::json!({ "rate": "1000/min", "kind": "bucket", "burst": "1000" }),
            "/x/standpipe.toml:17",
        ),
        (sonnet("margin"), "20%".into(), "/x/standpipe.toml:21"),
        (sonnet("return_windows.standard"), serde_json::json!(["500ms", "3500ms"]), "default"),
        (sonnet("backoff.factor"), "1.5".into(), "/x/standpipe.toml:29"),
        (sonnet("longest_lease"), "none".into(), "/x/standpipe.toml:33"),
        ("agent.ralph.priority".to_owned(), "standard".into(), "default"),
        ("agent.picard.cap.parallel".to_owned(), 30.into(), "/x/standpipe.toml:60"),
    ] {
        let row = row(&described, &key);
        assert_eq!((&row["value"], row["origin"].as_str()), (&value, Some(origin)), "{key}");
    }
    // One duration stands for all three priorities.
    let tier = "pool.\"github/core\".return_windows.critical";
    assert_eq!(row(&described, tier)["origin"], "/x/standpipe.toml:55");
    let slack = row(&described, "pool.\"github/core\".slack");
    assert_eq!(
        (&slack["value"], &slack["origin"]),
        (&"200ms".into(), &"/x/standpipe.toml:9".into())
    );
    let short = settings("store = \"memory\"").describe();
    assert_eq!(row(&short, "store.url")["origin"], "/x/standpipe.toml:1");
    let none = Settings::default().describe();
    assert_eq!(row(&none, "listen")["origin"], "default");
    assert_eq!(row(&none, "store.url")["value"], "file");
    assert!(none["file"].is_null());
}

#[test]
fn parsing_the_output_gives_the_same_settings() {
    let window = "[pool.\"anthropic/x\"]\nrequests = { rate = \"9/min\", kind = \"window\" }\n";
    for text in [FULL, Settings::example(), "", window] {
        let before = settings(text);
        let shown = before.to_toml(false);
        let after = settings(&shown);
        assert_eq!(after.to_toml(false), shown);
        for pool in before.pools.keys() {
            assert_eq!(after.pool_config(pool), before.pool_config(pool), "{pool}");
            assert_eq!(after.pools[pool].price, before.pools[pool].price);
            assert_eq!(after.pools[pool].backoff, before.pools[pool].backoff);
        }
        assert_eq!(after.routes, before.routes);
        assert_eq!((after.workflows, after.providers), (before.workflows, before.providers));
        assert_eq!(after.server, before.server);
    }
}

#[test]
fn the_output_has_origins_as_comments() {
    let all = settings("[pool.\"a/b\"]\nrequests = { pace = 1, rate = \"60/min\" }");
    let shown = all.to_toml(true);
    let start = "listen = \"127.0.0.1:8377\"  # default\n\
                 \n[store]\nurl = \"file\"    # default\nslack = \"50ms\"  # default\n\
                 \n[pool.\"a/b\"]\nrequests = { rate = \"60/min\", pace = \"1s\" }";
    assert!(shown.starts_with(start), "{shown}");
    assert!(shown.contains("  # /x/standpipe.toml:2\n"), "{shown}");
    assert!(!all.to_toml(false).contains('#'));
}

#[test]
fn passwords_are_never_shown() {
    for url in [
        "redis://:s3cret@h",
        "redis://s3cret@h",
        "redis://u:s3cret@h:6379/0",
        "rediss://u:p@s3cret@h",
        "redis://u:a/s3cret?x#y@h",
        "etcd://root:s3cret@a:2379,b:2379",
    ] {
        let settings = settings(&format!("store = \"{url}\""));
        let shown = format!(
            "{} {:?} {settings:?} {} {}",
            settings.store.as_ref().unwrap().url,
            settings.store,
            settings.describe(),
            settings.to_toml(true),
        );
        assert!(!shown.contains("s3cret"), "{shown}");
        assert!(shown.contains("***"), "{shown}");
    }
    let known = "redis://u:s3cret@h:6379/0".parse::<StoreUrl>().unwrap();
    assert_eq!(known.to_string(), "redis://u:***@h:6379/0");
    assert_eq!("redis://h:1/2".parse::<StoreUrl>().unwrap().to_string(), "redis://h:1/2");
}

#[test]
fn no_message_repeats_a_possible_secret() {
    for text in [
        "store = \"redi://u:s3cret@h\"",
        "store = \"s3cret@h\"",
        "store = \"redis://u:s3cret@\"",
        "store = \"redis://h/0?password=s3cret\"",
        "store = \"redis://u:s3cret@h\"x",
        "store = \"redis://u:s3cret@h\nversion = 1",
        "store = redis://u:s3cret@h",
        "[store]\nurl = [\"redis://u:s3cret@h\"]",
        "[provider.x]\nkey_env = \"sk-s3cret\"",
        "[provider.x]\nkey = \"s3cret\"",
        "[provider.x]\nupstream = \"https://u:s3cret@h\"",
        "[provider.x]\nkey_file = \"~/s3cret\"",
        "[server]\ntoken = \"s3cret\"",
    ] {
        let messages = problems(text).join("\n");
        assert!(!messages.contains("s3cret"), "{messages}");
    }
}

/// A key that appears or disappears is a change of the surface, so the names are written out here.
#[test]
fn the_schema_has_exactly_the_keys_that_are_read() {
    let schema = Settings::schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let properties = |of: &Value| keys(&of["properties"]);
    let words = |text: &'static str| sorted(text.split_ascii_whitespace());
    let top = "version store listen open_pools pool agent workflow route provider server";
    assert_eq!(properties(&schema), words(top));
    let defs = &schema["$defs"];
    let pool = "requests input_tokens output_tokens tokens points content usd
        provider models account parallel units margin slack enforce order zones yield spread
        promotion reconcile estimates breaker cascade learn backoff return_windows retry_budget
        longest_wait longest_lease lease_ttl within fallback rewrite keepalive price
        on_store_failure";
    let table = |table: &str| {
        let patterns = &schema["properties"][table]["patternProperties"];
        patterns.as_object().unwrap().values().next().unwrap()
    };
    assert_eq!(properties(table("pool")), words(pool));
    assert_eq!(properties(table("agent")), words("priority floor cap weight"));
    let limit = &defs["limit"]["anyOf"][1];
    assert_eq!(properties(limit), words("rate kind burst pace charged resets"));
    assert_eq!(limit["required"], serde_json::json!(["rate"]));
    let store = "url prefix slack wait_replicas password_file password_env ca";
    assert_eq!(properties(&schema["properties"]["store"]["anyOf"][1]), words(store));
    let pool = &table("pool")["properties"];
    assert_eq!(properties(&pool["backoff"]["anyOf"][1]), words("base factor cap jitter"));
    assert_eq!(properties(&pool["cascade"]["anyOf"][1]), words("agents within"));
    let windows = &pool["return_windows"]["anyOf"][2];
    assert_eq!(properties(windows), words("critical standard background"));
    assert_eq!(properties(table("workflow")), words("agents hold"));
    assert_eq!(
        properties(table("provider")),
        words("upstream key_file key_env ca keys split_by calls")
    );
    assert_eq!(properties(&schema["properties"]["server"]), words("token_file socket"));
}

#[test]
fn the_schema_has_the_defaults_that_are_in_force() {
    let schema = Settings::schema();
    let pools = schema["properties"]["pool"]["patternProperties"].as_object().unwrap();
    let pool = &pools.values().next().unwrap()["properties"];
    for (key, default) in [
        ("enforce", Value::from(true)),
        ("rewrite", false.into()),
        ("margin", "auto".into()),
        ("lease_ttl", "10min".into()),
        ("retry_budget", "10%".into()),
        ("on_store_failure", "closed".into()),
    ] {
        assert_eq!(pool[key]["default"], default, "{key}");
    }
    assert_eq!(pool["backoff"]["anyOf"][1]["properties"]["factor"]["default"], "2");
    assert_eq!(schema["properties"]["listen"]["default"], "127.0.0.1:8377");
    assert!(pool["slack"].get("default").is_none(), "it depends on the store");
}

/// `cargo xtask reference` writes the page again.
#[test]
fn the_reference_page_is_up_to_date() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/config.md");
    let page = format!(
        "# Configuration: all keys\n\n<!-- generated by: cargo xtask reference -->\n\n\
         Every key of `standpipe.toml`. [Configuration](../config.md) explains them with \
         examples.\n\n{}",
        Settings::reference()
    );
    if std::env::var_os("STANDPIPE_BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    assert!(there == page, "docs/reference/config.md is stale; run `cargo xtask reference`");
}

#[test]
fn the_examples_of_the_reference_page_are_valid() {
    let page = include_str!("../../../../docs/config.md");
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let examples: Vec<&str> = blocks.collect();
    assert!(examples.len() >= 5);
    examples.into_iter().for_each(|example| drop(settings(example)));
}

#[test]
fn every_reference_of_the_schema_resolves() {
    fn walk(value: &Value, defs: &Value) {
        match value {
            Value::Object(map) => {
                if let Some(to) = map.get("$ref") {
                    let name = to.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                    assert!(defs.get(name).is_some(), "{name}");
                }
                map.values().for_each(|value| walk(value, defs));
            }
            Value::Array(values) => values.iter().for_each(|value| walk(value, defs)),
            _ => {}
        }
    }
    let schema = Settings::schema();
    walk(&schema, &schema["$defs"]);
}
