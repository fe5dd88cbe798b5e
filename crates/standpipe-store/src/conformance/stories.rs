//! Golden traces through the store: every story is told as the bare core tells it.

use super::Harness;
use super::world::sent;
use crate::trace::{self, Bare, OnLog, Time};

/// Every golden trace comes out on the store as on the bare core, to the last byte.
pub fn golden_traces_are_told_the_same(harness: &impl Harness) {
    for story in sent(trace::stories()) {
        let time = Time::default();
        let pool = harness.open(time.clock());
        let on_store = trace::run(&story, &mut OnLog::new(harness.attach(&pool), time));
        let bare = trace::run(&story, &mut Bare::default());
        match (on_store, bare) {
            (Ok(on_store), Ok(bare)) => assert_eq!(on_store, bare, "{} ends otherwise", story.name),
            #[expect(clippy::panic, reason = "the suite asserts")]
            (Err(mistake), _) | (_, Err(mistake)) => panic!("{mistake}"),
        }
    }
}
