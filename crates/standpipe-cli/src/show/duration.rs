//! Durations for people: `850 ms`, `4.2 s`, `3 min 20 s`, `2 h 5 min`, `3 d 4 h`.

pub(crate) use standpipe::observe::format_ms as length;
/// A time that is still to pass. It is rounded up, so that a caller that returns then is not early.
pub(crate) use standpipe::observe::format_wait as remaining;

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

/// The last period as people name it: `last minute`, `last 5 s`.
pub(crate) fn last(ms: u64) -> String {
    let name = match period(ms).as_str() {
        "s" => "second".to_owned(),
        "min" => "minute".to_owned(),
        other => other.to_owned(),
    };
    format!("last {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_drop_their_one() {
        assert_eq!(period(60_000), "min");
        assert_eq!(period(2_000), "2 s");
        assert_eq!(period(10_000), "10 s");
        assert_eq!(period(86_400_000), "day");
    }
}
