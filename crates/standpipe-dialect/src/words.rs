//! Hints in a provider's prose. Only hints: nothing depends on them, because prose changes.

use std::borrow::Cow;
use std::time::Duration;

use crate::doubt::Why;
use crate::duration;
use crate::number;

/// What a limit counts, by how sentences name it, in lower case; the more particular first.
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

const PERIODS: [(&str, u64); 4] =
    [("per second", 1), ("per min", 60), ("per hour", 3_600), ("per day", 86_400)];

/// The words before a length.
const BEFORE_WAIT: [&str; 4] = ["try again in ", "retry in ", "retry after ", "try again after "];

/// What the limit in a sentence counts, and its period.
pub(crate) fn limit(lower: &str) -> (Option<Cow<'static, str>>, Option<Duration>) {
    let unit = UNITS.iter().find(|(phrase, _)| lower.contains(phrase));
    let period = PERIODS.iter().find(|(phrase, _)| lower.contains(phrase));
    let unit = unit.map(|(_, unit)| Cow::Borrowed(*unit));
    (unit, period.map(|(_, seconds)| Duration::from_secs(*seconds)))
}

/// How long a sentence says to wait: the text of it, and what it means.
pub(crate) fn wait(lower: &str) -> Option<(&str, Result<Duration, Why>)> {
    let rest = BEFORE_WAIT.iter().find_map(|words| Some(lower.split_once(words)?.1))?;
    let mut words = rest.split_whitespace();
    let first = words.next()?;
    let first = first.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    let next = words.next().unwrap_or_default();
    let next = next.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
    if !first.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return None;
    }
    let length = match next.trim_end_matches('s') {
        "millisecond" | "m" => number::millis(first),
        "minute" => number::length(number::scaled(first, 9).map(|n| n.saturating_mul(60))),
        "hour" => number::length(number::scaled(first, 9).map(|n| n.saturating_mul(3_600))),
        _ => duration::go(first),
    };
    Some((first, length))
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
        assert_eq!(wait("try again in 999h"), Some(("999h", Err(Why::TooLong))));
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
