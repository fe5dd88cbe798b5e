//! The arithmetic of a rolling window: units that count for one period after they were charged.
//!
//! Exact while there are few entries; when there are many, further ones are joined per slice of the
//! period and stamped with the slice's end. So an entry may count longer than it should, by at most
//! one slice, and never shorter. Knows nothing of limits, leases or who asks.
//!
//! Invariant: stamps ascend strictly, `used` is the sum of all entries, and each chunk sum is that
//! of its entries.

use alloc::collections::VecDeque;

use crate::bounds;
use crate::time::{Instant, Span};

/// Units charged in a rolling period.
#[derive(Clone, Debug)]
pub struct Window {
    /// Oldest first.
    entries: VecDeque<Entry>,
    used: u64,
    grain: Grain,
    /// The sums of [`CHUNK`] entries each, so that looking ahead over many entries is quick.
    /// Entries are counted from the first there ever was; `dropped` says how many are gone.
    chunks: VecDeque<u64>,
    dropped: usize,
}

/// The most units a window counts: debt beyond this is absurd, and sums stay far from overflow.
const MOST_USED: u64 = 1 << 62;

/// How many entries share a sum: about the square root of how many there can be.
const CHUNK: usize = 32;

/// Units that stop counting together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// They count until one period after this.
    pub stamp: Instant,
    /// How many.
    pub units: u64,
}

/// How finely a window remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grain {
    /// As a limit of the pool does.
    Limit,
    /// As the meter of one agent does.
    Meter,
}

impl Window {
    /// Nothing charged yet.
    #[must_use]
    pub const fn new(grain: Grain) -> Self {
        Self { entries: VecDeque::new(), used: 0, grain, chunks: VecDeque::new(), dropped: 0 }
    }

    /// One that holds these entries, if they can be a window's.
    #[must_use]
    pub fn of(grain: Grain, entries: impl IntoIterator<Item = Entry>) -> Option<Self> {
        let mut window = Self::new(grain);
        for entry in entries {
            let ascends = window.entries.back().is_none_or(|last| last.stamp < entry.stamp);
            let fits = entry.units <= MOST_USED - window.used;
            if !ascends || !fits || window.entries.len() == grain.most() {
                return None;
            }
            window.push(entry);
        }
        Some(window)
    }

    /// How finely it remembers.
    #[must_use]
    pub const fn grain(&self) -> Grain {
        self.grain
    }

    /// All entries, oldest first.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry> + Clone {
        self.entries.iter().copied()
    }

    /// Charges units now. Answers the stamp under which they can be found for a refund.
    pub(crate) fn charge(&mut self, now: Instant, units: u64, period: Span) -> Instant {
        let stamp = if self.entries.len() < self.grain.exact() {
            now
        } else {
            slice_end(now, period, self.grain.slices())
        };
        let units = units.min(MOST_USED - self.used);
        if units == 0 {
            return stamp;
        }
        let full = self.entries.len() >= self.grain.most();
        match self.entries.back_mut() {
            // A slice that is not over yet, or the same instant: join it. Later, never earlier.
            // Nor is there ever more than a bound; it is reached only if periods are reconfigured
            // over and over, and then the last entry moves and can no longer be refunded.
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
                self.push(Entry { stamp, units });
                stamp
            }
        }
    }

    /// Takes units back from the entry they were charged to. Nothing once that has aged out.
    pub(crate) fn refund(&mut self, stamp: Instant, units: u64) -> u64 {
        let Ok(at) = self.entries.binary_search_by(|entry| entry.stamp.cmp(&stamp)) else {
            return 0;
        };
        let back = units.min(self.entries[at].units);
        self.entries[at].units -= back;
        self.used -= back;
        let chunk = self.chunk_of(at);
        self.chunks[chunk] -= back;
        back
    }

    /// Forgets what no longer counts.
    pub(crate) fn expire(&mut self, now: Instant, period: Span) {
        while let Some(first) = self.entries.front() {
            if now < first.stamp + period {
                break;
            }
            self.drop_first();
        }
    }

    /// The units that count at an instant.
    pub(crate) fn used_at(&self, now: Instant, period: Span) -> u64 {
        let aged = |entry: &&Entry| now >= entry.stamp + period;
        if self.entries.back().is_none_or(|last| aged(&last)) {
            return 0;
        }
        let aged = self.entries.iter().take_while(aged);
        self.used - aged.map(|entry| entry.units).sum::<u64>()
    }

    /// The units that were charged from an instant on.
    pub(crate) fn charged_since(&self, since: Instant) -> u64 {
        let late = self.entries.iter().rev().take_while(|entry| entry.stamp >= since);
        late.map(|entry| entry.units).sum()
    }

    /// The next instant at which units stop counting.
    pub(crate) fn next_ageing(&self, period: Span) -> Option<Instant> {
        self.entries.iter().find(|entry| entry.units > 0).map(|entry| entry.stamp + period)
    }

    /// The first instant from `from` on at which at most `allowed` units count.
    pub(crate) fn falls_to(&self, allowed: u64, from: Instant, period: Span) -> Instant {
        let mut used = self.used;
        let mut at = 0;
        // Whole chunks first: while even all of one does not suffice, its entries need no look.
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

    /// The provider counts from `began` on: older entries go, but for `carried` units whose calls
    /// were still under way then.
    pub(crate) fn begin_anew(&mut self, began: Instant, carried: u64) {
        while self.entries.front().is_some_and(|first| first.stamp < began) {
            self.drop_first();
        }
        let carried = (carried > 0).then_some(Entry { stamp: began, units: carried });
        let later: VecDeque<Entry> = core::mem::take(&mut self.entries);
        *self = Self::new(self.grain);
        for entry in carried.into_iter().chain(later) {
            match self.entries.back_mut() {
                Some(first) if first.stamp == entry.stamp => {
                    first.units += entry.units;
                    self.used += entry.units;
                    self.chunks[0] += entry.units;
                }
                _ => self.push(entry),
            }
        }
    }

    /// Counts as holding `amount` units that come back evenly over one period: what is assumed when
    /// nothing is known.
    pub(crate) fn assume_full(&mut self, now: Instant, amount: u64, period: Span) {
        *self = Self::new(self.grain);
        let slices = self.grain.slices();
        for slice in 1..=slices {
            let upto = |n: u64| crate::config::part(amount, n, slices);
            let units = upto(slice) - upto(slice - 1);
            let ages = now + Span(crate::config::part(period.0, slice, slices));
            let stamp = ages - period;
            // Early on a store's clock, the first slices would lie before its origin: they are
            // joined there, and come back later than they should.
            if self.entries.back().is_some_and(|last| last.stamp >= stamp) {
                self.charge(stamp, units, period);
            } else if units > 0 {
                self.push(Entry { stamp, units });
            }
        }
    }

    fn push(&mut self, entry: Entry) {
        if (self.dropped + self.entries.len()).is_multiple_of(CHUNK) {
            self.chunks.push_back(0);
        }
        if let Some(chunk) = self.chunks.back_mut() {
            *chunk += entry.units;
        }
        self.used += entry.units;
        self.entries.push_back(entry);
    }

    fn drop_first(&mut self) {
        let Some(first) = self.entries.pop_front() else { return };
        self.used -= first.units;
        self.chunks[0] -= first.units;
        self.dropped = (self.dropped + 1) % CHUNK;
        if self.dropped == 0 || self.entries.is_empty() {
            self.chunks.pop_front();
            self.dropped = if self.entries.is_empty() { 0 } else { self.dropped };
        }
    }

    /// The chunk in which the entry at an index is summed.
    const fn chunk_of(&self, at: usize) -> usize {
        (self.dropped + at) / CHUNK
    }

    /// The index of the first entry that is not in the chunk of the entry at an index.
    const fn first_after_chunk(&self, at: usize) -> usize {
        (self.chunk_of(at) + 1) * CHUNK - self.dropped
    }
}

impl PartialEq for Window {
    fn eq(&self, other: &Self) -> bool {
        self.grain == other.grain && self.entries == other.entries
    }
}

impl Eq for Window {}

impl Grain {
    const fn exact(self) -> usize {
        match self {
            Self::Limit => bounds::WINDOW_EXACT,
            Self::Meter => bounds::METER_EXACT,
        }
    }

    const fn slices(self) -> u64 {
        match self {
            Self::Limit => bounds::WINDOW_SLICES,
            Self::Meter => bounds::METER_SLICES,
        }
    }

    /// The exact entries, then one per slice that can be alive at once; twice that, because the
    /// slack, and with it the grid, may be reconfigured.
    const fn most(self) -> usize {
        self.exact() + 2 * (self.slices() as usize + 3)
    }
}

/// The end of the slice of the absolute grid that an instant lies in.
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
    fn joined_entries_are_late_never_early_and_bounded() {
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
