//! Lengths of time as people say them: `850ms`, `4.2s`, `3min 20s`, `2h 5min`, `3d 4h`.

/// A length in milliseconds. What is left out is rounded up, so that "in 3s" is never too early.
pub(crate) fn length(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms}ms");
    }
    if ms < 10_000 {
        let tenths = ms.div_ceil(100);
        return match (tenths / 10, tenths % 10) {
            (whole, 0) => format!("{whole}s"),
            (whole, tenth) => format!("{whole}.{tenth}s"),
        };
    }
    let seconds = ms.div_ceil(1_000);
    if seconds < 3_600 {
        return two(seconds, 60, "min", "s");
    }
    let minutes = seconds.div_ceil(60);
    if minutes < 1_440 {
        return two(minutes, 60, "h", "min");
    }
    two(minutes.div_ceil(60), 24, "d", "h")
}

fn two(small: u64, per: u64, large_name: &str, small_name: &str) -> String {
    match (small / per, small % per) {
        (0, rest) => format!("{rest}{small_name}"),
        (whole, 0) => format!("{whole}{large_name}"),
        (whole, rest) => format!("{whole}{large_name} {rest}{small_name}"),
    }
}

/// A period as a rate names it: `min`, `2s`, `h`.
pub(crate) fn period(ms: u64) -> String {
    let text = length(ms);
    match text.strip_prefix('1').filter(|unit| unit.chars().all(char::is_alphabetic)) {
        Some(unit) => unit.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short_and_never_too_short() {
        let said = [
            (0, "0ms"),
            (850, "850ms"),
            (1_000, "1s"),
            (4_120, "4.2s"),
            (9_999, "10s"),
            (10_001, "11s"),
            (59_001, "1min"),
            (200_000, "3min 20s"),
            (3_599_001, "1h"),
            (7_500_000, "2h 5min"),
            (86_400_000, "1d"),
            (270_000_001, "3d 4h"),
        ];
        for (ms, text) in said {
            assert_eq!(length(ms), text, "{ms}");
        }
        assert!(!length(u64::MAX).is_empty());
    }

    #[test]
    fn periods_drop_their_one() {
        assert_eq!(period(60_000), "min");
        assert_eq!(period(2_000), "2s");
        assert_eq!(period(10_000), "10s");
        assert_eq!(period(86_400_000), "d");
    }
}
