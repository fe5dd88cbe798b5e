//! Time as integers we own: microseconds on the clock of the store that stamped an event.
//!
//! Nothing here reads a clock. Arithmetic saturates, so that no event, however odd, overflows.

use core::ops::{Add, Sub};

/// A moment on a store's clock, in microseconds since an origin only that store knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Instant {
    /// Later than every instant a store can stamp.
    pub const NEVER: Self = Self(u64::MAX);

    /// How long after `earlier` this is; nothing if it is before it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many microseconds.
    #[must_use]
    pub const fn micros(n: u64) -> Self {
        Self(n)
    }

    /// So many milliseconds.
    #[must_use]
    pub const fn millis(n: u64) -> Self {
        Self(n.saturating_mul(1_000))
    }

    /// So many seconds.
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
