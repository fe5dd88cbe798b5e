//! Fields that several requests share: amounts, limits, priorities, the agent.
//!
//! A value that no pool could accept is rejected here, before any pool is opened.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::{HeaderMap, HeaderName, header};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use standpipe::config::text::KNOWN_UNITS;
use standpipe::config::{TextError, nearest, text};
use standpipe::{Limit, Priority, Unit};
use utoipa::ToSchema;

use super::unique::{UniqueMap, entries};
use crate::http::names;
use crate::http::problem::Problem;

/// Amounts by unit.
pub(crate) type UnitAmounts = UniqueMap<u64>;
/// Limits by unit.
pub(crate) type UnitLimits = UniqueMap<LimitSpec>;

/// A limit of a unit, or several.
#[derive(Debug, ToSchema)]
#[schema(as = LimitSpec)]
#[serde(untagged)]
pub(crate) enum LimitSpec {
    /// The most calls in flight, for `parallel`.
    Number(u64),
    /// A rate, with options after commas.
    #[schema(example = "2M/min,burst=400k")]
    Rate(String),
    /// The long form of the configuration file: `rate`, `kind`, `burst`, `pace`, `charged`,
    /// `resets`.
    #[schema(example = json!({"rate": "2M/min", "burst": 400_000}))]
    Long(BTreeMap<String, LimitOption>),
    /// Several limits of one unit.
    #[schema(no_recursion)]
    Several(Vec<Self>),
}

/// By hand, because serde's untagged enums hide which key occurs twice.
impl<'de> Deserialize<'de> for LimitSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LimitVisitor)
    }
}

struct LimitVisitor;

impl<'de> Visitor<'de> for LimitVisitor {
    type Value = LimitSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a limit")
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<LimitSpec, E> {
        Err(not_a_limit())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<LimitSpec, E> {
        Err(not_a_limit())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<LimitSpec, E> {
        Err(not_a_limit())
    }

    fn visit_unit<E: Error>(self) -> Result<LimitSpec, E> {
        Err(not_a_limit())
    }

    fn visit_u64<E>(self, number: u64) -> Result<LimitSpec, E> {
        Ok(LimitSpec::Number(number))
    }

    fn visit_str<E>(self, rate: &str) -> Result<LimitSpec, E> {
        Ok(LimitSpec::Rate(rate.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LimitSpec, A::Error> {
        entries(map).map(LimitSpec::Long)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LimitSpec, A::Error> {
        let mut several = Vec::new();
        while let Some(one) = list.next_element()? {
            several.push(one);
        }
        Ok(LimitSpec::Several(several))
    }
}

fn not_a_limit<E: Error>() -> E {
    E::custom(
        "a limit is a rate such as \"60/min\", a number for `parallel`, an object with `rate` and \
         for example `burst`, or a list of these",
    )
}

/// The value of an option of a limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum LimitOption {
    /// An amount, or seconds.
    Number(u64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for LimitOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The priority of a call.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PriorityParam {
    Critical,
    Standard,
    Background,
}

impl From<PriorityParam> for Priority {
    fn from(priority: PriorityParam) -> Self {
        match priority {
            PriorityParam::Critical => Self::Critical,
            PriorityParam::Standard => Self::Standard,
            PriorityParam::Background => Self::Background,
        }
    }
}

/// The limits that a request states.
pub(crate) fn limits(stated: Option<&UnitLimits>) -> Result<Vec<Limit>, Problem> {
    let mut limits = Vec::new();
    for (unit, spec) in stated.into_iter().flat_map(|stated| &stated.0) {
        let each = match spec {
            LimitSpec::Several(several) => several.iter().collect(),
            one => vec![one],
        };
        for spec in each {
            limits.push(limit(unit, spec).map_err(|wrong| {
                Problem::invalid(format!("limits.{}: {}", quoted(unit), wrong.what), wrong.remedy)
            })?);
        }
    }
    Ok(limits)
}

fn limit(unit: &str, spec: &LimitSpec) -> Result<Limit, TextError> {
    let wrong = |what: &str, remedy: &str| TextError { what: what.into(), remedy: remedy.into() };
    let text = match spec {
        LimitSpec::Number(number) => format!("{unit}={number}"),
        LimitSpec::Rate(rate) => format!("{unit}={rate}"),
        LimitSpec::Long(options) => {
            let rate = options.get("rate").ok_or_else(|| {
                wrong("the limit has no rate", "add for example \"rate\": \"60/min\"")
            })?;
            let others = options.iter().filter(|(key, _)| *key != "rate");
            let others = others.map(|(key, value)| format!(",{key}={value}"));
            format!("{unit}={rate}{}", others.collect::<String>())
        }
        LimitSpec::Several(_) => return Err(wrong("a list in a list", "write one list of limits")),
    };
    text::limit(&text)
}

/// Rejects a limit of a unit that is neither built in nor in the cost: it would limit nothing.
pub(crate) fn check_limited_units(
    limits: &[Limit],
    cost: Option<&UnitAmounts>,
) -> Result<(), Problem> {
    let ids: Vec<_> = limits.iter().map(Limit::id).collect();
    let own = ids.iter().filter_map(|id| id.unit()).filter(|unit| matches!(unit, Unit::Other(_)));
    let own: Vec<&Unit> = own.collect();
    let named = || cost.into_iter().flat_map(|cost| cost.0.keys());
    let is_known = |name: &String| {
        let is_limited = own.iter().any(|unit| unit.name() == name);
        is_limited || !matches!(Unit::named(name), Some(Unit::Other(_)))
    };
    // Another unit in the cost is more likely to be misspelled; the pool rejects it by its name.
    if !named().all(is_known) {
        return Ok(());
    }
    let taken = |unit: &Unit| named().any(|name| name == unit.name());
    let Some(unit) = own.iter().find(|unit| !taken(unit)) else { return Ok(()) };
    let hint = match nearest(unit.name(), KNOWN_UNITS.into_iter().chain(["parallel"])) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("name it in the cost, for example \"cost\": {{\"{unit}\": 1}}"),
    };
    let what = format!("limits.{unit} limits nothing: the call uses no `{unit}`");
    Err(Problem::invalid(what, hint))
}

/// The amounts of a commit, by unit.
pub(crate) fn amounts(stated: Option<&UnitAmounts>) -> Result<Vec<(Unit, u64)>, Problem> {
    let each = stated.into_iter().flat_map(|stated| &stated.0).map(|(name, amount)| {
        let wrong = || {
            Problem::invalid(
                format!("`{}` is not a valid unit name", quoted(name)),
                "use a lower-case letter and then up to 31 of a-z 0-9 _, for example input_tokens",
            )
        };
        Ok((Unit::named(name).ok_or_else(wrong)?, *amount))
    });
    each.collect()
}

/// The start of a name as it can be quoted in a message.
fn quoted(name: &str) -> String {
    name.chars().take(40).flat_map(char::escape_debug).collect()
}

/// The agent: as stated, else by header, else the calling program's name.
pub(crate) fn agent_of(stated: Option<String>, headers: &HeaderMap) -> String {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(agent) = stated.or_else(|| text(&names::AGENT).map(str::to_owned)) {
        return agent;
    }
    let program = text(&header::USER_AGENT).unwrap_or_default();
    // `gh` calls itself by its long name.
    let program = match program.strip_prefix("GitHub CLI") {
        Some(_) => "gh",
        None => program.split(['/', ' ']).next().unwrap_or_default(),
    };
    if program.is_empty() { "http".to_owned() } else { standpipe::named_after(program) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn the_agent_is_stated_or_derived() {
        let mut headers = HeaderMap::new();
        assert_eq!(agent_of(None, &headers), "http");
        headers.insert(header::USER_AGENT, HeaderValue::from_static("python-requests/2.31 x"));
        assert_eq!(agent_of(None, &headers), "python-requests");
        headers.insert("x-standpipe-agent", HeaderValue::from_static("blog"));
        assert_eq!(agent_of(None, &headers), "blog");
        assert_eq!(agent_of(Some("stated".to_owned()), &headers), "stated");
    }

    #[test]
    fn a_limit_is_a_rate_or_a_number() {
        let stated = serde_json::from_str(r#"{"requests":"60/min","parallel":5}"#).unwrap();
        assert_eq!(limits(Some(&stated)).unwrap().len(), 2);
        let stated = serde_json::from_str(
            r#"{"input_tokens":{"rate":"2M/min","burst":400000},"tokens":"9/s,burst=3",
                "content":["80/min",{"rate":"500/h"}]}"#,
        );
        assert_eq!(limits(Some(&stated.unwrap())).unwrap().len(), 4);
        for (wrong, hint) in [
            (r#"{"tokens":{"burst":5}}"#, "rate"),
            (r#"{"tokens":{"rate":"5/s","brust":5}}"#, "did you mean `burst`?"),
            (r#"{"tokens":[["5/s"]]}"#, "one list"),
        ] {
            let stated = serde_json::from_str(wrong).unwrap();
            let problem = limits(Some(&stated)).unwrap_err();
            assert!(problem.hint.contains(hint), "{problem:?}");
        }
        let wrong = serde_json::from_str(r#"{"requests":"60/m"}"#).unwrap();
        assert!(limits(Some(&wrong)).unwrap_err().hint.contains("min"));
    }
}
