//! Fair order: one agent's backlog beside agents that have little to do.

use standpipe_core::{Order, PoolConfig};
use standpipe_sim::{ClientOptions, Pattern, Provider, Shape};

use super::scene::{Tale, declared, play, usual};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, calls, provider, requests};

const PATIENT: ClientOptions = ClientOptions { patience: 4 * HOUR, ..ClientOptions::USUAL };

fn upstream() -> Provider {
    provider(Shape::OpenAi, &[requests(60, MINUTE)])
}

/// Five hundred calls of one agent wait, then ten agents want one each: when the last of the ten
/// was admitted, and when the last of all.
fn beside_a_backlog(order: Order) -> (u64, u64) {
    let config = PoolConfig { order, ..usual(vec![declared(60, MINUTE)]) };
    let tale = Tale::new(Shape::OpenAi, config);
    let backlog = calls(500, 300 * MILLI, Pattern::AtOnce);
    let mut agents = vec![tale.agent_with(PATIENT, "bulk", backlog).lanes(500)];
    for n in 0..10 {
        let mut own = calls(1, 300 * MILLI, Pattern::AtOnce);
        own[0].at = 5 * SECOND;
        agents.push(tale.agent_with(PATIENT, &format!("news {n}"), own));
    }
    let (story, world) = play(upstream(), agents);
    assert_eq!((story.refused, world.provider().record().over_admissions()), (0, 0), "{story}");
    let admitted = tale.admitted();
    let last = |of: &dyn Fn(usize) -> bool| {
        admitted.iter().filter(|call| of(call.agent)).map(|call| call.at).max().unwrap_or(0)
    };
    (last(&|agent| agent != 0), last(&|_| true))
}

/// The ten wait for one round, not for five hundred calls, and it takes nobody longer altogether.
#[test]
fn ten_agents_beside_500_calls_of_one() {
    let (arrival, all) = beside_a_backlog(Order::Arrival);
    let (fair, all_fair) = beside_a_backlog(Order::Fair);
    assert!(arrival >= 8 * MINUTE, "in order of arrival they wait for all of it: {arrival}");
    assert!(fair < MINUTE + 5 * SECOND, "they wait for the next round: {fair}");
    assert_eq!(all / SECOND, all_fair / SECOND, "the whole takes as long");
}
