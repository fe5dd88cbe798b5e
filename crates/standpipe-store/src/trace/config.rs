//! Configurations as traces write them, close to how a configuration file does.

use serde_json::{Map, Value};
use standpipe_core::{
    AgentName, AgentRule, Backoff, Charged, Configure, Headroom, Limit, Of, Policy, PoolConfig,
    Portion, Priority, Resets, RetryBudget, ReturnWindows, Rule, Share, Source, Span, Stretch,
    Unit, Zones,
};

use super::line::amounts;
use super::text::{rate, span};

/// What the first line of a story says of every configuration in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Defaults {
    pub(super) slack: Span,
    pub(super) claim: Span,
}

pub(super) fn configure(
    said: &Map<String, Value>,
    defaults: Defaults,
) -> Result<Configure, String> {
    let mut config = PoolConfig::new(Vec::new());
    config.slack = defaults.slack;
    config.claim = defaults.claim;
    let mut source = Source::Code;
    for (word, value) in said {
        match word.as_str() {
            "source" => source = source_of(value)?,
            "headroom" => config.headroom = headroom(value)?,
            "lease_ttl" => config.lease_ttl = time(value)?,
            "longest_lease" if value == "never" => config.longest_lease = None,
            "longest_lease" => config.longest_lease = Some(time(value)?),
            "enforce" => config.enforce = value.as_bool().ok_or("`enforce` is true or false")?,
            "agents" => config.agents = agents(value)?,
            "policy" => config.policy = policy(value)?,
            "prices" => config.prices = amounts(value)?,
            "parallel" => config.limits.push(Limit::new(Rule::Parallel { amount: amount(value)? })),
            unit => limits(unit, value, &mut config.limits)?,
        }
    }
    Ok(Configure { source, config })
}

pub(super) fn priority(value: &Value) -> Result<Priority, String> {
    match value.as_str() {
        Some("critical") => Ok(Priority::Critical),
        Some("standard") => Ok(Priority::Standard),
        Some("background") => Ok(Priority::Background),
        _ => Err(format!("{value} is no priority; critical, standard or background")),
    }
}

pub(super) fn amount(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| format!("{value} is no whole number"))
}

pub(super) fn time(value: &Value) -> Result<Span, String> {
    span(
        value
            .as_str()
            .ok_or_else(|| format!("{value} is no time; write it as text, like \"2s\""))?,
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
        return Err(format!("{value} is no source; code, change or {{\"file\": …}}"));
    };
    let version = file.get("version").map(amount).transpose()?;
    let written = file.get("written").map(amount).transpose()?.unwrap_or(0);
    Ok(Source::File { version, written })
}

fn headroom(value: &Value) -> Result<Headroom, String> {
    if value == "auto" {
        return Ok(Headroom::Auto);
    }
    let wrong = || format!("{value} is no headroom; \"auto\" or thousandths");
    Ok(Headroom::Fixed(u16::try_from(amount(value)?).map_err(|_| wrong())?))
}

/// `usual`, or only what is named: everything else is off.
fn policy(value: &Value) -> Result<Policy, String> {
    if value == "usual" {
        return Ok(Policy::usual());
    }
    let mut policy = Policy::NONE;
    for (word, value) in object(value)? {
        match word.as_str() {
            "backoff" => policy.backoff = Some(backoff(value)?),
            "return_windows" => policy.comeback = Some(windows(value)?),
            "cascade" => policy.cascade = value == true,
            "learn" => policy.learn = value == true,
            "retry_budget" => {
                let figure = |word: &str, usual: u16| {
                    let said = value.get(word).map(amount).transpose()?;
                    let figure = said.map_or(Ok(usual), u16::try_from);
                    figure.map_err(|_| format!("{value} is no retry budget"))
                };
                let RetryBudget { per_mille, least } = RetryBudget::USUAL;
                let (per_mille, least) = (figure("per_mille", per_mille)?, figure("least", least)?);
                policy.retries = Some(RetryBudget { per_mille, least });
            }
            "second_look" => policy.second_look = Some(time(value)?),
            "zones" if value == "long" => policy.zones = Zones::Long,
            "zones" => policy.zones = if value == true { Zones::All } else { Zones::Off },
            "yield" => policy.yields = value == true,
            "promotion" => policy.promotes = value == true,
            "breaker" => policy.breaker = value == true,
            "reconcile" => policy.reconciles = value == true,
            "estimates" => policy.estimates = value == true,
            _ => return Err(format!("no policy is called `{word}`")),
        }
    }
    Ok(policy)
}

fn backoff(value: &Value) -> Result<Backoff, String> {
    let mut backoff = Backoff::USUAL;
    for (word, value) in object(value)? {
        match word.as_str() {
            "base" => backoff.base = time(value)?,
            "factor_per_mille" => {
                let factor = u32::try_from(amount(value)?);
                backoff.factor_per_mille = factor.map_err(|_| "no factor")?;
            }
            "cap" => backoff.cap = Some(time(value)?),
            "jitter" => backoff.jitter = value == true,
            _ => return Err(format!("a backoff cannot have `{word}`")),
        }
    }
    Ok(backoff)
}

/// `usual`, one stretch for everybody, or one per tier.
fn windows(value: &Value) -> Result<ReturnWindows, String> {
    if value == "usual" {
        return Ok(ReturnWindows::USUAL);
    }
    if value.is_string() {
        return time(value).map(ReturnWindows::smear);
    }
    let stretch = |tier: &str| {
        let ends = value.get(tier).and_then(Value::as_array).map(Vec::as_slice);
        let Some([from, to]) = ends else {
            return Err(format!("{value} does not say when {tier} comes back"));
        };
        Ok(Stretch { from: time(from)?, to: time(to)? })
    };
    let (critical, standard) = (stretch("critical")?, stretch("standard")?);
    Ok(ReturnWindows { critical, standard, background: stretch("background")? })
}

/// One limit or several of one unit.
fn limits(word: &str, value: &Value, into: &mut Vec<Limit>) -> Result<(), String> {
    let unit = Unit::named(word).ok_or_else(|| format!("`{word}` is no unit and no setting"))?;
    match value {
        Value::Array(several) => several.iter().try_for_each(|one| limits(word, one, into)),
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

fn long_limit(unit: &Unit, said: &Map<String, Value>) -> Result<Limit, String> {
    let text = said.get("rate").and_then(Value::as_str).ok_or("a limit needs a `rate`")?;
    let (amount_per, period) = rate(text)?;
    let unit = unit.clone();
    let mut limit = Limit::new(if said.get("kind").is_some_and(|kind| kind == "bucket") {
        let burst = said.get("burst").map(amount).transpose()?.unwrap_or(amount_per);
        Rule::Bucket { unit, amount: amount_per, period, burst }
    } else {
        Rule::Window { unit, amount: amount_per, period }
    });
    for (word, value) in said {
        match (word.as_str(), value.as_str()) {
            ("rate", _) | ("kind", Some("window" | "bucket")) | ("burst", _) => {}
            ("charged", Some("start")) => limit.charged = Charged::Start,
            ("charged", Some("end")) => limit.charged = Charged::End,
            ("pace", _) => limit.pace = Some(time(value)?),
            ("resets", Some("rolling")) => limit.resets = Resets::Rolling,
            ("resets", Some("provider")) => limit.resets = Resets::Provider,
            _ => return Err(format!("a limit cannot have `{word}`: {value}")),
        }
    }
    Ok(limit)
}

fn agents(value: &Value) -> Result<Vec<AgentRule>, String> {
    let each = |(name, said): (&String, &Value)| {
        let known = AgentName::new(name).ok_or_else(|| format!("`{name}` is no agent's name"))?;
        let mut rule =
            AgentRule { name: known, priority: None, floors: Vec::new(), caps: Vec::new() };
        for (word, value) in object(said)? {
            match word.as_str() {
                "priority" => rule.priority = Some(priority(value)?),
                "floor" => rule.floors = shares(value)?,
                "cap" => rule.caps = shares(value)?,
                _ => return Err(format!("an agent cannot have `{word}`")),
            }
        }
        Ok(rule)
    };
    object(value)?.iter().map(each).collect()
}

/// A percentage of everything, or a part of some units.
fn shares(value: &Value) -> Result<Vec<Share>, String> {
    if let Some(text) = value.as_str() {
        let percent = text.strip_suffix('%').and_then(|figure| figure.parse::<u16>().ok());
        let share = percent.and_then(|percent| percent.checked_mul(10));
        let share = share.ok_or_else(|| format!("{value} is no share; write it like \"25%\""))?;
        return Ok(vec![Share { of: Of::All, portion: Portion::PerMille(share) }]);
    }
    let each = |(word, value): (&String, &Value)| {
        if word == "parallel" {
            return Ok(Share { of: Of::Parallel, portion: Portion::Slots(amount(value)?) });
        }
        let unit = Unit::named(word).ok_or_else(|| format!("`{word}` is no unit"))?;
        let (amount, period) = rate(value.as_str().unwrap_or_default())?;
        Ok(Share { of: Of::Unit(unit), portion: Portion::Rate { amount, period } })
    };
    object(value)?.iter().map(each).collect()
}
