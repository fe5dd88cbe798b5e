//! The clock that stamps entries: the machine's boot-time clock plus an offset kept in the head.
//!
//! Stamps never depend on the wall clock while the machine runs. The boot-time clock does not jump,
//! counts while the machine sleeps, and is the same for all processes. A reboot resets it, so the
//! first process afterwards chooses a new offset: the wall clock shows how long the machine was
//! off, and if it went back, no time has passed. The reboot itself is handled in
//! [`crate::recovery`].

use std::sync::Arc;

use standpipe_core::{Instant, bounds};
use standpipe_store::{Clock, StoreError};

use crate::sys;

/// The clocks of a machine, real or simulated.
#[derive(Clone)]
pub struct Time {
    /// Microseconds since the machine booted.
    boot: Clock,
    /// Microseconds since 1970 by the wall clock.
    wall: Clock,
    /// Identifies this boot of the machine; [`UNKNOWN_BOOT`] where the system has no boot id.
    pub(crate) boot_id: u64,
    /// Stamps are the boot clock's own values, without an offset.
    raw: bool,
    /// By how many seconds a time namespace shifts the boot-time clock, if it does.
    shift: Option<i64>,
}

/// The last stamp of a pool and the wall clock at that moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastStamp {
    pub(crate) stamp: Instant,
    pub(crate) wall: u64,
    pub(crate) origin: ClockOrigin,
}

/// How a pool derives its stamps from the boot-time clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockOrigin {
    /// The boot of the machine that the offset is valid for.
    pub(crate) boot_id: u64,
    /// Added to the boot-time clock.
    pub(crate) offset: u64,
}

impl Time {
    /// Uses the machine's clocks.
    #[must_use]
    pub fn system() -> Self {
        Self {
            boot: Arc::new(|| Instant(sys::clock::boot_micros())),
            wall: Arc::new(|| Instant(sys::clock::wall_micros())),
            boot_id: sys::clock::boot_id(),
            raw: false,
            shift: sys::clock::boot_clock_shift(),
        }
    }

    /// Uses the clocks of a simulated machine.
    #[must_use]
    pub fn machine(boot: Clock, wall: Clock, boot_id: u64) -> Self {
        Self { boot, wall, boot_id, raw: false, shift: None }
    }

    /// Uses the values of one clock as stamps, for tests that control time.
    #[must_use]
    pub fn raw(clock: Clock) -> Self {
        Self { boot: clock.clone(), wall: clock, boot_id: 0, raw: true, shift: None }
    }

    /// Returns the same clocks in a time namespace that shifts the boot-time clock.
    #[must_use]
    pub fn shifted_by(self, seconds: i64) -> Self {
        Self { shift: Some(seconds), ..self }
    }

    /// Rejects a shifted boot-time clock. Its stamps would run ahead of those of other processes,
    /// and no time would pass on the pool until the others had caught up.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let Some(seconds) = self.shift else { return Ok(()) };
        Err(StoreError::unusable(format!(
            "this process runs in a time namespace whose boot-time clock is {seconds} s off the \
             machine's; start it in the machine's own time namespace, or use a daemon or Redis"
        )))
    }

    /// Whether the machine has not rebooted since a pool's last stamp.
    ///
    /// The boot id alone does not decide: a container can have its own, and a process without
    /// `/proc` has none. But the instant of the boot, wall clock minus boot-time clock, is the same
    /// for all processes of a machine.
    pub(crate) fn is_same_boot(&self, last: LastStamp) -> bool {
        let known = self.boot_id != UNKNOWN_BOOT;
        if self.raw || known && last.origin.boot_id == self.boot_id {
            return true;
        }
        if last.origin.boot_id == self.boot_id {
            return self.is_plausible(last);
        }
        let passed = i128::from(self.now(last.origin).0) - i128::from(last.stamp.0);
        let by_wall = i128::from(self.wall()) - i128::from(last.wall);
        (passed - by_wall).unsigned_abs() <= u128::from(TOLERANCE)
    }

    /// Whether this clock can have made a pool's last stamp: it is not behind it.
    pub(crate) fn is_plausible(&self, last: LastStamp) -> bool {
        self.now(last.origin).0.saturating_add(TOLERANCE) >= last.stamp.0
    }

    /// Whether a pool was unused for so long that the machine may have lost power meanwhile.
    pub(crate) fn was_idle(&self, last: LastStamp) -> bool {
        let now = self.now(last.origin).0;
        !self.raw && (now < last.stamp.0 || now - last.stamp.0 >= IDLE)
    }

    /// Returns the wall clock.
    pub(crate) fn wall(&self) -> u64 {
        (self.wall)().0
    }

    /// Returns the wall clock to store with a stamp, for the next reboot.
    ///
    /// A wall clock behind the stored one is ignored: at the reboot the difference would count as
    /// time in which the machine was off.
    pub(crate) fn wall_for(&self, stamp: Instant, last: LastStamp) -> u64 {
        self.wall().max(last.wall.saturating_add(stamp.0.saturating_sub(last.stamp.0)))
    }

    /// Returns the present time on a pool with that origin.
    pub(crate) fn now(&self, origin: ClockOrigin) -> Instant {
        Instant((self.boot)().0.saturating_add(origin.offset))
    }

    /// Returns the origin for a new pool.
    ///
    /// Its clock starts near the wall clock, which makes dumps readable, and never before
    /// `bounds::SPAN`: what a pool assumes after a loss of state is stamped up to one period back.
    pub(crate) fn origin_for_new_pool(&self) -> ClockOrigin {
        self.origin_at(Instant(self.wall().max(bounds::SPAN.0)))
    }

    /// Returns the origin after a reboot, for a pool whose last stamp was made when the wall clock
    /// showed `wall`.
    pub(crate) fn origin_after_reboot(&self, last: Instant, wall: u64) -> ClockOrigin {
        let off = self.wall().saturating_sub(wall);
        self.origin_at(Instant(last.0.saturating_add(off)))
    }

    /// Returns the origin by which the present time is `now`.
    pub(crate) fn origin_at(&self, now: Instant) -> ClockOrigin {
        if self.raw {
            return ClockOrigin::default();
        }
        ClockOrigin { boot_id: self.boot_id, offset: now.0.saturating_sub((self.boot)().0) }
    }
}

/// The boot id where the system has none.
const UNKNOWN_BOOT: u64 = 0;
/// How far two readings of the same clocks may differ, in microseconds: a process reads the wall
/// clock and the boot-time clock one after the other and can be interrupted in between.
const TOLERANCE: u64 = 2_000_000;
/// No machine reboots faster than this, in microseconds.
const IDLE: u64 = 10_000_000;

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
        let origin = time.origin_for_new_pool();
        let first = time.now(origin);
        wall.store(0, Ordering::Relaxed);
        assert_eq!(time.now(origin), first);
        wall.store(1 << 60, Ordering::Relaxed);
        boot.store(7, Ordering::Relaxed);
        assert_eq!(time.now(origin).0, first.0 + 2);
    }

    #[test]
    fn another_boot_id_is_no_restart_while_the_clocks_go_on() {
        let (boot, wall) = (Arc::new(AtomicU64::new(50 << 20)), Arc::new(AtomicU64::new(1 << 50)));
        let host = Time::machine(clock(&boot), clock(&wall), 1);
        let origin = host.origin_for_new_pool();
        let last = LastStamp { stamp: host.now(origin), wall: host.wall(), origin };
        let others = [2, UNKNOWN_BOOT].map(|id| Time::machine(clock(&boot), clock(&wall), id));
        boot.fetch_add(9 << 30, Ordering::Relaxed);
        wall.fetch_add(9 << 30, Ordering::Relaxed);
        assert!(others.iter().all(|time| time.is_same_boot(last)), "the same machine");
        wall.fetch_add(20_000_000, Ordering::Relaxed);
        assert!(host.is_same_boot(last), "its own boot id: the wall clock may jump");
        assert!(!others.iter().any(|time| time.is_same_boot(last)), "perhaps another machine");
        boot.store(5, Ordering::Relaxed);
        assert!(!others.iter().any(|time| time.is_same_boot(last)), "a restart");
    }

    #[test]
    fn without_a_boot_id_a_restart_shows_in_the_clock() {
        let (boot, wall) = (Arc::new(AtomicU64::new(50 << 20)), Arc::new(AtomicU64::new(1 << 50)));
        let time = Time::machine(clock(&boot), clock(&wall), UNKNOWN_BOOT);
        let origin = time.origin_for_new_pool();
        let last = LastStamp { stamp: time.now(origin), wall: time.wall(), origin };
        wall.fetch_add(60_000_000, Ordering::Relaxed);
        assert!(time.is_same_boot(last), "the wall clock may jump");
        boot.store(5, Ordering::Relaxed);
        assert!(!time.is_same_boot(last));
    }

    #[test]
    fn b49_over_a_restart_the_wall_clock_counts_but_never_backwards() {
        let (boot, wall) = (Arc::new(AtomicU64::new(3)), Arc::new(AtomicU64::new(1_000)));
        let time = Time::machine(clock(&boot), clock(&wall), 2);
        let last = Instant(bounds::SPAN.0 + 9);
        assert_eq!(time.now(time.origin_after_reboot(last, 400)).0, last.0 + 600);
        assert_eq!(time.now(time.origin_after_reboot(last, 5_000)), last);
    }
}
