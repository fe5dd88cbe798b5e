//! The arithmetic of a rolling window: charged units count for one period.
//!
//! Few entries are kept exactly. Beyond that, new entries are merged per slice of the period and
//! stamped with the slice's end, so an entry expires at most one slice late and never early.
//! `usage/counter.rs` uses the window as one way to count.
//!
//! Invariant: stamps strictly ascend, `used` is the sum of all entries, and each chunk sum is the
//! sum of its entries.

use alloc::collections::VecDeque;

use crate::bounds;
use crate::time::{Instant, Span};

/// The units charged in a rolling period.
#[derive(Clone, Debug)]
pub struct Window {
    /// The entries, oldest first.
    entries: VecDeque<WindowEntry>,
    used: u64,
    grain: Grain,
    /// The sums of [`CHUNK`] entries each, so that [`Window::falls_to`] can skip whole chunks.
    chunks: VecDeque<u64>,
    /// The entries of the first chunk that have expired. Chunk boundaries stay where they are when
    /// entries expire, so the first chunk may be partial.
    expired_in_chunk: usize,
}

/// The largest sum of a window. It only bounds absurd debt, and keeps sums far from overflow.
const MAX_UNITS: u64 = 1 << 62;

/// The number of entries in a chunk: about the square root of the largest number of entries.
const CHUNK: usize = 32;

/// Units that expire together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowEntry {
    /// The instant from which they count for one period.
    pub stamp: Instant,
    /// The number of units.
    pub units: u64,
}

/// The resolution of a window: how many entries it keeps exactly, and its slices per period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// The resolution of a pool's limit.
    Limit,
    /// The resolution of an agent's usage counter.
    Agent,
    /// The resolution of an agent's history, of which there are most.
    Coarse,
}

impl Window {
    /// Creates an empty window.
    #[must_use]
    pub const fn new(grain: Grain) -> Self {
        Self {
            entries: VecDeque::new(),
            used: 0,
            grain,
            chunks: VecDeque::new(),
            expired_in_chunk: 0,
        }
    }

    /// Restores a window from a snapshot's entries, or returns `None` if they break the invariant.
    #[must_use]
    pub fn of(grain: Grain, entries: impl IntoIterator<Item = WindowEntry>) -> Option<Self> {
        let mut window = Self::new(grain);
        for entry in entries {
            let ascends = window.entries.back().is_none_or(|last| last.stamp < entry.stamp);
            let fits = entry.units <= MAX_UNITS - window.used;
            if !ascends || !fits || window.entries.len() == grain.max_entries() {
                return None;
            }
            window.push(entry);
        }
        Some(window)
    }

    /// Returns the resolution.
    #[must_use]
    pub const fn grain(&self) -> Grain {
        self.grain
    }

    /// Returns all entries, oldest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = WindowEntry> + Clone {
        self.entries.iter().copied()
    }

    /// Charges units now and returns the stamp that [`Window::refund`] needs.
    pub(crate) fn charge(&mut self, now: Instant, units: u64, period: Span) -> Instant {
        let stamp = if self.entries.len() < self.grain.exact_entries() {
            now
        } else {
            slice_end(now, period, self.grain.slices())
        };
        let units = units.min(MAX_UNITS - self.used);
        if units == 0 {
            return stamp;
        }
        let full = self.entries.len() >= self.grain.max_entries();
        match self.entries.back_mut() {
            // Same instant or same slice: merge into the last entry. Moving units to a later stamp
            // is safe, an earlier one would free them too soon. The window is full only if periods
            // are reconfigured over and over; then the last entry's stamp moves, and its earlier
            // charges can no longer be refunded.
            Some(last) if last.stamp >= stamp || full => {
                last.stamp = last.stamp.max(stamp);
                last.units += units;
                let stamp = last.stamp;
                self.used += units;
                if let Some(chunk) = self.chunks.back_mut() {
                    *chunk += units;
                }
                stamp
            }
            _ => {
                self.push(WindowEntry { stamp, units });
                stamp
            }
        }
    }

    /// Returns units to the entry they were charged to, and how many those were. Once that entry
    /// has expired, there is nothing to return.
    pub(crate) fn refund(&mut self, stamp: Instant, units: u64) -> u64 {
        let Ok(at) = self.entries.binary_search_by(|entry| entry.stamp.cmp(&stamp)) else {
            return 0;
        };
        let refunded = units.min(self.entries[at].units);
        self.entries[at].units -= refunded;
        self.used -= refunded;
        let chunk = self.chunk_of(at);
        self.chunks[chunk] -= refunded;
        refunded
    }

    /// Removes the entries that no longer count.
    pub(crate) fn expire(&mut self, now: Instant, period: Span) {
        while let Some(first) = self.entries.front() {
            if now < first.stamp + period {
                break;
            }
            self.pop_first();
        }
    }

    /// The units that count at an instant.
    pub(crate) fn used_at(&self, now: Instant, period: Span) -> u64 {
        let is_expired = |entry: &&WindowEntry| now >= entry.stamp + period;
        if self.entries.back().is_none_or(|last| is_expired(&last)) {
            return 0;
        }
        let expired = self.entries.iter().take_while(is_expired);
        self.used - expired.map(|entry| entry.units).sum::<u64>()
    }

    /// The units charged since an instant.
    pub(crate) fn charged_since(&self, since: Instant) -> u64 {
        let recent = self.entries.iter().rev().take_while(|entry| entry.stamp >= since);
        recent.map(|entry| entry.units).sum()
    }

    /// The next instant at which units expire.
    pub(crate) fn next_ageing(&self, period: Span) -> Option<Instant> {
        self.entries.iter().find(|entry| entry.units > 0).map(|entry| entry.stamp + period)
    }

    /// The first instant from `from` on at which at most `allowed` units count.
    pub(crate) fn falls_to(&self, allowed: u64, from: Instant, period: Span) -> Instant {
        let mut used = self.used;
        let mut at = 0;
        // Skip a whole chunk while even its expiry leaves too many units.
        for chunk in &self.chunks {
            let after = self.first_after_chunk(at);
            if used - chunk <= allowed {
                break;
            }
            used -= chunk;
            at = after;
        }
        let mut reached = from;
        if let Some(last) = at.checked_sub(1).and_then(|last| self.entries.get(last)) {
            reached = reached.max(last.stamp + period);
        }
        for entry in self.entries.range(at..) {
            if used <= allowed {
                break;
            }
            used -= entry.units;
            reached = reached.max(entry.stamp + period);
        }
        reached
    }

    /// Restarts the window at the provider's reset: removes older entries, except for `carried`
    /// units of calls that were in flight then and may count in the new window.
    pub(crate) fn restart(&mut self, began: Instant, carried: u64) {
        while self.entries.front().is_some_and(|first| first.stamp < began) {
            self.pop_first();
        }
        let carried = (carried > 0).then_some(WindowEntry { stamp: began, units: carried });
        let later: VecDeque<WindowEntry> = core::mem::take(&mut self.entries);
        *self = Self::new(self.grain);
        for entry in carried.into_iter().chain(later) {
            match self.entries.back_mut() {
                // Only the carried entry can have the stamp of a later one, so this is chunk 0.
                Some(first) if first.stamp == entry.stamp => {
                    first.units += entry.units;
                    self.used += entry.units;
                    self.chunks[0] += entry.units;
                }
                _ => self.push(entry),
            }
        }
    }

    /// Assumes that `amount` units were charged evenly over the last period, because the real
    /// charges are lost.
    pub(crate) fn assume_full(&mut self, now: Instant, amount: u64, period: Span) {
        *self = Self::new(self.grain);
        let slices = self.grain.slices();
        for slice in 1..=slices {
            // Cumulative shares, so that rounding loses no unit.
            let up_to = |n: u64| crate::config::mul_div(amount, n, slices);
            let units = up_to(slice) - up_to(slice - 1);
            let expires = now + Span(crate::config::mul_div(period.0, slice, slices));
            let stamp = expires - period;
            // Shortly after the origin of a store's clock, the first stamps saturate at zero. Those
            // slices are merged and expire late, which is safe.
            if self.entries.back().is_some_and(|last| last.stamp >= stamp) {
                self.charge(stamp, units, period);
            } else if units > 0 {
                self.push(WindowEntry { stamp, units });
            }
        }
    }

    fn push(&mut self, entry: WindowEntry) {
        if (self.expired_in_chunk + self.entries.len()).is_multiple_of(CHUNK) {
            self.chunks.push_back(0);
        }
        if let Some(chunk) = self.chunks.back_mut() {
            *chunk += entry.units;
        }
        self.used += entry.units;
        self.entries.push_back(entry);
    }

    fn pop_first(&mut self) {
        let Some(first) = self.entries.pop_front() else { return };
        self.used -= first.units;
        self.chunks[0] -= first.units;
        self.expired_in_chunk = (self.expired_in_chunk + 1) % CHUNK;
        if self.expired_in_chunk == 0 || self.entries.is_empty() {
            self.chunks.pop_front();
            self.expired_in_chunk = if self.entries.is_empty() { 0 } else { self.expired_in_chunk };
        }
    }

    /// The chunk of the entry at an index.
    const fn chunk_of(&self, at: usize) -> usize {
        (self.expired_in_chunk + at) / CHUNK
    }

    /// The index of the first entry after the chunk of the entry at an index.
    const fn first_after_chunk(&self, at: usize) -> usize {
        (self.chunk_of(at) + 1) * CHUNK - self.expired_in_chunk
    }
}

// Chunks are an index over the entries. Their boundaries depend on what expired before, so two
// replicas, one of them restored from a snapshot, may differ in them.
impl PartialEq for Window {
    fn eq(&self, other: &Self) -> bool {
        self.grain == other.grain && self.entries == other.entries
    }
}

impl Eq for Window {}

impl Grain {
    const fn exact_entries(self) -> usize {
        match self {
            Self::Limit => bounds::WINDOW_EXACT,
            Self::Agent => bounds::AGENT_EXACT,
            Self::Coarse => bounds::COARSE_EXACT,
        }
    }

    const fn slices(self) -> u64 {
        match self {
            Self::Limit => bounds::WINDOW_SLICES,
            Self::Agent => bounds::AGENT_SLICES,
            Self::Coarse => bounds::COARSE_SLICES,
        }
    }

    /// The exact entries, and one per live slice. Twice the slices, because a reconfigured slack
    /// moves the slice grid while entries of the old grid are still alive.
    const fn max_entries(self) -> usize {
        self.exact_entries() + 2 * (self.slices() as usize + 3)
    }
}

/// The end of the slice in which an instant lies. The grid is absolute, so that all replicas and
/// all windows of one period share it.
fn slice_end(now: Instant, period: Span, slices: u64) -> Instant {
    let width = period.0.div_ceil(slices).max(1);
    Instant(now.0.div_ceil(width).saturating_mul(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::secs(1);

    fn at(micros: u64) -> Instant {
        Instant(micros)
    }

    #[test]
    fn units_count_for_exactly_one_period() {
        let mut window = Window::new(Grain::Limit);
        window.charge(at(10), 3, SECOND);
        assert_eq!(window.used_at(at(1_000_009), SECOND), 3);
        assert_eq!(window.used_at(at(1_000_010), SECOND), 0);
        assert_eq!(window.falls_to(0, at(10), SECOND), at(1_000_010));
    }

    #[test]
    fn joined_entries_are_late_and_bounded() {
        let mut window = Window::new(Grain::Limit);
        let width = SECOND.0.div_ceil(bounds::WINDOW_SLICES);
        for n in 0..100_000 {
            let now = at(n * 7);
            window.expire(now, SECOND);
            let stamp = window.charge(now, 1, SECOND);
            assert!(stamp >= now && stamp.since(now).0 <= width, "{stamp:?} for {now:?}");
            assert!(window.entries.len() <= bounds::WINDOW_EXACT + 514);
        }
    }

    #[test]
    fn a_refund_finds_its_entry_and_is_nothing_once_that_aged_out() {
        let mut window = Window::new(Grain::Limit);
        let stamp = window.charge(at(5), 10, SECOND);
        assert_eq!(window.refund(stamp, 4), 4);
        assert_eq!(window.used_at(at(5), SECOND), 6);
        window.expire(at(1_000_005), SECOND);
        assert_eq!(window.refund(stamp, 6), 0);
        assert_eq!(window.used_at(at(1_000_005), SECOND), 0);
    }

    #[test]
    fn looking_ahead_by_chunks_finds_what_a_walk_finds() {
        let mut window = Window::new(Grain::Limit);
        let mut stamps = alloc::vec::Vec::new();
        for n in 0..2_000_u64 {
            let now = at(n * 900);
            window.expire(now, SECOND);
            stamps.push(window.charge(now, 1 + n % 7, SECOND));
            if n % 3 == 0 {
                window.refund(stamps[stamps.len() * 2 / 3], 2);
            }
            let allowed = (n * 31) % (window.used + 3);
            let mut walked = now;
            for entry in window.entries() {
                if window.used_at(walked, SECOND) <= allowed {
                    break;
                }
                walked = walked.max(entry.stamp + SECOND);
            }
            assert_eq!(window.falls_to(allowed, now, SECOND), walked, "step {n}");
        }
    }

    #[test]
    fn what_is_assumed_full_comes_back_evenly() {
        let mut window = Window::new(Grain::Limit);
        let now = at(5_000_000);
        window.assume_full(now, 1_000, SECOND);
        assert_eq!(window.used_at(now, SECOND), 1_000);
        assert_eq!(window.used_at(now + Span::millis(500), SECOND), 500);
        assert_eq!(window.used_at(now + SECOND, SECOND), 0);
    }
}
