//! Any bytes as an event or a snapshot: nothing panics, and what can be read is written again as
//! the same bytes. Any event and any state: what is written is read again as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use standpipe_core::State;
use standpipe_fuzz::Story;
use standpipe_store::layout::{decode_event, decode_state, encode_event, encode_state};

fuzz_target!(|input: &[u8]| {
    let Some((mode, rest)) = input.split_first() else { return };
    match mode % 4 {
        0 => event_bytes(rest),
        1 => state_bytes(rest),
        2 => whole(rest),
        _ => damaged(rest),
    }
});

/// What can be read as an event is written again as the same bytes.
fn event_bytes(bytes: &[u8]) {
    if let Ok(event) = decode_event(bytes) {
        assert_eq!(encode_event(&event), bytes);
    }
}

/// What can be read as a snapshot is written again as the same bytes, and the core takes or refuses
/// it without a panic.
fn state_bytes(bytes: &[u8]) {
    if let Ok(facts) = decode_state(bytes) {
        assert_eq!(encode_state(&facts), bytes);
        let _ = State::from_facts(facts);
    }
}

/// Events and the state they lead to are the same after writing and reading.
fn whole(story: &[u8]) {
    let mut state = State::new();
    for (event, now) in Story::new(story) {
        assert_eq!(decode_event(&encode_event(&event)).ok().as_ref(), Some(&event));
        let _ = state.apply(&event, now);
    }
    let again = decode_state(&encode_state(state.facts()));
    assert_eq!(again.as_ref(), Ok(state.facts()));
}

/// The bytes of a state with a few of them changed, which fuzzing from nothing would hardly reach.
fn damaged(input: &[u8]) {
    let (changes, story) = input.split_at(input.len().min(6));
    let mut state = State::new();
    for (event, now) in Story::new(story) {
        let _ = state.apply(&event, now);
        let mut bytes = encode_event(&event);
        change(&mut bytes, changes);
        event_bytes(&bytes);
    }
    let mut bytes = encode_state(state.facts());
    change(&mut bytes, changes);
    state_bytes(&bytes);
}

/// Each three bytes are a place and what to put there.
fn change(bytes: &mut Vec<u8>, changes: &[u8]) {
    for change in changes.chunks_exact(3) {
        let place = usize::from(u16::from_le_bytes([change[0], change[1]]));
        let length = bytes.len().max(1);
        match bytes.get_mut(place % length) {
            // One value in four cuts the bytes there instead.
            Some(_) if change[2] % 4 == 0 => bytes.truncate(place % length),
            Some(byte) => *byte = change[2],
            None => {}
        }
    }
}
