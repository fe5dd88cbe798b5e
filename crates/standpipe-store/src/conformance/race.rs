//! Everybody at once: the step must be atomic.

use std::sync::Barrier;
use std::thread;

use standpipe_core::{Answer, Decision, Span};

use super::Harness;
use super::world::{HOUR, World, long, only, parallel, requests, reserve, sent, state_bytes, used};

/// However many ask at the same instant, exactly as many are admitted as the limit allows.
pub fn exactly_the_limit_is_admitted<H: Harness>(harness: &H) {
    const THREADS: usize = 8;
    const ASKS: usize = 12;
    for round in 0..10 * long() {
        let limit = 40 + round % 17;
        let world = World::with(harness, vec![requests(limit, HOUR), parallel(90)]);
        let logs: Vec<H::Log> = (0..THREADS).map(|_| world.log()).collect();
        let barrier = Barrier::new(THREADS);
        let ask = |log| {
            let mut member = world.member_on(log);
            barrier.wait();
            (0..ASKS)
                .filter(|_| admits(&only(sent(member.submit(vec![reserve(Span::ZERO)])))))
                .count()
        };
        let admitted: usize = thread::scope(|scope| {
            let ask = &ask;
            let threads: Vec<_> =
                logs.into_iter().map(|log| scope.spawn(move || ask(log))).collect();
            threads.into_iter().map(|thread| sent(thread.join().map_err(|_| "panicked"))).sum()
        });
        assert_eq!(admitted as u64, limit, "round {round}: admitted of a limit of {limit}");
        let (one, other) = (world.replica(), world.replica());
        assert_eq!(used(one.state(), 0), limit);
        assert_eq!(state_bytes(one.state()), state_bytes(other.state()));
    }
}

const fn admits(answer: &Answer) -> bool {
    matches!(answer, Answer::Decided(Decision::Admit(_)))
}
