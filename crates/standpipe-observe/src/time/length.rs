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

/// Formats milliseconds for people: `850 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.
///
/// Up to an hour what is left out is rounded up, so that "in 3 s" is never too early; beyond that
/// to the nearest.
#[must_use]
pub fn format_ms(ms: u64) -> String {
    if ms <= 3_599_000 {
        return format_wait(ms);
    }
    let minutes = ms.div_ceil(1_000).saturating_add(30) / 60;
    match minutes {
        0..1_440 => two_units(minutes, 60, "h", "min"),
        _ => two_units((minutes + 30) / 60, 24, "d", "h"),
    }
}

/// Formats milliseconds like [`format_ms`], but always rounds up: a caller that returns then is not
/// early.
#[must_use]
pub fn format_wait(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => match (ms.div_ceil(100) / 10, ms.div_ceil(100) % 10) {
            (whole, 0) => format!("{whole} s"),
            (whole, tenth) => format!("{whole}.{tenth} s"),
        },
        10_000..=3_599_000 => two_units(ms.div_ceil(1_000), 60, "min", "s"),
        3_599_001..86_400_000 => two_units(ms.div_ceil(60_000), 60, "h", "min"),
        _ => two_units(ms.div_ceil(3_600_000), 24, "d", "h"),
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
    fn lengths_are_short_and_up_to_an_hour_never_too_short() {
        let cases = [
            (0, "0 ms"),
            (850, "850 ms"),
            (1_000, "1 s"),
            (4_120, "4.2 s"),
            (9_999, "10 s"),
            (10_001, "11 s"),
            (59_001, "1 min"),
            (200_000, "3 min 20 s"),
            (3_599_001, "1 h"),
            (7_500_000, "2 h 5 min"),
            (86_400_000, "1 d"),
            (86_400_050, "1 d"),
            (273_600_000, "3 d 4 h"),
        ];
        for (ms, text) in cases {
            assert_eq!(format_ms(ms), text, "{ms}");
        }
        assert!(!format_ms(u64::MAX).is_empty());
    }

    #[test]
    fn waits_are_never_too_short() {
        let cases = [
            (0, "0 ms"),
            (850, "850 ms"),
            (4_120, "4.2 s"),
            (9_999, "10 s"),
            (10_001, "11 s"),
            (200_000, "3 min 20 s"),
            (3_599_001, "1 h"),
            (3_600_001, "1 h 1 min"),
            (86_400_001, "1 d 1 h"),
        ];
        for (ms, text) in cases {
            assert_eq!(format_wait(ms), text);
        }
    }
}
