//! The parser of configurations in traces, whose syntax follows the configuration file.

use serde_json::{Map, Value};
use standpipe_core::{
    AgentName, AgentRule, Backoff, CascadeThreshold, Charged, Configure, Limit, LimitSelector,
    Margin, Order, Policy, PoolConfig, PoolRef, Portion, Priority, Resets, RetryBudget,
    ReturnWindows, Rule, Share, Source, Span, Text, TimeRange, Unit, Zones,
};

use super::parse::amounts;
use super::values::{rate, span};

/// Settings in the first line of a trace that apply to all its configurations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) slack: Span,
    pub(super) claim: Span,
}

pub(super) fn configure(
    fields: &Map<String, Value>,
    defaults: Defaults,
) -> Result<Configure, String> {
    let mut config = PoolConfig::new(Vec::new());
    config.slack = defaults.slack;
    config.claim = defaults.claim;
    let mut source = Source::Code;
    for (key, value) in fields {
        match key.as_str() {
            "source" => source = source_of(value)?,
            "margin" => config.margin = margin(value)?,
            "lease_ttl" => config.lease_ttl = time(value)?,
            "longest_lease" if value == "never" => config.longest_lease = None,
            "longest_lease" => config.longest_lease = Some(time(value)?),
            "enforce" => config.enforce = value.as_bool().ok_or("`enforce` is true or false")?,
            "agents" => config.agents = agents(value)?,
            "order" => config.order = order(value)?,
            "policy" => config.policy = policy(value)?,
            "within" => config.within = PoolRef::new(value.as_str().unwrap_or_default()),
            "prices" => config.prices = amounts(value)?,
            "parallel" => config.limits.push(Limit::new(Rule::Parallel { amount: amount(value)? })),
            unit => limits(unit, value, &mut config.limits)?,
        }
    }
    Ok(Configure { source, config })
}

fn order(value: &Value) -> Result<Order, String> {
    match value.as_str() {
        Some("arrival") => Ok(Order::Arrival),
        Some("fair") => Ok(Order::Fair),
        _ => Err(format!("{value} is not an order; use arrival or fair")),
    }
}

pub(super) fn priority(value: &Value) -> Result<Priority, String> {
    match value.as_str() {
        Some("critical") => Ok(Priority::Critical),
        Some("standard") => Ok(Priority::Standard),
        Some("background") => Ok(Priority::Background),
        _ => Err(format!("{value} is not a priority; use critical, standard or background")),
    }
}

pub(super) fn amount(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| format!("{value} is not a whole number"))
}

pub(super) fn time(value: &Value) -> Result<Span, String> {
    span(
        value
            .as_str()
            .ok_or_else(|| format!("{value} is not a time; write it as text, like \"2s\""))?,
    )
}

pub(super) fn object(value: &Value) -> Result<&Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{value} should be an object"))
}

fn source_of(value: &Value) -> Result<Source, String> {
    match value.as_str() {
        Some("code") => return Ok(Source::Code),
        Some("change") => return Ok(Source::Change),
        _ => {}
    }
    let Some(file) = value.get("file") else {
        return Err(format!("{value} is not a source; use code, change or {{\"file\": …}}"));
    };
    let version = file.get("version").map(amount).transpose()?;
    let written = file.get("written").map(amount).transpose()?.unwrap_or(0);
    Ok(Source::File { version, written })
}

fn margin(value: &Value) -> Result<Margin, String> {
    if value == "auto" {
        return Ok(Margin::Auto);
    }
    let wrong = || format!("{value} is not a margin; use \"auto\" or thousandths");
    Ok(Margin::Fixed(u16::try_from(amount(value)?).map_err(|_| wrong())?))
}

/// Parses a policy: `usual`, or an object; what it does not name is off.
fn policy(value: &Value) -> Result<Policy, String> {
    if value == "usual" {
        return Ok(Policy::usual());
    }
    let mut policy = Policy::NONE;
    for (key, value) in object(value)? {
        match key.as_str() {
            "backoff" => policy.backoff = Some(backoff(value)?),
            "return_windows" => policy.comeback = Some(windows(value)?),
            "cascade" => policy.cascade = cascade(value)?,
            "learn" => policy.learn = value == true,
            "retry_budget" => {
                let number = |key: &str, usual: u16| {
                    let given = value.get(key).map(amount).transpose()?;
                    let number = given.map_or(Ok(usual), u16::try_from);
                    number.map_err(|_| format!("{value} is not a retry budget"))
                };
                let RetryBudget { per_mille, least } = RetryBudget::USUAL;
                let (per_mille, least) = (number("per_mille", per_mille)?, number("least", least)?);
                policy.retries = Some(RetryBudget { per_mille, least });
            }
            "second_look" => policy.terminal_probe = Some(time(value)?),
            "zones" if value == "long" => policy.zones = Zones::Long,
            "zones" => policy.zones = if value == true { Zones::All } else { Zones::Off },
            "yield" => policy.yields = value == true,
            "spread" => policy.spreads = value == true,
            "promotion" => policy.promotes = value == true,
            "breaker" => policy.breaker = value == true,
            "reconcile" => policy.reconciles = value == true,
            "estimates" => policy.estimates = value == true,
            _ => return Err(format!("unknown policy `{key}`")),
        }
    }
    Ok(policy)
}

fn cascade(value: &Value) -> Result<Option<CascadeThreshold>, String> {
    if value.is_boolean() {
        return Ok((value == true).then_some(CascadeThreshold::USUAL));
    }
    let mut threshold = CascadeThreshold::USUAL;
    for (key, value) in object(value)? {
        match key.as_str() {
            "agents" => {
                let agents = u8::try_from(amount(value)?);
                threshold.agents = agents.map_err(|_| format!("{value} is too many agents"))?;
            }
            "within" => threshold.within = time(value)?,
            _ => return Err(format!("unknown key `{key}` of a cascade")),
        }
    }
    Ok(Some(threshold))
}

fn backoff(value: &Value) -> Result<Backoff, String> {
    let mut backoff = Backoff::USUAL;
    for (key, value) in object(value)? {
        match key.as_str() {
            "base" => backoff.base = time(value)?,
            "factor_per_mille" => {
                let factor = u32::try_from(amount(value)?);
                backoff.factor_per_mille = factor.map_err(|_| "the factor is too large")?;
            }
            "cap" => backoff.cap = Some(time(value)?),
            "jitter" => backoff.jitter = value == true,
            _ => return Err(format!("a backoff cannot have `{key}`")),
        }
    }
    Ok(backoff)
}

/// Parses return windows: `usual`, one time range for all priorities, or one per priority.
fn windows(value: &Value) -> Result<ReturnWindows, String> {
    if value == "usual" {
        return Ok(ReturnWindows::USUAL);
    }
    if value.is_string() {
        return time(value).map(ReturnWindows::smear);
    }
    let range = |tier: &str| {
        let ends = value.get(tier).and_then(Value::as_array).map(Vec::as_slice);
        let Some([from, to]) = ends else {
            return Err(format!("{value} has no time range for {tier}"));
        };
        Ok(TimeRange { from: time(from)?, to: time(to)? })
    };
    let (critical, standard) = (range("critical")?, range("standard")?);
    Ok(ReturnWindows { critical, standard, background: range("background")? })
}

/// Parses one limit or several of one unit.
fn limits(key: &str, value: &Value, into: &mut Vec<Limit>) -> Result<(), String> {
    let unit =
        Unit::named(key).ok_or_else(|| format!("`{key}` is neither a unit nor a setting"))?;
    match value {
        Value::Array(several) => several.iter().try_for_each(|one| limits(key, one, into)),
        Value::Object(long) => {
            into.push(long_limit(&unit, long)?);
            Ok(())
        }
        _ => {
            let (amount, period) = rate(value.as_str().unwrap_or_default())?;
            into.push(Limit::new(Rule::Window { unit, amount, period }));
            Ok(())
        }
    }
}

fn long_limit(unit: &Unit, fields: &Map<String, Value>) -> Result<Limit, String> {
    let text = fields.get("rate").and_then(Value::as_str).ok_or("a limit needs a `rate`")?;
    let (amount_per, period) = rate(text)?;
    let unit = unit.clone();
    let mut limit = Limit::new(if fields.get("kind").is_some_and(|kind| kind == "bucket") {
        let burst = fields.get("burst").map(amount).transpose()?.unwrap_or(amount_per);
        Rule::Bucket { unit, amount: amount_per, period, burst }
    } else {
        Rule::Window { unit, amount: amount_per, period }
    });
    for (key, value) in fields {
        match (key.as_str(), value.as_str()) {
            ("rate", _) | ("kind", Some("window" | "bucket")) | ("burst", _) => {}
            ("charged", Some("start")) => limit.charged = Charged::Start,
            ("charged", Some("end")) => limit.charged = Charged::End,
            ("pace", _) => limit.pace = Some(time(value)?),
            ("resets", Some("rolling")) => limit.resets = Resets::Rolling,
            ("resets", Some("provider")) => limit.resets = Resets::Provider,
            ("resets", Some(day)) => {
                let day = Text::new(day).ok_or_else(|| format!("`{day}` is no time of day"))?;
                limit.resets = Resets::Calendar(day);
            }
            _ => return Err(format!("a limit cannot have `{key}`: {value}")),
        }
    }
    Ok(limit)
}

fn agents(value: &Value) -> Result<Vec<AgentRule>, String> {
    let each = |(name, fields): (&String, &Value)| {
        let known = AgentName::new(name).ok_or_else(|| format!("`{name}` is not an agent name"))?;
        let mut rule = AgentRule {
            name: known,
            priority: None,
            floors: Vec::new(),
            caps: Vec::new(),
            weight: 1,
        };
        for (key, value) in object(fields)? {
            match key.as_str() {
                "priority" => rule.priority = Some(priority(value)?),
                "floor" => rule.floors = shares(value)?,
                "cap" => rule.caps = shares(value)?,
                "weight" => {
                    let weight = u16::try_from(amount(value)?);
                    rule.weight = weight.map_err(|_| format!("{value} is not a weight"))?;
                }
                _ => return Err(format!("an agent cannot have `{key}`")),
            }
        }
        Ok(rule)
    };
    object(value)?.iter().map(each).collect()
}

/// Parses a percentage of all limits, or amounts of single units.
fn shares(value: &Value) -> Result<Vec<Share>, String> {
    if let Some(text) = value.as_str() {
        let percent = text.strip_suffix('%').and_then(|number| number.parse::<u16>().ok());
        let share = percent.and_then(|percent| percent.checked_mul(10));
        let share =
            share.ok_or_else(|| format!("{value} is not a share; write it like \"25%\""))?;
        return Ok(vec![Share { of: LimitSelector::All, portion: Portion::PerMille(share) }]);
    }
    let each = |(key, value): (&String, &Value)| {
        if key == "parallel" {
            return Ok(Share {
                of: LimitSelector::Parallel,
                portion: Portion::Slots(amount(value)?),
            });
        }
        let unit = Unit::named(key).ok_or_else(|| format!("`{key}` is not a unit"))?;
        let (amount, period) = rate(value.as_str().unwrap_or_default())?;
        Ok(Share { of: LimitSelector::Unit(unit), portion: Portion::Rate { amount, period } })
    };
    object(value)?.iter().map(each).collect()
}
