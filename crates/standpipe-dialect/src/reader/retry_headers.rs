//! Headers that state a wait: `Retry-After` and its variants.
//!
//! A value that is unreadable, negative or over eight days is ignored and recorded as an anomaly.
//! If values contradict one another the longest wins: retrying late is safe, retrying early is not.

use std::time::Duration;

use crate::anomaly::AnomalyReason;
use crate::parse::{date, number};
use crate::reader::ResponseReader;

/// A header that states how long to wait.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RetryHeader {
    /// Seconds, with decimals, or an HTTP date.
    Seconds(&'static str),
    /// Milliseconds.
    Millis(&'static str),
}

/// Waits this close together are the same one at different precision.
const SAME: Duration = Duration::from_secs(1);

impl RetryHeader {
    /// The headers that any provider may send. The most precise come first, because the others
    /// are rounded.
    pub(crate) const COMMON: &'static [Self] = &[
        Self::Millis("retry-after-ms"),
        Self::Millis("x-ms-retry-after-ms"),
        Self::Seconds("retry-after"),
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Seconds(name) | Self::Millis(name) => name,
        }
    }
}

impl<'a> ResponseReader<'a> {
    /// The wait that these headers state.
    pub(crate) fn retry_after(&mut self, headers: &[RetryHeader]) -> Option<Duration> {
        let mut found: Vec<(&str, &'a str, Duration)> = Vec::new();
        for header in headers {
            let values: Vec<&'a str> = self.headers.all(header.name()).collect();
            for value in values.into_iter().flat_map(listed) {
                if let Some(wait) = self.retry_wait(*header, value) {
                    found.push((header.name(), value, wait));
                }
            }
        }
        let (_, _, first) = *found.first()?;
        let longest = found.iter().map(|(_, _, wait)| *wait).max()?;
        for (name, value, _) in found.iter().filter(|(_, _, wait)| longest - *wait > SAME) {
            self.anomalies.add(name, value, AnomalyReason::Contradiction);
        }
        Some(if longest - first > SAME { longest } else { first })
    }

    fn retry_wait(&mut self, header: RetryHeader, value: &str) -> Option<Duration> {
        let name = header.name();
        let parsed = match header {
            RetryHeader::Millis(_) => number::millis(value),
            RetryHeader::Seconds(_) => match date::http(value) {
                Some(instant) => return self.until(name, value, instant),
                None => number::seconds(value),
            },
        };
        self.ok_or_anomaly(name, value, parsed)
    }
}

/// Splits the values of a repeated header that a proxy joined: `5, 90`. The comma of a date and
/// of a number with thousands separators does not split.
fn listed(value: &str) -> impl Iterator<Item = &str> {
    let is_list = value.starts_with(|c: char| c.is_ascii_digit())
        && number::decimal(value, 0) == Err(AnomalyReason::Unreadable);
    let mut parts = value.split(move |c| is_list && c == ',').map(str::trim);
    std::iter::from_fn(move || parts.find(|part| !part.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::anomaly::Anomaly;
    use crate::answer::Response;

    const NOW: u64 = 1_792_567_680_000;

    fn hint(headers: &[(&str, &str)]) -> (Option<f64>, Vec<Anomaly>) {
        let response = Response { status: 429, headers, body: b"", received: NOW };
        let mut reader = ResponseReader::new(&response);
        let wait = reader.retry_after(RetryHeader::COMMON).map(|wait| wait.as_secs_f64());
        (wait, reader.anomalies.into_vec())
    }

    #[test]
    fn what_retry_after_says() {
        for (value, expected, anomaly) in [
            ("17", Some(17.0), None),
            ("1.5", Some(1.5), None),
            ("0", Some(0.0), None),
            ("", None, None),
            ("-5", None, Some(AnomalyReason::Negative)),
            ("120s", None, Some(AnomalyReason::Unreadable)),
            ("soon", None, Some(AnomalyReason::Unreadable)),
            ("691201", None, Some(AnomalyReason::TooLong)),
            ("Wed, 21 Oct 2026 07:28:00 GMT", Some(0.0), None),
            ("Thu, 22 Oct 2099 07:28:00 GMT", None, Some(AnomalyReason::TooLong)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(0.0), Some(AnomalyReason::InThePast)),
        ] {
            let (wait, anomalies) = hint(&[("Retry-After", value)]);
            assert_eq!(wait, expected, "{value}");
            assert_eq!(anomalies.first().map(|anomaly| anomaly.why), anomaly, "{value}");
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
            let (wait, anomalies) = hint(&headers);
            assert_eq!(wait, Some(90.0), "{headers:?}");
            let shorter = |anomaly: &Anomaly| {
                anomaly.why == AnomalyReason::Contradiction && anomaly.value == "5"
            };
            assert!(anomalies.iter().any(shorter), "{anomalies:?}");
        }
    }
}
