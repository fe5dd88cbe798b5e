//! Moments, in milliseconds since 1970, from every way in which answers write them.
//!
//! The calendar is the date crate's: leap years, offsets and California's summer time are its own.

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::bounds;
use crate::doubt::Why;
use crate::number;

/// California's rule, by which Gemini's days begin.
const PACIFIC: &str = "PST8PDT,M3.2.0,M11.1.0";

/// The two older forms of an HTTP date, which must still be understood.
const OLDER: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// A moment as `2025-08-21T12:40:59Z`.
pub(crate) fn rfc3339(text: &str) -> Option<i64> {
    text.trim().parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// A moment as HTTP writes it: `Wed, 21 Oct 2026 07:28:00 GMT`.
pub(crate) fn http(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(zoned) = jiff::fmt::rfc2822::parse(text) {
        return Some(zoned.timestamp().as_millisecond());
    }
    let civil = OLDER.iter().find_map(|form| DateTime::strptime(form, text).ok())?;
    utc(civil)
}

/// A moment as seconds since 1970, with decimals.
pub(crate) fn epoch(text: &str) -> Result<i64, Why> {
    number::scaled(text, 3).and_then(|ms| i64::try_from(ms).map_err(|_| Why::TooLong))
}

/// A moment inside a sentence: `on 2026-09-01 at 00:00 UTC`, or as RFC 3339.
pub(crate) fn in_words(text: &str) -> Option<i64> {
    let mut words = text.split_whitespace().map(trimmed);
    while let Some(word) = words.next() {
        if let Some(moment) = rfc3339(word) {
            return Some(moment);
        }
        let Ok(date) = word.parse::<Date>() else { continue };
        let clock = words.find(|word| *word != "at").unwrap_or("00:00");
        let clock = clock.parse().unwrap_or(jiff::civil::Time::midnight());
        return utc(date.to_datetime(clock));
    }
    None
}

fn trimmed(word: &str) -> &str {
    word.trim_end_matches(['.', ',', ';', ')'])
}

/// The next midnight in California.
pub(crate) fn pacific_midnight_after(now: i64) -> Option<i64> {
    let now = Timestamp::from_millisecond(now).ok()?.to_zoned(TimeZone::posix(PACIFIC).ok()?);
    let midnight = now.checked_add(1.day()).ok()?.start_of_day().ok()?;
    Some(midnight.timestamp().as_millisecond())
}

/// The first of the next month, UTC.
pub(crate) fn next_month(now: i64) -> Option<i64> {
    let now = Timestamp::from_millisecond(now).ok()?.to_zoned(TimeZone::UTC);
    utc(now.date().first_of_month().checked_add(1.month()).ok()?.to_datetime(Default::default()))
}

fn utc(civil: DateTime) -> Option<i64> {
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// How long from now until then; nothing if it has passed.
pub(crate) fn until(now: i64, then: i64) -> Result<Duration, Why> {
    let ms = u64::try_from(then.saturating_sub(now)).unwrap_or(0);
    let wait = Duration::from_millis(ms);
    if wait <= bounds::WAIT { Ok(wait) } else { Err(Why::TooLong) }
}

/// How long from now until the end of something that lasts: a month's budget, for example.
pub(crate) fn until_the_end(now: i64, then: i64) -> Result<Duration, Why> {
    let ms = u64::try_from(then.saturating_sub(now)).unwrap_or(0);
    let wait = Duration::from_millis(ms);
    if wait <= bounds::STOP { Ok(wait) } else { Err(Why::TooLong) }
}

/// Whether a moment passed so long ago that it cannot have been meant.
pub(crate) fn is_long_past(now: i64, then: i64) -> bool {
    u128::try_from(now.saturating_sub(then)).is_ok_and(|ago| ago > bounds::WAIT.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000;

    #[test]
    fn every_form_names_the_same_moment() {
        let moment = 784_111_777_000;
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(http(text), Some(moment), "{text}");
        }
        assert_eq!(rfc3339("1994-11-06T08:49:37Z"), Some(moment));
        assert_eq!(rfc3339("1994-11-06T09:49:37.000+01:00"), Some(moment));
        assert_eq!(epoch("784111777"), Ok(moment));
        assert_eq!(epoch("784111777.25"), Ok(moment + 250));
    }

    #[test]
    fn what_is_no_moment_is_none() {
        for text in ["", "soon", "2025-08-21", "Thu, 32 Aug 2025 12:41:00 GMT", "17"] {
            assert_eq!((http(text), rfc3339(text)), (None, None), "{text}");
        }
        assert_eq!(epoch("99999999999999999999"), Err(Why::TooLong));
        assert_eq!(in_words("come back later"), None);
    }

    #[test]
    fn a_sentence_may_name_a_moment() {
        let text = "You will regain access on 2026-09-01 at 00:00 UTC.";
        assert_eq!(in_words(text), rfc3339("2026-09-01T00:00:00Z"));
        assert_eq!(in_words("resets on 2026-09-01."), rfc3339("2026-09-01T00:00:00Z"));
        assert_eq!(in_words("at 2026-09-01T06:30:00Z."), rfc3339("2026-09-01T06:30:00Z"));
    }

    #[test]
    fn midnight_in_california_knows_summer_time() {
        let midnight = |text| pacific_midnight_after(rfc3339(text).unwrap()).unwrap();
        assert_eq!(Some(midnight("2026-07-01T12:00:00Z")), rfc3339("2026-07-02T07:00:00Z"));
        assert_eq!(Some(midnight("2026-12-01T12:00:00Z")), rfc3339("2026-12-02T08:00:00Z"));
        // The day on which the clocks go back has 25 hours.
        let start = rfc3339("2026-11-01T07:00:00Z").unwrap();
        assert_eq!(pacific_midnight_after(start), Some(start + 25 * DAY / 24));
    }

    #[test]
    fn the_next_month_begins_on_its_first() {
        let next = |text| next_month(rfc3339(text).unwrap());
        assert_eq!(next("2026-08-31T23:59:59Z"), rfc3339("2026-09-01T00:00:00Z"));
        assert_eq!(next("2026-12-01T00:00:00Z"), rfc3339("2027-01-01T00:00:00Z"));
        assert_eq!(next_month(i64::MAX), None);
        assert_eq!(pacific_midnight_after(i64::MIN), None);
    }

    #[test]
    fn what_passed_needs_no_wait() {
        assert_eq!(until(5, 3), Ok(Duration::ZERO));
        assert_eq!(until(5, 8), Ok(Duration::from_millis(3)));
        assert_eq!(until(0, 9 * DAY), Err(Why::TooLong));
        assert_eq!(until(i64::MIN, i64::MAX), Err(Why::TooLong));
        assert!(is_long_past(9 * DAY, 0) && !is_long_past(8 * DAY, 0));
    }
}
