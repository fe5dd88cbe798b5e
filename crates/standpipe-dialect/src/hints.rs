//! How long a provider says to wait, in headers: Retry-After and its relatives.
//!
//! What cannot be read, is below zero or over eight days counts as not said, and is told as a
//! doubt. Of several that contradict one another the longest is believed: too late is safe.

use std::time::Duration;

use crate::date;
use crate::doubt::Why;
use crate::number;
use crate::reading::Reading;

/// A header that says how long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hint {
    /// Seconds, with decimals, or a date.
    Seconds(&'static str),
    /// Milliseconds.
    Millis(&'static str),
}

/// What everybody may send; the finest first, because the coarse ones are rounded.
pub(crate) const COMMON: &[Hint] = &[
    Hint::Millis("retry-after-ms"),
    Hint::Millis("x-ms-retry-after-ms"),
    Hint::Seconds("retry-after"),
];

/// Hints this close together are the same one, rounded.
const SAME: Duration = Duration::from_secs(1);

/// Something a header said, and what it means.
type Said<'a> = (&'static str, &'a str, Duration);

impl<'a> Reading<'a> {
    /// How long these headers say to wait.
    pub(crate) fn hint(&mut self, hints: &[Hint]) -> Option<Duration> {
        let mut said: Vec<Said<'a>> = Vec::new();
        for hint in hints {
            let values: Vec<&'a str> = self.headers.all(hint.name()).collect();
            for value in values.into_iter().flat_map(listed) {
                if let Some(wait) = self.one(*hint, value) {
                    said.push((hint.name(), value, wait));
                }
            }
        }
        let first = said.first()?.2;
        let longest = said.iter().map(|said| said.2).max()?;
        for (name, value, _) in said.iter().filter(|said| longest - said.2 > SAME) {
            self.doubts.add(name, value, Why::Contradiction);
        }
        Some(if longest - first > SAME { longest } else { first })
    }

    fn one(&mut self, hint: Hint, value: &str) -> Option<Duration> {
        let name = hint.name();
        let read = match hint {
            Hint::Millis(_) => number::millis(value),
            Hint::Seconds(_) => match date::http(value) {
                Some(moment) => return self.until(name, value, moment),
                None => number::seconds(value),
            },
        };
        self.believe(name, value, read)
    }
}

impl Hint {
    const fn name(self) -> &'static str {
        match self {
            Self::Seconds(name) | Self::Millis(name) => name,
        }
    }
}

/// A header that was there twice may come joined: `5, 90`. A date has a comma of its own.
fn listed(value: &str) -> impl Iterator<Item = &str> {
    let is_list = value.starts_with(|c: char| c.is_ascii_digit())
        && number::scaled(value, 0) == Err(Why::Unreadable);
    let mut parts = value.split(move |c| is_list && c == ',').map(str::trim);
    std::iter::from_fn(move || parts.find(|part| !part.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Response;
    use crate::doubt::Doubt;

    const NOW: u64 = 1_792_567_680_000;

    fn hint(headers: &[(&str, &str)]) -> (Option<f64>, Vec<Doubt>) {
        let response = Response { status: 429, headers, body: b"", received: NOW };
        let mut reading = Reading::of(&response);
        let wait = reading.hint(COMMON).map(|wait| wait.as_secs_f64());
        (wait, reading.doubts.into_vec())
    }

    #[test]
    fn what_retry_after_says() {
        for (value, expected, doubt) in [
            ("17", Some(17.0), None),
            ("1.5", Some(1.5), None),
            ("0", Some(0.0), None),
            ("", None, None),
            ("-5", None, Some(Why::Negative)),
            ("120s", None, Some(Why::Unreadable)),
            ("soon", None, Some(Why::Unreadable)),
            ("691201", None, Some(Why::TooLong)),
            ("Wed, 21 Oct 2026 07:28:00 GMT", Some(0.0), None),
            ("Thu, 22 Oct 2099 07:28:00 GMT", None, Some(Why::TooLong)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0.0), Some(Why::InThePast)),
        ] {
            let (wait, doubts) = hint(&[("Retry-After", value)]);
            assert_eq!(wait, expected, "{value}");
            assert_eq!(doubts.first().map(|doubt| doubt.why), doubt, "{value}");
        }
    }

    #[test]
    fn a_date_counts_from_the_answers_own_date() {
        let headers = [
            ("date", "Wed, 21 Oct 2026 06:27:00 GMT"),
            ("retry-after", "Wed, 21 Oct 2026 06:28:30 GMT"),
        ];
        assert_eq!(hint(&headers), (Some(90.0), vec![]));
    }

    #[test]
    fn the_finer_of_two_that_agree_and_the_longer_of_two_that_do_not() {
        assert_eq!(hint(&[("retry-after", "2"), ("retry-after-ms", "1540")]), (Some(1.54), vec![]));
        for headers in [
            [("retry-after", "5"), ("retry-after-ms", "90000")],
            [("retry-after", "5"), ("retry-after", "90")],
            [("retry-after", "90, 5"), ("retry-after-ms", "x")],
        ] {
            let (wait, doubts) = hint(&headers);
            assert_eq!(wait, Some(90.0), "{headers:?}");
            let shorter = |doubt: &Doubt| doubt.why == Why::Contradiction && doubt.value == "5";
            assert!(doubts.iter().any(shorter), "{doubts:?}");
        }
    }
}
