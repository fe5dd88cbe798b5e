//! Durations for people: `850 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.

/// A length in milliseconds. Up to an hour what is left out is rounded up, so that "in 3 s" is never
/// too early; beyond that to the nearest.
pub(crate) fn length(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    if ms < 10_000 {
        let tenths = ms.div_ceil(100);
        return match (tenths / 10, tenths % 10) {
            (whole, 0) => format!("{whole} s"),
            (whole, tenth) => format!("{whole}.{tenth} s"),
        };
    }
    let seconds = ms.div_ceil(1_000);
    if seconds < 3_600 {
        return two(seconds, 60, "min", "s");
    }
    let minutes = seconds.saturating_add(30) / 60;
    if minutes < 1_440 {
        return two(minutes, 60, "h", "min");
    }
    two((minutes + 30) / 60, 24, "d", "h")
}

fn two(small: u64, per: u64, large_name: &str, small_name: &str) -> String {
    match (small / per, small % per) {
        (0, rest) => format!("{rest} {small_name}"),
        (whole, 0) => format!("{whole} {large_name}"),
        (whole, rest) => format!("{whole} {large_name} {rest} {small_name}"),
    }
}

/// A period as people name it: `min`, `2 s`, `hour`.
pub(crate) fn period(ms: u64) -> String {
    let text = length(ms);
    match text.as_str() {
        "1 d" => "day".to_owned(),
        "1 h" => "hour".to_owned(),
        "1 min" => "min".to_owned(),
        "1 s" => "s".to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_short_and_never_too_short() {
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
            assert_eq!(length(ms), text, "{ms}");
        }
        assert!(!length(u64::MAX).is_empty());
    }

    #[test]
    fn periods_drop_their_one() {
        assert_eq!(period(60_000), "min");
        assert_eq!(period(2_000), "2 s");
        assert_eq!(period(10_000), "10 s");
        assert_eq!(period(86_400_000), "day");
    }
}
