//! When the limit in a program's message resets, from the time of day it states.

use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, Zoned};
use standpipe::dialect::{PrintedReset, PrintedTime};

/// When a limit resets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    /// In so long.
    In(Duration),
    /// It has passed: the message is old.
    Passed,
}

/// A time of day without a date is at most this far ahead.
const A_DAY: Duration = Duration::from_secs(86_400);

/// A reset may lie ahead by this much more than its window allows, because clocks differ.
const SLACK: Duration = Duration::from_secs(600);

/// The reset that a message states, if its time zone is known. `window` is the length of the limit.
pub(crate) fn resolve(
    printed: &PrintedReset,
    window: Option<Duration>,
    now: Timestamp,
    own: &TimeZone,
) -> Option<Reset> {
    match printed {
        PrintedReset::After(wait) => Some(Reset::In(*wait)),
        PrintedReset::At(millis) => Some(ahead(now, Timestamp::from_millisecond(*millis).ok()?)),
        PrintedReset::Clock(time) => {
            let zone = match &time.zone {
                Some(name) => TimeZone::get(name).ok()?,
                None => own.clone(),
            };
            clock(time, window, &now.to_zoned(zone))
        }
    }
}

fn clock(printed: &PrintedTime, window: Option<Duration>, now: &Zoned) -> Option<Reset> {
    let time = Time::new(printed.hour, printed.minute, 0, 0).ok()?;
    let at = |date: Date| -> Option<Timestamp> {
        Some(date.to_datetime(time).to_zoned(now.time_zone().clone()).ok()?.timestamp())
    };
    if let Some((month, day)) = printed.date {
        let year = printed.year.unwrap_or_else(|| now.year());
        let then = at(Date::new(year, month, day).ok()?)?;
        // Early in January a date in December is the last one, and the other way round.
        let half = SignedDuration::from_hours(24 * 182);
        let turn = match now.timestamp().duration_until(then) {
            _ if printed.year.is_some() => 0,
            far if far > half => -1,
            far if far < -half => 1,
            _ => 0,
        };
        return Some(ahead(now.timestamp(), at(Date::new(year + turn, month, day).ok()?)?));
    }
    let today = at(now.date())?;
    let then = if today > now.timestamp() { today } else { at(now.date().tomorrow().ok()?)? };
    Some(match ahead(now.timestamp(), then) {
        Reset::In(wait) if wait > window.unwrap_or(A_DAY) + SLACK => Reset::Passed,
        reset => reset,
    })
}

fn ahead(now: Timestamp, then: Timestamp) -> Reset {
    match Duration::try_from(now.duration_until(then)) {
        Ok(wait) if !wait.is_zero() => Reset::In(wait),
        _ => Reset::Passed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use standpipe::dialect::printed_limit;

    /// What a message means at an instant, for a reader in UTC, in minutes.
    fn at(now: &str, line: &str) -> Option<Result<u64, ()>> {
        let printed = printed_limit(line).unwrap();
        let now: Timestamp = now.parse().unwrap();
        let reset = resolve(&printed.reset?, printed.window, now, &TimeZone::UTC)?;
        Some(match reset {
            Reset::In(wait) => Ok(wait.as_secs() / 60),
            Reset::Passed => Err(()),
        })
    }

    #[test]
    fn a_session_that_resets_soon_is_waited_for_and_an_old_message_is_not() {
        let line = "You've hit your session limit · resets 3pm";
        assert_eq!(at("2026-11-17T12:30:00Z", line), Some(Ok(150)));
        assert_eq!(at("2026-11-17T15:01:00Z", line), Some(Err(())), "it reset a minute ago");
        assert_eq!(at("2026-11-17T09:00:00Z", line), Some(Err(())), "no session is that long");
        let night = "You've hit your session limit · resets 12:50am (UTC)";
        assert_eq!(at("2026-11-17T23:50:00Z", night), Some(Ok(60)), "over midnight");
    }

    #[test]
    fn dates_and_instants_are_exact() {
        let weekly = "You've hit your weekly limit · resets Nov 20 at 4am";
        assert_eq!(at("2026-11-20T03:00:00Z", weekly), Some(Ok(60)));
        assert_eq!(at("2026-11-20T04:00:01Z", weekly), Some(Err(())));
        let over_the_year = "You've hit your weekly limit · resets Jan 2 at 1am";
        assert_eq!(at("2026-12-31T01:00:00Z", over_the_year), Some(Ok(2 * 24 * 60)));
        let last_year = "You've hit your weekly limit · resets Dec 30 at 1am";
        assert_eq!(at("2027-01-02T01:00:00Z", last_year), Some(Err(())));
        let stated = "reached your weekly rate limit. Please wait for your limit to reset on \
                      April 20, 2026 at 2:00 AM or switch";
        assert_eq!(at("2026-04-20T01:00:00Z", stated), Some(Ok(60)));
        assert_eq!(at("2026-11-20T01:00:00Z", stated), Some(Err(())));
        let epoch = "Claude AI usage limit reached|1762952400";
        assert_eq!(at("2025-11-12T12:00:00Z", epoch), Some(Ok(60)));
        assert_eq!(at("2025-11-12T14:00:00Z", epoch), Some(Err(())));
    }

    #[test]
    fn an_unknown_zone_gives_no_reset() {
        assert_eq!(at("2026-11-17T12:30:00Z", "hit your limit · resets 3pm (Mars/Base)"), None);
        assert_eq!(at("2026-11-17T12:30:00Z", "You've hit your session limit"), None);
    }
}
