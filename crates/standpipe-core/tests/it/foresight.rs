//! What a pool does before its provider says no: who goes first, who is not forgotten, what is kept
//! and lent, how much of a limit is used, and what is learned from calls.

use standpipe_core::{
    Action, Amounts, Breaker, Decision, Hit, InvalidConfig, Key, LimitId, Margin, Notice, Observed,
    Policy, PoolConfig, Priority, Reading, Reason, Reserve, Span, ThrottleKind, Throttled, Unit,
    Zone, Zones,
};

use crate::support::words::{
    HOUR, MINUTE, REQUESTS, TOKENS, agent, at_end, cost, floored, parallel, pool, ranked, secs,
    used, window,
};
use crate::support::world::{BEGINNING, World, is_admitted};

const FIVE_MINUTES: Span = Span::secs(300);

/// All policies, all agents of the nine's kind: two critical, two standard, one background.
fn usual(limits: impl IntoIterator<Item = standpipe_core::Limit>) -> PoolConfig {
    let mut config = pool(limits);
    config.policy = Policy { zones: Zones::All, ..Policy::usual() };
    config.agents = vec![
        ranked("picard", Priority::Critical),
        ranked("data", Priority::Standard),
        ranked("ralph", Priority::Background),
    ];
    config
}

/// However many background calls wait and however little is left, a critical call goes as soon as
/// there is a unit at all.
#[test]
fn b37_critical_never_waits_behind_background() {
    let mut world = World::new(usual([window(REQUESTS, 20, MINUTE)]));
    for n in 0..30 {
        let _ = world.reserve(&format!("r{n}"), "ralph").patience(HOUR).send();
    }
    let waiting = world.state.facts().tickets.len();
    assert_eq!(waiting, 10, "twenty are in flight, ten wait");
    // One by one the units come back, and each goes to the critical call that asks.
    world.at(BEGINNING + MINUTE);
    for _ in 0..20 {
        let _ = world.reserve("p", "picard").admitted();
    }
    let no = world.reserve("p", "picard").refused();
    assert_eq!(no.reason, Reason::Limit, "only its own kind has used everything");
    assert_eq!(world.state.facts().tickets.len(), waiting, "nobody lost its place");
}

/// Five minutes over asks of thirty seconds each, beside others who never leave it anything: not at
/// 4:59, but at 5:00.
#[test]
fn b37_background_is_not_starved_for_ever() {
    let mut world = World::new(usual([window(REQUESTS, 10, MINUTE)]));
    let began = world.now;
    let mut asks = Vec::new();
    let mut ticket: Option<Key> = None;
    while world.now < began + FIVE_MINUTES {
        // Standard takes whatever there is, second by second.
        while is_admitted(&world.reserve("d", "data").send()) {}
        if (world.now.0 - began.0).is_multiple_of(30_000_000) {
            let hold = world.reserve("r", "ralph").patience(secs(30)).waits();
            let gives_way = matches!(hold.refusal.reason, Reason::Zone | Reason::Spread);
            assert!(gives_way, "{:?} at {:?}", hold.refusal, world.now);
            asks.push(hold.ticket);
            ticket = Some(hold.ticket);
        } else if let Some(ticket) = ticket {
            let _ = world.claim(ticket).waits();
        }
        world.after(secs(1));
    }
    assert_eq!(asks.len(), 10);
    world.at(began + FIVE_MINUTES - Span(1));
    let no = world.reserve("r", "ralph").refused();
    assert!(matches!(no.reason, Reason::Zone | Reason::Spread), "{no:?}");
    assert_eq!(no.until, Some(began + FIVE_MINUTES), "and it is told so");
    world.at(began + FIVE_MINUTES);
    let _ = world.reserve("r", "ralph").admitted();
    // One admission ends it.
    assert_eq!(world.state.denied_for(&agent("ralph"), world.now), None);
}

/// Who gave up for ten minutes begins anew.
#[test]
fn who_does_not_keep_asking_is_not_promoted() {
    let mut world = World::new(usual([window(REQUESTS, 1, HOUR)]));
    let _ = world.reserve("d", "data").admitted();
    let _ = world.reserve("r", "ralph").refused();
    world.live(secs(599));
    let no = world.reserve("r", "ralph").refused();
    assert_eq!(no.reason, Reason::Limit, "after ten minutes of asking it is a standard call");
    world.live(secs(600));
    let no = world.reserve("r", "ralph").refused();
    assert!(matches!(no.reason, Reason::Zone | Reason::Spread), "it had given up: {no:?}");
}

#[test]
fn b38_a_lone_agent_of_any_tier_uses_everything() {
    for (who, tier) in [("picard", 0), ("data", 1), ("ralph", 2)] {
        let mut config = usual([window(REQUESTS, 100, HOUR)]);
        config.agents.push(floored("absent", 900));
        let mut world = World::new(config);
        // The floor of an agent that was never seen is lent over one period from when it was named.
        world.live(HOUR);
        for n in 0..100 {
            let told = world.reserve("s", who).send();
            assert!(is_admitted(&told), "{who} (tier {tier}) after {n}: {told:?}");
        }
        assert_eq!(world.reserve("s", who).refused().reason, Reason::Limit);
    }
}

/// It only polls, without patience, while others want everything.
#[test]
fn b38_a_returning_owner_has_its_floor_back_within_a_period() {
    let mut config = usual([window(REQUESTS, 10, MINUTE)]);
    config.agents.push(floored("troi", 300));
    let mut world = World::new(config);
    let mut waiting: Vec<Key> = Vec::new();
    for _ in 0..14 {
        match world.reserve("d", "data").patience(HOUR).send() {
            Decision::Wait(hold) => waiting.push(hold.ticket),
            Decision::Admit(_) => {}
            Decision::Refuse(no) => panic!("{no:?}"),
        }
        world.after(secs(1));
    }
    let back = world.now;
    let mut got = 0;
    while world.now < back + MINUTE {
        got += usize::from(is_admitted(&world.reserve("t", "troi").send()));
        for ticket in waiting.clone() {
            if is_admitted(&world.claim(ticket).send()) {
                waiting.retain(|known| *known != ticket);
                waiting.push(world.reserve("d", "data").patience(HOUR).waits().ticket);
            }
        }
        world.after(secs(1));
    }
    assert_eq!(got, 3, "three tenths of ten");
}

/// An owner that asks for more than its floor does not draw on it: its polling keeps nothing from a
/// large call that waits.
#[test]
fn b38_polling_for_more_than_a_floor_keeps_nothing_from_others() {
    let mut config = usual([window(REQUESTS, 10, MINUTE)]);
    config.agents.push(floored("troi", 300));
    let mut world = World::new(config);
    world.after(MINUTE);
    let _ = world.reserve("d", "data").requests(10).admitted();
    let large = world.reserve("d", "data").requests(10).patience(HOUR).waits().ticket;
    for _ in 0..90 {
        world.after(secs(1));
        let _ = world.reserve("t", "troi").requests(4).refused();
        if is_admitted(&world.claim(large).send()) {
            return;
        }
    }
    panic!("the large call waits for ever");
}

#[test]
fn floors_beyond_the_whole_are_an_error() {
    let mut config = pool([window(REQUESTS, 10, MINUTE)]);
    config.agents = vec![floored("a", 600), floored("b", 401)];
    let Err(InvalidConfig::Floors(LimitId::Window(..))) = config.check() else {
        panic!("{:?}", config.check());
    };
    config.agents = vec![floored("a", 600), floored("b", 400)];
    assert_eq!(config.check(), Ok(()));
}

fn margin(world: &World) -> u16 {
    let margins = &world.state.facts().auto_margins;
    margins.first().map_or(200, |margin| margin.per_mille)
}

fn quota(hit: Option<Hit>) -> Action {
    Action::Throttled(Throttled {
        lease: None,
        agent: None,
        kind: ThrottleKind::Quota,
        retry_after: Some(Span(1)),
        hit,
    })
}

/// So many calls one after the other, each a success, over so long.
fn successes(world: &mut World, count: u32, over: Span) {
    for _ in 0..count {
        let lease = world.reserve("s", "data").admitted();
        world.commit(lease).send();
        world.after(Span(over.0 / u64::from(count)));
    }
}

#[test]
fn margin_falls_to_nothing() {
    let config = PoolConfig { margin: Margin::Auto, ..pool([window(REQUESTS, 1_000, MINUTE)]) };
    let mut world = World::new(config);
    for minute in 0..25 {
        successes(&mut world, 30, MINUTE + secs(1));
        let expected = 200_u16.saturating_sub(10 * minute);
        assert!(margin(&world).abs_diff(expected) <= 10, "{} at {minute}", margin(&world));
    }
    assert_eq!(margin(&world), 0);
    assert_eq!(world.state.figures(world.now)[0].effective, 1_000);
}

#[test]
fn margin_rises_to_half_and_rests_for_ten_periods() {
    let config = PoolConfig { margin: Margin::Auto, ..pool([window(REQUESTS, 1_000, MINUTE)]) };
    let mut world = World::new(config);
    let mut expected = 200;
    for _ in 0..10 {
        let _ = world.send("s", quota(None));
        expected = 500.min(1_000 - (1_000 - expected) * 9 / 10);
        assert_eq!(margin(&world), expected);
        world.after(secs(1));
    }
    assert_eq!(expected, 500);
    for _ in 0..9 {
        successes(&mut world, 30, MINUTE);
        assert_eq!(margin(&world), 500, "it rests");
    }
    successes(&mut world, 90, Span::secs(180));
    assert!(margin(&world) < 500, "and then falls again");
}

/// A refusal that names a limit is about that one; a limit that changes keeps what was found out.
#[test]
fn b24_margin_is_each_limits_own_and_outlives_a_change() {
    let limits = |amount| [window(REQUESTS, amount, MINUTE), window(TOKENS, 1_000, MINUTE)];
    let config = PoolConfig { margin: Margin::Auto, ..pool(limits(100)) };
    let mut world = World::new(config.clone());
    let _ = world.send("s", quota(Some(Hit { unit: REQUESTS, period: None })));
    let effective = |world: &World| {
        let figures = world.state.figures(world.now);
        [figures[0].effective, figures[1].effective]
    };
    assert_eq!(effective(&world), [72, 800]);
    let _ = world.change(PoolConfig { limits: limits(1_000).to_vec(), ..config.clone() });
    assert_eq!(effective(&world), [720, 800]);
    let _ = world.change(PoolConfig { margin: Margin::Fixed(0), ..config });
    assert_eq!(effective(&world), [100, 1_000]);
}

/// A call that uses no `content` did not hit the limit of `content`, however full that is.
#[test]
fn a_refusal_is_not_about_a_limit_that_the_call_does_not_draw_on() {
    let limits = [window(REQUESTS, 1_000, MINUTE), window(TOKENS, 10, MINUTE)];
    let config = PoolConfig { margin: Margin::Auto, ..pool(limits) };
    let mut world = World::new(config);
    let _ = world.reserve("s", "writer").cost(&[(REQUESTS, 1), (TOKENS, 6)]).admitted();
    let reader = world.reserve("s", "reader").cost(&[(REQUESTS, 1), (TOKENS, 0)]).admitted();
    world.after(secs(1));
    let Action::Throttled(refused) = quota(None) else { unreachable!() };
    let _ = world.send("s", Action::Throttled(Throttled { lease: Some(reader), ..refused }));
    let margins = world.state.facts().auto_margins.iter();
    let raised = margins.filter(|own| own.per_mille > 200).map(|own| own.limit.clone());
    assert_eq!(raised.collect::<Vec<_>>(), [LimitId::Window(REQUESTS, MINUTE)]);
}

#[test]
fn overloads_and_too_many_at_once_do_not_touch_margin() {
    let config = PoolConfig { margin: Margin::Auto, ..pool([window(REQUESTS, 100, MINUTE)]) };
    let mut world = World::new(config);
    for kind in [ThrottleKind::Overload, ThrottleKind::Concurrency, ThrottleKind::SlowDown] {
        let Action::Throttled(told) = quota(None) else { unreachable!() };
        let _ = world.send("s", Action::Throttled(Throttled { kind, ..told }));
        world.after(secs(60));
        assert_eq!(margin(&world), 200, "{kind:?}");
    }
}

#[test]
fn a_zone_is_left_only_two_beyond_where_it_began() {
    let mut world = World::new(usual([window(REQUESTS, 100, HOUR)]));
    let mut taken: Vec<Key> = (0..59).map(|_| world.reserve("p", "picard").admitted()).collect();
    assert_eq!(world.state.zone(), Zone::Green);
    taken.push(world.reserve("p", "picard").admitted());
    assert_eq!(world.state.zone(), Zone::Amber, "40 % is left");
    let mut back = |world: &mut World, zone: Zone| {
        let _ = world.cancel(taken.pop().expect("some are left"));
        assert_eq!(world.state.zone(), zone);
    };
    back(&mut world, Zone::Amber);
    back(&mut world, Zone::Amber);
    back(&mut world, Zone::Green);
}

const INPUT: Unit = Unit::InputTokens;

fn sized(world: &mut World, who: &str, bytes: Option<u64>, tokens: u64) {
    let mut reserve = Reserve::new(agent(who), cost(&[]));
    reserve.bytes = bytes;
    let lease = match world.send("s", Action::from(reserve)).answer {
        standpipe_core::Answer::Decided(Decision::Admit(grant)) => grant.lease,
        told => panic!("{told:?}"),
    };
    world.commit(lease).used(&[(INPUT, tokens)]).send();
}

fn estimate(world: &World, who: &str, bytes: Option<u64>, at_most: &Amounts) -> u64 {
    let mut reserve = Reserve::new(agent(who), cost(&[]));
    (reserve.bytes, reserve.at_most) = (bytes, at_most.clone());
    world.state.admission_steps(&reserve, world.now).cost.of(&INPUT).expect("it is limited")
}

#[test]
fn what_is_not_said_is_estimated_by_agent_then_by_pool() {
    let mut world = World::new(usual([window(INPUT, 1_000_000, HOUR)]));
    let none = Amounts::default();
    assert_eq!(estimate(&world, "blog", None, &none), 1, "nothing is known");
    assert_eq!(estimate(&world, "blog", Some(4_000), &none), 1_000, "four bytes to a token");
    let most = used(&[(INPUT, 64_000)]);
    assert_eq!(estimate(&world, "blog", None, &most), 64_000, "what was promised");
    for _ in 0..30 {
        sized(&mut world, "blog", None, 1_000);
    }
    for _ in 0..30 {
        sized(&mut world, "news", Some(40_960), 8_000);
    }
    let near = |told: u64, size: u64| {
        assert!((size..=size + size / 8).contains(&told), "{told}, not {size}");
    };
    near(estimate(&world, "blog", None, &most), 1_000);
    near(estimate(&world, "news", None, &most), 8_000);
    near(estimate(&world, "newcomer", None, &most), 8_000);
    // 8,000 for 40,960 bytes are 800 for 4,096.
    near(estimate(&world, "news", Some(4_096), &none), 800);
    assert_eq!(estimate(&world, "news", None, &used(&[(INPUT, 500)])), 500);
    // Never more than fits at all.
    assert_eq!(estimate(&world, "news", Some(u64::MAX), &none), 1_000_000);
}

/// What a call has used so far costs so far: signs of life cost nothing, and what is known later
/// counts once.
#[test]
fn money_so_far_is_only_of_what_was_used_so_far() {
    let mut config = usual([at_end(window(Unit::Usd, 1_000_000, HOUR))]);
    config.prices = used(&[(INPUT, 1_000_000)]);
    let mut world = World::new(config);
    let lease = world.reserve("s", "blog").cost(&[(INPUT, 500)]).admitted();
    let held = |world: &World| {
        let figures = world.state.figures(world.now);
        (figures[0].used, figures[0].held)
    };
    assert_eq!(held(&world), (0, 500));
    world.commit(lease).progress().send();
    assert_eq!(held(&world), (0, 500));
    world.commit(lease).used(&[(INPUT, 100)]).progress().send();
    assert_eq!(held(&world), (100, 400));
    world.commit(lease).used(&[(INPUT, 120)]).send();
    assert_eq!(held(&world), (120, 0));
}

fn told_left(world: &mut World, remaining: u64) {
    let reading = Reading {
        unit: Unit::Requests,
        period: None,
        limit: Some(1_000),
        remaining: Some(remaining),
        coarse: 1,
        reset_in: None,
        full_in: None,
    };
    let observed = Observed { lease: None, readings: vec![reading] };
    let _ = world.send("s", Action::Observed(observed));
}

/// However the provider's count jumps, the ledger never believes in more than its own.
#[test]
fn the_providers_count_only_ever_lowers_the_view() {
    let mut world = World::new(usual([window(REQUESTS, 1_000, HOUR)]));
    let _ = world.reserve("s", "data").requests(500).admitted();
    for remaining in [1_000, 900, 1_000, 600, 1_000, 501] {
        told_left(&mut world, remaining);
        world.after(secs(70));
        assert_eq!(world.state.figures(world.now)[0].left, 500);
    }
    told_left(&mut world, 300);
    assert_eq!(world.state.figures(world.now)[0].left, 500, "once is nothing");
    told_left(&mut world, 300);
    assert_eq!(world.state.figures(world.now)[0].left, 300);
    assert_eq!(world.state.outside(world.now).first().map(|(_, units)| *units), Some(200));
}

/// The breaker goes by what is burnt, and refusals burn nothing: asking in vain does not trip it,
/// and what trips it withholds nothing.
#[test]
fn b42_our_own_refusals_do_not_feed_the_breaker() {
    let mut world = World::new(usual([window(REQUESTS, 100, MINUTE)]));
    let _ = world.reserve("s", "data").requests(40).admitted();
    for _ in 0..1_000 {
        let _ = world.reserve("s", "data").requests(99).refused();
    }
    assert_eq!(world.state.breaker(world.now), Breaker::Closed);
    let _ = world.reserve("s", "data").requests(40).admitted();
    assert_eq!(world.state.breaker(world.now), Breaker::PreEmptive, "40 in no time, and 40 more");
    let ask = Reserve::new(agent("data"), cost(&[(REQUESTS, 20)]));
    let advice = world.state.advise(&ask, world.now).expect("it sees the wall");
    assert_eq!((advice.wait, advice.fits), (MINUTE, 0));
    let _ = world.reserve("s", "data").requests(20).admitted();
    assert_eq!(world.state.breaker(world.now + secs(5)), Breaker::Closed, "nothing is burnt");
    let _ = world.send("s", quota(None));
    assert_eq!(world.state.breaker(world.now), Breaker::Open);
}

/// A call of a higher tier that waits is active for as long as it waits, also when a look comes
/// long after the last event.
#[test]
fn looking_later_beside_a_waiting_call_says_what_asking_says() {
    let mut world = World::new(usual([window(REQUESTS, 10, HOUR)]));
    let all = world.reserve("d", "data").requests(10).admitted();
    world.commit(all).send();
    let _ = world.reserve("d", "data").patience(HOUR).waits();
    let later = world.now + secs(31);
    let looked = match world.reserve("r", "ralph").peek_at(later) {
        Decision::Refuse(refusal) => refusal.reason,
        other => panic!("{other:?}"),
    };
    world.at(later);
    let asked = world.reserve("r", "ralph").refused().reason;
    assert_eq!((looked, asked), (Reason::Spread, Reason::Spread));
}

/// The place a promoted agent kept is before everybody who came since: looking names it too.
#[test]
fn looking_names_the_place_that_a_promoted_agent_kept() {
    let mut config = pool([parallel(1)]);
    config.policy.promotes = true;
    let mut world = World::new(config);
    let _slot = world.reserve("p", "holder").admitted();
    let background = Priority::Background;
    let patience = Span::secs(301);
    let _ = world.reserve("q", "late").tier(background).patience(patience).waits();
    world.after(Span::secs(302));
    let _ = world.reserve("r", "other").patience(Span::secs(60)).waits();
    let ask = |world: &mut World| {
        let ask = world.reserve("q", "late").tier(background).patience(Span::secs(60));
        match ask.peek() {
            Decision::Wait(queued) => queued.position,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(&mut world), 1);
    let waits = world.reserve("q", "late").tier(background).patience(Span::secs(60)).waits();
    assert_eq!(waits.position, 1);
}

/// A promoted agent keeps its place in standard over however many asks, also without patience:
/// those who come later do not pass it.
#[test]
fn b37_a_promoted_agent_keeps_its_place_over_short_asks() {
    for patience in [Span::ZERO, secs(3)] {
        let mut config = usual([parallel(1)]);
        config.policy.zones = Zones::Off;
        let mut world = World::new(config);
        let mut held = world.reserve("d", "data").ttl(HOUR).admitted();
        let began = world.now;
        while world.now <= began + FIVE_MINUTES {
            let _ = world.reserve("r", "ralph").patience(patience).send();
            world.after(secs(5));
        }
        // From now on three more standard calls wait at any time, each behind the other.
        let mut line: Vec<Key> = Vec::new();
        for turn in 0..20 {
            while line.len() < 3 {
                line.push(world.reserve("d", "data").patience(HOUR).ttl(HOUR).waits().ticket);
            }
            world.after(secs(1));
            let asked = world.reserve("r", "ralph").patience(patience).send();
            assert!(!is_admitted(&asked), "the slot is taken");
            world.commit(held).send();
            let served = match &asked {
                Decision::Wait(hold) => is_admitted(&world.claim(hold.ticket).send()),
                _ => is_admitted(&world.reserve("r", "ralph").patience(patience).send()),
            };
            if served {
                assert!(turn <= 1, "only those who were there when it was promoted come first");
                let promoted = |notice: &&Notice| matches!(notice, Notice::Promoted { .. });
                assert_eq!(world.notices().filter(promoted).count(), 1, "told once");
                held = Key::default();
                break;
            }
            held = world.claim(line.remove(0)).admitted();
        }
        assert_eq!(held, Key::default(), "with a patience of {patience:?} it is never served");
    }
}

/// What a cost does not say of a limit over its bound is not nothing: such a call waits too.
#[test]
fn a_limit_over_its_bound_holds_back_those_who_do_not_say_what_they_take() {
    let mut world = World::new(usual([window(TOKENS, 1_000, MINUTE)]));
    let lease = world.reserve("s", "blog").admitted();
    world.commit(lease).used(&[(TOKENS, 5_000)]).send();
    let no = world.reserve("s", "blog").refused();
    assert_eq!((no.reason, no.until), (Reason::Limit, Some(world.now + MINUTE)));
}

/// Where a provider counts both directions together, a cost in both is a cost of that, and so is
/// what was used.
#[test]
fn tokens_are_input_and_output_together() {
    let mut world = World::new(usual([window(TOKENS, 10_000, MINUTE)]));
    let both = [(Unit::InputTokens, 4_000), (Unit::OutputTokens, 5_000)];
    let lease = world.reserve("s", "blog").cost(&both).admitted();
    assert_eq!(world.state.figures(world.now)[0].used, 9_000);
    assert_eq!(world.reserve("s", "blog").cost(&both).refused().short_by, 8_000);
    world.commit(lease).used(&[(Unit::InputTokens, 3_900), (Unit::OutputTokens, 100)]).send();
    assert_eq!(world.state.figures(world.now)[0].used, 4_000);
    // A prompt by its bytes, four to a token, and the most output that was promised.
    let mut reserve = Reserve::new(agent("blog"), cost(&[]));
    (reserve.bytes, reserve.at_most) = (Some(400), used(&[(Unit::OutputTokens, 1_000)]));
    let takes = world.state.admission_steps(&reserve, world.now).cost;
    assert_eq!(takes.of(&TOKENS), Some(1_100));
}

/// A call that names nothing takes one request, one point, no content, and an estimate of tokens
/// that is never above the limit.
#[test]
fn b64_what_a_call_does_not_name_is_taken_by_default_and_never_above_the_limit() {
    let declared = Unit::named("images").unwrap();
    let limits = [
        window(Unit::Points, 9, MINUTE),
        window(Unit::Content, 2, MINUTE),
        window(declared.clone(), 2, MINUTE),
        window(TOKENS, 5, MINUTE),
    ];
    let mut world = World::new(usual(limits));
    for _ in 0..20 {
        let large = world.reserve("p", "a").cost(&[(TOKENS, 5)]).admitted();
        let _ = world.commit(large).used(&[(TOKENS, 900)]).send();
        world.live(HOUR);
    }
    let _ = world.reserve("p", "a").admitted();
    let used: Vec<u64> = world.state.figures(world.now).iter().map(|own| own.used).collect();
    assert_eq!(used, [1, 0, 0, 5]);
}

/// A few calls are enough to learn from: the sixth call of an agent that names no tokens takes what
/// its calls used, and so does the first of another agent.
#[test]
fn an_omitted_unit_takes_what_a_few_calls_used() {
    let mut world = World::new(usual([window(TOKENS, 100_000, MINUTE)]));
    let takes = |world: &World, name: &str| {
        let reserve = Reserve::new(agent(name), cost(&[]));
        world.state.admission_steps(&reserve, world.now).cost.of(&TOKENS)
    };
    for _ in 0..5 {
        assert_eq!(takes(&world, "report"), Some(1));
        let lease = world.reserve("s", "report").admitted();
        let _ = world.commit(lease).used(&[(TOKENS, 700)]).send();
    }
    for name in ["report", "other"] {
        let learned = takes(&world, name).expect("the pool limits tokens");
        assert!((700..=700 + 700 / 8).contains(&learned), "{name}: {learned}");
    }
}
