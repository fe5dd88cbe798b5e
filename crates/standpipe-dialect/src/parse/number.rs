//! Numbers as headers write them: `17`, `30,000`, `8.64`.
//!
//! Parsing uses integers only, so results are exact and the same on every machine.

use std::time::Duration;

use crate::anomaly::AnomalyReason;
use crate::bounds;

/// Parses a decimal number in units of 10^-`places`; digits beyond are cut off.
pub(crate) fn decimal(text: &str, places: usize) -> Result<u128, AnomalyReason> {
    let text = text.trim();
    if let Some(positive) = text.strip_prefix('-') {
        return Err(positive_decimal(positive, places).err().unwrap_or(AnomalyReason::Negative));
    }
    positive_decimal(text, places)
}

fn positive_decimal(text: &str, places: usize) -> Result<u128, AnomalyReason> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, fraction)) if !is_digits(fraction) => return Err(AnomalyReason::Unreadable),
        Some((whole, fraction)) => (whole, fraction),
        None => (text, ""),
    };
    let whole = without_separators(whole).ok_or(AnomalyReason::Unreadable)?;
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(places);
    let mut value: u128 = 0;
    for digit in whole.chain(fraction) {
        let next = value.checked_mul(10).and_then(|v| v.checked_add(u128::from(digit - b'0')));
        value = next.ok_or(AnomalyReason::TooLarge)?;
    }
    Ok(value)
}

/// The digits of a whole number. Commas are accepted only as thousands separators.
fn without_separators(text: &str) -> Option<impl Iterator<Item = u8>> {
    let mut groups = text.split(',');
    let first = groups.next()?;
    let grouped = groups.clone().next().is_none()
        || (first.len() <= 3 && groups.all(|group| group.len() == 3 && is_digits(group)));
    (is_digits(first) && grouped).then(|| text.bytes().filter(|byte| *byte != b','))
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses an amount of units; decimals are cut off.
pub(crate) fn amount(text: &str) -> Result<u64, AnomalyReason> {
    let value = decimal(text, 0)?;
    u64::try_from(value).ok().filter(|v| *v <= bounds::AMOUNT).ok_or(AnomalyReason::TooLarge)
}

/// Parses a wait in seconds, with decimals.
pub(crate) fn seconds(text: &str) -> Result<Duration, AnomalyReason> {
    bounded_wait(decimal(text, 9))
}

/// Parses a wait in milliseconds, with decimals.
pub(crate) fn millis(text: &str) -> Result<Duration, AnomalyReason> {
    bounded_wait(decimal(text, 6))
}

/// Converts nanoseconds; rejects a wait over [`bounds::WAIT`].
pub(crate) fn bounded_wait(nanos: Result<u128, AnomalyReason>) -> Result<Duration, AnomalyReason> {
    match nanos {
        Ok(nanos) if nanos <= bounds::WAIT.as_nanos() => {
            Ok(Duration::from_nanos(u64::try_from(nanos).map_err(|_| AnomalyReason::TooLong)?))
        }
        Ok(_) | Err(AnomalyReason::TooLarge) => Err(AnomalyReason::TooLong),
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_headers_write_them() {
        for (text, expected) in [
            ("17", Ok(17)),
            (" 30,000 ", Ok(30_000)),
            ("2,000,000", Ok(2_000_000)),
            ("1000.0", Ok(1_000)),
            ("1000000000000", Ok(1_000_000_000_000)),
            ("1000000000001", Err(AnomalyReason::TooLarge)),
            ("99999999999999999999999999999999999999999999", Err(AnomalyReason::TooLarge)),
            ("-1", Err(AnomalyReason::Negative)),
            ("-x", Err(AnomalyReason::Unreadable)),
            ("", Err(AnomalyReason::Unreadable)),
            ("1e3", Err(AnomalyReason::Unreadable)),
            ("+5", Err(AnomalyReason::Unreadable)),
            ("3,00", Err(AnomalyReason::Unreadable)),
            ("1000,000", Err(AnomalyReason::Unreadable)),
            ("1.", Err(AnomalyReason::Unreadable)),
            (".5", Err(AnomalyReason::Unreadable)),
            ("٣", Err(AnomalyReason::Unreadable)),
        ] {
            assert_eq!(amount(text), expected, "{text}");
        }
    }

    #[test]
    fn lengths_are_exact_and_bounded() {
        assert_eq!(seconds("64.57"), Ok(Duration::from_millis(64_570)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(millis("1540"), Ok(Duration::from_millis(1_540)));
        assert_eq!(seconds("691200"), Ok(bounds::WAIT));
        assert_eq!(seconds("691201"), Err(AnomalyReason::TooLong));
        assert_eq!(seconds("9".repeat(50).as_str()), Err(AnomalyReason::TooLong));
        assert_eq!(seconds("120s"), Err(AnomalyReason::Unreadable));
    }
}
