//! The `RateLimit` headers that are to be a standard, in the three syntaxes they have had.
//!
//! First three headers; then one dictionary, `limit=100, remaining=50, reset=5`; now lists of named
//! policies, `"burst";q=100;w=60` and `"burst";r=50;t=30`. All three are in use.

use std::borrow::Cow;
use std::time::Duration;

use crate::answer::{LimitSeen, ResetMeans};
use crate::bounds;
use crate::doubt::Why;
use crate::message;
use crate::number;
use crate::reading::Reading;
use crate::rows::{Clock, When};

/// Some send the headers before they are a standard, and say so.
const PREFIXES: [&str; 2] = ["", "beta-"];

/// Members of a list, and parameters of a member, that are looked at.
const MOST: usize = 16;

/// The longest window: 400 days.
const LONGEST_WINDOW: u64 = 400 * 86_400;

/// A member of a list: `"name";key=value`, or `key=value`.
struct Item<'a> {
    head: &'a str,
    params: Vec<(&'a str, &'a str)>,
}

/// What a policy says.
struct Policy {
    name: Option<String>,
    quota: Option<u64>,
    window: Option<Duration>,
    unit: Cow<'static, str>,
}

pub(super) fn see_limits(reading: &mut Reading<'_>) {
    for prefix in PREFIXES {
        let header = |name: &str| format!("{prefix}{name}");
        let (policy, limit) = (header("ratelimit-policy"), header("ratelimit-limit"));
        let mut policies = policies(reading, &policy);
        let state = header("ratelimit");
        let told: Vec<&str> = reading.headers.all(&state).collect();
        if told.is_empty() {
            policies.extend(self::policies(reading, &limit));
            three_headers(reading, prefix, &policies);
        } else if told.iter().any(|value| is_dictionary(value)) {
            dictionary(reading, &state, &told, &policies);
        } else {
            named(reading, &state, &told, policies);
        }
    }
}

fn is_dictionary(value: &str) -> bool {
    items(value).iter().any(|item| item.head.contains('='))
}

/// The newest syntax: each named state belongs to the policy of its name.
fn named(reading: &mut Reading<'_>, header: &str, told: &[&str], policies: Vec<Policy>) {
    let states: Vec<Item<'_>> = told.iter().flat_map(|value| items(value)).take(MOST).collect();
    let mut policies: Vec<Option<Policy>> = policies.into_iter().map(Some).collect();
    for state in &states {
        let name = name(state.head);
        let same = |policy: &&mut Option<Policy>| {
            policy.as_ref().is_some_and(|policy| policy.name == name)
        };
        let policy = policies.iter_mut().find(same).and_then(Option::take);
        let mut seen = policy.map_or_else(|| LimitSeen::of("requests"), Policy::seen);
        seen.name = name;
        seen.remaining = param(reading, header, state, "r");
        seen.reset_in = seconds(reading, header, state.param("t"));
        reading.see(header, seen);
    }
    // What is far from its limit need not be told of.
    let rest = policies.into_iter().flatten().filter(|policy| policy.name.is_some());
    rest.for_each(|policy| reading.see(header, policy.seen()));
}

/// The middle one: `limit=100, remaining=50, reset=5`.
fn dictionary(reading: &mut Reading<'_>, header: &str, told: &[&str], policies: &[Policy]) {
    let members: Vec<Item<'_>> = told.iter().flat_map(|value| items(value)).take(MOST).collect();
    let member = |key: &str| {
        let pairs = members.iter().filter_map(|item| item.head.split_once('='));
        pairs.map(|(k, v)| (k.trim(), v.trim())).find(|(k, _)| *k == key).map(|(_, v)| v)
    };
    let mut read = |key: &str| figure(reading, &format!("{header} {key}"), member(key));
    let (limit, remaining) = (read("limit"), read("remaining"));
    let reset_in = seconds(reading, header, member("reset"));
    let seen = of_window(policies, limit);
    reading.see(header, LimitSeen { limit, remaining, reset_in, ..seen });
}

/// The oldest one: three headers, the first of which may list windows behind the limit.
fn three_headers(reading: &mut Reading<'_>, prefix: &str, policies: &[Policy]) {
    let header = |part: &str| format!("{prefix}ratelimit-{part}");
    // Commas set either windows apart or thousands.
    let first = |value: &'_ str| match number::figure(value) {
        Ok(_) => Some(value.to_owned()),
        Err(_) => items(value).first().map(|item| item.head.to_owned()),
    };
    let limit = reading.headers.first(&header("limit")).and_then(first);
    let limit = figure(reading, &header("limit"), limit.as_deref());
    let remaining = reading.headers.first(&header("remaining"));
    let remaining = figure(reading, &header("remaining"), remaining);
    let reset = reading.headers.first(&header("reset"));
    let reset_in = seconds(reading, &header("reset"), reset);
    let seen = of_window(policies, limit);
    reading.see(&header("*"), LimitSeen { limit, remaining, reset_in, ..seen });
}

/// The policies that a header lists; older ones have a figure instead of a name.
fn policies(reading: &mut Reading<'_>, header: &str) -> Vec<Policy> {
    let told: Vec<&str> = reading.headers.all(header).collect();
    let mut found = Vec::new();
    for item in told.iter().flat_map(|value| items(value)).take(MOST) {
        let (name, quota) = if number::is_digits(item.head) {
            (None, number::figure(item.head).ok())
        } else {
            (name(item.head), param(reading, header, &item, "q"))
        };
        let window = param(reading, header, &item, "w");
        let window = window.filter(|seconds| (1..=LONGEST_WINDOW).contains(seconds));
        let unit = match item.param("qu").map(|unit| unit.trim_matches('"')) {
            None | Some("requests") => Cow::Borrowed("requests"),
            Some("content-bytes") => Cow::Borrowed("bytes"),
            Some("concurrent-requests") => Cow::Borrowed("parallel"),
            Some(other) => Cow::Owned(message::scrubbed(other, bounds::SHORT)),
        };
        found.push(Policy { name, quota, window: window.map(Duration::from_secs), unit });
    }
    found
}

/// The window of a limit that has no name: that of the policy with the same figure.
fn of_window(policies: &[Policy], limit: Option<u64>) -> LimitSeen {
    let windowed = policies.iter().filter(|policy| policy.window.is_some());
    let same = windowed.filter(|policy| policy.quota == limit).find_map(|policy| policy.window);
    LimitSeen { period: same, reset: ResetMeans::WindowEnds, ..LimitSeen::of("requests") }
}

impl Policy {
    fn seen(self) -> LimitSeen {
        LimitSeen {
            period: self.window,
            limit: self.quota,
            name: self.name,
            ..LimitSeen::of(self.unit)
        }
    }
}

fn name(head: &str) -> Option<String> {
    let name = message::scrubbed(head.trim_matches('"'), bounds::SHORT);
    (!name.is_empty()).then_some(name)
}

fn param(reading: &mut Reading<'_>, header: &str, item: &Item<'_>, key: &str) -> Option<u64> {
    figure(reading, &format!("{header} {key}"), item.param(key))
}

fn figure(reading: &mut Reading<'_>, what: &str, value: Option<&str>) -> Option<u64> {
    let value = value?;
    reading.believe(what, value, number::figure(value))
}

fn seconds(reading: &mut Reading<'_>, what: &str, value: Option<&str>) -> Option<Duration> {
    let value = value?;
    // Some send a moment where the draft says seconds.
    let read = match number::seconds(value) {
        Err(Why::TooLong) => match Clock::Guess.read(value) {
            Ok(When::At(moment)) => return reading.until(what, value, moment),
            _ => Err(Why::TooLong),
        },
        read => read,
    };
    reading.believe(what, value, read)
}

impl<'a> Item<'a> {
    fn param(&self, key: &str) -> Option<&'a str> {
        self.params.iter().find(|(k, _)| *k == key).map(|(_, value)| *value)
    }
}

/// The members of a list.
fn items(value: &str) -> Vec<Item<'_>> {
    let item = |text| {
        let mut parts = unquoted(text, b';').into_iter();
        let head = parts.next().unwrap_or_default();
        let pairs = parts.take(MOST).filter_map(|part| part.split_once('='));
        Item { head, params: pairs.map(|(key, value)| (key.trim(), value.trim())).collect() }
    };
    let members = unquoted(value, b',').into_iter().take(MOST).map(item);
    members.filter(|item| !item.head.is_empty()).collect()
}

/// The parts of a text between separators that are not inside quotes.
fn unquoted(text: &str, separator: u8) -> Vec<&str> {
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
