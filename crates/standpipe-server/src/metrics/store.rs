//! Durations and errors of the daemon's steps on the store.
//!
//! Recording is a few atomic additions and never blocks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use standpipe::StoreError;

use super::exposition::{Exposition, millionths};
use super::labels::Label;

/// The upper bounds of the buckets, in microseconds.
const BOUNDS_US: [u64; 14] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000,
];

/// Kinds of store errors.
const KINDS: [&str; 5] = ["transient", "damaged", "foreign", "unusable", "other"];
const KIND: Label = Label::of("kind", &KINDS);

/// Durations of steps on the store, and counts of errors.
#[derive(Debug, Default)]
pub struct StoreLatency {
    counts: [AtomicU64; BOUNDS_US.len() + 1],
    sum_us: AtomicU64,
    errors: [AtomicU64; KINDS.len()],
}

impl StoreLatency {
    /// All counts at 0.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records the duration of a step, whatever its result.
    pub fn took(&self, length: Duration) {
        let us = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        let figure = BOUNDS_US.partition_point(|bound| *bound < us);
        if let Some(count) = self.counts.get(figure) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum_us.fetch_add(us, Ordering::Relaxed);
    }

    /// Records a failure of unknown kind.
    pub fn failed(&self) {
        self.fail("other");
    }

    /// Records a failure.
    pub fn failed_by(&self, error: &StoreError) {
        self.fail(match () {
            () if error.is_transient() => "transient",
            () if error.is_damaged() => "damaged",
            () if error.is_incompatible() => "foreign",
            () => "unusable",
        });
    }

    fn fail(&self, kind: &str) {
        if let Some(errors) = self.errors.get(super::labels::index_of(&KINDS, kind)) {
            errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn write(&self, page: &mut Exposition) {
        let counts = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        let sum = millionths(self.sum_us.load(Ordering::Relaxed));
        let help = "Durations of the daemon's steps on the store.";
        let bounds = BOUNDS_US.iter().map(|bound| millionths(*bound));
        page.histogram("store_step_seconds", &[], help).put_counts(&[], bounds, &counts, sum);
        let help = "Failed steps of the daemon on the store.";
        let mut errors = page.counter("store_errors_total", &[KIND], help);
        for (kind, count) in KINDS.iter().zip(&self.errors) {
            errors.put(&[kind], count.load(Ordering::Relaxed));
        }
    }
}
