//! Rate-limit messages that command-line programs print instead of a status: Claude Code, Codex,
//! Copilot and `gh`.
//!
//! [`printed_limit`] recognises the message and the reset it states. A time of day is returned as
//! written, because its instant depends on a time zone database and on the present time.

use std::time::Duration;

use crate::bounds;

/// A rate-limit message of a command-line program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedLimit {
    /// When the limit resets, if the message states it.
    pub reset: Option<PrintedReset>,
    /// The longest time until the reset, if the message names a limit of known length: a reset
    /// further ahead is one that has passed.
    pub window: Option<Duration>,
}

/// The reset that a message states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintedReset {
    /// In so long.
    After(Duration),
    /// In milliseconds since 1970.
    At(i64),
    /// At a time of day.
    Clock(PrintedTime),
}

/// A time of day as a message writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintedTime {
    /// The year, if it is stated.
    pub year: Option<i16>,
    /// Month and day, if they are stated.
    pub date: Option<(i8, i8)>,
    /// 0 to 23.
    pub hour: i8,
    /// 0 to 59.
    pub minute: i8,
    /// The name of the time zone, if it is stated; else the reader's own.
    pub zone: Option<String>,
}

/// Messages of subscriptions and of the GitHub API, in lower case. General words such as `429` are
/// not among them: a log line about something else must not pause a pool.
const MESSAGES: [&str; 15] = [
    "hit your session limit",
    "hit your weekly limit",
    "hit your usage limit",
    "hit your limit",
    "session limit reached",
    "weekly limit reached",
    "usage limit reached",
    "5-hour limit reached",
    "you have been rate-limited",
    "your request was rate-limited",
    "hit a rate limit that restricts",
    "weekly rate limit",
    "session rate limit",
    "api rate limit exceeded",
    "exceeded a secondary rate limit",
];

/// Messages about a limit of five hours.
const SESSION: [&str; 3] = ["session limit", "session rate limit", "5-hour limit"];

const SESSION_WINDOW: Duration = Duration::from_secs(5 * 3_600);

/// Phrases that a reset follows, the more specific first.
const RESET_PREFIXES: [&str; 6] =
    ["reset at ", "reset on ", "reset in ", "resets at ", "resets in ", "resets "];
/// Phrases that a wait follows.
const WAIT_PREFIXES: [&str; 4] = ["try again in ", "retry in ", "retry after ", "please wait "];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Recognises a rate-limit message in a line that a program printed.
#[must_use]
pub fn printed_limit(line: &str) -> Option<PrintedLimit> {
    let text = prefix(line, bounds::VALUE);
    let lower = text.to_ascii_lowercase().replace('\u{2019}', "'");
    let is_message = MESSAGES.iter().any(|message| lower.contains(message));
    let is_session = SESSION.iter().any(|phrase| lower.contains(phrase));
    is_message.then(|| PrintedLimit {
        reset: reset(text, &lower),
        window: is_session.then_some(SESSION_WINDOW),
    })
}

/// Finds the reset that a line states, whatever else it says.
#[must_use]
pub fn printed_reset(line: &str) -> Option<PrintedReset> {
    let text = prefix(line, bounds::VALUE);
    reset(text, &text.to_ascii_lowercase())
}

fn reset(text: &str, lower: &str) -> Option<PrintedReset> {
    if let Some(instant) = after_bar(lower) {
        return Some(PrintedReset::At(instant));
    }
    let waits = WAIT_PREFIXES.iter().filter_map(|phrase| Some(lower.split_once(phrase)?.1));
    let resets = RESET_PREFIXES.iter().filter_map(|phrase| Some(lower.split_once(phrase)?.1));
    let wait = waits.chain(resets.clone()).find_map(duration).map(PrintedReset::After);
    wait.or_else(|| resets.into_iter().find_map(|rest| clock(rest, text)).map(PrintedReset::Clock))
}

/// `usage limit reached|1762952400`: the instant in seconds.
fn after_bar(lower: &str) -> Option<i64> {
    let digits = lower.split_once("limit reached|")?.1;
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let seconds: i64 = digits[..end].parse().ok()?;
    // From 2001 to 2286: ten digits.
    (1_000_000_000..10_000_000_000).contains(&seconds).then_some(seconds * 1_000)
}

/// `2 minutes`, `587 hours 33 minutes`, `3 days, 2 hours`, `3h 20m`.
fn duration(rest: &str) -> Option<Duration> {
    let mut total = None;
    let mut words = rest.split([' ', ',']).filter(|word| !word.is_empty()).take(8);
    while let Some(word) = words.next() {
        let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
        let Ok(count) = word[..digits].parse::<u32>() else { break };
        let unit = if digits == word.len() { words.next().unwrap_or("") } else { &word[digits..] };
        let Some(seconds) = seconds_of(unit.trim_end_matches(['.', ';', ')'])) else { break };
        let part = u64::from(count).saturating_mul(seconds);
        total = Some(total.unwrap_or(0_u64).saturating_add(part));
    }
    let total = Duration::from_secs(total?);
    (total <= bounds::TERMINAL_WAIT).then_some(total)
}

fn seconds_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "s" | "sec" | "secs" | "second" | "seconds" => 1,
        "m" | "min" | "mins" | "minute" | "minutes" => 60,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        _ => return None,
    })
}

/// `12:50am (America/Los_Angeles)`, `oct 6, 6pm.`, `april 20, 2026 at 2:00 am`, `jul 18 at 4am`.
fn clock(rest: &str, text: &str) -> Option<PrintedTime> {
    let mut words = rest.split([' ', ',']).filter(|word| !word.is_empty()).take(6).peekable();
    let (mut year, mut date) = (None, None);
    if let Some(month) = words.peek().and_then(|word| month(word)) {
        words.next();
        let day = words.next()?.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
        date = Some((month, day)).filter(|_| (1..=31).contains(&day));
        year = words.peek().and_then(|word| word.parse().ok()).filter(|y| (2000..3000).contains(y));
        if year.is_some() {
            words.next();
        }
    }
    let word = words.find(|word| *word != "at")?.trim_end_matches(['.', ';', ')']);
    let suffix = words.peek().map_or("", |word| word.trim_end_matches(['.', ';', ')']));
    let (hour, minute) = time(word, suffix)?;
    Some(PrintedTime { year, date, hour, minute, zone: zone(rest, text) })
}

fn month(word: &str) -> Option<i8> {
    let at = MONTHS.iter().position(|month| word.starts_with(month))?;
    i8::try_from(at + 1).ok()
}

/// `3pm`, `12:50am`, `2:00` followed by `am`, `15:30`.
fn time(word: &str, suffix: &str) -> Option<(i8, i8)> {
    let (digits, half) = match word.strip_suffix("am").or_else(|| word.strip_suffix("pm")) {
        Some(digits) => (digits, Some(word.ends_with("pm"))),
        None => (word, matches!(suffix, "am" | "pm").then_some(suffix == "pm")),
    };
    let (hour, minute) = digits.split_once(':').unwrap_or((digits, "0"));
    // A number alone is no time of day.
    if half.is_none() && !digits.contains(':') {
        return None;
    }
    let (hour, minute): (i8, i8) = (hour.parse().ok()?, minute.parse().ok()?);
    let hour = match half {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(afternoon) => hour % 12 + if afternoon { 12 } else { 0 },
        None => hour,
    };
    ((0..24).contains(&hour) && (0..60).contains(&minute)).then_some((hour, minute))
}

/// The name in the first parentheses behind the reset, in its own letters.
fn zone(rest: &str, text: &str) -> Option<String> {
    let start = text.len().checked_sub(rest.len())?;
    let (_, name) = text.get(start..)?.split_once('(')?;
    let (name, _) = name.split_once(')')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_+-".contains(c);
    let is_name = name.contains('/') || matches!(name, "UTC" | "GMT");
    (is_name && name.len() <= 64 && name.chars().all(is_plain)).then(|| name.to_owned())
}

fn prefix(line: &str, most: usize) -> &str {
    let end = (0..=most.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(date: Option<(i8, i8)>, time: (i8, i8), zone: Option<&str>) -> Option<PrintedReset> {
        let zone = zone.map(str::to_owned);
        let (hour, minute) = time;
        Some(PrintedReset::Clock(PrintedTime { year: None, date, hour, minute, zone }))
    }

    fn after(seconds: u64) -> Option<PrintedReset> {
        Some(PrintedReset::After(Duration::from_secs(seconds)))
    }

    #[test]
    fn b60_messages_of_subscriptions_are_recognised_with_their_reset() {
        let los_angeles = Some("America/Los_Angeles");
        for (line, reset) in [
            (
                "You've hit your session limit · resets 12:50am (America/Los_Angeles)",
                at(None, (0, 50), los_angeles),
            ),
            (
                "You\u{2019}ve hit your session limit · resets 4:10pm (America/Sao_Paulo)",
                at(None, (16, 10), Some("America/Sao_Paulo")),
            ),
            (
                "You've hit your weekly limit · resets Jul 18 at 4am (Europe/Vienna)",
                at(Some((7, 18)), (4, 0), Some("Europe/Vienna")),
            ),
            ("5-hour limit reached ∙ resets 3pm", at(None, (15, 0), None)),
            (
                "Claude usage limit reached. Your limit will reset at 5pm (Europe/Warsaw).",
                at(None, (17, 0), Some("Europe/Warsaw")),
            ),
            (
                "Claude usage limit reached. Your limit will reset at Oct 6, 6pm.",
                at(Some((10, 6)), (18, 0), None),
            ),
            ("Claude AI usage limit reached|1762952400", Some(PrintedReset::At(1_762_952_400_000))),
            ("You've hit your session limit", None),
            (
                "Sorry, you have been rate-limited. Please wait 2 minutes before trying again or",
                after(120),
            ),
            (
                "✗ Sorry, you've hit a rate limit that restricts the number of Copilot model \
                 requests you can make within a specific time period. Please try again in 51 \
                 hours. Please review our Terms of Service",
                after(51 * 3_600),
            ),
            (
                "Sorry, your request was rate-limited. Please wait 587 hours 33 minutes before",
                after(587 * 3_600 + 33 * 60),
            ),
            ("You've hit your usage limit. Try again in 3 days 2 hours.", after(266_400)),
            ("gh: API rate limit exceeded for user ID 12345. (HTTP 403)", None),
            ("HTTP 403: You have exceeded a secondary rate limit. Please wait a few", None),
        ] {
            let found = printed_limit(line).unwrap_or_else(|| panic!("not recognised: {line}"));
            assert_eq!(found.reset, reset, "{line}");
        }
        let weekly = "You've reached your weekly rate limit. Please wait for your limit to reset \
                      on April 20, 2026 at 2:00 AM or switch to auto model to continue.";
        let Some(PrintedReset::Clock(time)) = printed_limit(weekly).unwrap().reset else {
            panic!("no time of day")
        };
        assert_eq!((time.year, time.date), (Some(2026), Some((4, 20))));
        assert_eq!((time.hour, time.minute), (2, 0));
    }

    #[test]
    fn only_a_session_has_a_window_of_five_hours() {
        let window = |line| printed_limit(line).unwrap().window;
        assert_eq!(window("You've hit your session limit"), Some(SESSION_WINDOW));
        assert_eq!(window("You've hit your weekly limit"), None);
    }

    #[test]
    fn other_lines_are_not_messages() {
        for line in [
            "",
            "GET /rate_limit 200",
            "testing the rate limit module",
            "error: 429 tests failed",
            "the limit of 5 was reached",
        ] {
            assert_eq!(printed_limit(line), None, "{line}");
        }
    }

    #[test]
    fn odd_resets_are_none() {
        for rest in
            ["99:99", "25pm", "0am", "soon", "5", "Feb", "Feb x 3pm", "99999999999999 hours"]
        {
            assert_eq!(printed_reset(&format!("limit resets {rest}")), None, "{rest}");
        }
        let long = format!("{}hit your limit", "\u{1f6b0}".repeat(1_000));
        assert_eq!(printed_limit(&long), None, "only the beginning is read");
        assert_eq!(printed_reset("usage limit reached|99999999999999999999"), None);
    }
}
