//! Numbers as headers write them, without floats: `17`, `30,000`, `8.64`.

use std::time::Duration;

use crate::bounds;
use crate::doubt::Why;

/// A decimal number in units of ten to the minus `places`; digits beyond are cut off.
pub(crate) fn scaled(text: &str, places: usize) -> Result<u128, Why> {
    let text = text.trim();
    if let Some(positive) = text.strip_prefix('-') {
        return Err(scaled_positive(positive, places).err().unwrap_or(Why::Negative));
    }
    scaled_positive(text, places)
}

fn scaled_positive(text: &str, places: usize) -> Result<u128, Why> {
    let (whole, fraction) = match text.split_once('.') {
        Some((_, fraction)) if !is_digits(fraction) => return Err(Why::Unreadable),
        Some((whole, fraction)) => (whole, fraction),
        None => (text, ""),
    };
    let whole = without_commas(whole).ok_or(Why::Unreadable)?;
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(places);
    let mut value: u128 = 0;
    for digit in whole.chain(fraction) {
        let next = value.checked_mul(10).and_then(|v| v.checked_add(u128::from(digit - b'0')));
        value = next.ok_or(Why::TooLarge)?;
    }
    Ok(value)
}

/// The digits of a whole number; commas only where thousands are set apart.
fn without_commas(text: &str) -> Option<impl Iterator<Item = u8>> {
    let mut groups = text.split(',');
    let first = groups.next()?;
    let grouped = groups.clone().next().is_none()
        || (first.len() <= 3 && groups.all(|group| group.len() == 3 && is_digits(group)));
    (is_digits(first) && grouped).then(|| text.bytes().filter(|byte| *byte != b','))
}

pub(crate) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A count of units, cut off to a whole number.
pub(crate) fn figure(text: &str) -> Result<u64, Why> {
    let value = scaled(text, 0)?;
    u64::try_from(value).ok().filter(|v| *v <= bounds::FIGURE).ok_or(Why::TooLarge)
}

/// A length in seconds, with decimals.
pub(crate) fn seconds(text: &str) -> Result<Duration, Why> {
    length(scaled(text, 9))
}

/// A length in milliseconds, with decimals.
pub(crate) fn millis(text: &str) -> Result<Duration, Why> {
    length(scaled(text, 6))
}

/// Nanoseconds as a length that can be believed.
pub(crate) fn length(nanos: Result<u128, Why>) -> Result<Duration, Why> {
    match nanos {
        Ok(nanos) if nanos <= bounds::WAIT.as_nanos() => {
            Ok(Duration::from_nanos(u64::try_from(nanos).map_err(|_| Why::TooLong)?))
        }
        Ok(_) | Err(Why::TooLarge) => Err(Why::TooLong),
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
            ("1000000000001", Err(Why::TooLarge)),
            ("99999999999999999999999999999999999999999999", Err(Why::TooLarge)),
            ("-1", Err(Why::Negative)),
            ("-x", Err(Why::Unreadable)),
            ("", Err(Why::Unreadable)),
            ("1e3", Err(Why::Unreadable)),
            ("+5", Err(Why::Unreadable)),
            ("3,00", Err(Why::Unreadable)),
            ("1000,000", Err(Why::Unreadable)),
            ("1.", Err(Why::Unreadable)),
            (".5", Err(Why::Unreadable)),
            ("٣", Err(Why::Unreadable)),
        ] {
            assert_eq!(figure(text), expected, "{text}");
        }
    }

    #[test]
    fn lengths_are_exact_and_bounded() {
        assert_eq!(seconds("64.57"), Ok(Duration::from_millis(64_570)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(millis("1540"), Ok(Duration::from_millis(1_540)));
        assert_eq!(seconds("691200"), Ok(bounds::WAIT));
        assert_eq!(seconds("691201"), Err(Why::TooLong));
        assert_eq!(seconds("9".repeat(50).as_str()), Err(Why::TooLong));
        assert_eq!(seconds("120s"), Err(Why::Unreadable));
    }
}
