//! Lengths of time: conversions between the ledger's and the standard library's, and text.

use std::time::Duration;

use standpipe_core::{Span, bounds};

/// Converts a length to the ledger's type, capped at the longest that the ledger accepts.
#[must_use]
pub fn span(length: Duration) -> Span {
    let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
    Span(micros).min(bounds::SPAN)
}

/// Converts a length of the ledger.
#[must_use]
pub fn micros(span: Span) -> Duration {
    Duration::from_micros(span.0.min(bounds::SPAN.0))
}

/// Formats a length as configuration files and names of limits have it, in at most two units,
/// rounded up: `1min`, `2h 5min`, `350ms`, `1.5s`.
#[must_use]
pub fn format_span(span: Span) -> String {
    let millis = span.0.div_ceil(1_000);
    let (seconds, rest) = (millis / 1_000, millis % 1_000);
    let pair = |first: u64, unit: &str, second: u64, below: &str| match second {
        0 => format!("{first}{unit}"),
        _ => format!("{first}{unit} {second}{below}"),
    };
    match seconds {
        0 if span.0 == 0 => "0s".to_owned(),
        0 if span.0 < 1_000 => format!("{}us", span.0),
        0 => format!("{millis}ms"),
        1..=59 if rest >= 100 => format!("{seconds}.{}s", rest / 100),
        1..=59 => format!("{seconds}s"),
        60..=3_599 => pair(seconds / 60, "min", seconds % 60, "s"),
        3_600..=86_399 => pair(seconds / 3_600, "h", seconds / 60 % 60, "min"),
        _ => pair(seconds / 86_400, "d", seconds / 3_600 % 24, "h"),
    }
}

/// Formats milliseconds that have passed, rounded to the nearest: `850 ms`, `4.2 s`, `3 min 20 s`,
/// `2 h 5 min`, `3 d 4 h`.
#[must_use]
pub fn format_ms(ms: u64) -> String {
    let nearest = |unit: u64| ms.saturating_add(unit / 2) / unit;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..9_950 => tenths(nearest(100)),
        9_950..3_599_500 => two_units(nearest(1_000), 60, "min", "s"),
        3_599_500..86_370_000 => two_units(nearest(60_000), 60, "h", "min"),
        _ => two_units(nearest(3_600_000), 24, "d", "h"),
    }
}

/// Formats milliseconds that are still to pass, like [`format_ms`] but rounded up, so that a caller
/// that returns then is not early. A small excess is dropped: 1 h 50 ms is `1 h`.
#[must_use]
pub fn format_wait(ms: u64) -> String {
    let up = |unit: u64, excess: u64| ms.saturating_sub(excess).div_ceil(unit);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => tenths(up(100, 0)),
        10_000..3_599_100 => two_units(up(1_000, 100), 60, "min", "s"),
        3_599_100..86_341_000 => two_units(up(60_000, 1_000), 60, "h", "min"),
        _ => two_units(up(3_600_000, 60_000), 24, "d", "h"),
    }
}

fn tenths(tenths: u64) -> String {
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole} s"),
        (whole, tenth) => format!("{whole}.{tenth} s"),
    }
}

fn two_units(small: u64, per: u64, large_name: &str, small_name: &str) -> String {
    match (small / per, small % per) {
        (0, rest) => format!("{rest} {small_name}"),
        (whole, 0) => format!("{whole} {large_name}"),
        (whole, rest) => format!("{whole} {large_name} {rest} {small_name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_said_shortly() {
        let cases = [
            (0, "0s"),
            (250, "250us"),
            (350_000, "350ms"),
            (999_500, "1s"),
            (1_500_000, "1.5s"),
            (60_000_000, "1min"),
            (7_500_000_000, "2h 5min"),
            (90_000_000_000, "1d 1h"),
        ];
        for (micros, text) in cases {
            assert_eq!(format_span(Span(micros)), text);
        }
    }

    #[test]
    fn past_lengths_are_rounded_to_the_nearest() {
        let cases = [
            (0, "0 ms"),
            (850, "850 ms"),
            (1_000, "1 s"),
            (4_120, "4.1 s"),
            (9_949, "9.9 s"),
            (9_950, "10 s"),
            (11_200, "11 s"),
            (59_600, "1 min"),
            (200_000, "3 min 20 s"),
            (3_599_499, "59 min 59 s"),
            (3_599_500, "1 h"),
            (7_500_000, "2 h 5 min"),
            (86_370_000, "1 d"),
            (273_600_000, "3 d 4 h"),
        ];
        for (ms, text) in cases {
            assert_eq!(format_ms(ms), text, "{ms}");
        }
        assert!(!format_ms(u64::MAX).is_empty());
    }

    #[test]
    fn waits_are_rounded_up_except_for_a_small_excess() {
        let cases = [
            (0, "0 ms"),
            (850, "850 ms"),
            (4_120, "4.2 s"),
            (9_999, "10 s"),
            (10_100, "10 s"),
            (10_101, "11 s"),
            (60_050, "1 min"),
            (200_000, "3 min 20 s"),
            (3_599_101, "1 h"),
            (3_601_000, "1 h"),
            (3_601_001, "1 h 1 min"),
            (86_341_000, "1 d"),
            (86_460_001, "1 d 1 h"),
            (777_600_050, "9 d"),
        ];
        for (ms, text) in cases {
            assert_eq!(format_wait(ms), text, "{ms}");
        }
        assert!(!format_wait(u64::MAX).is_empty());
    }
}
