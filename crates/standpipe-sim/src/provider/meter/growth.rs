//! A limit on how fast calls may become more.

use std::collections::VecDeque;

/// The calls of the last two stretches.
#[derive(Clone, Debug)]
pub(in crate::provider) struct Growth {
    growth: u64,
    stretch: u64,
    free: u64,
    /// When calls were accepted, oldest first.
    calls: VecDeque<u64>,
}

impl Growth {
    pub(super) fn new(growth: u64, stretch: u64, free: u64) -> Self {
        Self { growth, stretch: stretch.max(1), free, calls: VecDeque::new() }
    }

    /// How long until one more call would be fine, if it is not now.
    pub(super) fn refuses(&mut self, now: u64) -> Option<u64> {
        self.expire(now);
        if self.allows(now) {
            return None;
        }
        // Both counts change only when a call passes from one stretch to the next, or leaves.
        let leaves = |at: &u64| [at + self.stretch, at + 2 * self.stretch];
        let mut changes: Vec<_> = self.calls.iter().flat_map(leaves).collect();
        changes.retain(|at| *at > now);
        changes.sort_unstable();
        let free = changes.into_iter().find(|at| self.allows(*at));
        Some(free.map_or(self.stretch, |at| at - now))
    }

    pub(super) fn accept(&mut self, now: u64) {
        self.expire(now);
        self.calls.push_back(now);
    }

    fn allows(&self, now: u64) -> bool {
        let within = |at: u64, stretches: u64| at + stretches * self.stretch > now;
        let before_two = self.calls.partition_point(|at| !within(*at, 2));
        let before_one = self.calls.partition_point(|at| !within(*at, 1));
        let (last, before) = (self.calls.len() - before_one, before_one - before_two);
        let most = (before as u64).saturating_mul(self.growth) / 1_000;
        (last as u64) < most.max(self.free)
    }

    fn expire(&mut self, now: u64) {
        while self.calls.front().is_some_and(|at| at + 2 * self.stretch <= now) {
            self.calls.pop_front();
        }
    }
}
