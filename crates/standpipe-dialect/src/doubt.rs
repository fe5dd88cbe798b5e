//! What was said and not believed, for the journal.

use std::fmt;

use crate::bounds;
use crate::message;

/// Something an answer said that was left out of account, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The header or the field of the body.
    pub what: String,
    /// What it said, shortened.
    pub value: String,
    /// Why it was not believed.
    pub why: Why,
}

/// Why something was not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// It is not what this header or field should be.
    Unreadable,
    /// It is below zero.
    Negative,
    /// A limit of nothing.
    Zero,
    /// It is beyond any figure that is known.
    TooLarge,
    /// It is further ahead than eight days.
    TooLong,
    /// It passed more than eight days ago.
    InThePast,
    /// Something else in the same answer says otherwise.
    Contradiction,
    /// More remains than the limit allows.
    MoreThanLimit,
    /// The answer's date is days away from the time it was received.
    FarFromNow,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "it cannot be read",
            Self::Negative => "it is below zero",
            Self::Zero => "a limit of nothing would let nobody through",
            Self::TooLarge => "it is larger than any limit there is",
            Self::TooLong => "it is more than 8 days ahead",
            Self::InThePast => "it passed more than 8 days ago",
            Self::Contradiction => "something else in the answer says otherwise",
            Self::MoreThanLimit => "more remains than the limit allows",
            Self::FarFromNow => "it is more than 2 days from the time the answer came",
        })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} says `{}`: {}", self.what, self.value, self.why)
    }
}

/// The doubts of one answer; no more than a bound.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Vec<Doubt>);

impl Doubts {
    pub(crate) fn add(&mut self, what: &str, value: &str, why: Why) {
        if self.0.len() == bounds::DOUBTS {
            return;
        }
        let what = message::scrubbed(what, bounds::SHORT);
        let value = message::scrubbed(value, bounds::SHORT);
        let doubt = Doubt { what, value, why };
        // A header may be looked at more than once.
        if !self.0.contains(&doubt) {
            self.0.push(doubt);
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Doubt> {
        self.0
    }
}
