//! Limiters as they are often written, each with the fault it is known for. Times are microseconds.

use std::collections::VecDeque;

/// Something that admits or does not.
pub(crate) trait Naive {
    fn admits(&mut self, now: u64) -> bool;
}

/// Counts per fixed stretch, and begins anew at each boundary.
pub(crate) struct FixedWindow {
    pub(crate) limit: u64,
    pub(crate) period: u64,
    pub(crate) stretch: u64,
    pub(crate) count: u64,
}

impl Naive for FixedWindow {
    fn admits(&mut self, now: u64) -> bool {
        if now / self.period != self.stretch {
            self.stretch = now / self.period;
            self.count = 0;
        }
        self.count += 1;
        self.count <= self.limit
    }
}

/// Weighs the last fixed stretch by how much of it is still within the period.
pub(crate) struct Approximate {
    pub(crate) limit: u64,
    pub(crate) period: u64,
    pub(crate) stretch: u64,
    pub(crate) last: u64,
    pub(crate) count: u64,
}

impl Naive for Approximate {
    fn admits(&mut self, now: u64) -> bool {
        let stretch = now / self.period;
        if stretch != self.stretch {
            self.last = if stretch == self.stretch + 1 { self.count } else { 0 };
            (self.stretch, self.count) = (stretch, 0);
        }
        let left = self.period - now % self.period;
        let fits = self.last * left / self.period + self.count < self.limit;
        self.count += u64::from(fits);
        fits
    }
}

/// A bucket in whole tokens that believes whatever time it is given and keeps no rest.
pub(crate) struct Bucket {
    pub(crate) burst: u64,
    /// Of one token.
    pub(crate) interval: u64,
    pub(crate) tokens: u64,
    pub(crate) last: u64,
    /// Whether tokens beyond the burst are thrown away.
    pub(crate) clamps: bool,
}

impl Naive for Bucket {
    fn admits(&mut self, now: u64) -> bool {
        // Rounds to the nearest, and goes back in time with a late caller.
        let minted = (now.saturating_sub(self.last) + self.interval / 2) / self.interval;
        self.tokens += minted;
        if self.clamps {
            self.tokens = self.tokens.min(self.burst);
        }
        if minted > 0 || now < self.last {
            self.last = now;
        }
        let fits = self.tokens > 0;
        self.tokens -= u64::from(fits);
        fits
    }
}

/// Every call of the last period, one by one: what a rolling window means.
pub(crate) struct Exact {
    pub(crate) limit: usize,
    pub(crate) period: u64,
    pub(crate) stamps: VecDeque<u64>,
}

impl Exact {
    pub(crate) fn counted(&mut self, now: u64) -> usize {
        while self.stamps.front().is_some_and(|stamp| now >= stamp + self.period) {
            self.stamps.pop_front();
        }
        self.stamps.len()
    }
}

/// The most that lies within any stretch of a period.
pub(crate) fn peak(stamps: &[u64], period: u64) -> usize {
    let within =
        |from: &u64| stamps.iter().filter(|stamp| (*from..from + period).contains(*stamp)).count();
    stamps.iter().map(within).max().unwrap_or(0)
}
