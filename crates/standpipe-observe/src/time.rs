//! Instants and lengths of time as people and files have them.

mod clocks;
mod length;
mod timestamp;

pub use self::clocks::Now;
pub use self::length::{format_ms, format_span, format_wait, micros, span};
pub use self::timestamp::{InvalidTimestamp, Timestamp};
