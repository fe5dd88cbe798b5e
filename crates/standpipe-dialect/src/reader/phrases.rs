//! Phrases in a provider's error message that state a wait or a limit.
//!
//! They only add detail to a refusal; whether a response is one never depends on them, because
//! providers change their wording.

use std::borrow::Cow;
use std::time::Duration;

use crate::anomaly::AnomalyReason;
use crate::parse::{duration, number};

/// Phrases that name a unit, in lower case. The more specific come first.
const UNITS: [(&str, &str); 8] = [
    ("input tokens per", "input_tokens"),
    ("output tokens per", "output_tokens"),
    ("tokens per", "tokens"),
    ("token rate limit", "tokens"),
    ("token limit", "tokens"),
    ("requests per", "requests"),
    ("call rate limit", "requests"),
    ("request rate limit", "requests"),
];

/// Phrases that name a period, and its seconds.
const PERIODS: [(&str, u64); 4] =
    [("per second", 1), ("per min", 60), ("per hour", 3_600), ("per day", 86_400)];

/// Phrases that a wait follows.
const WAIT_PREFIXES: [&str; 4] = ["try again in ", "retry in ", "retry after ", "try again after "];

/// Unit and period of the limit that a message names.
pub(crate) fn limit(lower: &str) -> (Option<Cow<'static, str>>, Option<Duration>) {
    let unit = UNITS.iter().find(|(phrase, _)| lower.contains(phrase));
    let period = PERIODS.iter().find(|(phrase, _)| lower.contains(phrase));
    let unit = unit.map(|(_, unit)| Cow::Borrowed(*unit));
    (unit, period.map(|(_, seconds)| Duration::from_secs(*seconds)))
}

/// The wait that a message states: its text, and the parsed value.
pub(crate) fn wait(lower: &str) -> Option<(&str, Result<Duration, AnomalyReason>)> {
    let rest = WAIT_PREFIXES.iter().find_map(|prefix| Some(lower.split_once(prefix)?.1))?;
    let mut words = rest.split_whitespace();
    let amount = trim_punctuation(words.next()?);
    let unit = trim_punctuation(words.next().unwrap_or_default());
    if !amount.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    let times = |seconds| number::decimal(amount, 9).map(|nanos| nanos.saturating_mul(seconds));
    let wait = match unit.trim_end_matches('s') {
        // "ms" without its final "s".
        "millisecond" | "m" => number::millis(amount),
        "minute" => number::bounded_wait(times(60)),
        "hour" => number::bounded_wait(times(3_600)),
        // The unit is part of the amount, as in `6m0s`, or it is seconds.
        _ => duration::parse(amount),
    };
    Some((amount, wait))
}

fn trim_punctuation(word: &str) -> &str {
    word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_say_how_long() {
        for (text, millis) in [
            ("please try again in 41.724s. visit x", Some(41_724)),
            ("please try again in 6m0s.", Some(360_000)),
            ("please try again in 12ms", Some(12)),
            ("please retry after 37 seconds.", Some(37_000)),
            ("please retry after 1 minute.", Some(60_000)),
            ("please retry after 500 milliseconds", Some(500)),
            ("please retry in 34.074824224s", Some(34_074)),
            ("try again in a few minutes", None),
            ("try again later", None),
            ("try again in ", None),
        ] {
            let found = wait(text).map(|(_, wait)| wait.unwrap().as_millis());
            assert_eq!(found, millis, "{text}");
        }
        assert_eq!(wait("try again in 999h"), Some(("999h", Err(AnomalyReason::TooLong))));
    }

    #[test]
    fn sentences_name_the_limit() {
        let minute = Some(Duration::from_secs(60));
        for (text, unit, period) in [
            ("rate limit of 30,000 input tokens per minute", Some("input_tokens"), minute),
            ("on tokens per min (tpm): limit", Some("tokens"), minute),
            ("on requests per day (rpd)", Some("requests"), Some(Duration::from_secs(86_400))),
            ("have exceeded token rate limit of your", Some("tokens"), None),
            ("something else", None, None),
        ] {
            assert_eq!(limit(text), (unit.map(Cow::Borrowed), period), "{text}");
        }
    }
}
