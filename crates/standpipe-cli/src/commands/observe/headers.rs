//! The headers that nearly all providers have: `x-ratelimit-…` and `retry-after`. The dialects of
//! particular providers are not here.

use std::collections::BTreeMap;

use standpipe::{Reading, Span, Unit};

/// What headers say of limits.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// One reading per unit they speak of.
    pub(super) readings: Vec<Reading>,
    /// Those that speak of limits, as they came.
    pub(super) of_limits: Vec<(String, String)>,
    /// Those that should, and cannot be read.
    pub(super) unreadable: Vec<String>,
}

/// A figure beyond this is a moment since 1970 and not a length: 30 years in seconds.
const A_MOMENT: u64 = 946_080_000;

/// `Name: value`, with the name in small letters.
pub(super) fn split(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim().to_ascii_lowercase();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_name = !name.is_empty() && name.chars().all(plain);
    is_name.then(|| (name, value.trim().to_owned()))
}

/// What they say, at so many seconds since 1970.
pub(super) fn read(headers: &[(String, String)], now: u64) -> Heard {
    let mut heard = Heard::default();
    let mut readings: BTreeMap<Unit, Reading> = BTreeMap::new();
    for (name, value) in headers {
        if name == "retry-after" {
            heard.of_limits.push((name.clone(), value.clone()));
            continue;
        }
        let Some((unit, part)) = name.strip_prefix("x-ratelimit-").and_then(about) else {
            continue;
        };
        heard.of_limits.push((name.clone(), value.clone()));
        let Some(figure) = figure(value) else {
            heard.unreadable.push(format!("{name}: {value}"));
            continue;
        };
        let reading = readings.entry(unit.clone()).or_insert_with(|| blank(unit));
        match part {
            Part::Limit => reading.limit = Some(figure),
            Part::Remaining => reading.remaining = Some(figure),
            Part::Reset => {
                let seconds = if figure > A_MOMENT { figure.saturating_sub(now) } else { figure };
                reading.reset_in = Some(Span::secs(seconds));
            }
        }
    }
    heard.readings = readings.into_values().collect();
    heard
}

enum Part {
    Limit,
    Remaining,
    Reset,
}

/// What comes after the prefix: a part, with the unit before or after it, or none for requests.
fn about(rest: &str) -> Option<(Unit, Part)> {
    let words = [("limit", Part::Limit), ("remaining", Part::Remaining), ("reset", Part::Reset)];
    words.into_iter().find_map(|(word, part)| {
        let unit = if rest == word {
            "requests"
        } else if let Some(unit) = rest.strip_prefix(word) {
            unit.strip_prefix('-')?
        } else {
            rest.strip_suffix(word)?.strip_suffix('-')?
        };
        Unit::named(&unit.replace('-', "_")).map(|unit| (unit, part))
    })
}

fn blank(unit: Unit) -> Reading {
    Reading { unit, period: None, limit: None, remaining: None, reset_in: None }
}

/// Whole seconds or units; of a fraction the whole, of a list the first.
fn figure(value: &str) -> Option<u64> {
    let first = value.split([',', ';']).next().unwrap_or_default().trim();
    let (whole, fraction) = first.split_once('.').unwrap_or((first, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
    whole.parse().ok().filter(|_| digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(lines: &[&str]) -> Heard {
        let headers: Vec<_> = lines.iter().filter_map(|line| split(line)).collect();
        read(&headers, 1_800_000_000)
    }

    #[test]
    fn limits_are_read_however_the_unit_is_placed() {
        let heard = heard(&[
            "HTTP/2 200",
            "X-RateLimit-Limit: 5000",
            "x-ratelimit-remaining: 4312",
            "x-ratelimit-reset: 1800000060",
            "x-ratelimit-remaining-tokens: 149984",
            "x-ratelimit-input-tokens-limit: 2000000",
            "content-type: text/html",
        ]);
        let [requests, input, tokens] = &heard.readings[..] else { panic!("{heard:?}") };
        assert_eq!((requests.limit, requests.remaining), (Some(5_000), Some(4_312)));
        assert_eq!(requests.reset_in, Some(Span::secs(60)));
        assert_eq!((&input.unit, input.limit), (&Unit::InputTokens, Some(2_000_000)));
        assert_eq!((&tokens.unit, tokens.remaining), (&Unit::Tokens, Some(149_984)));
        assert_eq!(heard.of_limits.len(), 5);
    }

    #[test]
    fn what_cannot_be_read_is_told_and_left_out() {
        let heard = heard(&["x-ratelimit-remaining: many", "x-ratelimit-reset: -5"]);
        assert!(heard.readings.is_empty());
        assert_eq!(heard.unreadable.len(), 2);
    }

    #[test]
    fn a_line_without_a_colon_or_a_name_is_no_header() {
        for line in ["", "nothing", ": 5", "two words: 5"] {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
