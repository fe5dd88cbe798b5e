//! A small logarithmic histogram of call sizes, in integers.
//!
//! It has eight bins per doubling, so a quantile is at most an eighth too large and never too
//! small. When it is full, every count is halved, so that old calls lose weight. `estimate.rs` uses
//! it.

use crate::unit::Unit;
use alloc::vec::Vec;

/// The number of calls at which all counts are halved.
pub(crate) const FULL: u32 = 256;

/// The number of calls below which no quantile is returned. Up to ten calls it is the largest of
/// them, which is nearer to the next call than no estimate at all.
pub(crate) const FEW: u32 = 5;

/// The bins per doubling, as a power of two.
const BIN_BITS: u32 = 3;

/// What a histogram measures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SizeKey {
    /// The units a call used.
    Units(Unit),
    /// The units a call used per 4,096 bytes sent.
    PerBytes(Unit),
}

/// A histogram of call sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SizeHistogram {
    /// The bins and their counts, in order, none empty.
    bins: Vec<(u16, u16)>,
    count: u32,
}

impl SizeHistogram {
    /// Restores a histogram from a snapshot's bins, or returns `None` if they are not valid.
    #[must_use]
    pub fn of(bins: Vec<(u16, u16)>) -> Option<Self> {
        let ascend = bins.windows(2).all(|two| two[0].0 < two[1].0);
        let fit = bins.iter().all(|(bin, count)| *bin <= bin_of(u64::MAX) && *count > 0);
        let count: u32 = bins.iter().map(|(_, count)| u32::from(*count)).sum();
        (ascend && fit && count < FULL).then_some(Self { bins, count })
    }

    /// Returns the bins and their counts, in order, none empty.
    #[must_use]
    pub fn bins(&self) -> &[(u16, u16)] {
        &self.bins
    }

    /// Returns the number of calls it holds.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Adds the size of one call.
    pub(crate) fn add(&mut self, size: u64) {
        let bin = bin_of(size);
        match self.bins.binary_search_by_key(&bin, |(bin, _)| *bin) {
            Ok(at) => self.bins[at].1 += 1,
            Err(at) => self.bins.insert(at, (bin, 1)),
        }
        self.count += 1;
        if self.count >= FULL {
            self.bins.iter_mut().for_each(|(_, count)| *count /= 2);
            self.bins.retain(|(_, count)| *count > 0);
            self.count = self.bins.iter().map(|(_, count)| u32::from(*count)).sum();
        }
    }

    /// Returns the 90th percentile, or `None` while there are too few calls.
    #[must_use]
    pub fn p90(&self) -> Option<u64> {
        if self.count < FEW {
            return None;
        }
        let wanted = (u64::from(self.count) * 9).div_ceil(10);
        let mut seen = 0;
        let bin = self.bins.iter().find(|(_, count)| {
            seen += u64::from(*count);
            seen >= wanted
        });
        bin.map(|(bin, _)| top_of(*bin))
    }
}

/// The bin of a size. Small sizes have a bin each; for others it is the position of the highest bit
/// followed by the next [`BIN_BITS`] bits.
const fn bin_of(size: u64) -> u16 {
    if size < 2 << BIN_BITS {
        return size as u16;
    }
    let shift = 63 - size.leading_zeros() - BIN_BITS;
    ((shift << BIN_BITS) + (size >> shift) as u32) as u16
}

/// The largest size in a bin.
const fn top_of(bin: u16) -> u64 {
    let bin = bin as u64;
    if bin < 2 << BIN_BITS {
        return bin;
    }
    let shift = (bin >> BIN_BITS) - 1;
    let low = bin - (shift << BIN_BITS);
    (((low as u128 + 1) << shift) - 1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_a_bin_that_is_at_most_an_eighth_too_large() {
        let powers = (0..64).flat_map(|n| [(1_u64 << n) - 1, 1 << n, (1 << n) + 1]);
        for size in powers.chain(0..5_000).chain([u64::MAX]) {
            let top = top_of(bin_of(size));
            assert!(top >= size, "{size} in a bin up to {top}");
            assert!(top - size <= size / 8, "{size} in a bin up to {top}");
            assert_eq!(bin_of(top), bin_of(size));
            assert!(top == u64::MAX || bin_of(top + 1) == bin_of(size) + 1, "no gap after {top}");
        }
    }

    #[test]
    fn nine_of_ten_are_not_larger_and_few_say_nothing() {
        let mut sizes = SizeHistogram::default();
        for n in 1..=20_u32 {
            assert_eq!(sizes.p90().is_none(), n <= FEW, "after {} calls", n - 1);
            sizes.add(if n % 10 == 0 { 4_000 } else { 100 });
        }
        let p90 = sizes.p90().expect("enough");
        assert!((100..=112).contains(&p90), "{p90}");
    }

    #[test]
    fn what_was_long_ago_fades() {
        let mut sizes = SizeHistogram::default();
        for _ in 0..10_000 {
            sizes.add(8_000);
        }
        assert!(sizes.count() < FULL);
        for _ in 0..2 * FULL {
            sizes.add(10);
        }
        assert_eq!(sizes.p90(), Some(10));
        assert!(SizeHistogram::of(sizes.bins().to_vec()).is_some_and(|again| again == sizes));
    }

    #[test]
    fn bins_that_cannot_be_are_refused() {
        assert_eq!(SizeHistogram::of(alloc::vec![(3, 1), (3, 1)]), None);
        assert_eq!(SizeHistogram::of(alloc::vec![(3, 0)]), None);
        assert_eq!(SizeHistogram::of(alloc::vec![(u16::MAX, 1)]), None);
        assert_eq!(SizeHistogram::of(alloc::vec![(3, 256)]), None);
    }
}
