//! Decimal numbers, scaled to integers without rounding.

/// Splits a number from the unit that follows it.
pub(super) fn split_number(text: &str) -> (&str, &str) {
    let belongs = |c: char| c.is_ascii_digit() || matches!(c, '_' | '.' | '-' | '+');
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    (number, suffix.trim_start())
}

/// Why a number cannot be scaled to an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberError {
    NotANumber,
    Negative,
    Fraction,
    TooLarge,
}

/// Returns `number` × `times` exactly. Numbers with more than 18 digits before or after the point
/// are rejected: no bound needs them, and the product fits `u128`.
pub(super) fn scaled(number: &str, times: u64) -> Result<u64, NumberError> {
    let (negative, number) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (digits(whole)?, digits(fraction)?),
        None => (digits(number)?, String::new()),
    };
    if negative {
        return Err(NumberError::Negative);
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    if whole.len() > 18 {
        return Err(NumberError::TooLarge);
    }
    if fraction.len() > 18 {
        return Err(NumberError::Fraction);
    }
    let mut value: u128 = 0;
    for digit in whole.bytes().chain(fraction.bytes()) {
        value = value * 10 + u128::from(digit - b'0');
    }
    let product = value.checked_mul(u128::from(times)).ok_or(NumberError::TooLarge)?;
    let tenths = fraction.bytes().fold(1_u128, |power, _| power * 10);
    if product % tenths != 0 {
        return Err(NumberError::Fraction);
    }
    u64::try_from(product / tenths).map_err(|_| NumberError::TooLarge)
}

/// Returns a rate of a fraction as one of whole units in a longer period: `0.5` and `s` are `1/2s`.
pub(super) fn whole_rate(amount: &str, period: &str) -> Option<String> {
    let (count, unit) = split_number(period);
    let count = if count.is_empty() { "1" } else { count };
    (2..=1_000).find_map(|times| {
        let (amount, count) = (scaled(amount, times).ok()?, scaled(count, times).ok()?);
        (amount > 0).then(|| format!("{amount}/{count}{unit}"))
    })
}

/// Removes the underscores, which are allowed only between two digits.
fn digits(text: &str) -> Result<String, NumberError> {
    let grouped = text.split('_').all(|group| !group.is_empty());
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    if !grouped || !plain {
        return Err(NumberError::NotANumber);
    }
    Ok(text.replace('_', ""))
}
