//! The layout is canonical and total, on valid events and states and on arbitrary bytes.

use standpipe_core::{Action, Event, Key, State, bounds};

use super::*;
use crate::conformance::{Random, RandomEvents, iteration_factor};

/// Whatever decodes must encode to the same bytes again.
fn canonical(bytes: &[u8]) -> bool {
    let event = decode_event(bytes).map_or(true, |event| encode_event(&event) == bytes);
    let state = decode_state(bytes).map_or(true, |facts| encode_state(&facts) == bytes);
    event && state
}

#[test]
fn events_are_read_as_they_were_written() {
    let mut events = RandomEvents::new(1);
    for _ in 0..20_000 * iteration_factor() {
        let event = events.event();
        let bytes = encode_event(&event);
        assert_eq!(decode_event(&bytes).as_ref(), Ok(&event));
        for length in 0..bytes.len() {
            assert!(decode_event(&bytes[..length]).is_err(), "cut to {length}: {event:?}");
        }
        assert!(decode_event(&[bytes, vec![0]].concat()).is_err(), "one byte more: {event:?}");
    }
}

#[test]
fn states_are_read_as_they_were_written() {
    for seed in 0..20 * iteration_factor() {
        let mut events = RandomEvents::new(seed);
        let mut state = State::new();
        let mut now = standpipe_core::Instant(5);
        let _ = state.apply(&events.first(), now);
        for step in 0..1_000 {
            now = now + events.pause();
            let _ = state.apply(&events.event(), now);
            if step % 10 == 0 {
                let bytes = encode_state(state.facts());
                let facts = decode_state(&bytes).expect("seed, step");
                assert_eq!(&facts, state.facts(), "seed {seed} step {step}");
                state = State::from_facts(facts).expect("what was a state is one");
                assert_eq!(state.check(), Ok(()), "seed {seed} step {step}");
            }
        }
    }
}

#[test]
fn changed_bytes_are_refused_or_canonical() {
    let mut random = Random::new(7);
    let mut events = RandomEvents::new(7);
    let mut state = State::new();
    for step in 0..300 * iteration_factor() {
        let event = events.event();
        let _ = state.apply(&event, standpipe_core::Instant(step * 50_000));
        for bytes in [encode_event(&event), encode_state(state.facts())] {
            for _ in 0..40 {
                let mut changed = bytes.clone();
                let at = random.index(changed.len());
                changed[at] = random.any() as u8;
                assert!(canonical(&changed), "{changed:?}");
            }
        }
    }
}

#[test]
fn random_bytes_are_refused_or_canonical() {
    let mut random = Random::new(3);
    for _ in 0..100_000 * iteration_factor() {
        let length = random.below(40);
        // Small bytes are tags and lengths more often.
        let most = if random.once_in(2) { 256 } else { 14 };
        let bytes: Vec<u8> = (0..length).map(|_| random.below(most) as u8).collect();
        assert!(canonical(&bytes), "{bytes:?}");
    }
}

#[test]
fn what_has_two_ways_to_be_written_is_refused_in_the_second() {
    let resume = Event { key: Key { session: 1, number: 2 }, action: Action::Resume { by: None } };
    assert_eq!(encode_event(&resume), [1, 2, 10, 0]);
    assert!(decode_event(&[0x81, 0, 2, 10]).is_err(), "a padded integer");
    assert!(decode_event(&[1, 2, 13]).is_err(), "an unknown tag");
    assert!(decode_event(&[0xff; 11]).is_err(), "an integer beyond 64 bits");
    // commit, lease 1/1, two units, then no progress, no refusal
    let commit = |figures: &[u8]| [&[1, 2, 1, 1, 1][..], figures, &[0, 0]].concat();
    assert!(decode_event(&commit(&[2, 0, 5, 3, 6])).is_ok());
    assert!(decode_event(&commit(&[2, 3, 6, 0, 5])).is_err(), "units out of order");
    assert!(decode_event(&commit(&[2, 0, 5, 0, 6])).is_err(), "a unit twice");
    let mut named = vec![1, 7, 8];
    named.extend_from_slice(b"requests");
    named.push(5);
    assert!(decode_event(&commit(&named)).is_err(), "a known unit by declaration");
    let mut large = vec![1, 0];
    put_number(bounds::AMOUNT, &mut large);
    assert!(decode_event(&commit(&large)).is_ok());
    let mut larger = vec![1, 0];
    put_number(bounds::AMOUNT + 1, &mut larger);
    assert!(decode_event(&commit(&larger)).is_err(), "a figure above the bound");
}

#[test]
fn a_list_cannot_claim_more_than_its_bytes() {
    // An observation that says it has 2^60 readings.
    let mut bytes = vec![1, 2, 4, 0];
    put_number(1 << 60, &mut bytes);
    let wrong = decode_event(&bytes).unwrap_err();
    assert_eq!(wrong.what, "a list longer than its bytes");
}
