//! The JSON Schema of the settings file, so that editors complete and check it.
//!
//! It describes the form. What only the whole file shows (floors that add up, pools that exist) is
//! checked when the file is read.

use serde_json::{Map, Value, json};
use standpipe_core::CascadeThreshold;

use super::text::KNOWN_UNITS;

/// See [`super::Settings::schema`].
pub(super) fn schema() -> Value {
    let mut top = table(vec![
        (
            "version",
            json!({ "type": "integer", "minimum": 0,
            "description": "A higher version counts, whichever file is newer." }),
        ),
        (
            "store",
            json!({ "anyOf": [reference("store_url"), store()],
            "description": "Where the ledger is kept." }),
        ),
        (
            "listen",
            json!({ "type": "string", "default": "127.0.0.1:8377",
            "description": "Where the daemon listens: address and port." }),
        ),
        ("open_pools", flag("Whether pools may be used that are not described here.", false)),
        ("pool", named(POOL_NAME, reference("pool"), "Shared quotas, by provider/scope.")),
        ("agent", named(AGENT_NAME, reference("agent"), "Who asks.")),
        ("workflow", named(AGENT_NAME, workflow(), "Chains of agents.")),
        ("route", named("^.{1,128}$", pools(), "From a class of task to its pools.")),
        ("provider", named(PROVIDER_NAME, provider(), "How providers are reached.")),
        ("server", server()),
    ]);
    let defs = json!({
        "rate": text(RATE, "So many per time: 60/min, 30/2s, 2M/min."),
        "duration": { "anyOf": [text(DURATION, "500ms, 30s, 5min, 2h, 1d."), number(SECONDS)] },
        "percent": text(PERCENT, "A share: 25%."),
        "share": { "anyOf": [text(PERCENT, "80%."), { "type": "number", "minimum": 0,
            "maximum": 1 }] },
        "amount": { "anyOf": [text(AMOUNT, "1200, 400k, 2M."), number("A whole number.")] },
        "store_url": text(STORE, "file, file:/path, memory, redis://…, rediss://… or etcd://…"),
        "limit": limit(),
        "limits": { "anyOf": [reference("limit"),
            { "type": "array", "minItems": 1, "items": reference("limit") }] },
        "pool": pool(),
        "agent": agent(),
        "unit_shares": unit_shares(),
        "shares": shares(),
    });
    if let Value::Object(map) = &mut top {
        map.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
        map.insert("title".to_owned(), "standpipe.toml".into());
        map.insert("$defs".to_owned(), defs);
    }
    top
}

const RATE: &str = concat!(
    r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?\s*[kMG]?\s*/",
    r"\s*([0-9][0-9_]*(\.[0-9][0-9_]*)?)?\s*(ms|s|min|h|d)\s*$"
);
const DURATION: &str = r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?\s*(ms|s|min|h|d)?\s*$";
const AMOUNT: &str = r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?\s*[kMG]?\s*$";
const PERCENT: &str = r"^\s*[0-9]{1,3}(\.[0-9]+)?\s*%\s*$";
const STORE: &str =
    r"^\s*(file(:.+)?|memory|(rediss?(\+cluster|\+sentinel|\+unix)?|etcds?)://.+)\s*$";
const POOL_NAME: &str = r"^[A-Za-z0-9._:@-]{1,64}(/[A-Za-z0-9._:@-]{1,128}){1,3}$";
const AGENT_NAME: &str = "^[A-Za-z0-9._@-]{1,64}$";
const PROVIDER_NAME: &str = "^[A-Za-z0-9._:@-]{1,64}$";
const UNIT_NAME: &str = "^[a-z][a-z0-9_]{0,31}$";
const SECONDS: &str = "Seconds.";

fn store() -> Value {
    table(vec![
        ("url", reference("store_url")),
        ("prefix", words("What the keys of a network store begin with.")),
        ("skew", duration("How far clocks may be apart (etcd).")),
        ("slack", duration("What widens every period, against jitter.")),
        (
            "wait_replicas",
            json!({ "type": "integer", "minimum": 0, "maximum": 64,
            "description": "How many replicas must have an entry (Redis)." }),
        ),
        ("compact", flag("Whether the etcd is ours alone.", false)),
        ("password_file", words("A file with the password, instead of one in the URL.")),
        ("password_env", words("The environment variable that holds the password.")),
        ("ca", words("A file with the authority that the server's certificate is checked by.")),
    ])
}

fn pool() -> Value {
    let units = KNOWN_UNITS.map(|unit| (unit, reference("limits")));
    let other = json!({ "type": "object", "additionalProperties": false,
        "description": "Limits of units that only this pool knows.",
        "patternProperties": { UNIT_NAME: reference("limits") } });
    let price = json!({ "type": "object", "additionalProperties": false,
        "description": "Dollars per million.",
        "patternProperties": { UNIT_NAME: reference("amount") } });
    let mut entries = units.to_vec();
    entries.extend([
        ("provider", words("Whose quota it is.")),
        ("models", list(words("A model, with * for anything."))),
        ("account", words("Which of several accounts.")),
        ("parallel", described(reference("amount"), "Calls in flight.")),
        ("units", other),
        (
            "margin",
            json!({ "anyOf": [{ "const": "auto" }, text(PERCENT, "20%."),
            { "type": "number", "minimum": 0, "exclusiveMaximum": 1 }], "default": "auto",
            "description": "The share of every rate that is left unused." }),
        ),
        ("slack", duration("What widens every period, against jitter.")),
        ("enforce", flag("false is shadow mode: decide, record, admit anyway.", true)),
        (
            "zones",
            json!({ "enum": ["auto", true, false], "default": "auto",
            "description": "The traffic light." }),
        ),
        ("yield", flag("Whether background agents yield when little is left.", true)),
        ("promotion", flag("Whether background denied for 5 min is served, once.", true)),
        ("reconcile", flag("Whether the provider's own count is heeded.", true)),
        ("estimates", flag("Whether what a cost omits is estimated.", true)),
        ("breaker", flag("Whether calls are advised before the quota runs out.", true)),
        ("cascade", cascade()),
        ("learn", flag("Whether the provider's word about its limits is believed.", true)),
        ("backoff", backoff()),
        ("return_windows", return_windows()),
        (
            "retry_budget",
            json!({ "anyOf": [{ "const": false }, reference("share")],
            "description": "The share of a minute's calls that may be retries." }),
        ),
        ("longest_wait", duration("The longest any call waits.")),
        (
            "longest_lease",
            json!({ "anyOf": [{ "enum": ["auto", "none"] },
            reference("duration")], "default": "auto",
            "description": "How long any lease lives without progress." }),
        ),
        ("lease_ttl", duration("How long a lease without a session lives.")),
        ("fallback", described(pools(), "Where calls go when there is no room.")),
        ("rewrite", flag("Whether the proxy may make a request ask for less.", false)),
        (
            "keepalive",
            json!({ "anyOf": [{ "const": false }, reference("duration")],
            "description": "How often a waiting client is told so." }),
        ),
        ("price", price),
        (
            "on_store_failure",
            json!({ "enum": ["closed", "open", "share"],
            "default": "closed", "description": "What happens while the store is away." }),
        ),
    ]);
    table(entries)
}

fn limit() -> Value {
    let long = table(vec![
        ("rate", reference("rate")),
        ("kind", json!({ "enum": ["window", "bucket"], "default": "window" })),
        ("burst", described(reference("amount"), "The most a bucket holds.")),
        ("pace", duration("The least time between two grants.")),
        ("charged", json!({ "enum": ["start", "end"] })),
        ("resets", json!({ "enum": ["rolling", "provider"], "default": "rolling" })),
    ]);
    let mut long = long;
    if let Value::Object(map) = &mut long {
        map.insert("required".to_owned(), json!(["rate"]));
    }
    json!({ "anyOf": [reference("rate"), long] })
}

fn backoff() -> Value {
    let long = table(vec![
        ("base", duration("The pause after the first refusal.")),
        (
            "factor",
            json!({ "type": ["number", "string"], "minimum": 1, "maximum": 100,
            "default": 2, "description": "What each further one multiplies it by." }),
        ),
        (
            "cap",
            json!({ "anyOf": [{ "const": "auto" }, reference("duration")],
            "default": "auto", "description": "The longest pause." }),
        ),
        ("jitter", flag("Whether the length is drawn at random.", false)),
    ]);
    json!({ "anyOf": [{ "const": false }, long],
        "description": "How long everybody pauses after a refusal." })
}

fn cascade() -> Value {
    let most = CascadeThreshold::MAX_AGENTS;
    let long = table(vec![
        (
            "agents",
            json!({ "type": "integer", "minimum": 1, "maximum": most, "default": 3,
            "description": "How many different agents." }),
        ),
        ("within", duration("The time within which they are throttled.")),
    ]);
    json!({ "anyOf": [{ "type": "boolean" }, long], "default": true,
        "description": "When several throttled agents make all calls go one at a time." })
}

fn return_windows() -> Value {
    let stretch =
        || json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": reference("duration") });
    let tiers = ["critical", "standard", "background"].map(|tier| (tier, stretch())).to_vec();
    json!({ "anyOf": [{ "const": false }, reference("duration"), table(tiers)],
        "description": "When each tier comes back after a pause." })
}

fn agent() -> Value {
    table(vec![
        (
            "priority",
            json!({ "enum": ["critical", "standard", "background"],
            "default": "standard" }),
        ),
        ("floor", described(reference("shares"), "What is kept for it while it is active.")),
        ("cap", described(reference("shares"), "The most it may use.")),
    ])
}

/// A table unit → rate.
fn unit_shares() -> Value {
    let portion = json!({ "anyOf": [reference("rate"), reference("percent")] });
    let slots = json!({ "anyOf": [reference("amount"), reference("percent")] });
    json!({ "type": "object", "additionalProperties": false,
        "properties": { "parallel": slots },
        "patternProperties": { "^(?!parallel$)[a-z][a-z0-9_]{0,31}$": portion } })
}

/// A percentage, a table unit → rate, or a table pool → either.
fn shares() -> Value {
    let of_pool = json!({ "anyOf": [reference("percent"), reference("unit_shares")] });
    let mut table = unit_shares();
    if let Some(Value::Object(patterns)) = table.get_mut("patternProperties") {
        patterns.insert(POOL_NAME.to_owned(), of_pool);
    }
    json!({ "anyOf": [reference("percent"), table] })
}

fn workflow() -> Value {
    let agents = json!({ "type": "array", "minItems": 2, "uniqueItems": true,
        "items": { "type": "string", "pattern": AGENT_NAME } });
    table(vec![
        ("agents", described(agents, "The chain, the first upstream of all others.")),
        ("hold", flag("Whether those downstream wait.", false)),
    ])
}

fn provider() -> Value {
    table(vec![
        ("upstream", text("^https?://[^@?#]+$", "Where its API is.")),
        ("key_file", words("The file that holds the key.")),
        ("key_env", text("^[A-Za-z_][A-Za-z0-9_]*$", "The variable that holds the key.")),
        ("ca", words("The file of a certificate authority.")),
    ])
}

fn server() -> Value {
    table(vec![
        ("token_file", words("The file that holds the token clients have to show.")),
        ("socket", words("A Unix socket beside the address.")),
    ])
}

/// A table of exactly these keys.
fn table(entries: Vec<(&str, Value)>) -> Value {
    let properties: Map<String, Value> =
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// A table whose keys are names.
fn named(pattern: &str, of: Value, description: &str) -> Value {
    json!({ "type": "object", "additionalProperties": false, "description": description,
        "patternProperties": { pattern: of } })
}

fn reference(to: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{to}") })
}

fn described(mut value: Value, description: &str) -> Value {
    if let Value::Object(map) = &mut value {
        map.insert("description".to_owned(), description.into());
    }
    value
}

fn duration(description: &str) -> Value {
    described(reference("duration"), description)
}

fn text(pattern: &str, description: &str) -> Value {
    json!({ "type": "string", "pattern": pattern, "description": description })
}

fn number(description: &str) -> Value {
    json!({ "type": "number", "minimum": 0, "description": description })
}

fn flag(description: &str, default: bool) -> Value {
    json!({ "type": "boolean", "default": default, "description": description })
}

fn words(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "description": description })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn pools() -> Value {
    json!({ "type": "array", "uniqueItems": true,
        "items": { "type": "string", "pattern": POOL_NAME } })
}
