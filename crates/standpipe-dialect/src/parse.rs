//! Parsers for the values in headers and bodies: numbers, durations, dates, JSON.
//!
//! They take text and return a value or the [`AnomalyReason`](crate::AnomalyReason) for which it is
//! rejected. None of them panics or reads a clock.

pub(crate) mod borrowed;
pub(crate) mod date;
pub(crate) mod duration;
pub(crate) mod json;
pub(crate) mod number;
