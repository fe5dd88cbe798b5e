//! The generic provider, for every API without a row of its own; the base of those that differ
//! from it only in names.
//!
//! [`profile`] holds the rules as data and the code that applies them; [`ietf`] reads the
//! `RateLimit` header drafts.

mod ietf;
mod profile;

use serde_json::Value;

use crate::dialect::Dialect;
use crate::parse::json;
use crate::providers::{Provider, openai};
use crate::reader::{ErrorBody, RetryHeader};

pub(super) use profile::{Profile, Rule, RuleVerdict};

pub(super) static PROVIDER: Provider = Provider {
    aliases: &["ietf", "http", "other"],
    retry_headers: RETRY_HEADERS,
    read_limits: |reader| PROFILE.read_limits(reader),
    classify: |reader, error| PROFILE.classify(reader, error),
    ..Provider::new(Dialect::Generic, "generic")
};

static PROFILE: Profile = Profile {
    limits: &[openai::limit("-requests", "requests"), openai::limit("-tokens", "tokens")],
    wait_field: Some("retry_after"),
    uses_openai_codes: true,
    ..Profile::DEFAULT
};

/// The common headers, and the one that some send before the drafts become a standard.
const RETRY_HEADERS: &[RetryHeader] = &[
    RetryHeader::COMMON[0],
    RetryHeader::COMMON[1],
    RetryHeader::COMMON[2],
    RetryHeader::Seconds("beta-retry-after"),
];

/// Most GraphQL errors read of one response.
const MAX_ERRORS: usize = 64;

/// The error in a body with status 200: Shopify's GraphQL lists errors, Slack sends `ok: false`.
pub(super) fn error_in_200(body: &[u8]) -> Option<ErrorBody> {
    if let Some(errors) = json::raw_member(body, "errors").and_then(json::parse) {
        let is_throttled = |error: &&Value| {
            json::get(error, &["extensions", "code"]).and_then(Value::as_str) == Some("THROTTLED")
        };
        let error = json::array(Some(&errors)).iter().take(MAX_ERRORS).find(is_throttled)?;
        return Some(ErrorBody { code: "THROTTLED".to_owned(), ..ErrorBody::from_json(error) });
    }
    (json::raw_member(body, "ok")? == b"false").then(|| ErrorBody::parse(body))
}
