//! A provider's response as a call reports it, and its meaning.
//!
//! Headers and bodies may contain secrets: they are read, never stored, and appear in no message.

use std::fmt;

use axum::http::StatusCode;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use standpipe::{Meaning, Reply};
use utoipa::ToSchema;

use super::unique::UniqueMap;
use crate::http::problem::Problem;
use crate::watch::history::millis;

/// Headers of a provider's answer.
pub(crate) type Headers = UniqueMap<HeaderValues>;

/// How many header lines are read.
const MAX_HEADERS: usize = 200;

/// The most bytes of a provider's answer that a call may carry. Errors have a few hundred.
const MAX_BODY: usize = 128 * 1024;

/// The body of a provider's answer, which appears in no message.
pub(crate) struct ProviderBody(String);

impl<'de> Deserialize<'de> for ProviderBody {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An error of a typed read would quote the value.
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            _ => Err(D::Error::custom(
                "`body` is not a string; send the body of the response as text",
            )),
        }
    }
}

impl fmt::Debug for ProviderBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProviderBody({} bytes)", self.0.len())
    }
}

/// The value of a header, or several when the header was repeated.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum HeaderValues {
    /// One line.
    One(String),
    /// Several lines.
    Several(Vec<String>),
}

/// A provider's answer as a call reports it.
#[derive(Clone, Copy, Default)]
pub(crate) struct ProviderAnswer<'a> {
    pub(crate) status: Option<u16>,
    pub(crate) headers: Option<&'a Headers>,
    pub(crate) body: Option<&'a ProviderBody>,
}

impl ProviderAnswer<'_> {
    /// Whether the call reports an answer at all.
    pub(crate) const fn is_reported(&self) -> bool {
        self.status.is_some() || self.headers.is_some() || self.body.is_some()
    }

    /// The answer, if the call reports one. `default` is its status if the call omits it.
    pub(crate) fn reply(&self, default: u16) -> Result<Option<Reply>, Problem> {
        if !self.is_reported() {
            return Ok(None);
        }
        let status = self.status.unwrap_or(default);
        if !(100..600).contains(&status) {
            return Err(Problem::invalid(
                format!("{status} is not an HTTP status"),
                "give the status of the provider's response, 100 to 599",
            ));
        }
        let mut reply = Reply::new(status);
        let values =
            self.headers.into_iter().flat_map(|headers| &headers.0).flat_map(|(name, values)| {
                let values = match values {
                    HeaderValues::One(value) => std::slice::from_ref(value),
                    HeaderValues::Several(values) => values.as_slice(),
                };
                values.iter().map(move |value| (name, value))
            });
        for (name, value) in values.take(MAX_HEADERS) {
            reply = reply.header(name.to_ascii_lowercase(), value.as_str());
        }
        match self.body {
            Some(ProviderBody(body)) if body.len() > MAX_BODY => Err(Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                format!("`body` has {} bytes, the most is {MAX_BODY}", body.len()),
                "send the body of errors only, and the usage of other calls as `used`",
            )),
            Some(ProviderBody(body)) => Ok(Some(reply.unrecorded_body(body.as_bytes()))),
            None => Ok(Some(reply)),
        }
    }
}

/// The meaning of the provider's response, if the request reported one.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct AnswerMeaning {
    /// `served`, `refused` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'static str>,
    /// The kind of a refusal: `quota`, `concurrency`, `slow_down`, `overload` or `terminal`.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    /// How long the provider asks to wait, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

impl From<&Meaning> for AnswerMeaning {
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
