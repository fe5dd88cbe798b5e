//! Times in the time zone of this machine, as people read them. JSON has UTC.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// `16:59:21`, with the day if it is not today.
pub(crate) fn clock(at: impl ToString) -> String {
    let text = at.to_string();
    let Some(at) = local(&text) else { return text };
    let form = if at.date() == today() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    at.strftime(form).to_string()
}

/// `2026-01-31 16:59:21`.
pub(crate) fn day_and_clock(at: impl ToString) -> String {
    let text = at.to_string();
    local(&text).map_or(text, |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string())
}

/// `16:59:21`, whatever the day.
pub(crate) fn clock_only(at: impl ToString) -> String {
    let text = at.to_string();
    local(&text).map_or(text, |at| at.strftime("%H:%M:%S").to_string())
}

fn local(at: &str) -> Option<Zoned> {
    Some(at.parse::<Timestamp>().ok()?.to_zoned(zone()))
}

/// The date of the machine; a fixed one in tests of this crate.
fn today() -> Date {
    if cfg!(test) { Date::constant(2026, 1, 31) } else { Zoned::now().date() }
}

/// The zone of the machine; a fixed one in tests of this crate.
fn zone() -> TimeZone {
    if cfg!(test) { TimeZone::UTC } else { TimeZone::system() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_day_is_named_and_no_time_is_left_as_it_is() {
        assert_eq!(clock("2020-01-31T12:00:42.100Z"), "2020-01-31 12:00:42");
        assert_eq!(clock_only("2020-01-31T12:00:42.100Z"), "12:00:42");
        assert_eq!(day_and_clock("2020-01-31T12:00:42.100Z"), "2020-01-31 12:00:42");
        assert_eq!(clock("2026-01-31T12:00:42.100Z"), "12:00:42");
        assert_eq!(clock("soon"), "soon");
    }
}
