//! The `unified` headers of a subscription: shares of windows of hours and days, not counts.

use std::borrow::Cow;
use std::time::Duration;

use crate::answer::{Kind, LimitSeen, ResetMeans, Verdict};
use crate::bounds;
use crate::date;
use crate::doubt::Why;
use crate::fault::Fault;
use crate::number;
use crate::reading::{Reading, refused};
use crate::status::HINTS;

const BEFORE: &str = "anthropic-ratelimit-unified-";

/// What a share counts.
const UNIT: &str = "budget";

/// Shares beyond this are nonsense: a hundred times the whole, in parts per million.
const MOST_SHARE: u32 = 100_000_000;

/// Whether the subscription still lets calls through.
pub(super) enum Standing {
    Allowed,
    Rejected,
}

pub(super) fn see_limits(reading: &mut Reading<'_>) {
    for (name, value) in reading.headers.between(BEFORE, "-utilization") {
        let header = format!("{BEFORE}{name}-utilization");
        let share = reading.believe(&header, value, share(value));
        let seen = LimitSeen {
            period: period(&name),
            reset_in: reset(reading, &format!("{BEFORE}{name}-reset")),
            reset: ResetMeans::WindowEnds,
            utilization: share,
            name: Some(name.chars().take(bounds::SHORT).collect()),
            ..LimitSeen::of(UNIT)
        };
        reading.see(&header, seen);
    }
}

/// A share with decimals, in parts per million.
fn share(text: &str) -> Result<u32, Why> {
    let millionths = u32::try_from(number::scaled(text, 6)?).map_err(|_| Why::TooLarge)?;
    if millionths <= MOST_SHARE { Ok(millionths) } else { Err(Why::TooLarge) }
}

/// `5h`, `7d`, `7d_oi`: a number, a unit, and perhaps what is special about it.
fn period(name: &str) -> Option<Duration> {
    let length = name.split('_').next()?;
    let (count, seconds) = match length.strip_suffix('h') {
        Some(count) => (count, 3_600),
        None => (length.strip_suffix('d')?, 86_400),
    };
    let count = count.parse::<u64>().ok().filter(|count| (1..=400).contains(count))?;
    Some(Duration::from_secs(count * seconds))
}

/// When a window ends, in seconds since 1970.
fn reset(reading: &mut Reading<'_>, header: &str) -> Option<Duration> {
    let value = reading.headers.first(header)?;
    let moment = reading.believe(header, value, date::epoch(value))?;
    reading.until(header, value, moment)
}

/// What the headers say as a whole; none if it is no subscription.
pub(super) fn standing(reading: &Reading<'_>) -> Option<Standing> {
    let status = reading.headers.first("anthropic-ratelimit-unified-status");
    let window = || reading.headers.between(BEFORE, "-status").into_iter();
    match status {
        Some(status) if status.eq_ignore_ascii_case("rejected") => Some(Standing::Rejected),
        Some(_) => Some(Standing::Allowed),
        // Without the whole, its parts; whether more may be bought is no part of it.
        None if window().any(|(name, status)| name != "overage" && status == "rejected") => {
            Some(Standing::Rejected)
        }
        None => window().next().map(|_| Standing::Allowed),
    }
}

/// The budget is used up until its window ends.
pub(super) fn refusal(reading: &mut Reading<'_>, fault: &Fault) -> Verdict {
    let claim = reading.headers.first("anthropic-ratelimit-unified-representative-claim");
    let name = match claim {
        Some("five_hour") => Some("5h".to_owned()),
        Some("seven_day_overage_included") => Some("7d_oi".to_owned()),
        Some(claim) if claim.starts_with("seven_day") => Some("7d".to_owned()),
        _ => rejected_window(reading),
    };
    let mut wait = reading.hint(HINTS);
    let window = name.as_ref().map(|name| format!("{BEFORE}{name}-reset"));
    for header in window.into_iter().chain([format!("{BEFORE}reset")]) {
        wait = wait.or_else(|| reset(reading, &header));
    }
    let period = name.as_deref().and_then(period);
    refused(Kind::Quota, wait, fault).about(Some(Cow::Borrowed(UNIT)), period).verdict()
}

/// The window that says it is used up; the longest, if there are several.
fn rejected_window(reading: &Reading<'_>) -> Option<String> {
    let windows = reading.headers.between(BEFORE, "-status").into_iter();
    let rejected = windows.filter(|(_, status)| status.eq_ignore_ascii_case("rejected"));
    let known = rejected.filter_map(|(name, _)| Some((period(&name)?, name)));
    known.max_by_key(|(period, _)| *period).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_per_million() {
        assert_eq!(share("0.42"), Ok(420_000));
        assert_eq!(share("1.0"), Ok(1_000_000));
        assert_eq!(share("1.0375"), Ok(1_037_500));
        assert_eq!(share("101"), Err(Why::TooLarge));
        assert_eq!(share("-0.1"), Err(Why::Negative));
        assert_eq!(share("half"), Err(Why::Unreadable));
    }

    #[test]
    fn a_window_is_named_by_its_length() {
        let hours = |hours: u64| Some(Duration::from_secs(hours * 3_600));
        assert_eq!(period("5h"), hours(5));
        assert_eq!(period("7d"), hours(168));
        assert_eq!(period("7d_oi"), hours(168));
        for name in ["overage", "", "h", "0h", "9999999d", "x_5h"] {
            assert_eq!(period(name), None, "{name}");
        }
    }
}
