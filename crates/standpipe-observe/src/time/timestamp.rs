//! An instant of the civil calendar in UTC, as files and answers have it.
//!
//! `jiff` does the calendar. One instant has one text, so that texts sort and compare as instants
//! do.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::SignedDuration;
use jiff::civil::{DateTime, date};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An instant of the civil calendar in UTC, to the millisecond: `2026-01-31T12:00:00.000Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Milliseconds since the beginning of 1970.
    pub millis: u64,
}

impl Timestamp {
    /// Returns the time of the wall clock.
    #[must_use]
    pub fn now() -> Self {
        Self::of(SystemTime::now())
    }

    /// Converts a system time, rounded down. A time before 1970 becomes the beginning of 1970.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { millis: u64::try_from(since.as_millis()).unwrap_or(LAST).min(LAST) }
    }

    /// Converts a system time, rounded up, so that a caller that waits for it is never early.
    #[must_use]
    pub fn not_before(time: SystemTime) -> Self {
        let floor = Self::of(time);
        let early = floor.system() < time && floor.millis < LAST;
        Self { millis: floor.millis + u64::from(early) }
    }

    /// Converts it to a system time.
    #[must_use]
    pub fn system(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.millis.min(LAST))
    }
}

/// The end of the year 9999, the last that four digits can express.
const LAST: u64 = 253_402_300_799_999;

const EPOCH: DateTime = date(1970, 1, 1).at(0, 0, 0, 0);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.millis.min(LAST)).unwrap_or(i64::MAX);
        let civil = EPOCH.saturating_add(SignedDuration::from_millis(millis));
        write!(f, "{civil:.3}Z")
    }
}

/// A text that is not a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidTimestamp;

impl fmt::Display for InvalidTimestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a timestamp; write it like 2026-01-31T12:00:00.000Z")
    }
}

impl std::error::Error for InvalidTimestamp {}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Reads what [`Timestamp`] writes, with or without the milliseconds.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let bare = text.strip_suffix('Z').ok_or(InvalidTimestamp)?;
        let civil: DateTime = bare.parse().map_err(|_| InvalidTimestamp)?;
        let since = civil.duration_since(EPOCH).as_millis();
        let parsed = Self { millis: u64::try_from(since).map_err(|_| InvalidTimestamp)? };
        // The parser accepts more forms than are ever written.
        let written = parsed.to_string();
        let accepted = text == written || written.strip_suffix(".000Z") == Some(bare);
        accepted.then_some(parsed).ok_or(InvalidTimestamp)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_written_and_read_the_same() {
        let known = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789Z"),
            (LAST, "9999-12-31T23:59:59.999Z"),
        ];
        for (millis, text) in known {
            assert_eq!(Timestamp { millis }.to_string(), text);
            assert_eq!(text.parse(), Ok(Timestamp { millis }));
        }
        for day in 0..80_000 {
            let moment = Timestamp { millis: day * 86_400_000 };
            assert_eq!(moment.to_string().parse(), Ok(moment));
        }
        assert_eq!("2024-02-29T12:34:56Z".parse(), Ok(Timestamp { millis: 1_709_210_096_000 }));
    }

    #[test]
    fn what_is_not_a_timestamp_is_refused() {
        for bad in [
            "",
            "yesterday",
            "2023-02-29T00:00:00.000Z",
            "2024-13-01T00:00:00.000Z",
            "2024-00-01T00:00:00.000Z",
            "2024-01-00T00:00:00.000Z",
            "2024-01-01T24:00:00.000Z",
            "2024-01-01T00:00:00.0Z",
            "2024-01-01T00:00:00.000",
            "2024-01-01T00:00:00+01:00Z",
            "1969-12-31T00:00:00.000Z",
        ] {
            assert_eq!(bad.parse::<Timestamp>(), Err(InvalidTimestamp), "{bad}");
        }
    }
}
