//! Moments of the calendar as providers write them in headers and bodies.

use jiff::Timestamp;

/// A second.
pub(crate) const SECOND: u64 = 1_000_000;
/// A minute.
pub(crate) const MINUTE: u64 = 60 * SECOND;
/// An hour.
pub(crate) const HOUR: u64 = 60 * MINUTE;
/// A day.
pub(crate) const DAY: u64 = 24 * HOUR;

/// A moment on somebody's calendar, in microseconds since the beginning of 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Wall(pub(crate) u64);

impl Wall {
    /// So much later.
    pub(crate) const fn plus(self, span: u64) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// The first whole second from here on.
    pub(crate) const fn rounded_up(self) -> Self {
        Self(self.0.div_ceil(SECOND).saturating_mul(SECOND))
    }

    /// Seconds since the beginning of 1970.
    pub(crate) const fn epoch(self) -> u64 {
        self.0 / SECOND
    }

    /// `2025-08-21T12:40:59Z`
    pub(crate) fn rfc3339(self) -> String {
        self.written("%Y-%m-%dT%H:%M:%SZ")
    }

    /// `Thu, 21 Aug 2025 12:41:00 GMT`
    pub(crate) fn http(self) -> String {
        self.written("%a, %d %b %Y %H:%M:%S GMT")
    }

    /// `2025-08-21`
    pub(crate) fn date(self) -> String {
        self.written("%Y-%m-%d")
    }

    /// `12:40`
    pub(crate) fn hour_and_minute(self) -> String {
        self.written("%H:%M")
    }

    /// In UTC. What no calendar has a name for is the last moment that has one.
    fn written(self, format: &str) -> String {
        let second = i64::try_from(self.epoch()).unwrap_or(i64::MAX);
        let moment = Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
        moment.strftime(format).to_string()
    }
}

/// A length of time as Go writes it, to the millisecond, rounded up: `6m0s`, `8.64s`, `12ms`.
pub(crate) fn go_duration(span: u64) -> String {
    let millis = span.div_ceil(1_000);
    if millis > 0 && millis < 1_000 {
        return format!("{millis}ms");
    }
    let (hours, minutes) = (millis / 3_600_000, millis / 60_000 % 60);
    let seconds = decimal(millis % 60_000, 3);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// A number of 10⁻ⁿ parts as a decimal without needless zeros.
pub(crate) fn decimal(parts: u64, places: u32) -> String {
    let one = 10_u64.pow(places);
    let whole = parts / one;
    let rest = format!("{:0width$}", parts % one, width = places as usize);
    match rest.trim_end_matches('0') {
        "" => whole.to_string(),
        rest => format!("{whole}.{rest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_recorded() {
        let moment = Wall(1_755_780_060 * SECOND);
        assert_eq!(moment.rfc3339(), "2025-08-21T12:41:00Z");
        assert_eq!(moment.http(), "Thu, 21 Aug 2025 12:41:00 GMT");
        assert_eq!(Wall(0).http(), "Thu, 01 Jan 1970 00:00:00 GMT");
        assert_eq!(Wall(951_782_400 * SECOND).date(), "2000-02-29");
        assert_eq!(Wall(1).rounded_up(), Wall(SECOND));
    }

    #[test]
    fn lengths_are_written_as_go_does() {
        let cases = [
            (0, "0s"),
            (11_001, "12ms"),
            (250_000, "250ms"),
            (SECOND, "1s"),
            (8_640_000, "8.64s"),
            (90 * SECOND, "1m30s"),
            (360 * SECOND, "6m0s"),
            (3_723_500_000, "1h2m3.5s"),
        ];
        for (span, text) in cases {
            assert_eq!(go_duration(span), text);
        }
    }
}
