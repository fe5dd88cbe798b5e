//! Instants, in milliseconds since 1970, from every format that responses use.
//!
//! `jiff` does the calendar: leap years, offsets and daylight saving time. There is no clock here;
//! callers pass the time of the response.

use std::time::Duration;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::anomaly::AnomalyReason;
use crate::bounds;
use crate::parse::number;

/// The Pacific time zone, in which Gemini's daily quotas reset. A POSIX rule needs no tz database.
const PACIFIC: &str = "PST8PDT,M3.2.0,M11.1.0";

/// The two obsolete forms of an HTTP date, which RFC 9110 requires recipients to accept.
const OBSOLETE_HTTP: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];

/// Parses RFC 3339: `2025-08-21T12:40:59Z`.
pub(crate) fn rfc3339(text: &str) -> Option<i64> {
    text.trim().parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
}

/// Parses an HTTP date: `Wed, 21 Oct 2026 07:28:00 GMT`.
pub(crate) fn http(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(zoned) = jiff::fmt::rfc2822::parse(text) {
        return Some(zoned.timestamp().as_millisecond());
    }
    let civil = OBSOLETE_HTTP.iter().find_map(|form| DateTime::strptime(form, text).ok())?;
    utc(civil)
}

/// Parses seconds since 1970, with decimals.
pub(crate) fn epoch(text: &str) -> Result<i64, AnomalyReason> {
    number::decimal(text, 3).and_then(|ms| i64::try_from(ms).map_err(|_| AnomalyReason::TooLong))
}

/// Finds an instant in a sentence: `on 2026-09-01 at 00:00 UTC`, or RFC 3339.
pub(crate) fn in_sentence(text: &str) -> Option<i64> {
    let mut words = text.split_whitespace().map(trim_punctuation);
    while let Some(word) = words.next() {
        if let Some(instant) = rfc3339(word) {
            return Some(instant);
        }
        let Ok(date) = word.parse::<Date>() else { continue };
        let time = words.find(|word| *word != "at").unwrap_or("00:00");
        let time = time.parse().unwrap_or(jiff::civil::Time::midnight());
        return utc(date.to_datetime(time));
    }
    None
}

fn trim_punctuation(word: &str) -> &str {
    word.trim_end_matches(['.', ',', ';', ')'])
}

/// The next midnight in the Pacific time zone.
pub(crate) fn next_pacific_midnight(now: i64) -> Option<i64> {
    let now = Timestamp::from_millisecond(now).ok()?.to_zoned(TimeZone::posix(PACIFIC).ok()?);
    let midnight = now.checked_add(1.day()).ok()?.start_of_day().ok()?;
    Some(midnight.timestamp().as_millisecond())
}

/// Midnight UTC on the first of the next month.
pub(crate) fn start_of_next_month(now: i64) -> Option<i64> {
    let now = Timestamp::from_millisecond(now).ok()?.to_zoned(TimeZone::UTC);
    utc(now.date().first_of_month().checked_add(1.month()).ok()?.to_datetime(Default::default()))
}

fn utc(civil: DateTime) -> Option<i64> {
    Some(civil.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond())
}

/// The time from `now` until `then`: zero if `then` has passed, an error if over `longest`.
pub(crate) fn until(now: i64, then: i64, longest: Duration) -> Result<Duration, AnomalyReason> {
    let ms = u64::try_from(then.saturating_sub(now)).unwrap_or(0);
    let wait = Duration::from_millis(ms);
    if wait <= longest { Ok(wait) } else { Err(AnomalyReason::TooLong) }
}

/// Whether an instant passed so long ago that the value must be wrong.
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
        assert_eq!(epoch("99999999999999999999"), Err(AnomalyReason::TooLong));
        assert_eq!(in_sentence("come back later"), None);
    }

    #[test]
    fn a_sentence_may_name_a_moment() {
        let text = "You will regain access on 2026-09-01 at 00:00 UTC.";
        assert_eq!(in_sentence(text), rfc3339("2026-09-01T00:00:00Z"));
        assert_eq!(in_sentence("resets on 2026-09-01."), rfc3339("2026-09-01T00:00:00Z"));
        assert_eq!(in_sentence("at 2026-09-01T06:30:00Z."), rfc3339("2026-09-01T06:30:00Z"));
    }

    #[test]
    fn midnight_in_california_knows_summer_time() {
        let midnight = |text| next_pacific_midnight(rfc3339(text).unwrap()).unwrap();
        assert_eq!(Some(midnight("2026-07-01T12:00:00Z")), rfc3339("2026-07-02T07:00:00Z"));
        assert_eq!(Some(midnight("2026-12-01T12:00:00Z")), rfc3339("2026-12-02T08:00:00Z"));
        // The day on which the clocks go back has 25 hours.
        let start = rfc3339("2026-11-01T07:00:00Z").unwrap();
        assert_eq!(next_pacific_midnight(start), Some(start + 25 * DAY / 24));
    }

    #[test]
    fn the_next_month_begins_on_its_first() {
        let next = |text| start_of_next_month(rfc3339(text).unwrap());
        assert_eq!(next("2026-08-31T23:59:59Z"), rfc3339("2026-09-01T00:00:00Z"));
        assert_eq!(next("2026-12-01T00:00:00Z"), rfc3339("2027-01-01T00:00:00Z"));
        assert_eq!(start_of_next_month(i64::MAX), None);
        assert_eq!(next_pacific_midnight(i64::MIN), None);
    }

    #[test]
    fn what_passed_needs_no_wait() {
        assert_eq!(until(5, 3, bounds::WAIT), Ok(Duration::ZERO));
        assert_eq!(until(5, 8, bounds::WAIT), Ok(Duration::from_millis(3)));
        assert_eq!(until(0, 9 * DAY, bounds::WAIT), Err(AnomalyReason::TooLong));
        assert_eq!(until(i64::MIN, i64::MAX, bounds::WAIT), Err(AnomalyReason::TooLong));
        assert!(is_long_past(9 * DAY, 0) && !is_long_past(8 * DAY, 0));
    }
}
