//! The clock of the embedded store: time since the machine started, carried over restarts.
//!
//! Wall clocks jump; the boot-time clock does not, counts while the machine sleeps, and is the same
//! for all processes. A pool stamps with it plus an offset that is kept in the pool's head. After a
//! restart of the machine the offset is chosen anew: the wall clock tells how long the machine was
//! off, and if it went back, no time has passed.

use std::sync::Arc;

use standpipe_core::{Instant, bounds};
use standpipe_store::Clock;

use crate::sys;

/// The clocks of a machine, or of a test.
#[derive(Clone)]
pub struct Time {
    /// Microseconds since the machine started.
    boot: Clock,
    /// Microseconds since 1970, as the machine believes.
    wall: Clock,
    /// Which start of the machine this is.
    pub(crate) boot_id: u64,
    /// Stamps are the boot clock's own values.
    bare: bool,
}

/// How a pool's stamps follow from the boot-time clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Which start of the machine the offset is good for.
    pub(crate) boot_id: u64,
    /// What is added to the boot-time clock.
    pub(crate) offset: u64,
}

impl Time {
    /// The machine's clocks.
    #[must_use]
    pub fn system() -> Self {
        Self {
            boot: Arc::new(|| Instant(sys::boot_micros())),
            wall: Arc::new(|| Instant(sys::wall_micros())),
            boot_id: sys::boot_id(),
            bare: false,
        }
    }

    /// The clocks of a machine that a test makes up.
    #[must_use]
    pub fn machine(boot: Clock, wall: Clock, boot_id: u64) -> Self {
        Self { boot, wall, boot_id, bare: false }
    }

    /// One clock whose values are the stamps: for tests that own time.
    #[must_use]
    pub fn bare(clock: Clock) -> Self {
        Self { boot: clock.clone(), wall: clock, boot_id: 0, bare: true }
    }

    pub(crate) fn wall(&self) -> u64 {
        (self.wall)().0
    }

    /// The present on a pool of that origin.
    pub(crate) fn now(&self, origin: Origin) -> Instant {
        Instant((self.boot)().0.saturating_add(origin.offset))
    }

    /// For a new pool. Its clock begins near the wall clock, only so that a person who reads a dump
    /// has something to hold on to, and late enough for everything a loss of state assumes.
    pub(crate) fn first_origin(&self) -> Origin {
        self.origin_at(Instant(self.wall().max(bounds::SPAN.0)))
    }

    /// For a pool whose last stamp, made when the wall clock showed `wall`, is of an earlier start
    /// of the machine.
    pub(crate) fn carried(&self, last: Instant, wall: u64) -> Origin {
        let off = self.wall().saturating_sub(wall);
        self.origin_at(Instant(last.0.saturating_add(off)))
    }

    /// The origin that makes this the present.
    pub(crate) fn origin_at(&self, now: Instant) -> Origin {
        if self.bare {
            return Origin::default();
        }
        Origin { boot_id: self.boot_id, offset: now.0.saturating_sub((self.boot)().0) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn clock(value: &Arc<AtomicU64>) -> Clock {
        let value = Arc::clone(value);
        Arc::new(move || Instant(value.load(Ordering::Relaxed)))
    }

    #[test]
    fn b49_wall_clock_jumps_do_not_matter_while_the_machine_runs() {
        let (boot, wall) = (Arc::new(AtomicU64::new(5)), Arc::new(AtomicU64::new(1 << 50)));
        let time = Time::machine(clock(&boot), clock(&wall), 1);
        let origin = time.first_origin();
        let first = time.now(origin);
        wall.store(0, Ordering::Relaxed);
        assert_eq!(time.now(origin), first);
        wall.store(1 << 60, Ordering::Relaxed);
        boot.store(7, Ordering::Relaxed);
        assert_eq!(time.now(origin).0, first.0 + 2);
    }

    #[test]
    fn b49_over_a_restart_the_wall_clock_counts_but_never_backwards() {
        let (boot, wall) = (Arc::new(AtomicU64::new(3)), Arc::new(AtomicU64::new(1_000)));
        let time = Time::machine(clock(&boot), clock(&wall), 2);
        let last = Instant(bounds::SPAN.0 + 9);
        assert_eq!(time.now(time.carried(last, 400)).0, last.0 + 600);
        assert_eq!(time.now(time.carried(last, 5_000)), last);
    }
}
