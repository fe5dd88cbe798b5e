//! Random crowds against guarantee 7: who comes first is served first, tier by tier, and nobody
//! waits longer than it has to.

use proptest::prelude::*;
use standpipe_core::{
    AgentRule, Instant, Limit, Order, Policy, PoolConfig, Priority, Rule, Span, Unit,
};

use crate::support::book::Guarantee;
use crate::support::cases;
use crate::support::crowd::{Admission, Crowd, Guest, guests};
use crate::support::fair::Fair;
use crate::support::player::Player;
use crate::support::words::{
    DAY, MINUTE, OUTPUT, REQUESTS, SECOND, TOKENS, at_end, bucket, capped, cost, floored, millis,
    paced, parallel, pool, requests_of, secs, unranked, window,
};
use crate::support::world::is_admitted;

proptest! {
    #![proptest_config(cases(300))]

    /// One limit, everybody waits for it: whoever is admitted takes nothing that somebody before it
    /// is waiting for, and within a tier nobody is admitted before an earlier one could be.
    #[test]
    fn order_holds((config, crowd) in one_limit(), chance: u64) {
        let mut pool = Crowd::new(&config, chance);
        pool.play(&crowd, |_| {});
        prop_assert!(pool.complaints.is_empty(), "{:#?}", pool.complaints);
        for tier in Priority::ALL {
            let waited = |entry: &&Admission| entry.tier == tier && entry.waited && entry.prompt;
            let mut admitted: Vec<_> = pool.admitted.iter().filter(waited).collect();
            admitted.sort_by_key(|entry| entry.place);
            let ordered = admitted.is_sorted_by_key(|entry| entry.at);
            prop_assert!(ordered, "{:?}: {:#?}", tier, admitted);
        }
    }

    /// The same in fair order: the tags are those of the oracle, and whoever has a smaller one goes
    /// first, newcomers too.
    #[test]
    fn fair_order_holds(
        (config, crowd) in one_limit(),
        weights in [1_u16..=9, 1..=9, 1..=9],
        chance: u64,
    ) {
        let rule = |(name, weight)| AgentRule { weight, ..unranked(name) };
        let agents = ["guest", "owner", "modest"].into_iter().zip(weights).map(rule).collect();
        let mut config = PoolConfig { order: Order::Fair, agents, ..config };
        // A pace has a line of its own, and a ticket that lapses stands in none.
        config.limits[0].pace = None;
        let crowd = crowd.into_iter().map(|guest| Guest { late: Span::ZERO, ..guest });
        let crowd: Vec<Guest> = crowd.collect();
        let mut pool = Crowd::new(&config, chance);
        let refill = match config.limits[0].rule {
            Rule::Bucket { amount, .. } => amount,
            _ => 0,
        };
        let whole = pool.book.effective(0).max(refill);
        pool.fair = Some(Fair::new(&config, whole));
        pool.play(&crowd, |_| {});
        prop_assert!(pool.complaints.is_empty(), "{:#?}", pool.complaints);
    }

    /// Several limits: what is set aside for somebody stays so while those behind are admitted, and
    /// the first of all is not passed on the limit it waits for.
    #[test]
    fn order_holds_on_every_limit((config, crowd) in many_limits(), chance: u64) {
        let mut pool = Crowd::new(&config, chance);
        pool.play(&crowd, |_| {});
        prop_assert!(pool.complaints.is_empty(), "{:#?}", pool.complaints);
    }

    #[test]
    fn whoever_is_due_is_woken((config, crowd) in many_limits_and_shares(), chance: u64) {
        let mut pool = Crowd::new(&config, chance);
        pool.play(&crowd, Crowd::judge_waking);
        prop_assert!(pool.complaints.is_empty(), "{:#?}", pool.complaints);
    }

    /// Whatever the provider refuses, nobody is forgotten: in the end everybody was admitted, and
    /// nothing was minted on the way.
    #[test]
    fn nobody_is_forgotten_in_trouble(
        (config, crowd) in many_limits_and_shares(),
        chance: u64,
        refuses in 2_usize..8,
        off in 0_u8..5,
    ) {
        let mut policy = Policy::usual();
        match off {
            0 => policy.backoff = None,
            1 => policy.comeback = None,
            2 => policy.cascade = None,
            3 => policy.learn = false,
            _ => {}
        }
        let mut pool = Crowd::new(&PoolConfig { policy, ..config }, chance);
        pool.refuses = refuses;
        pool.play(&crowd, |_| {});
        prop_assert!(pool.complaints.is_empty(), "{:#?}", pool.complaints);
        // What is kept for owners of floors shrinks with the rate, of which the book knows nothing.
        let minted = |(about, _): &&(Guarantee, String)| *about != Guarantee::Floor;
        let minted: Vec<_> = pool.book.complaints.iter().filter(minted).collect();
        prop_assert!(minted.is_empty(), "{:#?}", minted);
    }

    /// Behind others the named instant is a lower bound: when nothing happens but that those who
    /// wait claim, nobody is admitted before it.
    #[test]
    fn until_is_a_lower_bound_behind_others(
        (config, crowd) in many_limits_and_shares(),
        chance: u64,
    ) {
        let mut pool = Crowd::new(&config, chance);
        let mut told: Vec<(usize, Instant)> = Vec::new();
        let come: Vec<Guest> =
            crowd.into_iter().map(|guest| Guest { after: Span::ZERO, ..guest }).collect();
        pool.play_upto(&come);
        for waiter in &pool.waiting {
            told.extend(pool.told_now(waiter).map(|until| (waiter.place, until)));
        }
        pool.play_out();
        prop_assert!(pool.complaints.is_empty(), "{:#?}", pool.complaints);
        for (place, until) in told {
            let entry = pool.admitted.iter().find(|entry| entry.place == place);
            let early = entry.filter(|entry| entry.at < until);
            prop_assert!(early.is_none(), "told {:?}: {:?}", until, early);
        }
    }

    /// The same when those that wait do not even claim: their tickets lapse, end at their deadlines
    /// and go with their sessions, and none of that lets anybody in before the instant it was told.
    #[test]
    fn until_is_a_lower_bound_when_nobody_claims(
        (config, crowd) in many_limits_and_shares(),
        patience in prop::collection::vec(1_u64..=5_000_000, 30),
        spots in prop::collection::vec(0_u64..1_000, 8),
    ) {
        let mut pool = Crowd::new(&config, 1);
        let impatient = |(at, guest): (usize, Guest)| {
            let short = at % 3 == 0 && guest.patience > Span::ZERO;
            let patience = if short { Span(patience[at]) } else { guest.patience };
            Guest { patience, after: Span(guest.after.0 / 100), ..guest }
        };
        let come: Vec<Guest> = crowd.into_iter().enumerate().map(impatient).collect();
        pool.play_upto(&come);
        let now = pool.world.now;
        for waiter in &pool.waiting {
            let Some(until) = pool.told_now(waiter) else { continue };
            // Its own ticket ends with its patience and with its session.
            let known = (waiter.came_at + waiter.guest.patience).min(now + secs(100));
            let wait = until.min(known).since(now).0.saturating_sub(1);
            for spot in spots.iter().map(|spot| wait * spot / 1_000).chain([wait]) {
                let told = pool.world.state.peek(&waiter.claim, now + Span(spot));
                prop_assert!(!is_admitted(&told), "told {:?}, {} after: {:?}", until, spot, waiter);
            }
        }
    }

    /// A critical call is told what there is, whatever is set aside for others.
    #[test]
    fn critical_first((config, crowd) in many_limits(), chance: u64, figures: [u8; 3]) {
        let crowd: Vec<Guest> = crowd
            .into_iter()
            .map(|guest| Guest { tier: guest.tier.max(Priority::Standard), ..guest })
            .collect();
        let [requests, tokens, output] = figures.map(|n| u64::from(n % 8));
        let cost = cost(&[(REQUESTS, requests), (TOKENS, tokens), (OUTPUT, output)]);
        let mut reserve = Player::reserve("boss", cost.clone());
        reserve.priority = Some(Priority::Critical);
        let mut pool = Crowd::new(&config, chance);
        pool.play(&crowd, |pool| {
            let told = pool.world.state.peek(&reserve, pool.world.now);
            if is_admitted(&told) != pool.book.admits(&cost) {
                pool.complaints.push(format!("{told:?} {:?}", pool.book.objections(&cost)));
            }
        });
        prop_assert!(pool.complaints.is_empty(), "{:#?}", pool.complaints);
    }

    /// However many small calls come, a large one is admitted as soon as what was there before it
    /// has aged.
    #[test]
    fn large_call_is_not_starved(
        large in 60_u64..=100,
        small in prop::collection::vec((0_u64..=900_000, 1_u64..=5, any::<bool>()), 100..200),
        arrives in 10_usize..50,
        chance: u64,
    ) {
        let config = PoolConfig { slack: millis(50), ..pool([window(REQUESTS, 100, secs(10))]) };
        let guest = |after: u64, count: u64, waits: bool| Guest {
            after: Span(after),
            agent: "guest",
            tier: Priority::Standard,
            cost: requests_of(count),
            patience: if waits { DAY } else { Span::ZERO },
            late: Span::ZERO,
            stays: SECOND,
            back: 0,
        };
        let mut crowd: Vec<Guest> =
            small.into_iter().map(|(after, count, waits)| guest(after, count, waits)).collect();
        crowd[..arrives].iter_mut().for_each(|early| early.patience = Span::ZERO);
        crowd.insert(arrives, guest(0, large, true));
        let mut pool = Crowd::new(&config, chance);
        pool.play(&crowd, |_| {});
        prop_assert!(pool.complaints.is_empty(), "{:#?}", pool.complaints);
        let entry = pool.admitted.iter().find(|entry| entry.place == arrives).unwrap();
        prop_assert!(entry.at <= entry.came_at + secs(10) + millis(50), "{:?}", entry);
    }
}

/// A pool of one limit and calls that all need it.
fn one_limit() -> impl Strategy<Value = (PoolConfig, Vec<Guest>)> {
    let limit = prop_oneof![
        3 => (2_u64..=12).prop_map(|n| window(REQUESTS, n, SECOND)),
        2 => (1_u64..=12, 2_u64..=12).prop_map(|(n, burst)| bucket(REQUESTS, n, SECOND, burst)),
        1 => (2_u64..=12).prop_map(|n| at_end(window(REQUESTS, n, SECOND))),
        1 => (1_u64..=3).prop_map(parallel),
    ];
    let pace = prop::option::weighted(0.3, (1_u64..=400).prop_map(millis));
    (limit, pace).prop_flat_map(|(limit, pace)| {
        let most = if limit.id().unit().is_some() { limit.stated() } else { 4 };
        let limit = if let Some(pace) = pace { paced(limit, pace) } else { limit };
        let config = pool([limit]);
        let needing = guests(vec![(REQUESTS, most)], SECOND, 30).prop_map(move |mut crowd| {
            crowd.retain(|guest| guest.cost.of(&REQUESTS) != Some(0));
            crowd
        });
        (Just(config), needing)
    })
}

/// The same with an agent that has a floor and one that has a cap, or without.
fn many_limits_and_shares() -> impl Strategy<Value = (PoolConfig, Vec<Guest>)> {
    (many_limits(), any::<[bool; 2]>(), 0_u16..=900, 500_u16..=1_000).prop_map(
        |((mut config, crowd), [shares, fair], floor, cap)| {
            config.order = if fair { Order::Fair } else { Order::Arrival };
            if shares {
                config.agents = vec![floored("owner", floor.max(1)), capped("modest", cap)];
            }
            (config, crowd)
        },
    )
}

/// A pool of two or three limits on different units, and calls that need some of them.
fn many_limits() -> impl Strategy<Value = (PoolConfig, Vec<Guest>)> {
    let limits = prop_oneof![
        Just(vec![window(REQUESTS, 6, SECOND), window(TOKENS, 9, Span::secs(3))]),
        Just(vec![window(REQUESTS, 6, SECOND), bucket(TOKENS, 5, SECOND, 9)]),
        Just(vec![bucket(REQUESTS, 3, SECOND, 6), window(TOKENS, 9, SECOND), parallel(2)]),
        Just(vec![window(REQUESTS, 6, SECOND), at_end(window(OUTPUT, 9, SECOND)), parallel(3)]),
        Just(vec![window(REQUESTS, 4, SECOND), window(REQUESTS, 9, MINUTE), parallel(2)]),
    ];
    limits.prop_flat_map(|limits: Vec<Limit>| {
        let most: Vec<(Unit, u64)> = vec![(REQUESTS, 4), (TOKENS, 9), (OUTPUT, 9)];
        (Just(pool(limits)), guests(most, SECOND, 30))
    })
}
