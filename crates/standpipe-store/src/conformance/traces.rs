//! Golden traces through the store: the same outcomes and digests as in the core alone.

use super::Harness;
use super::fixture::ok;
use crate::trace::{self, CoreLedger, LogLedger, ManualClock};

/// Every golden trace has the same digest on the store as in the core alone.
pub fn golden_traces_are_told_the_same(harness: &impl Harness) {
    for trace in ok(trace::load_all()) {
        let time = ManualClock::default();
        let pool = harness.open(time.clock());
        let on_store = trace::run(&trace, &mut LogLedger::new(harness.attach(&pool), time));
        let core = trace::run(&trace, &mut CoreLedger::default());
        match (on_store, core) {
            (Ok(on_store), Ok(core)) => assert_eq!(on_store, core, "digest of {}", trace.name),
            #[expect(clippy::panic, reason = "the suite asserts")]
            (Err(error), _) | (_, Err(error)) => panic!("{error}"),
        }
    }
}
