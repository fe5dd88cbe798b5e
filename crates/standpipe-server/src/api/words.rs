//! What several calls say in the same way: figures, limits, tiers, headers, and who asks.

use std::collections::BTreeMap;
use std::fmt;

use axum::http::{HeaderMap, StatusCode, header};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use standpipe::config::{TextError, text};
use standpipe::{Limit, Meaning, Priority, Reply, Unit};
use utoipa::ToSchema;

use crate::history::millis;
use crate::problem::Problem;

/// Units and how many of each.
pub(crate) type Figures = BTreeMap<String, u64>;
/// Headers of a provider's answer.
pub(crate) type Headers = BTreeMap<String, HeaderText>;

/// How many headers are looked at.
const MOST_HEADERS: usize = 200;

/// The most bytes of a provider's answer that a call may carry. Errors have a few hundred.
pub(crate) const MOST_BODY: usize = 128 * 1024;

/// The body of a provider's answer. It may hold anything, so it appears in no message.
pub(crate) struct AnswerBody(String);

impl<'de> Deserialize<'de> for AnswerBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An error of a typed read would quote the value.
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            _ => Err(D::Error::custom("`body` is not a string; send the answer's body as text")),
        }
    }
}

impl fmt::Debug for AnswerBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnswerBody({} bytes)", self.0.len())
    }
}

/// A provider's answer as a call reports it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Answered<'a> {
    pub(crate) status: Option<u16>,
    pub(crate) headers: Option<&'a Headers>,
    pub(crate) body: Option<&'a AnswerBody>,
}

/// The value of a header; several when it came several times.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum HeaderText {
    /// It came once.
    One(String),
    /// It came several times.
    Several(Vec<String>),
}

/// A limit of a unit, or several.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(
    untagged,
    expecting = "a limit is a rate such as \"60/min\", a number for `parallel`, an object with \
                 `rate` and for example `burst`, or a list of these"
)]
pub(crate) enum Figure {
    /// The most calls in flight, for `parallel`.
    Number(u64),
    /// A rate, with options after commas.
    #[schema(example = "2M/min,burst=400k")]
    Rate(String),
    /// The long form of the configuration file: `rate`, `kind`, `burst`, `pace`, `charged`,
    /// `resets`.
    #[schema(example = json!({"rate": "2M/min", "burst": 400_000}))]
    Long(BTreeMap<String, FigureText>),
    /// Several limits of one unit.
    #[schema(no_recursion)]
    Several(Vec<Self>),
}

/// The value of an option of a limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum FigureText {
    /// An amount, or seconds.
    Number(u64),
    /// Anything else.
    Text(String),
}

impl fmt::Display for FigureText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Who goes first.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tier {
    Critical,
    Standard,
    Background,
}

impl From<Tier> for Priority {
    fn from(tier: Tier) -> Self {
        match tier {
            Tier::Critical => Self::Critical,
            Tier::Standard => Self::Standard,
            Tier::Background => Self::Background,
        }
    }
}

/// The limits that came with a call.
pub(crate) fn limits(said: Option<&BTreeMap<String, Figure>>) -> Result<Vec<Limit>, Problem> {
    let mut limits = Vec::new();
    for (unit, figure) in said.into_iter().flatten() {
        let each = match figure {
            Figure::Several(several) => several.iter().collect(),
            one => vec![one],
        };
        for figure in each {
            limits.push(limit(unit, figure).map_err(|wrong| {
                let shown: String = unit.chars().take(40).flat_map(char::escape_debug).collect();
                Problem::invalid(format!("limits.{shown}: {}", wrong.what), wrong.remedy)
            })?);
        }
    }
    Ok(limits)
}

fn limit(unit: &str, figure: &Figure) -> Result<Limit, TextError> {
    let wrong = |what: &str, remedy: &str| TextError { what: what.into(), remedy: remedy.into() };
    let text = match figure {
        Figure::Number(number) => format!("{unit}={number}"),
        Figure::Rate(rate) => format!("{unit}={rate}"),
        Figure::Long(options) => {
            let rate = options.get("rate").ok_or_else(|| {
                wrong("the limit has no rate", "add for example \"rate\": \"60/min\"")
            })?;
            let others = options.iter().filter(|(key, _)| *key != "rate");
            let others = others.map(|(key, value)| format!(",{key}={value}"));
            format!("{unit}={rate}{}", others.collect::<String>())
        }
        Figure::Several(_) => return Err(wrong("a list in a list", "write one list of limits")),
    };
    text::limit(&text)
}

/// Figures of a commit.
pub(crate) fn amounts(said: Option<&Figures>) -> Result<Vec<(Unit, u64)>, Problem> {
    let each = said.into_iter().flatten().map(|(name, amount)| {
        let wrong = || {
            let shown: String = name.chars().take(40).flat_map(char::escape_debug).collect();
            Problem::invalid(
                format!("`{shown}` cannot be the name of a unit"),
                "use a small letter and then up to 31 of a-z 0-9 _, for example input_tokens",
            )
        };
        Ok((Unit::named(name).ok_or_else(wrong)?, *amount))
    });
    each.collect()
}

impl Answered<'_> {
    /// Whether the call reports an answer at all.
    pub(crate) const fn is_there(&self) -> bool {
        self.status.is_some() || self.headers.is_some() || self.body.is_some()
    }

    /// The answer, if the call reports one. `usual` is its status if the call omits it.
    pub(crate) fn reply(&self, usual: u16) -> Result<Option<Reply>, Problem> {
        if !self.is_there() {
            return Ok(None);
        }
        let status = self.status.unwrap_or(usual);
        if !(100..600).contains(&status) {
            return Err(Problem::invalid(
                format!("{status} is not an HTTP status"),
                "give the status of the provider's answer, 100 to 599",
            ));
        }
        let mut reply = Reply::new(status);
        let values = self.headers.into_iter().flatten().flat_map(|(name, text)| {
            let values = match text {
                HeaderText::One(value) => std::slice::from_ref(value),
                HeaderText::Several(values) => values.as_slice(),
            };
            values.iter().map(move |value| (name, value))
        });
        for (name, value) in values.take(MOST_HEADERS) {
            reply = reply.header(name.to_ascii_lowercase(), value.as_str());
        }
        match self.body {
            Some(AnswerBody(body)) if body.len() > MOST_BODY => Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("`body` has {} bytes, the most is {MOST_BODY}", body.len()),
                "send the body of errors only, and the usage of other calls as `used`",
            )),
            Some(AnswerBody(body)) => Ok(Some(reply.unrecorded_body(body.as_bytes()))),
            None => Ok(Some(reply)),
        }
    }
}

/// What a provider's answer meant, if the call reported one.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Meant {
    /// `served`, `refused` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
    /// What a refusal is about: `quota`, `concurrency`, `slow_down`, `overload` or `terminal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// How long the provider says to wait, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl From<&Meaning> for Meant {
    fn from(meaning: &Meaning) -> Self {
        let plain = |meaning| Self { meaning: Some(meaning), ..Self::default() };
        match meaning {
            Meaning::Served => plain("served"),
            Meaning::Refused { kind, retry_after, .. } => Self {
                kind: Some(kind.as_str()),
                retry_after_ms: retry_after.map(millis),
                ..plain("refused")
            },
            _ => plain("failed"),
        }
    }
}

/// Who asks: as said, else by header, else the calling program's name.
pub(crate) fn same_agent(said: Option<String>, headers: &HeaderMap) -> String {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if let Some(agent) = said.or_else(|| text("x-standpipe-agent").map(str::to_owned)) {
        return agent;
    }
    let program = text(header::USER_AGENT.as_str()).unwrap_or_default();
    let program = program.split(['/', ' ']).next().unwrap_or_default();
    if program.is_empty() { "http".to_owned() } else { standpipe::named_after(program) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn who_asks_is_said_or_seen() {
        let mut headers = HeaderMap::new();
        assert_eq!(same_agent(None, &headers), "http");
        headers.insert(header::USER_AGENT, HeaderValue::from_static("python-requests/2.31 x"));
        assert_eq!(same_agent(None, &headers), "python-requests");
        headers.insert("x-standpipe-agent", HeaderValue::from_static("blog"));
        assert_eq!(same_agent(None, &headers), "blog");
        assert_eq!(same_agent(Some("said".to_owned()), &headers), "said");
    }

    #[test]
    fn a_limit_is_a_rate_or_a_number() {
        let said = serde_json::from_str(r#"{"requests":"60/min","parallel":5}"#).unwrap();
        assert_eq!(limits(Some(&said)).unwrap().len(), 2);
        let said = serde_json::from_str(
            r#"{"input_tokens":{"rate":"2M/min","burst":400000},"tokens":"9/s,burst=3",
                "content":["80/min",{"rate":"500/h"}]}"#,
        );
        assert_eq!(limits(Some(&said.unwrap())).unwrap().len(), 4);
        for (wrong, hint) in [
            (r#"{"tokens":{"burst":5}}"#, "rate"),
            (r#"{"tokens":{"rate":"5/s","brust":5}}"#, "did you mean `burst`?"),
            (r#"{"tokens":[["5/s"]]}"#, "one list"),
        ] {
            let said = serde_json::from_str(wrong).unwrap();
            let problem = limits(Some(&said)).unwrap_err();
            assert!(problem.hint.contains(hint), "{problem:?}");
        }
        let wrong = serde_json::from_str(r#"{"requests":"60/m"}"#).unwrap();
        assert!(limits(Some(&wrong)).unwrap_err().hint.contains("min"), "says what to write");
    }
}
