//! [`LimitHeaders`]: the common shape of limit headers as data, and how they are read.
//!
//! Most providers send three headers per limit: the limit, what remains, and when it resets. A
//! row states how the three names are built, what the limit counts, and the format of the reset.

use std::borrow::Cow;
use std::time::Duration;

use crate::anomaly::AnomalyReason;
use crate::answer::{LimitSeen, ResetMeans};
use crate::bounds;
use crate::parse::{date, duration, number};
use crate::reader::ResponseReader;
use crate::text::redact;

/// The headers of one limit: `prefix` + (`limit` | `remaining` | `reset`) + `suffix`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LimitHeaders {
    prefix: &'static str,
    suffix: &'static str,
    reset_part: &'static str,
    unit: &'static str,
    reset_format: ResetFormat,
    reset_means: ResetMeans,
    period: Option<Duration>,
    coarse: u64,
    name: Option<&'static str>,
    name_header: Option<&'static str>,
    negative_is_unknown: bool,
}

/// How a reset is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResetFormat {
    /// An instant, `2025-08-21T12:40:59Z`.
    Rfc3339,
    /// A duration, `6m0s`.
    GoDuration,
    /// A duration in seconds, with decimals.
    Seconds,
    /// An instant, in seconds since 1970.
    EpochSeconds,
    /// Undocumented: whichever of the others it looks like.
    Guess,
}

/// A reset as the header states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    After(Duration),
    /// Milliseconds since 1970.
    At(i64),
}

/// A guessed number below this is a duration in seconds: as an instant it is in January 1970.
const GUESS_DURATION: u128 = 30 * 86_400;
/// A guessed number above this is in milliseconds: as seconds it is thousands of years ahead.
const GUESS_MILLIS: u128 = 100_000_000_000;

impl LimitHeaders {
    pub(crate) const fn new(
        prefix: &'static str,
        suffix: &'static str,
        unit: &'static str,
        reset_format: ResetFormat,
    ) -> Self {
        Self {
            prefix,
            suffix,
            reset_part: "reset",
            unit,
            reset_format,
            reset_means: ResetMeans::Unknown,
            period: None,
            coarse: 1,
            name: None,
            name_header: None,
            negative_is_unknown: false,
        }
    }

    /// The period of the limit.
    pub(crate) const fn per_seconds(self, seconds: u64) -> Self {
        Self { period: Some(Duration::from_secs(seconds)), ..self }
    }

    pub(crate) const fn reset_means(self, reset_means: ResetMeans) -> Self {
        Self { reset_means, ..self }
    }

    /// The step that the provider rounds `remaining` to.
    pub(crate) const fn rounded_to(self, coarse: u64) -> Self {
        Self { coarse, ..self }
    }

    pub(crate) const fn named(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// The header whose value names the limit.
    pub(crate) const fn name_header(self, header: &'static str) -> Self {
        Self { name_header: Some(header), ..self }
    }

    /// What the header has in place of `reset`.
    pub(crate) const fn reset_part(self, reset_part: &'static str) -> Self {
        Self { reset_part, ..self }
    }

    /// The provider sends -1 for an unknown amount: not an error, and not worth an anomaly.
    pub(crate) const fn negative_is_unknown(self) -> Self {
        Self { negative_is_unknown: true, ..self }
    }
}

impl ResponseReader<'_> {
    /// Adds every limit that these headers state.
    pub(crate) fn read_limit_headers(&mut self, rows: &[LimitHeaders]) {
        for row in rows {
            if let Some(seen) = self.limit_of(row) {
                self.add_limit(&format!("{}*{}", row.prefix, row.suffix), seen);
            }
        }
    }

    /// The limit that these headers state.
    pub(crate) fn limit_of(&mut self, row: &LimitHeaders) -> Option<LimitSeen> {
        let values = |part| self.headers.all_joined([row.prefix, part, row.suffix]);
        let amounts: Vec<&str> = values("limit").chain(values("remaining")).collect();
        let is_unknown =
            row.negative_is_unknown && amounts.iter().any(|value| value.starts_with('-'));
        if amounts.is_empty() || is_unknown {
            return None;
        }
        let name = row.name_header.and_then(|name| self.headers.first(name));
        let name = name.map(|name| redact(name, bounds::SHORT));
        Some(LimitSeen {
            unit: Cow::Borrowed(row.unit),
            period: row.period,
            limit: self.amount_of(row, "limit"),
            remaining: self.amount_of(row, "remaining"),
            coarse: row.coarse,
            reset_in: self.reset_of(row),
            reset: row.reset_means,
            utilization: None,
            name: name.or_else(|| row.name.map(str::to_owned)),
        })
    }

    /// An amount; the smallest if the header is repeated.
    fn amount_of(&mut self, row: &LimitHeaders, part: &str) -> Option<u64> {
        let values = self.headers.all_joined([row.prefix, part, row.suffix]);
        let parsed: Vec<_> = values.map(|value| (value, number::amount(value))).collect();
        let name = format!("{}{part}{}", row.prefix, row.suffix);
        self.safest(&name, parsed, |new, old| new < old)
    }

    /// The time until the reset; the longest if the header is repeated.
    fn reset_of(&mut self, row: &LimitHeaders) -> Option<Duration> {
        let parts = [row.prefix, row.reset_part, row.suffix];
        let values: Vec<&str> = self.headers.all_joined(parts).collect();
        let name = parts.concat();
        let mut parsed = Vec::new();
        for value in values {
            if row.negative_is_unknown && value.starts_with('-') {
                continue;
            }
            let wait = match row.reset_format.parse(value) {
                Ok(Reset::After(wait)) => Ok(wait),
                Ok(Reset::At(instant)) => match self.until(&name, value, instant) {
                    Some(wait) => Ok(wait),
                    None => continue,
                },
                Err(why) => Err(why),
            };
            parsed.push((value, wait));
        }
        self.safest(&name, parsed, |new, old| new > old)
    }

    /// The safest of several values of the same header; the others become anomalies.
    fn safest<T: Copy + PartialEq>(
        &mut self,
        name: &str,
        values: Vec<(&str, Result<T, AnomalyReason>)>,
        is_safer: impl Fn(T, T) -> bool,
    ) -> Option<T> {
        let mut best: Option<(&str, T)> = None;
        for (value, parsed) in values {
            let Some(new) = self.ok_or_anomaly(name, value, parsed) else { continue };
            match best {
                Some((_, old)) if new == old => {}
                Some((old_value, old)) => {
                    let wins = is_safer(new, old);
                    let loser = if wins { old_value } else { value };
                    self.anomalies.add(name, loser, AnomalyReason::Contradiction);
                    best = if wins { Some((value, new)) } else { best };
                }
                None => best = Some((value, new)),
            }
        }
        best.map(|(_, value)| value)
    }
}

impl ResetFormat {
    pub(crate) fn parse(self, text: &str) -> Result<Reset, AnomalyReason> {
        match self {
            Self::Rfc3339 => date::rfc3339(text).map(Reset::At).ok_or(AnomalyReason::Unreadable),
            Self::GoDuration => duration::parse(text).map(Reset::After),
            Self::Seconds => number::seconds(text).map(Reset::After),
            Self::EpochSeconds => date::epoch(text).map(Reset::At),
            Self::Guess => guess(text),
        }
    }
}

fn guess(text: &str) -> Result<Reset, AnomalyReason> {
    match number::decimal(text, 0) {
        Ok(value) if value < GUESS_DURATION => number::seconds(text).map(Reset::After),
        Ok(value) if value > GUESS_MILLIS => {
            i64::try_from(value).map(Reset::At).map_err(|_| AnomalyReason::TooLong)
        }
        Ok(_) => date::epoch(text).map(Reset::At),
        Err(AnomalyReason::Unreadable) => match date::rfc3339(text).or_else(|| date::http(text)) {
            Some(instant) => Ok(Reset::At(instant)),
            None => duration::parse(text).map(Reset::After),
        },
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlabelled_reset_is_what_it_looks_like() {
        let seconds = |s| Ok(Reset::After(Duration::from_secs(s)));
        assert_eq!(guess("60"), seconds(60));
        assert_eq!(guess("6m0s"), seconds(360));
        assert_eq!(guess("1731700000"), Ok(Reset::At(1_731_700_000_000)));
        assert_eq!(guess("1470173023.123"), Ok(Reset::At(1_470_173_023_123)));
        assert_eq!(guess("1731700000000"), Ok(Reset::At(1_731_700_000_000)));
        assert_eq!(guess("2024-11-15T19:46:40Z"), Ok(Reset::At(1_731_700_000_000)));
        assert_eq!(guess("-1"), Err(AnomalyReason::Negative));
        assert_eq!(guess("tomorrow"), Err(AnomalyReason::Unreadable));
    }
}
