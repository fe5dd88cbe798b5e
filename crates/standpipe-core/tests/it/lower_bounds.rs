//! Guarantee 3 beside every policy: an instant that is only a lower bound is one. No call is
//! admitted before the instant it was last given, unless units came back in between.

use std::collections::BTreeMap;

use proptest::prelude::*;
use standpipe_core::{
    Action, Amounts, Commit, Instant, Key, LimitId, Order, Policy, PoolConfig, Priority, Reason,
    Span, Unit, Zones,
};

use crate::support::cases;
use crate::support::crowd::{Crowd, Guest, guests};
use crate::support::words::{
    HOUR, MINUTE, OUTPUT, REQUESTS, TOKENS, at_end, bucket, capped, parallel, pool, ranked, secs,
    window,
};
use crate::support::world::World;

/// The bounds that the waiters were given, as long as no units came back.
#[derive(Default)]
struct Bounds {
    /// By number of arrival: the latest instant that was called a lower bound, and when and why.
    given: BTreeMap<usize, (Instant, String)>,
    costs: BTreeMap<Key, Amounts>,
    judged: usize,
    complaints: Vec<String>,
}

impl Bounds {
    /// Whether the last event gave units back or let others move up: a call ended that used less
    /// than it took, had a slot or was the last of a higher tier, or an agent with a cap was
    /// admitted. When the cap is reached, its other tickets leave their lines. Floors are left out:
    /// what is kept follows every call of its owner.
    fn gave_back(&self, pool: &Crowd) -> bool {
        let config = &pool.book.config;
        match pool.world.log.last().map(|(event, _, _)| &event.action) {
            Some(Action::Commit(Commit { lease, used, .. })) => {
                let slots = config.limits.iter().any(|limit| limit.id() == LimitId::Parallel);
                let facts = pool.world.state.facts();
                let idle = facts.leases.values().all(|own| own.tier == Priority::Background);
                slots || idle || self.costs.get(lease).is_none_or(|cost| cost != used)
            }
            Some(Action::Reserve(reserve)) => config.agent(&reserve.agent).is_some(),
            _ => false,
        }
    }

    /// Looks at a pool after an event.
    fn look(&mut self, pool: &Crowd) {
        for entry in &pool.admitted[self.judged..] {
            let early = self.given.get(&entry.place).filter(|(until, _)| entry.at < *until);
            self.complaints.extend(early.map(|bound| format!("{entry:?} was given {bound:?}")));
        }
        self.judged = pool.admitted.len();
        if self.gave_back(pool) {
            self.given.clear();
        }
        let state = &pool.world.state;
        let leases = state.facts().leases.iter();
        self.costs = leases.map(|(key, lease)| (*key, lease.call.cost.clone())).collect();
        for waiter in &pool.waiting {
            let refusal = pool.refusal_now(waiter);
            let Some((until, refusal)) = refusal.and_then(|no| Some((no.until?, no))) else {
                continue;
            };
            let known = self.given.entry(waiter.place).or_default();
            if known.0 < until {
                *known = (until, format!("at {:?}: {refusal:?}", pool.world.now));
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn no_call_is_admitted_before_the_bound_it_was_given(
        (config, crowd) in protected(),
        chance: u64,
    ) {
        let mut pool = Crowd::new(&config, chance);
        let mut bounds = Bounds::default();
        pool.play(&crowd, |pool| bounds.look(pool));
        prop_assert!(bounds.complaints.is_empty(), "{:#?}", bounds.complaints);
    }
}

/// A pool where spread, yield, zones, promotion and shares hold calls back, and calls that need it.
fn protected() -> impl Strategy<Value = (PoolConfig, Vec<Guest>)> {
    let limits = prop_oneof![
        Just(vec![window(REQUESTS, 8, MINUTE), window(REQUESTS, 24, secs(300))]),
        Just(vec![bucket(REQUESTS, 8, MINUTE, 8), at_end(window(OUTPUT, 30, MINUTE))]),
        Just(vec![window(TOKENS, 40, MINUTE), bucket(OUTPUT, 30, MINUTE, 20)]),
        Just(vec![at_end(window(OUTPUT, 60, secs(300))), parallel(3)]),
        Just(vec![window(REQUESTS, 20, HOUR), window(TOKENS, 20, MINUTE), parallel(2)]),
    ];
    let switches = any::<[bool; 5]>();
    let shares = (any::<bool>(), 300_u16..=1_000);
    (limits, switches, shares).prop_flat_map(|(limits, switches, (shares, cap))| {
        let [spreads, yields, zones, promotes, fair] = switches;
        let zones = if zones { Zones::All } else { Zones::Off };
        let policy = Policy { spreads, yields, zones, promotes, ..Policy::NONE };
        let mut config = PoolConfig { policy, ..pool(limits) };
        config.order = if fair { Order::Fair } else { Order::Arrival };
        if shares {
            config.agents = vec![capped("modest", cap)];
        }
        let most: Vec<(Unit, u64)> = vec![(REQUESTS, 4), (TOKENS, 9), (OUTPUT, 9)];
        (Just(config), guests(most, secs(40), 30))
    })
}

/// A call that waits for the end of another gets no instant: its promotion is not the earliest.
#[test]
fn promotion_is_no_bound_of_what_the_end_of_a_call_may_bring() {
    let mut config = pool([at_end(window(TOKENS, 100, HOUR))]);
    config.policy = Policy { spreads: true, promotes: true, ..Policy::NONE };
    config.agents = vec![ranked("ralph", Priority::Background)];
    let mut world = World::new(config);
    let lease = world.reserve("p", "picard").cost(&[(TOKENS, 30)]).admitted();
    let ask = |world: &mut World| world.reserve("r", "ralph").cost(&[(TOKENS, 1)]).refused();
    let reply = ask(&mut world);
    assert_eq!((reply.reason, reply.until), (Reason::Spread, None));
    let _ = world.after(Span::secs(1)).commit(lease).used(&[(TOKENS, 8)]).send();
    let reply = ask(&mut world);
    assert!(reply.until.is_some_and(|until| until < world.now + secs(300)), "{reply:?}");
}
