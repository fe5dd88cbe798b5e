//! The conformance suite that every engine must pass.
//!
//! An engine adopts it with a [`Harness`], which opens a new pool on a given clock and attaches to
//! it as another process would, and with [`conformance!`](crate::conformance!), which generates one
//! test per behaviour:
//!
//! ```text
//! struct Memory;
//! impl Harness for Memory { … }
//! standpipe_store::conformance!(Memory);
//! ```
//!
//! The suite controls the clock, so no test sleeps. Random tests are seeded: a failure names its
//! seed and is reproducible. With `STANDPIPE_LONG=1` they run ten times as many iterations. The
//! suite asserts and panics, so it is for tests only.

mod entries;
mod fixture;
mod forks;
mod lost_answers;
mod race;
mod random;
mod replicas;
mod snapshots;
mod traces;

pub use self::entries::{
    a_tail_that_lacks_an_entry_admits_nobody, damage_is_never_skipped,
    damage_on_the_way_is_read_again, stamps_never_go_back,
    what_nobody_understands_is_skipped_alike,
};
pub use self::fixture::iteration_factor;
pub use self::forks::{
    a_fork_is_seen_and_what_was_lost_comes_back, a_fork_under_a_lost_answer_does_it_once,
    a_log_that_loses_entries_twice_in_a_minute_is_restored_twice,
    a_lost_commit_comes_back_and_ends_its_lease, a_position_that_is_not_on_the_log_is_forked,
};
pub use self::lost_answers::{
    a_reserve_sent_again_finds_its_ticket, an_ended_session_goes_on_as_a_new_one,
    lost_answers_do_nothing_twice_and_lose_nothing, what_changes_nothing_leaves_no_trace,
};
pub use self::race::exactly_the_limit_is_admitted;
pub use self::random::{Random, RandomEvents};
pub use self::replicas::replicas_are_equal_at_equal_positions;
pub use self::snapshots::{
    a_new_reader_begins_with_the_snapshot, a_slow_reader_can_finish,
    a_snapshot_is_kept_only_if_it_is_ahead_and_on_the_log, a_wrong_snapshot_stops_everybody,
};
pub use self::traces::golden_traces_are_told_the_same;

use crate::log::{Clock, Log};

/// Gives the suite access to a store.
pub trait Harness: Sync {
    /// A pool of the store.
    type Pool: Sync;
    /// The pool's log, as one process opens it.
    type Log: Log + Send;

    /// Creates a pool whose entries are stamped by this clock.
    fn open(&self, clock: Clock) -> Self::Pool;

    /// Opens the pool as another process would.
    fn attach(&self, pool: &Self::Pool) -> Self::Log;

    /// Makes the store lose its last entries and continue, as after a failover.
    fn lose_entries(&self, pool: &Self::Pool, entries: u64);

    /// Flips a bit in the stored body of an entry, counted from 1.
    fn corrupt_entry(&self, pool: &Self::Pool, entry: u64);
}

/// Calls a macro with the names of all behaviours.
#[doc(hidden)]
#[macro_export]
macro_rules! each_behaviour {
    ($call:path, $($harness:tt)+) => {
        $call! {
            $($harness)+;
            golden_traces_are_told_the_same
            replicas_are_equal_at_equal_positions
            exactly_the_limit_is_admitted
            lost_answers_do_nothing_twice_and_lose_nothing
            a_reserve_sent_again_finds_its_ticket
            an_ended_session_goes_on_as_a_new_one
            what_changes_nothing_leaves_no_trace
            a_position_that_is_not_on_the_log_is_forked
            a_fork_is_seen_and_what_was_lost_comes_back
            a_lost_commit_comes_back_and_ends_its_lease
            a_fork_under_a_lost_answer_does_it_once
            a_log_that_loses_entries_twice_in_a_minute_is_restored_twice
            what_nobody_understands_is_skipped_alike
            damage_is_never_skipped
            damage_on_the_way_is_read_again
            a_tail_that_lacks_an_entry_admits_nobody
            stamps_never_go_back
            a_new_reader_begins_with_the_snapshot
            a_slow_reader_can_finish
            a_snapshot_is_kept_only_if_it_is_ahead_and_on_the_log
            a_wrong_snapshot_stops_everybody
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! behaviours_as_tests {
    ($harness:expr; $($behaviour:ident)*) => {
        $(
            #[test]
            fn $behaviour() {
                $crate::conformance::$behaviour(&$harness);
            }
        )*
    };
}

/// Generates one test per behaviour of the suite for a `Harness`.
#[macro_export]
macro_rules! conformance {
    ($harness:expr) => {
        $crate::each_behaviour! { $crate::behaviours_as_tests, $harness }
    };
}

macro_rules! behaviours_by_name {
    ($harness:ty; $($behaviour:ident)*) => {
        vec![$((stringify!($behaviour), $behaviour as fn(&$harness))),*]
    };
}

/// The name and the test function of a behaviour.
pub type Behaviour<H> = (&'static str, fn(&H));

/// Returns all behaviours with their names.
#[must_use]
pub fn behaviours<H: Harness>() -> Vec<Behaviour<H>> {
    crate::each_behaviour! { behaviours_by_name, H }
}

/// Runs all behaviours in order.
pub fn run_all<H: Harness>(harness: &H) {
    for (_, behaviour) in behaviours::<H>() {
        behaviour(harness);
    }
}
