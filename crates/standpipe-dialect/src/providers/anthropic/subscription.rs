//! The `anthropic-ratelimit-unified-*` headers of a subscription: shares of windows of hours and
//! days instead of counts.

use std::borrow::Cow;
use std::time::Duration;

use crate::anomaly::AnomalyReason;
use crate::answer::{Kind, LimitSeen, ResetMeans, Verdict};
use crate::bounds;
use crate::parse::{date, number};
use crate::reader::{ErrorBody, ResponseReader, RetryHeader, refused};

const PREFIX: &str = "anthropic-ratelimit-unified-";

/// The unit of a limit that states only a share.
const UNIT: &str = "budget";

/// The largest share accepted, in parts per million: a hundred times the whole.
const MAX_UTILIZATION_PPM: u32 = 100_000_000;

/// Whether the subscription still admits calls.
pub(super) enum Status {
    Allowed,
    Rejected,
}

pub(super) fn read_limits(reader: &mut ResponseReader<'_>) {
    for (window, value) in reader.headers.between(PREFIX, "-utilization") {
        let header = format!("{PREFIX}{window}-utilization");
        let utilization = reader.ok_or_anomaly(&header, value, utilization_ppm(value));
        let seen = LimitSeen {
            period: period(&window),
            reset_in: reset_in(reader, &format!("{PREFIX}{window}-reset")),
            reset: ResetMeans::WindowEnds,
            utilization,
            name: Some(window.chars().take(bounds::SHORT).collect()),
            ..LimitSeen::new(UNIT)
        };
        reader.add_limit(&header, seen);
    }
}

/// Parses a share with decimals into parts per million.
fn utilization_ppm(text: &str) -> Result<u32, AnomalyReason> {
    let ppm = u32::try_from(number::decimal(text, 6)?).map_err(|_| AnomalyReason::TooLarge)?;
    if ppm <= MAX_UTILIZATION_PPM { Ok(ppm) } else { Err(AnomalyReason::TooLarge) }
}

/// The period in the name of a window: `5h`, `7d`, or `7d_oi` with a variant behind it.
fn period(window: &str) -> Option<Duration> {
    let length = window.split('_').next()?;
    let (count, seconds) = match length.strip_suffix('h') {
        Some(count) => (count, 3_600),
        None => (length.strip_suffix('d')?, 86_400),
    };
    let count = count.parse::<u64>().ok().filter(|count| (1..=400).contains(count))?;
    Some(Duration::from_secs(count * seconds))
}

/// The time until a window ends. Unlike the other Anthropic headers, these are epoch seconds.
fn reset_in(reader: &mut ResponseReader<'_>, header: &str) -> Option<Duration> {
    let value = reader.headers.first(header)?;
    let instant = reader.ok_or_anomaly(header, value, date::epoch(value))?;
    reader.until(header, value, instant)
}

/// The status of the subscription; `None` if the response is not about one.
pub(super) fn status(reader: &ResponseReader<'_>) -> Option<Status> {
    let overall = reader.headers.first("anthropic-ratelimit-unified-status");
    let windows = || reader.headers.between(PREFIX, "-status").into_iter();
    match overall {
        Some(status) if status.eq_ignore_ascii_case("rejected") => Some(Status::Rejected),
        Some(_) => Some(Status::Allowed),
        // Without an overall status the windows decide. `overage` only states whether more can be
        // bought.
        None if windows().any(|(name, status)| name != "overage" && status == "rejected") => {
            Some(Status::Rejected)
        }
        None => windows().next().map(|_| Status::Allowed),
    }
}

/// The refusal of a budget that is used up until its window ends.
pub(super) fn refusal(reader: &mut ResponseReader<'_>, error: &ErrorBody) -> Verdict {
    let claim = reader.headers.first("anthropic-ratelimit-unified-representative-claim");
    let window = match claim {
        Some("five_hour") => Some("5h".to_owned()),
        Some("seven_day_overage_included") => Some("7d_oi".to_owned()),
        Some(claim) if claim.starts_with("seven_day") => Some("7d".to_owned()),
        _ => rejected_window(reader),
    };
    let mut wait = reader.retry_after(RetryHeader::COMMON);
    let window_reset = window.as_ref().map(|window| format!("{PREFIX}{window}-reset"));
    for header in window_reset.into_iter().chain([format!("{PREFIX}reset")]) {
        wait = wait.or_else(|| reset_in(reader, &header));
    }
    let period = window.as_deref().and_then(period);
    let unit = Some(Cow::Borrowed(UNIT));
    refused(Kind::Quota, wait, error).with_limit(unit, period).into_verdict()
}

/// The window with status `rejected`; the longest if there are several.
fn rejected_window(reader: &ResponseReader<'_>) -> Option<String> {
    let windows = reader.headers.between(PREFIX, "-status").into_iter();
    let rejected = windows.filter(|(_, status)| status.eq_ignore_ascii_case("rejected"));
    let known = rejected.filter_map(|(name, _)| Some((period(&name)?, name)));
    known.max_by_key(|(period, _)| *period).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_parts_per_million() {
        assert_eq!(utilization_ppm("0.42"), Ok(420_000));
        assert_eq!(utilization_ppm("1.0"), Ok(1_000_000));
        assert_eq!(utilization_ppm("1.0375"), Ok(1_037_500));
        assert_eq!(utilization_ppm("101"), Err(AnomalyReason::TooLarge));
        assert_eq!(utilization_ppm("-0.1"), Err(AnomalyReason::Negative));
        assert_eq!(utilization_ppm("half"), Err(AnomalyReason::Unreadable));
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
