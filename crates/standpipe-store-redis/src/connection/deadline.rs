//! When something must have ended, however many system calls it takes.

use std::time::{Duration, Instant};

/// The moment by which a call must return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Deadline(Instant);

impl From<Instant> for Deadline {
    fn from(at: Instant) -> Self {
        Self(at)
    }
}

impl Deadline {
    /// A deadline this long from now.
    pub(crate) fn within(bound: Duration) -> Self {
        Self(Instant::now() + bound)
    }

    /// The sooner of this deadline and `other`, if there is one.
    pub(crate) fn or_sooner(self, other: Option<Instant>) -> Self {
        Self(other.map_or(self.0, |other| other.min(self.0)))
    }

    /// The sooner of this deadline and one `bound` from now.
    pub(crate) fn or_within(self, bound: Duration) -> Self {
        Self(self.0.min(Instant::now() + bound))
    }

    /// The sooner of this deadline and one after this fraction of the time that is left.
    pub(crate) fn share(self, parts: usize) -> Self {
        let parts = u32::try_from(parts.max(1)).unwrap_or(u32::MAX);
        self.or_within(self.0.saturating_duration_since(Instant::now()) / parts)
    }

    /// Returns how much time is left, or `None` if the deadline has passed.
    pub(crate) fn remaining(self) -> Option<Duration> {
        let left = self.0.checked_duration_since(Instant::now())?;
        (!left.is_zero()).then_some(left)
    }

    /// Returns the moment itself.
    pub(crate) const fn at(self) -> Instant {
        self.0
    }
}
