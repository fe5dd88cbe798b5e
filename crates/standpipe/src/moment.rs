//! Moments and lengths of time as people and files have them, and how a store's clock maps to them.
//!
//! A store's clock is only comparable with itself. What it says is carried over to the clocks of
//! this process at the moment it said it, so that an answer is never early.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant as Local, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use standpipe_core::{Instant, Span, bounds};

/// A moment of the civil calendar in UTC, to the millisecond: `2026-01-31T12:00:00.000Z`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Milliseconds since the beginning of 1970.
    pub millis: u64,
}

/// The clocks of this process and a store's, read together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) store: Instant,
    pub(crate) local: Local,
    pub(crate) system: SystemTime,
}

impl Now {
    /// The store has just said that it is `store`.
    pub(crate) fn at(store: Instant) -> Self {
        Self { store, local: Local::now(), system: SystemTime::now() }
    }

    /// A moment of the store's, on this process's steady clock.
    pub(crate) fn local(&self, at: Instant) -> Local {
        self.local + micros(at.since(self.store))
    }

    /// A moment of the store's, on the calendar.
    pub(crate) fn system(&self, at: Instant) -> SystemTime {
        let ahead = micros(at.since(self.store));
        let behind = micros(self.store.since(at));
        let then = self.system.checked_add(ahead).unwrap_or(self.system);
        then.checked_sub(behind).unwrap_or(UNIX_EPOCH)
    }

    /// How long it is until then, rounded up to a whole millisecond.
    pub(crate) fn until(&self, at: Instant) -> Duration {
        Duration::from_millis(at.since(self.store).0.div_ceil(1_000))
    }

    /// How many milliseconds it is until then, rounded up.
    pub(crate) fn millis_until(&self, at: Instant) -> u64 {
        at.since(self.store).0.div_ceil(1_000)
    }

    /// How many milliseconds it is since then.
    pub(crate) fn millis_since(&self, at: Instant) -> u64 {
        self.store.since(at).0 / 1_000
    }

    /// A moment of the store's that has passed.
    pub(crate) fn past(&self, at: Instant) -> Moment {
        Moment::of(self.system(at))
    }

    /// A moment of the store's that lies ahead: never said too early.
    pub(crate) fn ahead(&self, at: Instant) -> Moment {
        Moment::not_before(self.system(at))
    }
}

/// The same length for the ledger. What is longer than any it knows is the longest.
pub(crate) fn span(length: Duration) -> Span {
    let micros = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
    Span(micros).min(bounds::SPAN)
}

/// The same length for this process.
pub(crate) fn micros(span: Span) -> Duration {
    Duration::from_micros(span.0.min(bounds::SPAN.0))
}

impl Moment {
    /// Now, by the wall clock.
    #[must_use]
    pub fn now() -> Self {
        Self::of(SystemTime::now())
    }

    /// That moment; what lies before 1970 is its beginning.
    #[must_use]
    pub fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { millis: u64::try_from(since.as_millis()).unwrap_or(LAST).min(LAST) }
    }

    /// That moment, rounded up: for what is worth waiting for.
    #[must_use]
    pub fn not_before(time: SystemTime) -> Self {
        let floor = Self::of(time);
        let early = floor.system() < time && floor.millis < LAST;
        Self { millis: floor.millis + u64::from(early) }
    }

    /// As the system's time.
    #[must_use]
    pub fn system(self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.millis.min(LAST))
    }
}

/// The end of the year 9999: what four digits can say.
const LAST: u64 = 253_402_300_799_999;

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.millis.min(LAST);
        let (seconds, milli) = (millis / 1_000, millis % 1_000);
        let (day, second) = (seconds / 86_400, seconds % 86_400);
        let (year, month, date) = civil(day);
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }
}

/// A text that is not a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidMoment;

impl fmt::Display for InvalidMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a moment; write it like 2026-01-31T12:00:00.000Z")
    }
}

impl std::error::Error for InvalidMoment {}

impl FromStr for Moment {
    type Err = InvalidMoment;

    /// Reads what [`Moment`] writes, with or without the milliseconds.
    fn from_str(text: &str) -> Result<Self, InvalidMoment> {
        let bare = text.strip_suffix('Z').ok_or(InvalidMoment)?;
        let (date, time) = bare.split_once('T').ok_or(InvalidMoment)?;
        let (time, milli) = time.split_once('.').unwrap_or((time, "000"));
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
        let [milli] = numbers(milli, '.', [3])?;
        let fits = (1_970..=9_999).contains(&year) && hour < 24 && minute < 60 && second < 60;
        let days = days_to(year, month, day);
        if !fits || civil(days) != (year, month, day) {
            return Err(InvalidMoment);
        }
        let seconds = days * 86_400 + hour * 3_600 + minute * 60 + second;
        Ok(Self { millis: seconds * 1_000 + milli })
    }
}

/// Exactly so many numbers of exactly so many digits.
fn numbers<const N: usize>(
    text: &str,
    between: char,
    digits: [usize; N],
) -> Result<[u64; N], InvalidMoment> {
    let mut parts = text.split(between);
    let mut numbers = [0; N];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next().ok_or(InvalidMoment)?;
        let plain = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = plain.then(|| part.parse().ok()).flatten().ok_or(InvalidMoment)?;
    }
    if parts.next().is_some() { Err(InvalidMoment) } else { Ok(numbers) }
}

/// The day so many days after 1 January 1970, in the Gregorian calendar. Years are counted from
/// March, so that the odd day of a leap year is the last of its year.
const fn civil(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let date = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, date)
}

/// The inverse of [`civil`], for days that exist; any other comes back as another day.
const fn days_to(year: u64, month: u64, date: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let of_year = (153 * from_march + 2) / 5 + date.saturating_sub(1);
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    (era * 146_097 + of_era).saturating_sub(719_468)
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A length as a person would say it, in at most two figures: `1min`, `2h 5min`, `350ms`, `1.5s`.
pub(crate) fn spoken(span: Span) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read_the_same() {
        let known = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_210_096_789, "2024-02-29T12:34:56.789Z"),
            (LAST, "9999-12-31T23:59:59.999Z"),
        ];
        for (millis, text) in known {
            assert_eq!(Moment { millis }.to_string(), text);
            assert_eq!(text.parse(), Ok(Moment { millis }));
        }
        for day in 0..80_000 {
            let moment = Moment { millis: day * 86_400_000 };
            assert_eq!(moment.to_string().parse(), Ok(moment));
        }
        assert_eq!("2024-02-29T12:34:56Z".parse(), Ok(Moment { millis: 1_709_210_096_000 }));
    }

    #[test]
    fn what_is_not_a_moment_is_refused() {
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
            assert_eq!(bad.parse::<Moment>(), Err(InvalidMoment), "{bad}");
        }
    }

    #[test]
    fn lengths_are_said_shortly() {
        let said = [
            (0, "0s"),
            (250, "250us"),
            (350_000, "350ms"),
            (999_500, "1s"),
            (1_500_000, "1.5s"),
            (60_000_000, "1min"),
            (7_500_000_000, "2h 5min"),
            (90_000_000_000, "1d 1h"),
        ];
        for (micros, text) in said {
            assert_eq!(spoken(Span(micros)), text);
        }
    }
}
