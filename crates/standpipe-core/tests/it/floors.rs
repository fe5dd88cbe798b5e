//! Floors, ramps and polling together: they take turns, and never bring a pool to a standstill.

use proptest::prelude::*;
use standpipe_core::{
    Action, AgentRule, Decision, Key, LimitSelector, Margin, Observed, Policy, PoolConfig, Portion,
    Priority, Reading, Reason, Share, Span, ThrottleKind, Throttled,
};

use crate::support::cases;
use crate::support::player::Player;
use crate::support::scene::{CAST, Scene, WITH_POLICIES, figure, scene};
use crate::support::words::{
    HOUR, MINUTE, REQUESTS, TOKENS, agent, capped, floored, millis, pool, provider_resets, ranked,
    secs, window,
};
use crate::support::world::{BEGINNING, World, is_admitted};

const FOUR: [&str; 4] = ["a", "b", "c", "d"];

fn floors(names: &[&str], limit: standpipe_core::Limit, margin: u16) -> PoolConfig {
    let agents = names.iter().map(|name| floored(name, 250)).collect();
    PoolConfig { agents, margin: Margin::Fixed(margin), ..pool([limit]) }
}

/// Everybody asks in turn, again and again, for so long. Answers what was admitted.
fn saturate(world: &mut World, names: &[&str], every: Span, length: Span) -> u64 {
    let end = world.now + length;
    let mut admitted = 0;
    while world.now < end {
        for name in names {
            if let Decision::Admit(grant) = world.reserve("p", name).send() {
                admitted += 1;
                let _ = world.commit(grant.lease).send();
            }
        }
        world.after(every);
    }
    admitted
}

/// Floors of the stated limit came to more than what is usable of it, so each owner was kept from
/// its floor by those of the others: 80 units in 40 s where 336 are possible.
#[test]
fn b67_floors_are_shares_of_what_is_usable() {
    let limit = window(standpipe_core::Unit::Requests, 100, secs(10));
    let mut world = World::new(floors(&FOUR, limit, 200));
    let admitted = saturate(&mut world, &FOUR, millis(100), secs(40));
    assert!(admitted >= 320, "{admitted} of 320");
    for name in FOUR {
        let own = world.log.iter().filter(|(event, _, outcome)| {
            let asks = matches!(&event.action, standpipe_core::Action::Reserve(reserve)
                if reserve.agent == agent(name));
            let decision = &outcome.answer;
            asks && matches!(decision, standpipe_core::Answer::Decided(Decision::Admit(_)))
        });
        assert_eq!(own.count(), 80, "{name} gets its share");
    }
}

/// One refusal halved the limit, the floors then took more than all of it, and only a success could
/// end that: three agents that poll were never admitted again.
#[test]
fn b67_a_refusal_does_not_stop_owners_of_floors_for_good() {
    let limit = window(standpipe_core::Unit::Requests, 100, secs(60));
    let config = floors(&FOUR[..3], limit, 200);
    let mut world = World::new(PoolConfig { policy: Policy::usual(), ..config });
    let lease = world.reserve("p", "a").admitted();
    let throttled = Throttled {
        lease: Some(lease),
        agent: None,
        kind: ThrottleKind::Quota,
        retry_after: None,
        hit: None,
    };
    let _ = world.send("p", standpipe_core::Action::Throttled(throttled));
    let admitted = saturate(&mut world, &FOUR[..3], secs(1), secs(180));
    assert!(admitted > 150, "{admitted} of 540 asks in three minutes");
}

/// Two owners that each ask for more than their floor would keep each other out for ever.
#[test]
fn b67_a_floor_that_does_not_cover_a_call_keeps_nothing() {
    let share = |tokens| AgentRule {
        floors: vec![Share {
            of: LimitSelector::Unit(TOKENS),
            portion: Portion::Rate { amount: tokens, period: secs(10) },
        }],
        ..ranked("x", Priority::Standard)
    };
    let rules = [("a", 4), ("b", 4)].map(|(name, n)| AgentRule { name: agent(name), ..share(n) });
    let config = PoolConfig { agents: rules.to_vec(), ..pool([window(TOKENS, 8, secs(10))]) };
    let mut world = World::new(config);
    let mut admitted = 0;
    for _ in 0..60 {
        for name in ["a", "b"] {
            let asked = world.reserve("p", name).cost(&[(TOKENS, 6)]).send();
            admitted += u64::from(is_admitted(&asked));
        }
        world.after(secs(1));
    }
    assert!(admitted >= 5, "{admitted} in a minute of ten seconds each");
}

proptest! {
    #![proptest_config(cases(400))]

    /// From whatever state: if nothing is in flight and everybody keeps asking, somebody is
    /// admitted within one longest period of the end of the pause.
    #[test]
    fn somebody_is_admitted_within_one_period(
        scene in scene(WITH_POLICIES),
        figures in [figure(), figure(), figure()],
    ) {
        let mut config = scene.config.clone();
        for (at, rule) in config.agents.iter_mut().enumerate() {
            let portion = Portion::PerMille([0, 400, 300, 300][at % 4]);
            let floor = Share { of: LimitSelector::All, portion };
            rule.floors = if at % 4 == 0 { Vec::new() } else { vec![floor] };
        }
        let mut player = Player::new(&Scene { config, steps: Vec::new() });
        for step in &scene.steps {
            let _ = player.step(step);
        }
        end_everything(&mut player);
        let asks = poll(&mut player, &figures);
        // What can never fit, or was stopped for good, is not meant.
        let final_word = |no: &Reason| matches!(no, Reason::Never | Reason::Terminal);
        let never = asks.iter().all(|(_, why)| why.as_ref().is_some_and(final_word));
        let admitted = asks.iter().any(|(_, why)| why.is_none());
        prop_assert!(admitted || never, "{:?}", asks);
    }
}

/// Nothing is in flight any more, and nobody waits.
fn end_everything(player: &mut Player) {
    for (process, ..) in CAST {
        let _ = player.world.kill(process);
    }
    let facts = player.world.state.facts();
    let tickets = facts.tickets.values().map(|ticket| ticket.key);
    let keys: Vec<_> = facts.leases.keys().copied().chain(tickets).collect();
    for key in keys {
        let _ = player.world.cancel(key);
    }
}

/// Everybody asks again and again through a pause and one longest period after it, and what is
/// admitted ends at once. Answers each ask's reason; none where it was admitted.
fn poll(
    player: &mut Player,
    figures: &[crate::support::scene::Figure; 3],
) -> Vec<(&'static str, Option<Reason>)> {
    let facts = player.world.state.facts();
    let begins = facts.pause.unwrap_or(player.world.now).max(player.world.now);
    let longest = player.book.config.longest_period() + player.book.config.slack;
    // The return windows and the bound on the probe's answer come after the pause.
    let settles = secs(40);
    // A bucket may be deeper than one period refills, or in debt; a ramp slows it down meanwhile.
    let figures_now = player.world.state.figures(player.world.now);
    let clear = figures_now.iter().filter_map(|figure| figure.clear_at).max();
    let refill = clear.map_or(Span::ZERO, |clear| clear.since(player.world.now));
    let end = begins + longest + settles + refill + refill;
    let gap = Span((end.since(player.world.now).0 / 80).max(1));
    let mut asks = Vec::new();
    while player.world.now <= end + gap {
        // Nothing is ever kept from critical calls: only the others can lock each other out.
        for (process, name, tier) in CAST.into_iter().filter(|cast| cast.2 != Priority::Critical) {
            let cost = player.cost(figures);
            let asked = player.world.reserve(process, name).tier(tier).amounts(cost).send();
            let why = match &asked {
                Decision::Admit(_) => None,
                other => crate::support::world::why(other).map(|no| no.reason),
            };
            if let Decision::Admit(grant) = asked {
                let _ = player.world.cancel(grant.lease);
            }
            asks.push((name, why));
        }
        player.world.after(gap);
    }
    asks
}

/// What is left of the old window is kept for the owner, who does not call. The window of the
/// provider is over, so one call finds out what the new one has.
#[test]
fn a_floor_does_not_hold_the_probe_after_an_announced_reset() {
    let mut world = kept_for_picard();
    let hold = world.reserve("r", "ralph").patience(HOUR).waits();
    assert_eq!(hold.refusal.reason, Reason::Floor, "{hold:?}");
    let other = world.reserve("s", "data").patience(HOUR).waits();
    let until = hold.refusal.until.expect("an instant");
    assert!(until < BEGINNING + MINUTE, "the reset, not the end of the hour: {until:?}");
    world.at(until);
    let Decision::Admit(probe) = world.claim(hold.ticket).send() else { panic!("it may probe") };
    assert!(!is_admitted(&world.claim(other.ticket).send()), "one call probes");
    let _ = world.send("reader", announced(Some(probe.lease), HOUR, 39));
    let _ = world.commit(probe.lease).send();
    assert!(is_admitted(&world.claim(other.ticket).send()), "the window is new");
}

/// A probe that shows no new window takes no more of the floor.
#[test]
fn a_probe_that_shows_no_new_window_is_the_only_one() {
    let mut world = kept_for_picard();
    world.after(secs(40));
    let probe = world.reserve("r", "ralph").admitted();
    let _ = world.commit(probe).send();
    let refused = world.reserve("r", "ralph").refused();
    assert_eq!(refused.reason, Reason::Floor, "{refused:?}");
    let _ = world.reserve("p", "picard").admitted();
}

/// A pool whose rest is kept for picard, and whose window ends in 25 s.
fn kept_for_picard() -> World {
    let limits = [provider_resets(window(REQUESTS, 40, HOUR))];
    let mut world = World::new(PoolConfig { agents: vec![floored("picard", 250)], ..pool(limits) });
    let _ = world.reserve("p", "picard").admitted();
    while let Decision::Admit(grant) = world.reserve("r", "ralph").send() {
        let _ = world.commit(grant.lease).send();
    }
    let _ = world.send("reader", announced(None, secs(25), 5));
    world
}

fn announced(lease: Option<Key>, reset_in: Span, remaining: u64) -> Action {
    let reading = Reading {
        unit: REQUESTS,
        period: None,
        limit: None,
        remaining: Some(remaining),
        coarse: 1,
        reset_in: Some(reset_in),
        full_in: None,
    };
    Action::Observed(Observed { lease, readings: vec![reading] })
}

/// Floors and caps are shares of the limits that the provider states, too.
#[test]
fn shares_count_on_a_learned_limit() {
    let agents = vec![capped("data", 500), floored("picard", 500)];
    let policy = Policy { learn: true, ..Policy::NONE };
    let config = PoolConfig { policy, agents, ..pool([]) };
    let mut world = World::new(config);
    let reading = Reading {
        unit: REQUESTS,
        period: Some(MINUTE),
        limit: Some(10),
        remaining: Some(10),
        coarse: 1,
        reset_in: None,
        full_in: None,
    };
    let observed = Observed { lease: None, readings: vec![reading] };
    let _ = world.send("p", Action::Observed(observed));
    for _ in 0..4 {
        let _ = world.reserve("p", "data").admitted();
    }
    let _ = world.reserve("p", "worf").admitted();
    let refused = |decision| match decision {
        Decision::Refuse(refusal) => refusal.reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(world.reserve("p", "worf").send()), Reason::Floor);
    for _ in 0..5 {
        let _ = world.reserve("p", "picard").admitted();
    }
    world.after(MINUTE);
    for _ in 0..5 {
        let _ = world.reserve("p", "data").admitted();
    }
    assert_eq!(refused(world.reserve("p", "data").send()), Reason::Cap);
}
