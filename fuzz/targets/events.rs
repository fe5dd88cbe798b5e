//! Any sequence of events, at times that do not go back: nothing panics, nothing overflows, the
//! ledger stays whole, and looking first tells what then happens.

#![no_main]

use libfuzzer_sys::fuzz_target;
use standpipe_core::{Action, Answer, Decision, Found, State};
use standpipe_fuzz::Story;

fuzz_target!(|input: &[u8]| {
    let mut state = State::new();
    for (event, now) in Story::new(input) {
        let foreseen = match &event.action {
            // Only after a recovery can there be something of this name; looking has no name.
            Action::Reserve(reserve) if state.find(event.key) == Found::Absent => {
                Some(state.peek(reserve, now))
            }
            _ => None,
        };
        let outcome = state.apply(&event, now);
        if let (Some(foreseen), Answer::Decided(decision)) = (foreseen, outcome.answer) {
            compare(&foreseen, &decision);
        }
    }
    state.check().unwrap_or_else(|broken| panic!("the ledger is not whole: {broken}"));
    let again = State::from_facts(state.facts().clone());
    assert_eq!(again.as_ref().ok(), Some(&state), "its own facts are refused");
});

/// What looking says is what happens, with one liberty: a call that is told to wait may be admitted
/// at once, because its ticket makes its agent active, and others may then no longer be in time.
fn compare(foreseen: &Decision, decision: &Decision) {
    match (foreseen, decision) {
        (Decision::Admit(_) | Decision::Wait(_), Decision::Admit(_)) => {}
        (Decision::Wait(foreseen), Decision::Wait(hold)) => {
            assert_eq!(foreseen.position, hold.position);
        }
        (Decision::Refuse(foreseen), Decision::Refuse(refusal)) => {
            // The instant may differ: looking does not tell that a session lives.
            assert_eq!(foreseen.reason, refusal.reason);
            assert_eq!(foreseen.limit, refusal.limit);
            assert_eq!(foreseen.short_by, refusal.short_by);
        }
        _ => panic!("foreseen {foreseen:?}, decided {decision:?}"),
    }
}
