//! An iteration bound for every loop that serves tickets or forecasts.
//!
//! Each of these loops terminates because every round makes progress. The bound exists in case that
//! argument is wrong: an entry on which one replica hangs hangs all of them. The fuel is far more
//! than a loop can need, and the same on every replica. Tests and fuzzers fail when it runs out.

/// The rounds that a loop has left.
#[derive(Debug)]
pub(crate) struct Fuel(usize);

impl Fuel {
    /// Creates fuel for this number of rounds.
    pub(crate) const fn new(rounds: usize) -> Self {
        Self(rounds)
    }

    /// Consumes one round and returns whether the loop may continue.
    pub(crate) fn burn(&mut self) -> bool {
        #[cfg(fuzzing)]
        rounds::count();
        debug_assert!(self.0 > 0, "a loop of the core does not terminate");
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

/// A counter of all rounds of all loops, which the fuzz target `fuel` maximises.
#[cfg(fuzzing)]
pub mod rounds {
    use core::sync::atomic::{AtomicUsize, Ordering};

    static ROUNDS: AtomicUsize = AtomicUsize::new(0);

    pub(super) fn count() {
        ROUNDS.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the rounds since the last call, and resets the counter.
    pub fn take() -> usize {
        ROUNDS.swap(0, Ordering::Relaxed)
    }
}
