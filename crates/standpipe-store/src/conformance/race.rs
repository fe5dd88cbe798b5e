//! Concurrent appends: the append step must be atomic.

use std::sync::Barrier;
use std::thread;

use standpipe_core::{Answer, Decision, Span};

use super::Harness;
use super::fixture::{
    Fixture, HOUR, iteration_factor, ok, only, parallel, requests, reserve, state_bytes, used,
};

/// However many processes reserve at the same instant, exactly the limit is admitted.
pub fn exactly_the_limit_is_admitted<H: Harness>(harness: &H) {
    const THREADS: usize = 8;
    const RESERVES: usize = 12;
    for round in 0..10 * iteration_factor() {
        let limit = 40 + round % 17;
        let fixture = Fixture::with(harness, vec![requests(limit, HOUR), parallel(90)]);
        let logs: Vec<H::Log> = (0..THREADS).map(|_| fixture.log()).collect();
        let barrier = Barrier::new(THREADS);
        let run = |log| {
            let mut participant = fixture.participant_on(log);
            barrier.wait();
            (0..RESERVES)
                .filter(|_| admits(&only(ok(participant.submit(vec![reserve(Span::ZERO)])))))
                .count()
        };
        let admitted: usize = thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> =
                logs.into_iter().map(|log| scope.spawn(move || run(log))).collect();
            threads.into_iter().map(|thread| ok(thread.join().map_err(|_| "panicked"))).sum()
        });
        assert_eq!(admitted as u64, limit, "round {round}: admitted of a limit of {limit}");
        let (one, other) = (fixture.replica(), fixture.replica());
        assert_eq!(used(one.state(), 0), limit);
        assert_eq!(state_bytes(one.state()), state_bytes(other.state()));
    }
}

const fn admits(answer: &Answer) -> bool {
    matches!(answer, Answer::Decided(Decision::Admit(_)))
}
