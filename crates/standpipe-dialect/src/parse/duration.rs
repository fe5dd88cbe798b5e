//! Durations as Go prints them: `6m0s`, `17ms`, `1h2m3.5s`.

use std::time::Duration;

use crate::anomaly::AnomalyReason;
use crate::parse::number;

/// Nanoseconds of each unit.
const UNITS: [(&str, u128); 7] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

/// Parses a duration. A bare number is seconds: some providers with OpenAI's headers, such as
/// Azure, omit the unit.
pub(crate) fn parse(text: &str) -> Result<Duration, AnomalyReason> {
    let text = text.trim();
    let bare = number::decimal(text, 9);
    if bare != Err(AnomalyReason::Unreadable) {
        return number::bounded_wait(bare);
    }
    match text.strip_prefix('-') {
        Some(positive) => Err(nanos(positive).err().unwrap_or(AnomalyReason::Negative)),
        None => number::bounded_wait(nanos(text)),
    }
}

fn nanos(mut text: &str) -> Result<u128, AnomalyReason> {
    if text.is_empty() {
        return Err(AnomalyReason::Unreadable);
    }
    let mut sum: u128 = 0;
    while !text.is_empty() {
        let (amount, rest) = split_where(text, |c| !(c.is_ascii_digit() || c == '.'));
        let (unit, rest) = split_where(rest, |c| c.is_ascii_digit() || c == '.');
        let known = UNITS.iter().find(|(name, _)| *name == unit);
        let (_, unit_nanos) = known.ok_or(AnomalyReason::Unreadable)?;
        let billionths = number::decimal(amount, 9)?;
        let product = billionths.checked_mul(*unit_nanos).ok_or(AnomalyReason::TooLarge)?;
        sum = sum.checked_add(product / 1_000_000_000).ok_or(AnomalyReason::TooLarge)?;
        text = rest;
    }
    Ok(sum)
}

/// Splits before the first character that satisfies `is_end`.
fn split_where(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_go_are_read() {
        for (text, micros) in [
            ("1s", 1_000_000),
            ("6m0s", 360_000_000),
            ("17ms", 17_000),
            ("12ms", 12_000),
            ("9ms", 9_000),
            ("1m30s", 90_000_000),
            ("8.64s", 8_640_000),
            ("1h2m3.5s", 3_723_500_000),
            ("250ms", 250_000),
            ("900ms", 900_000),
            ("7m12s", 432_000_000),
            ("2m59.56s", 179_560_000),
            ("15us", 15),
            ("15µs", 15),
            ("0s", 0),
            ("0", 0),
            ("60", 60_000_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_micros(micros)), "{text}");
        }
        assert_eq!(parse("34.074824224s"), Ok(Duration::from_nanos(34_074_824_224)));
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", "s", "1x", "1s2", "1h-2m", "s1", "1..2s", "PT5S", "1 s"] {
            assert_eq!(parse(text), Err(AnomalyReason::Unreadable), "{text}");
        }
        assert_eq!(parse("-5s"), Err(AnomalyReason::Negative));
        assert_eq!(parse("-5"), Err(AnomalyReason::Negative));
        assert_eq!(parse("193h"), Err(AnomalyReason::TooLong));
        assert_eq!(parse(&format!("{}h", "9".repeat(29))), Err(AnomalyReason::TooLong));
    }
}
