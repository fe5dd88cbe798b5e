//! The common shape of limit headers, as rows of a table: a limit, what remains, when it resets.
//!
//! A row says how the three names are made up, what is counted, and how the reset is written.

use std::borrow::Cow;
use std::time::Duration;

use crate::answer::{LimitSeen, ResetMeans};
use crate::bounds;
use crate::date;
use crate::doubt::Why;
use crate::duration;
use crate::message;
use crate::number;
use crate::reading::Reading;

/// Headers of one limit: `before` + `limit`, `remaining` or `reset` + `after`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    before: &'static str,
    after: &'static str,
    reset: &'static str,
    unit: &'static str,
    clock: Clock,
    means: ResetMeans,
    period: Option<Duration>,
    coarse: u64,
    name: Option<&'static str>,
    name_header: Option<&'static str>,
    minus_is_unknown: bool,
}

/// How a reset is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// A moment as `2025-08-21T12:40:59Z`.
    Rfc3339,
    /// A length as `6m0s`.
    Go,
    /// Seconds, with decimals.
    Seconds,
    /// A moment as seconds since 1970.
    Epoch,
    /// Nobody says: whichever of these it looks like.
    Guess,
}

/// Fewer seconds than this are a length; a moment so early is long past.
const GUESS_LENGTH: u128 = 30 * 86_400;
/// More than this is in milliseconds; as seconds it would be thousands of years ahead.
const GUESS_MILLIS: u128 = 100_000_000_000;

impl Row {
    pub(crate) const fn new(
        before: &'static str,
        after: &'static str,
        unit: &'static str,
        clock: Clock,
    ) -> Self {
        Self {
            before,
            after,
            reset: "reset",
            unit,
            clock,
            means: ResetMeans::Unknown,
            period: None,
            coarse: 1,
            name: None,
            name_header: None,
            minus_is_unknown: false,
        }
    }

    pub(crate) const fn per(self, seconds: u64) -> Self {
        Self { period: Some(Duration::from_secs(seconds)), ..self }
    }

    pub(crate) const fn means(self, means: ResetMeans) -> Self {
        Self { means, ..self }
    }

    pub(crate) const fn coarse(self, coarse: u64) -> Self {
        Self { coarse, ..self }
    }

    pub(crate) const fn named(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    pub(crate) const fn named_by(self, header: &'static str) -> Self {
        Self { name_header: Some(header), ..self }
    }

    pub(crate) const fn reset_by(self, reset: &'static str) -> Self {
        Self { reset, ..self }
    }

    pub(crate) const fn minus_is_unknown(self) -> Self {
        Self { minus_is_unknown: true, ..self }
    }
}

impl Reading<'_> {
    /// Takes every limit that these rows find.
    pub(crate) fn see_rows(&mut self, rows: &[Row]) {
        for row in rows {
            if let Some(seen) = self.row(row) {
                self.see(&format!("{}*{}", row.before, row.after), seen);
            }
        }
    }

    /// What one row finds.
    pub(crate) fn row(&mut self, row: &Row) -> Option<LimitSeen> {
        let values = |part| self.headers.parts(row.before, part, row.after);
        let said: Vec<&str> = values("limit").chain(values("remaining")).collect();
        let is_unknown = row.minus_is_unknown && said.iter().any(|value| value.starts_with('-'));
        if said.is_empty() || is_unknown {
            return None;
        }
        let named = row.name_header.and_then(|name| self.headers.first(name));
        let named = named.map(|name| message::scrubbed(name, bounds::SHORT));
        Some(LimitSeen {
            unit: Cow::Borrowed(row.unit),
            period: row.period,
            limit: self.figure(row, "limit"),
            remaining: self.figure(row, "remaining"),
            coarse: row.coarse,
            reset_in: self.reset(row),
            reset: row.means,
            utilization: None,
            name: named.or_else(|| row.name.map(str::to_owned)),
        })
    }

    /// The least of what a header says, should it be there more than once.
    fn figure(&mut self, row: &Row, part: &str) -> Option<u64> {
        let values = self.headers.parts(row.before, part, row.after);
        let read: Vec<_> = values.map(|value| (value, number::figure(value))).collect();
        let name = format!("{}{part}{}", row.before, row.after);
        self.agreed(&name, read, |new, old| new < old)
    }

    /// The longest of what a header says, should it be there more than once.
    fn reset(&mut self, row: &Row) -> Option<Duration> {
        let values: Vec<&str> = self.headers.parts(row.before, row.reset, row.after).collect();
        let name = format!("{}{}{}", row.before, row.reset, row.after);
        let mut found = Vec::new();
        for value in values {
            if row.minus_is_unknown && value.starts_with('-') {
                continue;
            }
            let length = match row.clock.read(value) {
                Ok(When::In(length)) => Ok(length),
                Ok(When::At(moment)) => match self.until(&name, value, moment) {
                    Some(length) => Ok(length),
                    None => continue,
                },
                Err(why) => Err(why),
            };
            found.push((value, length));
        }
        self.agreed(&name, found, |new, old| new > old)
    }

    /// One of several values of the same header; a doubt if they differ.
    fn agreed<T: Copy + PartialEq>(
        &mut self,
        name: &str,
        values: Vec<(&str, Result<T, Why>)>,
        better: impl Fn(T, T) -> bool,
    ) -> Option<T> {
        let mut best: Option<(&str, T)> = None;
        for (value, read) in values {
            let Some(new) = self.believe(name, value, read) else { continue };
            match best {
                Some((_, old)) if new == old => {}
                Some((said, old)) => {
                    let won = better(new, old);
                    self.doubts.add(name, if won { said } else { value }, Why::Contradiction);
                    best = if won { Some((value, new)) } else { best };
                }
                None => best = Some((value, new)),
            }
        }
        best.map(|(_, value)| value)
    }
}

/// A reset, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    In(Duration),
    At(i64),
}

impl Clock {
    pub(crate) fn read(self, text: &str) -> Result<When, Why> {
        match self {
            Self::Rfc3339 => date::rfc3339(text).map(When::At).ok_or(Why::Unreadable),
            Self::Go => duration::go(text).map(When::In),
            Self::Seconds => number::seconds(text).map(When::In),
            Self::Epoch => date::epoch(text).map(When::At),
            Self::Guess => guess(text),
        }
    }
}

fn guess(text: &str) -> Result<When, Why> {
    match number::scaled(text, 0) {
        Ok(value) if value < GUESS_LENGTH => number::seconds(text).map(When::In),
        Ok(value) if value > GUESS_MILLIS => {
            i64::try_from(value).map(When::At).map_err(|_| Why::TooLong)
        }
        Ok(_) => date::epoch(text).map(When::At),
        Err(Why::Unreadable) => match date::rfc3339(text).or_else(|| date::http(text)) {
            Some(moment) => Ok(When::At(moment)),
            None => duration::go(text).map(When::In),
        },
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlabelled_reset_is_what_it_looks_like() {
        let seconds = |s| Ok(When::In(Duration::from_secs(s)));
        assert_eq!(guess("60"), seconds(60));
        assert_eq!(guess("6m0s"), seconds(360));
        assert_eq!(guess("1731700000"), Ok(When::At(1_731_700_000_000)));
        assert_eq!(guess("1470173023.123"), Ok(When::At(1_470_173_023_123)));
        assert_eq!(guess("1731700000000"), Ok(When::At(1_731_700_000_000)));
        assert_eq!(guess("2024-11-15T19:46:40Z"), Ok(When::At(1_731_700_000_000)));
        assert_eq!(guess("-1"), Err(Why::Negative));
        assert_eq!(guess("tomorrow"), Err(Why::Unreadable));
    }
}
