//! Any sequence of events, in search of a loop without an end: an input that makes the ledger's
//! loops run longer than any before is kept and changed further. Fails when one runs out of fuel.

#![no_main]

use std::sync::atomic::{AtomicU8, Ordering};

use libfuzzer_sys::fuzz_target;
use standpipe_core::{Action, Event, Instant, Key, Reserve, State, bounds, fuel::rounds};
use standpipe_fuzz::{Bytes, Story, reserve};

/// libFuzzer takes these for counters of covered code: one for each eighth of each power of two
/// that the rounds of a single event reached.
// SAFETY: libFuzzer reads this section as bytes, which is what it has.
#[unsafe(link_section = "__libfuzzer_extra_counters")]
static REACHED: [AtomicU8; 256] = [const { AtomicU8::new(0) }; 256];

fuzz_target!(|input: &[u8]| {
    let mut state = State::new();
    let mut last = Instant(0);
    for (event, now) in Story::new(input) {
        let _ = rounds::take();
        if let Action::Reserve(reserve) = &event.action {
            look(&state, reserve, now);
        }
        let _ = state.apply(&event, now);
        reached(rounds::take());
        last = now;
    }
    // Whatever is left happens in one step, or never.
    let ask = reserve(&mut Bytes::new(input), None, None);
    let event =
        Event { key: Key { session: u64::MAX, number: 1 }, action: Action::Reserve(Box::new(ask)) };
    let end = (last + bounds::SPAN).min(Instant(Instant::NEVER.0 - 1));
    let _ = state.apply(&event, end);
    reached(rounds::take());
});

/// A call with much patience makes the ledger look further ahead than the one that is asked for.
fn look(state: &State, asked: &Reserve, now: Instant) {
    let patient = Reserve { patience: bounds::SPAN, ..asked.clone() };
    let impatient = Reserve { patience: standpipe_core::Span::ZERO, ..asked.clone() };
    for reserve in [patient, impatient] {
        let _ = state.peek(&reserve, now);
    }
}

fn reached(rounds: usize) {
    let power = rounds.max(1).ilog2();
    let eighth = if power < 3 { 0 } else { rounds >> (power - 3) & 7 };
    let place = power as usize * 8 + eighth;
    if let Some(counter) = REACHED.get(place) {
        counter.store(1, Ordering::Relaxed);
    }
}
