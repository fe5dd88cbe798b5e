//! Values that a response states and the reader rejects, for the journal.

use std::fmt;

use crate::bounds;
use crate::text::redact;

/// A value that a response states and the reader ignores, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// The header or the field of the body.
    pub what: String,
    /// The rejected value, shortened.
    pub value: String,
    /// Why the reader rejected it.
    pub why: AnomalyReason,
}

/// Why the reader rejects a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnomalyReason {
    /// It does not have the syntax of this header or field.
    Unreadable,
    /// It is negative.
    Negative,
    /// It is a limit of zero.
    Zero,
    /// It is larger than any known limit.
    TooLarge,
    /// It is more than eight days ahead.
    TooLong,
    /// It is more than eight days in the past.
    InThePast,
    /// Another value in the same response contradicts it.
    Contradiction,
    /// More remains than the limit allows.
    MoreThanLimit,
    /// The `date` of the response is days away from the time it was received.
    FarFromNow,
}

impl fmt::Display for AnomalyReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "it cannot be parsed",
            Self::Negative => "it is negative",
            Self::Zero => "a limit of 0 would admit nothing",
            Self::TooLarge => "it is larger than any known limit",
            Self::TooLong => "it is more than 8 days ahead",
            Self::InThePast => "it is more than 8 days in the past",
            Self::Contradiction => "another value in the same response contradicts it",
            Self::MoreThanLimit => "more remains than the limit allows",
            Self::FarFromNow => "it is more than 2 days from the local clock",
        })
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} says `{}`: {}", self.what, self.value, self.why)
    }
}

/// The anomalies about one response: no duplicates, at most [`bounds::ANOMALIES`].
#[derive(Debug, Default)]
pub(crate) struct Anomalies(Vec<Anomaly>);

impl Anomalies {
    pub(crate) fn add(&mut self, what: &str, value: &str, why: AnomalyReason) {
        if self.0.len() == bounds::ANOMALIES {
            return;
        }
        let what = redact(what, bounds::SHORT);
        let value = redact(value, bounds::SHORT);
        let anomaly = Anomaly { what, value, why };
        // The reader may read the same header several times.
        if !self.0.contains(&anomaly) {
            self.0.push(anomaly);
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Anomaly> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anomalies_are_bounded() {
        let mut anomalies = Anomalies::default();
        (0..100).for_each(|n| anomalies.add("a", &n.to_string(), AnomalyReason::Unreadable));
        assert_eq!(anomalies.into_vec().len(), bounds::ANOMALIES);
    }
}
