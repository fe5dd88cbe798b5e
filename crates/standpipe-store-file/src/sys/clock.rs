//! The machine's clocks and its boot id.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use standpipe_store::hash;

/// Returns the microseconds since the machine booted, including time asleep.
pub(crate) fn boot_micros() -> u64 {
    #[cfg(target_os = "linux")]
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    #[cfg(not(target_os = "linux"))]
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000)
        .saturating_add(u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000)
}

/// Returns the microseconds since 1970 by the wall clock.
pub(crate) fn wall_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// Returns a hash of the kernel's boot id, or zero where the system has none.
pub(crate) fn boot_id() -> u64 {
    let id = fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if id.is_empty() { 0 } else { hash(1, &id) }
}

/// Returns by how many seconds this process's boot-time clock differs from the machine's.
///
/// `None` outside a time namespace, and where the system does not report the offset.
pub(crate) fn boot_clock_shift() -> Option<i64> {
    let own = fs::read_link("/proc/self/ns/time").ok()?;
    // `timens_offsets` describes the namespace of future children, which is this process's own
    // only if the two links agree.
    let is_own = fs::read_link("/proc/self/ns/time_for_children").ok()? == own;
    let offsets = fs::read_to_string("/proc/self/timens_offsets").ok().filter(|_| is_own)?;
    parse_boot_shift(&offsets)
}

fn parse_boot_shift(offsets: &str) -> Option<i64> {
    let boot = offsets.lines().find_map(|line| line.strip_prefix("boottime"))?;
    let mut words = boot.split_ascii_whitespace();
    let (seconds, nanos): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (seconds != 0 || nanos.abs() > 1_000_000).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shifted_clock_is_recognised() {
        assert_eq!(
            parse_boot_shift("monotonic           0         0\nboottime            0         0\n"),
            None
        );
        assert_eq!(parse_boot_shift("monotonic  0 0\nboottime  86400  0\n"), Some(86_400));
        assert_eq!(parse_boot_shift("monotonic  0 0\nboottime  -60  0\n"), Some(-60));
        assert_eq!(parse_boot_shift("monotonic  7 0\n"), None);
    }
}
