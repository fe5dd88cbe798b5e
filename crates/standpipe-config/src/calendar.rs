//! Limits per day that the provider resets at a time of day: `00:00 America/Los_Angeles`.
//!
//! Zones come from the system's database (`/usr/share/zoneinfo`), and from a copy in the program
//! where the system has none.

use jiff::civil::Time;
use jiff::tz::{TimeZone, TimeZoneDatabase, db};
use jiff::{Timestamp, ToSpan, Zoned};
use standpipe_core::{Resets, Span, Text};

use crate::TextError;
use crate::nearest::nearest;
use crate::parse::quoted;

/// A time of day in a time zone.
#[derive(Clone, Debug)]
pub struct DailyReset {
    time: Time,
    zone: TimeZone,
}

/// How far the resets around an instant are from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetsAround {
    /// The time since the last reset.
    pub since: Span,
    /// The time until the next one, never zero.
    pub left: Span,
}

impl DailyReset {
    /// Parses `HH:MM ZONE`, where the zone is a name of the IANA database or `UTC`.
    ///
    /// # Errors
    /// When the time or the zone is not known.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        let no_time = || {
            let what = format!("{} is not a time of day and a zone", quoted(text));
            TextError::new(what, EXAMPLE)
        };
        let (time, zone) = text.trim().split_once(' ').ok_or_else(no_time)?;
        let valid = time.len() == 5 && time.as_bytes()[2] == b':';
        let time = Some(time).filter(|_| valid).and_then(|time| time.parse().ok());
        let time = time.ok_or_else(no_time)?;
        let zone = zone.trim();
        match db().get(zone) {
            Ok(found) if found.iana_name() == Some(zone) || zone == "UTC" => {
                Ok(Self { time, zone: found })
            }
            _ => Err(unknown_zone(zone)),
        }
    }

    /// Returns the resets around an instant, given in microseconds since 1970; `None` for instants
    /// beyond the calendar.
    ///
    /// A time that a change of daylight saving time skips counts as the one after the gap. Of one
    /// that occurs twice the first counts.
    #[must_use]
    pub fn around(&self, now: u64) -> Option<ResetsAround> {
        let now = Timestamp::from_microsecond(i64::try_from(now).ok()?).ok()?;
        let today = now.to_zoned(self.zone.clone());
        let on = |days: i64| -> Option<Zoned> {
            let date = today.date().checked_add(days.days()).ok()?;
            date.to_datetime(self.time).to_zoned(self.zone.clone()).ok()
        };
        let days = [on(-1)?, on(0)?, on(1)?, on(2)?].map(|day| day.timestamp());
        let last = days.iter().rev().find(|day| **day <= now)?;
        let next = days.iter().find(|day| **day > now)?;
        let micros = |from: Timestamp, to: Timestamp| {
            u64::try_from(to.as_microsecond() - from.as_microsecond()).ok().map(Span)
        };
        Some(ResetsAround { since: micros(*last, now)?, left: micros(now, *next)? })
    }
}

/// Parses how a limit resets: `rolling`, `provider`, or a time of day and a zone.
pub(crate) fn resets(text: &str) -> Result<Resets, TextError> {
    let wrong = match text {
        "rolling" => return Ok(Resets::Rolling),
        "provider" => return Ok(Resets::Provider),
        _ if text.contains(':') => DailyReset::parse(text).err(),
        _ => Some(unknown_word(text)),
    };
    let day = || Text::new(text.trim()).ok_or_else(|| unknown_word(text));
    wrong.map_or_else(|| day().map(Resets::Calendar), Err)
}

/// Returns how a limit resets, as it is written.
#[must_use]
pub(crate) fn word(resets: &Resets) -> &str {
    match resets {
        Resets::Rolling => "rolling",
        Resets::Provider => "provider",
        Resets::Calendar(day) => day.as_str(),
    }
}

fn unknown_word(text: &str) -> TextError {
    let remedy = match nearest(text, ["rolling", "provider"].into_iter()) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => format!("write \"rolling\", \"provider\", or a time: {EXAMPLE}"),
    };
    TextError::new(format!("{} is not a known value", quoted(text)), remedy)
}

fn unknown_zone(zone: &str) -> TextError {
    let names: Vec<String> =
        TimeZoneDatabase::available(db()).map(|name| name.to_string()).collect();
    let remedy = match nearest(zone, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => EXAMPLE.to_owned(),
    };
    TextError::new(format!("{} is not a known time zone", quoted(zone)), remedy)
}

const EXAMPLE: &str = "write for example \"00:00 America/Los_Angeles\" or \"00:00 UTC\"";

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000;

    fn around(day: &str, now: &str) -> ResetsAround {
        let now: Timestamp = now.parse().unwrap();
        let now = u64::try_from(now.as_microsecond()).unwrap();
        DailyReset::parse(day).unwrap().around(now).unwrap()
    }

    #[test]
    fn midnight_pacific_is_seven_or_eight_hours_after_utc() {
        let day = "00:00 America/Los_Angeles";
        let resets = around(day, "2026-11-17T18:30:00Z");
        assert_eq!((resets.since.0, resets.left.0), (10 * HOUR + HOUR / 2, 13 * HOUR + HOUR / 2));
        let resets = around(day, "2026-07-01T07:00:00Z");
        assert_eq!((resets.since.0, resets.left.0), (0, 24 * HOUR));
        let resets = around("00:00 UTC", "2026-07-01T23:59:59Z");
        assert_eq!(resets.left.0, 1_000_000);
    }

    #[test]
    fn days_have_23_and_25_hours_when_daylight_saving_time_changes() {
        let day = "00:00 America/Los_Angeles";
        let length = |now: &str| {
            let ResetsAround { since, left } = around(day, now);
            (since.0 + left.0) / HOUR
        };
        assert_eq!(length("2026-03-08T12:00:00Z"), 23);
        assert_eq!(length("2026-03-09T12:00:00Z"), 24);
        assert_eq!(length("2026-11-01T12:00:00Z"), 25);
        // A time of day that is skipped, and one that occurs twice.
        assert_eq!(around("02:30 America/Los_Angeles", "2026-03-08T10:00:00Z").left.0, HOUR / 2);
        assert_eq!(around("01:30 America/Los_Angeles", "2026-11-01T08:00:00Z").left.0, HOUR / 2);
    }

    #[test]
    fn errors_name_the_value_and_suggest_another() {
        for (text, what, hint) in [
            ("00:00", "not a time of day and a zone", "00:00 UTC"),
            ("24:00 UTC", "not a time of day", "00:00 UTC"),
            ("0:00 UTC", "not a time of day", "00:00 UTC"),
            ("00:00:30 UTC", "not a time of day", "00:00 UTC"),
            (
                "00:00 America/Los_Angles",
                "America/Los_Angles",
                "did you mean \"America/Los_Angeles\"?",
            ),
            ("00:00 america/los_angeles", "not a known time zone", "America/Los_Angeles"),
            ("00:00 Pacific", "not a known time zone", "America/Los_Angeles"),
            ("providr", "not a known value", "did you mean \"provider\"?"),
            ("midnight", "not a known value", "00:00 UTC"),
        ] {
            let wrong = resets(text).unwrap_err();
            assert!(wrong.what.contains(what), "{text}: {wrong}");
            assert!(wrong.remedy.contains(hint), "{text}: {wrong}");
        }
    }

    #[test]
    fn the_copy_in_the_program_has_the_zones() {
        let bundled = TimeZoneDatabase::bundled();
        assert!(bundled.get("America/Los_Angeles").is_ok());
    }
}
