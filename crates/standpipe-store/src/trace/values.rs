//! Times, rates and limits in traces: `1.5s`, `10/min`, `requests/10s`.
//!
//! Conversions are exact: a time that is not a whole number of microseconds is rejected, and no
//! value is a float.

use standpipe_core::{Instant, LimitId, Span, Unit};

/// Units of time, in microseconds.
const TIMES: [(&str, u64); 6] = [
    ("us", 1),
    ("ms", 1_000),
    ("min", 60_000_000),
    ("s", 1_000_000),
    ("h", 3_600_000_000),
    ("d", 86_400_000_000),
];

/// Parses a length of time such as `500ms`, `1.5s` or `2h`.
pub(super) fn span(text: &str) -> Result<Span, String> {
    let invalid = || format!("`{text}` is not a time; write it like 500ms, 1.5s, 10min, 2h or 1d");
    let split = TIMES.iter().find_map(|(name, micros)| Some((text.strip_suffix(name)?, *micros)));
    let (number, micros) = split.ok_or_else(invalid)?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 12 {
        return Err(invalid());
    }
    let whole: u64 = whole.parse().map_err(|_| invalid())?;
    let scale = 10_u64.pow(u32::try_from(part.len()).unwrap_or(0));
    let part: u64 = if part.is_empty() { 0 } else { part.parse().map_err(|_| invalid())? };
    let fraction = u128::from(part) * u128::from(micros);
    if fraction % u128::from(scale) != 0 {
        return Err(invalid());
    }
    let fraction = u64::try_from(fraction / u128::from(scale)).map_err(|_| invalid())?;
    let total = whole.checked_mul(micros).and_then(|whole| whole.checked_add(fraction));
    total.map(Span).ok_or_else(invalid)
}

/// Formats a length of time in seconds, without trailing zeros.
pub(super) fn show_span(span: Span) -> String {
    let (seconds, micros) = (span.0 / 1_000_000, span.0 % 1_000_000);
    if micros == 0 {
        return format!("{seconds}s");
    }
    let digits = format!("{micros:06}");
    format!("{seconds}.{}s", digits.trim_end_matches('0'))
}

/// Parses an instant, counted from the start of the trace.
pub(super) fn instant(text: &str) -> Result<Instant, String> {
    span(text).map(|span| Instant(span.0))
}

pub(super) fn show_instant(instant: Instant) -> String {
    if instant == Instant::NEVER { "never".to_owned() } else { show_span(Span(instant.0)) }
}

/// Parses a rate such as `10/min` or `30/2s`.
pub(super) fn rate(text: &str) -> Result<(u64, Span), String> {
    let invalid = || format!("`{text}` is not a rate; write it like 10/min or 30/2s");
    let (amount, per) = text.split_once('/').ok_or_else(invalid)?;
    Ok((amount.parse().map_err(|_| invalid())?, period(per).map_err(|_| invalid())?))
}

/// Parses a period such as `min` or `2s`.
fn period(text: &str) -> Result<Span, String> {
    let alone = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    if alone { span(&format!("1{text}")) } else { span(text) }
}

/// Parses the name of a limit: `requests/10s`, `bucket tokens/min`, `parallel`.
pub(super) fn limit(text: &str) -> Result<LimitId, String> {
    if text == "parallel" {
        return Ok(LimitId::Parallel);
    }
    let invalid =
        || format!("`{text}` is not the name of a limit; write it like requests/10s or parallel");
    let (bucket, rest) = match text.strip_prefix("bucket ") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (name, per) = rest.split_once('/').ok_or_else(invalid)?;
    let unit = Unit::named(name).ok_or_else(invalid)?;
    let period = period(per).map_err(|_| invalid())?;
    Ok(if bucket { LimitId::Bucket(unit, period) } else { LimitId::Window(unit, period) })
}

pub(super) fn show_limit(limit: &LimitId) -> String {
    match limit {
        LimitId::Window(unit, period) => format!("{unit}/{}", show_span(*period)),
        LimitId::Bucket(unit, period) => format!("bucket {unit}/{}", show_span(*period)),
        LimitId::Parallel => "parallel".to_owned(),
        LimitId::Unanswered => "unanswered".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_or_refused() {
        assert_eq!(span("1.5s"), Ok(Span(1_500_000)));
        assert_eq!(span("0.000001s"), Ok(Span(1)));
        assert_eq!(span("2min"), Ok(Span(120_000_000)));
        for bad in ["", "s", "5", "1m", "0.0000001s", "1.s5", "-1s", "99999999999999999999s"] {
            assert!(span(bad).is_err(), "{bad}");
        }
        for text in ["0s", "9.999999s", "600s", "0.05s"] {
            assert_eq!(show_span(span(text).unwrap()), text);
        }
    }

    #[test]
    fn limits_are_named_the_same_both_ways() {
        for text in ["requests/10s", "bucket tokens/60s", "parallel"] {
            assert_eq!(show_limit(&limit(text).unwrap()), text);
        }
        assert_eq!(show_limit(&limit("requests/min").unwrap()), "requests/60s");
        assert!(limit("requests").is_err());
    }
}
