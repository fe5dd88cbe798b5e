//! Instants and durations: integer microseconds on the clock of the store that stamps events.
//!
//! No function reads a clock. Arithmetic saturates, so that no event can cause an overflow.

use core::ops::{Add, Sub};

/// An instant on a store's clock, in microseconds since an origin that only that store knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// A duration in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Instant {
    /// An instant later than every stamp of a store.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the duration from `earlier` to this instant, or zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// The zero duration.
    pub const ZERO: Self = Self(0);

    /// Returns a duration of `n` microseconds.
    #[must_use]
    pub const fn micros(n: u64) -> Self {
        Self(n)
    }

    /// Returns a duration of `n` milliseconds.
    #[must_use]
    pub const fn millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// Returns a duration of `n` seconds.
    #[must_use]
    pub const fn secs(n: u64) -> Self {
        Self(n.saturating_mul(1_000_000))
    }
}

impl Add<Span> for Instant {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Instant {
    type Output = Self;

    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl Add for Span {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
