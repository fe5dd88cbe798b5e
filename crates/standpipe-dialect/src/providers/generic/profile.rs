//! [`Profile`]: a provider described as data, and the code that reads a response by it.
//!
//! A profile lists limit headers and error rules. Every profile also reads the IETF drafts and
//! the plain `x-ratelimit-*` headers.

use std::borrow::Cow;
use std::time::Duration;

use crate::answer::{Kind, LimitSeen, ResetMeans, Verdict};
use crate::parse::{json, number};
use crate::providers::{openai, shopify};
use crate::reader::{ErrorBody, LimitHeaders, ResetFormat, ResponseReader, refused};

use super::{RETRY_HEADERS, ietf};

/// The conventions of one provider.
pub(crate) struct Profile {
    /// Limit headers of the provider.
    pub(crate) limits: &'static [LimitHeaders],
    /// Reads limits that do not have the common header shape.
    pub(crate) other_limits: fn(&mut ResponseReader<'_>),
    /// Limit headers that are read only if nothing else states a limit.
    pub(crate) fallback_limits: &'static [LimitHeaders],
    /// Error rules; the first that matches decides.
    pub(crate) rules: &'static [Rule],
    /// The header that holds the error code; it wins over the body.
    pub(crate) code_header: Option<&'static str>,
    /// The member of the error body that states the wait in seconds.
    pub(crate) wait_field: Option<&'static str>,
    /// Whether the provider uses OpenAI's error codes.
    pub(crate) uses_openai_codes: bool,
}

/// If `field` has `value`, the response has `verdict`.
pub(crate) struct Rule {
    field: Field,
    /// In lower case. For a header, a leading `*` matches any start.
    value: &'static str,
    verdict: RuleVerdict,
}

/// What a rule looks at.
enum Field {
    /// The error code is equal to the value.
    Code,
    /// The message contains the value, and the status is that of a refusal.
    Message,
    /// The header has the value.
    Header(&'static str),
}

/// What a rule decides.
#[derive(Clone, Copy)]
pub(crate) enum RuleVerdict {
    /// A refusal: its kind, and if known the unit and the seconds of the exceeded limit.
    Refused(Kind, Option<&'static str>, Option<u64>),
    /// Not about the caller's quota, and worth a retry.
    Transient,
}

impl Profile {
    /// Only the IETF drafts and the plain headers.
    pub(crate) const DEFAULT: Self = Self {
        limits: &[],
        other_limits: |_| {},
        fallback_limits: &PLAIN_LIMITS,
        rules: &[],
        code_header: None,
        wait_field: None,
        uses_openai_codes: false,
    };
}

/// Undocumented at most providers; nearly all count requests with them.
const PLAIN_LIMITS: [LimitHeaders; 2] = [
    LimitHeaders::new("x-ratelimit-", "", "requests", ResetFormat::Guess),
    LimitHeaders::new("x-rate-limit-", "", "requests", ResetFormat::Guess),
];

impl Rule {
    pub(crate) const fn code(value: &'static str, verdict: RuleVerdict) -> Self {
        Self { field: Field::Code, value, verdict }
    }

    pub(crate) const fn message(value: &'static str, verdict: RuleVerdict) -> Self {
        Self { field: Field::Message, value, verdict }
    }

    pub(crate) const fn header(
        name: &'static str,
        value: &'static str,
        verdict: RuleVerdict,
    ) -> Self {
        Self { field: Field::Header(name), value, verdict }
    }

    fn matches(&self, code: &str, reader: &ResponseReader<'_>, error: &ErrorBody) -> bool {
        match self.field {
            Field::Code => code == self.value,
            // An error inside a stream has the status 200 of the response.
            Field::Message => {
                matches!(reader.status, ..400 | 429) && error.lower.contains(self.value)
            }
            Field::Header(name) => match self.value.strip_prefix('*') {
                Some(end) => reader.headers.first(name).is_some_and(|value| value.ends_with(end)),
                None => reader.headers.has(name, self.value),
            },
        }
    }
}

impl RuleVerdict {
    pub(crate) const OVERLOAD: Self = Self::Refused(Kind::Overload, None, None);
    pub(crate) const CONCURRENCY: Self = Self::Refused(Kind::Concurrency, Some("parallel"), None);

    pub(crate) const fn quota(unit: Option<&'static str>, seconds: Option<u64>) -> Self {
        Self::Refused(Kind::Quota, unit, seconds)
    }
}

impl Profile {
    pub(crate) fn read_limits(&self, reader: &mut ResponseReader<'_>) {
        reader.read_limit_headers(self.limits);
        (self.other_limits)(reader);
        ietf::read_limits(reader);
        // Many providers send the plain headers beside the others, which state more.
        if reader.limits.is_empty() {
            reader.read_limit_headers(self.fallback_limits);
        }
    }

    pub(crate) fn classify(
        &self,
        reader: &mut ResponseReader<'_>,
        error: &ErrorBody,
    ) -> Option<Verdict> {
        let code = self.code(reader, error);
        if let Some(rule) = self.rules.iter().find(|rule| rule.matches(&code, reader, error)) {
            return Some(self.apply(rule.verdict, reader, error));
        }
        if self.uses_openai_codes
            && let Some(verdict) = openai::classify_code(reader, RETRY_HEADERS, error)
        {
            return Some(verdict);
        }
        self.problem(reader, error).or_else(|| {
            let kind = if error.is_about_concurrency() { Kind::Concurrency } else { Kind::Quota };
            let is_refused = reader.status == 429 || is_limited_403(reader);
            is_refused.then(|| self.refuse(kind, None, None, reader, error))
        })
    }

    /// The error code in lower case. AWS writes `namespace#Code` in bodies and `Code:url` in the
    /// header.
    fn code(&self, reader: &ResponseReader<'_>, error: &ErrorBody) -> String {
        let header = self.code_header.and_then(|name| reader.headers.first(name));
        let code = header.unwrap_or(&error.code);
        let code = code.split(':').next().unwrap_or_default();
        code.rsplit('#').next().unwrap_or_default().to_ascii_lowercase()
    }

    fn apply(
        &self,
        verdict: RuleVerdict,
        reader: &mut ResponseReader<'_>,
        error: &ErrorBody,
    ) -> Verdict {
        match verdict {
            RuleVerdict::Refused(kind, unit, seconds) => {
                self.refuse(kind, unit, seconds.map(Duration::from_secs), reader, error)
            }
            RuleVerdict::Transient => Verdict::Failed { transient: true },
        }
    }

    /// A refusal. Unit and period of the rule win over those in the message and the headers.
    fn refuse(
        &self,
        kind: Kind,
        unit: Option<&'static str>,
        period: Option<Duration>,
        reader: &mut ResponseReader<'_>,
        error: &ErrorBody,
    ) -> Verdict {
        let refused = refused(kind, self.wait(kind, reader, error), error);
        let refused = if kind == Kind::Quota {
            let (unit, period) = reader.exceeded_limit(error);
            refused.with_limit(unit, period)
        } else {
            refused
        };
        refused.with_limit(unit.map(Cow::Borrowed), period).into_verdict()
    }

    /// The wait: by headers and message, else by the body's own field, else for a quota until the
    /// used-up limits reset.
    fn wait(
        &self,
        kind: Kind,
        reader: &mut ResponseReader<'_>,
        error: &ErrorBody,
    ) -> Option<Duration> {
        if let Some(wait) = reader.wait(RETRY_HEADERS, error) {
            return Some(wait);
        }
        if let Some(field) = self.wait_field
            && let Some(text) = error.value.get(field).and_then(json::text)
            && let Some(wait) = reader.ok_or_anomaly(field, &text, number::seconds(&text))
        {
            return Some(wait);
        }
        if kind != Kind::Quota {
            return None;
        }
        // A bucket admits calls long before it is full.
        let is_used_up =
            |seen: &&LimitSeen| seen.remaining == Some(0) && seen.reset != ResetMeans::Full;
        let resets = reader.limits.iter().filter(is_used_up).filter_map(|seen| seen.reset_in);
        resets.max().or_else(|| shopify::wait_for_points(reader.body))
    }

    /// The problem types (RFC 9457) of the IETF draft, which name the violated policies.
    fn problem(&self, reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Option<Verdict> {
        let is_type = |name: &str| error.kind.ends_with(name);
        let kind = if is_type("quota-exceeded") {
            Kind::Quota
        } else if is_type("temporary-reduced-capacity") {
            Kind::Overload
        } else if is_type("abnormal-usage-detected") {
            Kind::SlowDown
        } else {
            return None;
        };
        let violated = json::array(error.value.get("violated-policies"));
        let is_violated = |name: &str| violated.iter().any(|policy| policy.as_str() == Some(name));
        let seen = reader.limits.iter().find(|seen| seen.name.as_deref().is_some_and(is_violated));
        let (unit, period) =
            seen.map_or((None, None), |seen| (Some(seen.unit.clone()), seen.period));
        match self.refuse(kind, None, None, reader, error) {
            Verdict::Refused(refused) => Some(refused.with_limit(unit, period).into_verdict()),
            other => Some(other),
        }
    }
}

/// Whether a 403 is a limit: one for a missing permission states neither a wait nor a limit that is
/// used up.
fn is_limited_403(reader: &mut ResponseReader<'_>) -> bool {
    let is_used_up = reader.limits.iter().any(|seen| seen.remaining == Some(0));
    reader.status == 403 && (is_used_up || reader.retry_after(RETRY_HEADERS).is_some())
}
