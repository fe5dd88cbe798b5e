//! The suite a store proves itself with.
//!
//! A store adopts it in a few lines: a [`Harness`] that opens a fresh pool on a given clock and
//! attaches to it as another process would, and [`conformance!`](crate::conformance!), which makes
//! one test of every behaviour:
//!
//! ```text
//! struct Memory;
//! impl Harness for Memory { … }
//! standpipe_store::conformance!(Memory);
//! ```
//!
//! The suite owns time, so nothing in it sleeps. It is seeded: a failure names its seed and happens
//! again. With `STANDPIPE_LONG=1` it does ten times as much. It panics where a store is wrong, and
//! is therefore for tests only.

mod answers;
mod entries;
mod forks;
mod race;
mod random;
mod replicas;
mod snapshots;
mod stories;
mod world;

pub use self::answers::{
    a_reserve_sent_again_finds_its_ticket, an_ended_session_goes_on_as_a_new_one,
    lost_answers_do_nothing_twice_and_lose_nothing, what_changes_nothing_leaves_no_trace,
};
pub use self::entries::{
    damage_is_never_skipped, damage_on_the_way_is_read_again, stamps_never_go_back,
    what_nobody_understands_is_skipped_alike,
};
pub use self::forks::{
    a_fork_is_seen_and_what_was_lost_comes_back, a_fork_under_a_lost_answer_does_it_once,
    a_lost_commit_comes_back_and_ends_its_lease, a_position_that_is_not_on_the_log_is_forked,
};
pub use self::race::exactly_the_limit_is_admitted;
pub use self::random::{Random, RandomEvents};
pub use self::replicas::replicas_are_equal_at_equal_positions;
pub use self::snapshots::{
    a_new_reader_begins_with_the_snapshot, a_slow_reader_can_finish,
    a_snapshot_is_kept_only_if_it_is_ahead_and_on_the_log, a_wrong_snapshot_stops_everybody,
};
pub use self::stories::golden_traces_are_told_the_same;
pub use self::world::long;

use crate::log::{Clock, Log};

/// How the suite gets at a store.
pub trait Harness: Sync {
    /// A pool in the store.
    type Pool: Sync;
    /// Its log, as one process has it.
    type Log: Log + Send;

    /// A pool that nobody has used, stamped by this clock.
    fn open(&self, clock: Clock) -> Self::Pool;

    /// The pool as another process sees it.
    fn attach(&self, pool: &Self::Pool) -> Self::Log;

    /// Makes the store forget its last entries, as a failover would, and go on.
    fn lose(&self, pool: &Self::Pool, entries: u64);

    /// Flips a bit of the body of an entry, the first entry being 1, where it lies.
    fn damage(&self, pool: &Self::Pool, entry: u64);
}

/// Calls a macro with the name of every behaviour.
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
            what_nobody_understands_is_skipped_alike
            damage_is_never_skipped
            damage_on_the_way_is_read_again
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

/// Makes one test of every behaviour of the suite, on a `Harness`.
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

/// A behaviour, by its name.
pub type Behaviour<H> = (&'static str, fn(&H));

/// Every behaviour with its name.
#[must_use]
pub fn behaviours<H: Harness>() -> Vec<Behaviour<H>> {
    crate::each_behaviour! { behaviours_by_name, H }
}

/// Every behaviour, one after the other.
pub fn run_all<H: Harness>(harness: &H) {
    for (_, behaviour) in behaviours::<H>() {
        behaviour(harness);
    }
}
