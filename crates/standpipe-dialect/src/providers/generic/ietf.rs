//! The IETF `RateLimit` header drafts, in the three syntaxes they have had.
//!
//! The oldest has three headers (`RateLimit-Limit`, `-Remaining`, `-Reset`), the middle one a
//! dictionary (`limit=100, remaining=50, reset=5`), the newest lists of named policies
//! (`"burst";q=100;w=60` and `"burst";r=50;t=30`). All three are in use.

use std::borrow::Cow;
use std::time::Duration;

use crate::anomaly::AnomalyReason;
use crate::answer::{LimitSeen, ResetMeans};
use crate::bounds;
use crate::parse::number;
use crate::reader::{Reset, ResetFormat, ResponseReader};
use crate::text::redact;

/// Some providers mark the headers as a draft.
const PREFIXES: [&str; 2] = ["", "beta-"];

/// Most members read of a list, and most parameters of a member.
const MAX_ITEMS: usize = 16;

/// The longest window accepted, in seconds.
const LONGEST_WINDOW: u64 = 400 * 86_400;

/// A member of a list: `head;key=value;…`. The head is `"name"`, a number, or `key=value`.
struct Item<'a> {
    head: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

/// A policy of a `RateLimit-Policy` header.
struct Policy {
    name: Option<String>,
    quota: Option<u64>,
    window: Option<Duration>,
    unit: Cow<'static, str>,
}

pub(super) fn read_limits(reader: &mut ResponseReader<'_>) {
    for prefix in PREFIXES {
        let header = |name: &str| format!("{prefix}{name}");
        let (policy, limit) = (header("ratelimit-policy"), header("ratelimit-limit"));
        let mut policies = policies(reader, &policy);
        let state = header("ratelimit");
        let values: Vec<&str> = reader.headers.all(&state).collect();
        if values.is_empty() {
            policies.extend(self::policies(reader, &limit));
            read_three_headers(reader, prefix, &policies);
        } else if values.iter().any(|value| is_dictionary(value)) {
            read_dictionary(reader, &state, &values, &policies);
        } else {
            read_named(reader, &state, &values, policies);
        }
    }
}

fn is_dictionary(value: &str) -> bool {
    items(value).iter().any(|item| item.head.contains('='))
}

/// Reads the newest syntax: each state belongs to the policy of the same name.
fn read_named(
    reader: &mut ResponseReader<'_>,
    header: &str,
    values: &[&str],
    policies: Vec<Policy>,
) {
    let states: Vec<Item<'_>> = values.iter().flat_map(|v| items(v)).take(MAX_ITEMS).collect();
    let mut policies: Vec<Option<Policy>> = policies.into_iter().map(Some).collect();
    for state in &states {
        let name = name(state.head);
        let same = |policy: &&mut Option<Policy>| {
            policy.as_ref().is_some_and(|policy| policy.name == name)
        };
        let policy = policies.iter_mut().find(same).and_then(Option::take);
        let mut seen = policy.map_or_else(|| LimitSeen::new("requests"), Policy::into_limit);
        seen.name = name;
        seen.remaining = param(reader, header, state, "r");
        seen.reset_in = seconds(reader, header, state.param("t"));
        reader.add_limit(header, seen);
    }
    // The draft lets servers omit the state of a policy that is far from its limit.
    let rest = policies.into_iter().flatten().filter(|policy| policy.name.is_some());
    rest.for_each(|policy| reader.add_limit(header, policy.into_limit()));
}

/// Reads the middle syntax: `limit=100, remaining=50, reset=5`.
fn read_dictionary(
    reader: &mut ResponseReader<'_>,
    header: &str,
    values: &[&str],
    policies: &[Policy],
) {
    let members: Vec<Item<'_>> = values.iter().flat_map(|v| items(v)).take(MAX_ITEMS).collect();
    let member = |key: &str| {
        let pairs = members.iter().filter_map(|item| item.head.split_once('='));
        pairs.map(|(k, v)| (k.trim(), v.trim())).find(|(k, _)| *k == key).map(|(_, v)| v)
    };
    let mut read = |key: &str| amount(reader, &format!("{header} {key}"), member(key));
    let (limit, remaining) = (read("limit"), read("remaining"));
    let reset_in = seconds(reader, header, member("reset"));
    let seen = unnamed_limit(policies, limit);
    reader.add_limit(header, LimitSeen { limit, remaining, reset_in, ..seen });
}

/// Reads the oldest syntax: three headers, the first of which may list policies after the limit.
fn read_three_headers(reader: &mut ResponseReader<'_>, prefix: &str, policies: &[Policy]) {
    let header = |part: &str| format!("{prefix}ratelimit-{part}");
    // A comma separates either policies or thousands.
    let first = |value: &'_ str| match number::amount(value) {
        Ok(_) => Some(value.to_owned()),
        Err(_) => items(value).first().map(|item| item.head.to_owned()),
    };
    let limit = reader.headers.first(&header("limit")).and_then(first);
    let limit = amount(reader, &header("limit"), limit.as_deref());
    let remaining = reader.headers.first(&header("remaining"));
    let remaining = amount(reader, &header("remaining"), remaining);
    let reset = reader.headers.first(&header("reset"));
    let reset_in = seconds(reader, &header("reset"), reset);
    let seen = unnamed_limit(policies, limit);
    reader.add_limit(&header("*"), LimitSeen { limit, remaining, reset_in, ..seen });
}

/// The policies that a header lists. In the older syntaxes their head is a number instead of a
/// name.
fn policies(reader: &mut ResponseReader<'_>, header: &str) -> Vec<Policy> {
    let values: Vec<&str> = reader.headers.all(header).collect();
    let mut found = Vec::new();
    for item in values.iter().flat_map(|value| items(value)).take(MAX_ITEMS) {
        let (name, quota) = if number::is_digits(item.head) {
            (None, number::amount(item.head).ok())
        } else {
            (name(item.head), param(reader, header, &item, "q"))
        };
        let window = param(reader, header, &item, "w");
        let window = window.filter(|seconds| (1..=LONGEST_WINDOW).contains(seconds));
        let unit = match item.param("qu").map(|unit| unit.trim_matches('"')) {
            None | Some("requests") => Cow::Borrowed("requests"),
            Some("content-bytes") => Cow::Borrowed("bytes"),
            Some("concurrent-requests") => Cow::Borrowed("parallel"),
            Some(other) => Cow::Owned(redact(other, bounds::SHORT)),
        };
        found.push(Policy { name, quota, window: window.map(Duration::from_secs), unit });
    }
    found
}

/// A limit without a name: its window is that of the policy with the same quota.
fn unnamed_limit(policies: &[Policy], limit: Option<u64>) -> LimitSeen {
    let windowed = policies.iter().filter(|policy| policy.window.is_some());
    let same = windowed.filter(|policy| policy.quota == limit).find_map(|policy| policy.window);
    LimitSeen { period: same, reset: ResetMeans::WindowEnds, ..LimitSeen::new("requests") }
}

impl Policy {
    fn into_limit(self) -> LimitSeen {
        LimitSeen {
            period: self.window,
            limit: self.quota,
            name: self.name,
            ..LimitSeen::new(self.unit)
        }
    }
}

fn name(head: &str) -> Option<String> {
    let name = redact(head.trim_matches('"'), bounds::SHORT);
    (!name.is_empty()).then_some(name)
}

fn param(reader: &mut ResponseReader<'_>, header: &str, item: &Item<'_>, key: &str) -> Option<u64> {
    amount(reader, &format!("{header} {key}"), item.param(key))
}

fn amount(reader: &mut ResponseReader<'_>, what: &str, value: Option<&str>) -> Option<u64> {
    let value = value?;
    reader.ok_or_anomaly(what, value, number::amount(value))
}

fn seconds(reader: &mut ResponseReader<'_>, what: &str, value: Option<&str>) -> Option<Duration> {
    let value = value?;
    // Some providers send an instant where the draft requires seconds.
    let parsed = match number::seconds(value) {
        Err(AnomalyReason::TooLong) => match ResetFormat::Guess.parse(value) {
            Ok(Reset::At(instant)) => return reader.until(what, value, instant),
            _ => Err(AnomalyReason::TooLong),
        },
        parsed => parsed,
    };
    reader.ok_or_anomaly(what, value, parsed)
}

impl<'a> Item<'a> {
    fn param(&self, key: &str) -> Option<&'a str> {
        self.params.iter().find(|(k, _)| *k == key).map(|(_, value)| *value)
    }
}

/// Parses the members of a list.
fn items(value: &str) -> Vec<Item<'_>> {
    let item = |text| {
        let mut parts = split_unquoted(text, b';').into_iter();
        let head = parts.next().unwrap_or_default();
        let pairs = parts.take(MAX_ITEMS).filter_map(|part| part.split_once('='));
        Item { head, params: pairs.map(|(key, value)| (key.trim(), value.trim())).collect() }
    };
    let members = split_unquoted(value, b',').into_iter().take(MAX_ITEMS).map(item);
    members.filter(|item| !item.head.is_empty()).collect()
}

/// Splits a text at separators that are not inside quotes.
fn split_unquoted(text: &str, separator: u8) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    for (at, byte) in text.bytes().enumerate() {
        if byte == separator && !quoted {
            parts.push(text[start..at].trim());
            start = at + 1;
        }
        quoted ^= byte == b'"' && !escaped;
        escaped = quoted && byte == b'\\' && !escaped;
    }
    parts.push(text[start..].trim());
    parts
}
