//! Settings as they are in force, each with where it comes from: `standpipe config show`.
//!
//! Shown as a settings file, it can be used as one.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use standpipe_core::{
    Backoff, CascadeThreshold, Charged, Limit, LimitSelector, Portion, Resets, Rule, Share, Span,
    TimeRange, Unit,
};
use standpipe_dialect::Dialect;
use standpipe_store::PoolName;

use super::agent::{AgentSettings, Shares};
use super::limit_form::refills;
use super::plain;
use super::policy::{PRIORITIES, STORE_FAILURES, Toggle};
use super::pool::PoolSettings;
use super::reader::join;
use super::text::charged_by_default;
use super::{ProviderSettings, ServerSettings, Settings};
use crate::escape;
use crate::reply::dialect_of;

/// See [`Settings::describe`].
pub(super) fn describe(settings: &Settings) -> Value {
    let rows = sections(settings).into_iter().flat_map(|section| section.rows);
    let described = rows.map(|(key, value)| {
        let origin = origin(settings, &key);
        json!({ "key": key, "value": value, "origin": origin })
    });
    json!({
        "file": settings.origin.as_ref().map(|path| path.display().to_string()),
        "settings": described.collect::<Vec<Value>>(),
    })
}

/// See [`Settings::to_toml`].
pub(super) fn to_toml(settings: &Settings, origins: bool) -> String {
    let mut toml = String::new();
    for Section { table, rows } in sections(settings) {
        if !table.is_empty() {
            toml.push_str(&format!("\n[{table}]\n"));
        }
        let inside = |key: &str| key[table.len()..].trim_start_matches('.').to_owned();
        let line = |(key, value): &Row| format!("{} = {}", inside(key), in_toml(value));
        let lines: Vec<String> = rows.iter().map(line).collect();
        let widths = lines.iter().map(|line| line.chars().count()).filter(|width| *width <= 60);
        let width = widths.max().unwrap_or_default();
        for (line, (key, _)) in lines.iter().zip(&rows) {
            if origins {
                let origin = origin(settings, key);
                let comment = escape::text(&origin);
                toml.push_str(&format!("{line:width$}  # {comment}\n"));
            } else {
                toml.push_str(&format!("{line}\n"));
            }
        }
    }
    toml
}

/// A table of the file: the path to it, and what is in it.
struct Section {
    table: String,
    rows: Vec<Row>,
}

/// All keys from the top of the file, and the value.
type Row = (String, Value);

fn sections(settings: &Settings) -> Vec<Section> {
    let mut all = vec![(String::new(), top(settings)), ("store".to_owned(), store(settings))];
    for (name, described) in &settings.pools {
        let table = join("pool", name.as_str());
        let rows = pool(settings, name.as_str(), &table, described);
        all.push((table, rows));
    }
    for (name, described) in &settings.agents {
        let table = join("agent", name.as_str());
        let rows = agent(&table, described);
        all.push((table, rows));
    }
    for (name, workflow) in &settings.workflows {
        let table = join("workflow", name);
        let agents: Vec<&str> = workflow.agents.iter().map(|agent| agent.as_str()).collect();
        let agents = (join(&table, "agents"), agents.into());
        let hold = (join(&table, "hold"), workflow.hold.into());
        all.push((table, vec![agents, hold]));
    }
    let routes = settings.routes.iter();
    let routes = routes.map(|(class, pools)| (join("route", class), names(pools)));
    all.push(("route".to_owned(), routes.collect()));
    for (name, described) in &settings.providers {
        let table = join("provider", name);
        let rows = provider(&table, described);
        all.push((table, rows));
    }
    all.push(("server".to_owned(), server(settings)));
    let sections = all.into_iter().map(|(table, rows)| Section { table, rows });
    sections.filter(|section| !section.rows.is_empty()).collect()
}

fn top(settings: &Settings) -> Vec<Row> {
    let version = settings.version.map(|version| ("version".to_owned(), version.into()));
    let listen = settings.listen.unwrap_or(Settings::LISTEN).to_string();
    let mut rows: Vec<Row> = version.into_iter().collect();
    rows.push(("listen".to_owned(), listen.into()));
    rows.push(("open_pools".to_owned(), settings.open_pools.into()));
    rows
}

fn store(settings: &Settings) -> Vec<Row> {
    let store = settings.store.clone().unwrap_or_default();
    let rows = [
        ("url", store.url.to_string().into()),
        ("slack", span(store.slack())),
        ("prefix", store.prefix.clone().into()),
        ("skew", span(store.skew)),
        ("wait_replicas", store.wait_replicas.into()),
        ("compact", store.compact.into()),
    ];
    let path = |path: &PathBuf| path.display().to_string();
    let said = [
        ("password_file", store.password_file.as_ref().map(path)),
        ("password_env", store.password_env.clone()),
        ("ca", store.ca.as_ref().map(path)),
    ];
    let said = said.into_iter().filter_map(|(key, value)| Some((key, value?.into())));
    let rows = rows.into_iter().chain(said).map(|(key, value)| (join("store", key), value));
    // What only a network store heeds is noise beside the others.
    let heeded = |(at, row): &(usize, Row)| {
        *at < 2 || store.url.is_network() || settings.lines.contains_key(&row.0)
    };
    rows.enumerate().filter(heeded).map(|(_, row)| row).collect()
}

fn agent(path: &str, agent: &AgentSettings) -> Vec<Row> {
    let priority = plain::priority(agent.priority.unwrap_or_default());
    let mut rows = vec![(join(path, "priority"), priority.into())];
    shares(&join(path, "floor"), &agent.floor, &mut rows);
    shares(&join(path, "cap"), &agent.cap, &mut rows);
    rows
}

fn server(settings: &Settings) -> Vec<Row> {
    let ServerSettings { token_file, socket } = &settings.server;
    let entries = [("token_file", token_file), ("socket", socket)].into_iter();
    let stated = entries.filter_map(|(key, path)| path.as_deref().map(|path| (key, path)));
    stated.map(|(key, path)| (join("server", key), in_text(path))).collect()
}

fn pool(settings: &Settings, name: &str, path: &str, pool: &PoolSettings) -> Vec<Row> {
    let store = settings.store.clone().unwrap_or_default();
    let mut rows = Vec::new();
    let mut row = |key: &str, value: Value| rows.push((join(path, key), value));
    if let Some(provider) = &pool.provider {
        row("provider", provider.clone().into());
    }
    if !pool.models.is_empty() {
        row("models", pool.models.clone().into());
    }
    if let Some(account) = &pool.account {
        row("account", account.clone().into());
    }
    let dialect = dialect_of(name, pool.provider.as_deref());
    rows.extend(limits(path, &pool.limits, dialect));
    let mut row = |key: &str, value: Value| rows.push((join(path, key), value));
    row("margin", plain::margin(pool.margin).into());
    row("slack", span(pool.slack.unwrap_or_else(|| store.slack())));
    row("enforce", pool.enforce.into());
    row("zones", toggle(pool.zones));
    row("yield", pool.yields.into());
    row("breaker", pool.breaker.into());
    row("promotion", pool.promotion.into());
    row("reconcile", pool.reconcile.into());
    row("estimates", pool.estimates.into());
    row("learn", pool.learn.into());
    let retries = pool.retry_budget.map(|budget| plain::percent(budget.per_mille).into());
    row("retry_budget", retries.unwrap_or_else(|| false.into()));
    if let Some(longest) = pool.longest_wait {
        row("longest_wait", span(longest));
    }
    row("longest_lease", pool.longest_lease().map_or_else(|| "none".into(), span));
    row("lease_ttl", span(pool.lease_ttl));
    if !pool.fallback.is_empty() {
        row("fallback", names(&pool.fallback));
    }
    row("rewrite", pool.rewrite.into());
    row("keepalive", pool.keepalive.map_or_else(|| false.into(), span));
    row("on_store_failure", word(&STORE_FAILURES, pool.on_store_failure));
    nested(path, pool, &mut rows);
    rows
}

/// The parts of a pool that are tables themselves.
fn nested(path: &str, pool: &PoolSettings, rows: &mut Vec<Row>) {
    let backoff = join(path, "backoff");
    match pool.backoff {
        None => rows.push((backoff, false.into())),
        Some(Backoff { base, factor_per_mille, cap, jitter }) => {
            let factor = plain::decimal(u64::from(factor_per_mille), 1_000);
            rows.push((join(&backoff, "base"), span(base)));
            rows.push((join(&backoff, "factor"), factor.into()));
            rows.push((join(&backoff, "cap"), cap.map_or_else(|| "auto".into(), span)));
            rows.push((join(&backoff, "jitter"), jitter.into()));
        }
    }
    let cascade = join(path, "cascade");
    match pool.cascade {
        None => rows.push((cascade, false.into())),
        Some(CascadeThreshold { agents, within }) => {
            rows.push((join(&cascade, "agents"), agents.into()));
            rows.push((join(&cascade, "within"), span(within)));
        }
    }
    let windows = join(path, "return_windows");
    match &pool.return_windows {
        None => rows.push((windows, false.into())),
        Some(each) => rows.extend(PRIORITIES.iter().map(|(tier, priority)| {
            let TimeRange { from, to } = each.of(*priority);
            (join(&windows, tier), json!([span(from), span(to)]))
        })),
    }
    let price = join(path, "price");
    for (unit, millionths) in &pool.price {
        rows.push((join(&price, unit.name()), plain::amount(&Unit::Usd, *millionths).into()));
    }
}

/// The limits by key, one value or a list for each.
fn limits(path: &str, limits: &[Limit], dialect: Dialect) -> Vec<Row> {
    let mut keys: Vec<(String, Vec<Value>)> = Vec::new();
    for limit in limits {
        let key = match limit.id().unit() {
            None => join(path, "parallel"),
            Some(unit @ Unit::Other(_)) => join(&join(path, "units"), unit.name()),
            Some(unit) => join(path, unit.name()),
        };
        match keys.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(one_limit(limit, dialect)),
            None => keys.push((key, vec![one_limit(limit, dialect)])),
        }
    }
    let single = |mut values: Vec<Value>| match values.len() {
        1 => values.remove(0),
        _ => Value::Array(values),
    };
    keys.into_iter().map(|(key, values)| (key, single(values))).collect()
}

/// A rate where that says it all, else the long form.
fn one_limit(limit: &Limit, dialect: Dialect) -> Value {
    let (unit, amount, period, burst) = match &limit.rule {
        Rule::Parallel { amount } => return (*amount).into(),
        Rule::Window { unit, amount, period } => (unit, *amount, *period, None),
        Rule::Bucket { unit, amount, period, burst } => (unit, *amount, *period, Some(*burst)),
    };
    let mut long = serde_json::Map::new();
    if let Some(burst) = burst {
        long.insert("kind".to_owned(), "bucket".into());
        long.insert("burst".to_owned(), plain::amount(unit, burst).into());
    } else if refills(dialect, unit, period) && limit.resets == Resets::Rolling {
        long.insert("kind".to_owned(), "window".into());
    }
    if let Some(pace) = limit.pace {
        long.insert("pace".to_owned(), span(pace));
    }
    if limit.charged != charged_by_default(unit) {
        let charged = if limit.charged == Charged::Start { "start" } else { "end" };
        long.insert("charged".to_owned(), charged.into());
    }
    if limit.resets == Resets::Provider {
        long.insert("resets".to_owned(), "provider".into());
    }
    let rate = plain::rate(unit, amount, period);
    if long.is_empty() {
        return rate.into();
    }
    let rate = std::iter::once(("rate".to_owned(), rate.into()));
    Value::Object(rate.chain(long).collect())
}

fn shares(path: &str, shares: &Shares, rows: &mut Vec<Row>) {
    share_rows(path, &shares.everywhere, rows);
    for (pool, of_pool) in &shares.by_pool {
        share_rows(&join(path, pool.as_str()), of_pool, rows);
    }
}

fn share_rows(path: &str, shares: &[Share], rows: &mut Vec<Row>) {
    for share in shares {
        let portion: Value = match (&share.of, share.portion) {
            (_, Portion::PerMille(share)) => plain::percent(share).into(),
            (LimitSelector::Unit(unit), Portion::Rate { amount, period }) => {
                plain::rate(unit, amount, period).into()
            }
            (_, Portion::Rate { amount, period }) => {
                plain::rate(&Unit::Requests, amount, period).into()
            }
            (_, Portion::Slots(slots)) => slots.into(),
        };
        let key = match &share.of {
            LimitSelector::All => path.to_owned(),
            LimitSelector::Unit(unit) => join(path, unit.name()),
            LimitSelector::Parallel => join(path, "parallel"),
        };
        rows.push((key, portion));
    }
}

fn provider(path: &str, provider: &ProviderSettings) -> Vec<Row> {
    let ProviderSettings { upstream, key_file, key_env, ca } = provider;
    let entries = [
        ("upstream", upstream.clone().map(Value::from)),
        ("key_file", key_file.as_deref().map(in_text)),
        ("key_env", key_env.clone().map(Value::from)),
        ("ca", ca.as_deref().map(in_text)),
    ];
    let stated = entries.into_iter().filter_map(|(key, value)| value.map(|value| (key, value)));
    stated.map(|(key, value)| (join(path, key), value)).collect()
}

/// Where a value comes from: the line of its key, or of the one value that stands for its table.
fn origin(settings: &Settings, key: &str) -> String {
    let lines = &settings.lines;
    let stands_for_all = || {
        let (parent, _) = key.rsplit_once('.')?;
        let has_short_form = parent == "store" || parent.ends_with(".return_windows");
        let inside = format!("{parent}.");
        let first = lines.range(inside.clone()..).next();
        let is_table = first.is_some_and(|(path, _)| path.starts_with(&inside));
        if has_short_form && !is_table { lines.get(parent) } else { None }
    };
    // A pool that says nothing of its slack has the store's.
    let of_store = || lines.get("store.slack").filter(|_| key.ends_with(".slack"));
    let line = lines.get(key).or_else(stands_for_all).or_else(of_store);
    match (line, &settings.origin) {
        (None, _) => "default".to_owned(),
        (Some(line), None) => format!("line {line}"),
        (Some(line), Some(file)) => format!("{}:{line}", file.display()),
    }
}

/// A value as it would stand in a file.
fn in_toml(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(in_toml).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| format!("{key} = {}", in_toml(value));
            let entries: Vec<String> = map.iter().map(entry).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        // What JSON writes as it is and TOML or a terminal does not take.
        plain => escape::toml(&plain.to_string()).into_owned(),
    }
}

fn span(span: Span) -> Value {
    plain::span(span).into()
}

fn toggle(toggle: Toggle) -> Value {
    match toggle {
        Toggle::Auto => "auto".into(),
        Toggle::On => true.into(),
        Toggle::Off => false.into(),
    }
}

fn word<T: PartialEq>(words: &[(&str, T)], meaning: T) -> Value {
    words.iter().find(|(_, known)| *known == meaning).map(|(word, _)| *word).into()
}

fn names(pools: &[PoolName]) -> Value {
    pools.iter().map(PoolName::as_str).collect::<Vec<&str>>().into()
}

fn in_text(path: &Path) -> Value {
    path.display().to_string().into()
}
