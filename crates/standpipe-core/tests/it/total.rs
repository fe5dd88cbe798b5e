//! No event, however odd, panics, overflows or breaks the ledger, and everything is bounded.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use standpipe_core::{
    Action, AgentName, AgentRule, Amounts, Answer, AutoMargin, Backoff, CalendarReset,
    CascadeThreshold, Charged, Commit, Configure, Decision, Event, Hit, Instant, Key,
    LearnedConcurrency, LearnedLimit, Limit, LimitId, LimitSelector, Margin, Observed, Order,
    Owner, Policy, PoolConfig, PoolRef, Portion, Priority, Ramp, Reading, Reason, Recovered,
    Reserve, Resets, RetryBudget, ReturnWindows, Rule, Share, Source, Span, State, Text,
    ThrottleKind, Throttled, Unit, Zones, bounds,
};

use crate::support::cases;
use crate::support::words::{
    DAY, REQUESTS, SECOND, agent, parallel, pool, requests_of, text, window,
};
use crate::support::world::{World, why};

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn total(events in vec((odd_event(), odd_time()), 1..60)) {
        let mut state = State::new();
        let mut sent = 0;
        let mut now = 0_u64;
        for (event, time) in events {
            let mut event = event;
            if event.key.session == LIVELY {
                sent += 1;
                event.key.number = sent;
            }
            now = time.after(now);
            let outcome = state.apply(&event, Instant(now));
            if outcome.answer == Answer::SessionEnded && event.key.session == LIVELY {
                sent = 0;
            }
            if let Err(broken) = state.check() {
                return Err(TestCaseError::fail(format!("{event:?}: {broken}")));
            }
            if let Action::Reserve(reserve) = &event.action {
                let _ = state.peek(reserve, Instant(now));
                let _ = state.peek(reserve, Instant::NEVER);
            }
            let _ = state.find(event.key);
            let _ = format!("{state:?}");
            prop_assert_eq!(&state, &state.clone());
        }
    }

    /// The same events give the same state and the same outcomes.
    #[test]
    fn the_same_events_give_the_same_state(events in vec((odd_event(), odd_time()), 1..40)) {
        let (mut one, mut two) = (State::new(), State::new());
        let mut now = 0_u64;
        for (event, time) in events {
            now = time.after(now);
            let (left, right) = (one.apply(&event, Instant(now)), two.apply(&event, Instant(now)));
            prop_assert_eq!(left, right);
            prop_assert_eq!(&one, &two);
        }
    }
}

proptest! {
    #![proptest_config(cases(500))]

    /// A snapshot that decodes can hold any figure. Absurd ones are an error, never a panic.
    #[test]
    fn absurd_figures_in_a_snapshot_are_rejected(
        pace in any::<bool>(),
        (halvings, paced) in (any::<u8>(), any::<bool>()),
        (calls, amount, period) in (any::<u64>(), any::<u64>(), any::<u64>()),
        (per_mille, gap, standing) in (any::<u16>(), any::<u64>(), any::<u64>()),
    ) {
        let mut limit = window(REQUESTS, 100, SECOND);
        limit.pace = pace.then_some(Span(1));
        let mut world = World::new(PoolConfig { policy: Policy::usual(), ..pool([limit.clone()]) });
        let _ = world.reserve("p", "a").admitted();
        let mut facts = world.state.facts().clone();
        let since = facts.clock;
        facts.ramp = Some(Ramp { halvings, since, paced });
        facts.learned.concurrency = Some(LearnedConcurrency { calls, since });
        let (unit, period) = (Unit::Tokens, Span(period));
        facts.learned.limits.push(LearnedLimit { unit, period, amount, refills: paced });
        let (successes, rests) = (0, since);
        let (limit, reported) = (limit.id(), paced);
        facts.auto_margins =
            vec![AutoMargin { limit, per_mille, since, successes, rests, reported }];
        for external in &mut facts.external {
            (external.gap, external.believed) = (gap, standing);
        }
        let _ = State::from_facts(facts);
    }
}

/// A pool to which a great many events come.
fn bulk(config: PoolConfig) -> World {
    let mut world = World::new(config);
    world.bulk = true;
    world
}

#[test]
fn leases_are_bounded_and_the_bound_is_a_clear_refusal() {
    let mut world = bulk(pool([parallel(100_000)]));
    for _ in 0..bounds::LEASES {
        let _ = world.reserve("p", "a").admitted();
    }
    assert_eq!(world.reserve("p", "a").refused().reason, Reason::QueueFull);
    assert_eq!(world.reserve("p", "a").patience(DAY).refused().reason, Reason::QueueFull);
    world.check();
}

/// A call that another ledger admitted was made, whether or not its lease can be held.
#[test]
fn a_recovered_call_beyond_the_bound_is_charged() {
    let all = bounds::LEASES as u64 + 1;
    let mut world = bulk(pool([window(REQUESTS, all, DAY), parallel(100_000)]));
    let mut last = Key { session: 0, number: 0 };
    for _ in 0..bounds::LEASES {
        last = world.reserve("p", "a").admitted();
    }
    let reserve = Box::new(Reserve::new(agent("b"), requests_of(1)));
    let lease = Key { session: 1 << 40, number: 1 };
    let _ = world.send("q", Action::Recovered(Recovered::Reserve { lease, reserve }));
    world.check();
    let _ = world.commit(last).send();
    assert_eq!(world.reserve("p", "a").refused().reason, Reason::Limit);
}

#[test]
fn tickets_are_bounded_and_the_bound_is_a_clear_refusal() {
    let mut world = bulk(pool([window(REQUESTS, 1, DAY)]));
    let _ = world.reserve("p", "a").admitted();
    let first = world.reserve("p", "a").patience(DAY).waits();
    for _ in 1..bounds::TICKETS {
        let _ = world.reserve("p", "a").patience(DAY).waits();
    }
    assert_eq!(world.reserve("p", "a").patience(DAY).refused().reason, Reason::QueueFull);
    world.cancel(first.ticket);
    let _ = world.reserve("p", "a").patience(DAY).waits();
    world.check();
}

#[test]
fn sessions_that_hold_something_are_bounded_and_the_others_are_not() {
    let mut world = bulk(pool([parallel(100_000)]));
    for number in 0..3 * bounds::SESSIONS as u64 {
        let _ = world.heartbeat(&format!("passer-by {number}"));
    }
    for number in 0..bounds::SESSIONS as u64 {
        let _ = world.reserve(&format!("holder {number}"), "a").admitted();
    }
    assert_eq!(world.reserve("one more", "a").refused().reason, Reason::QueueFull);
    world.check();
}

#[test]
fn agents_are_bounded_and_further_ones_share_a_record() {
    let mut world = bulk(pool([window(REQUESTS, 1_000_000, DAY)]));
    for number in 0..2 * bounds::AGENTS {
        let lease = world.reserve("p", &format!("agent-{number}")).admitted();
        world.commit(lease).send();
    }
    assert!(format!("{:?}", world.state).len() < 4_000_000, "no record for each");
    world.check();
}

#[test]
fn ids_are_bounded() {
    let mut world = bulk(pool([window(REQUESTS, 1_000_000, DAY)]));
    for number in 0..2 * bounds::IDS {
        let lease = world.reserve("p", "a").id(&format!("call {number}")).admitted();
        world.commit(lease).send();
    }
    assert!(format!("{:?}", world.state).len() < 4_000_000, "not all are remembered");
    world.check();
}

#[test]
fn a_pool_that_was_told_nothing_admits_nothing_and_says_why() {
    let mut state = State::new();
    let key = Key { session: 1, number: 1 };
    let reserve = Reserve { cost: Amounts::default(), ..plain_reserve() };
    let outcome =
        state.apply(&Event { key, action: Action::Reserve(Box::new(reserve)) }, Instant(5));
    let Answer::Decided(decision) = outcome.answer else { panic!("{outcome:?}") };
    assert!(why(&decision).is_some(), "{decision:?}");
    assert!(!matches!(decision, Decision::Wait(_)), "{decision:?}");
}

/// How the stamp of the next event lies to that of the last.
#[derive(Clone, Copy, Debug)]
enum OddTime {
    After(u64),
    Before(u64),
    At(u64),
}

impl OddTime {
    const fn after(self, now: u64) -> u64 {
        match self {
            Self::After(span) => now.saturating_add(span),
            Self::Before(span) => now.saturating_sub(span),
            Self::At(instant) => instant,
        }
    }
}

/// The session whose numbers are right.
const LIVELY: u64 = 7;

fn odd_time() -> impl Strategy<Value = OddTime> {
    prop_oneof![
        10 => (0_u64..5_000_000).prop_map(OddTime::After),
        4 => Just(OddTime::After(0)),
        2 => (0_u64..500_000_000).prop_map(OddTime::After),
        2 => (0_u64..5_000_000).prop_map(OddTime::Before),
        1 => odd_number().prop_map(OddTime::After),
        1 => odd_number().prop_map(OddTime::At),
    ]
}

fn odd_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0_u64..10,
        2 => 0_u64..5_000_000,
        1 => select(vec![u64::MAX, u64::MAX - 1, 1 << 63, bounds::AMOUNT, bounds::AMOUNT + 1]),
        1 => select(vec![bounds::SPAN.0, bounds::SPAN.0 + 1, bounds::PAUSE.0, bounds::SILENCE.0]),
    ]
}

fn odd_span() -> impl Strategy<Value = Span> {
    odd_number().prop_map(Span)
}

fn odd_key() -> impl Strategy<Value = Key> {
    let session = prop_oneof![8 => Just(LIVELY), 2 => 0_u64..4, 1 => Just(u64::MAX)];
    let number = prop_oneof![8 => 0_u64..40, 1 => Just(u64::MAX)];
    (session, number).prop_map(|(session, number)| Key { session, number })
}

fn odd_event() -> impl Strategy<Value = Event> {
    (odd_key(), odd_action()).prop_map(|(key, action)| Event { key, action })
}

fn odd_action() -> impl Strategy<Value = Action> {
    let reserve = || odd_reserve().prop_map(Box::new);
    let observed = (option::of(odd_key()), vec(odd_reading(), 0..4))
        .prop_map(|(lease, readings)| Action::Observed(Observed { lease, readings }));
    let recovered = prop_oneof![
        (odd_key(), reserve()).prop_map(|(lease, reserve)| Recovered::Reserve { lease, reserve }),
        odd_key().prop_map(|lease| Recovered::Commit { lease }),
        odd_throttled().prop_map(Recovered::Throttled),
    ];
    prop_oneof![
        12 => reserve().prop_map(Action::Reserve),
        6 => odd_commit().prop_map(Action::Commit),
        3 => odd_key().prop_map(|lease| Action::Cancel { lease }),
        3 => odd_key().prop_map(|lease| Action::Redate { lease }),
        1 => odd_key().prop_map(|lease| Action::Withdraw { lease }),
        1 => odd_key().prop_map(|ticket| Action::Leave { ticket }),
        2 => odd_throttled().prop_map(Action::Throttled),
        2 => observed,
        2 => (option::of(odd_key()), option::of(odd_span()))
            .prop_map(|(lease, ttl)| Action::Heartbeat { lease, ttl }),
        1 => prop_oneof![Just(LIVELY), 0_u64..4]
            .prop_map(|session| Action::SessionEnded { session }),
        1 => odd_key().prop_map(|lease| Action::OwnerEnded { lease }),
        6 => (odd_source(), odd_config()).prop_map(|(source, config)| {
            Action::Configure(Box::new(Configure { source, config }))
        }),
        1 => (odd_span(), option::of(select(vec!["a", "ops"]).prop_map(agent)))
            .prop_map(|(length, by)| Action::Pause { length, by }),
        1 => option::of(select(vec!["a", "ops"]).prop_map(agent))
            .prop_map(|by| Action::Resume { by }),
        2 => recovered.prop_map(Action::Recovered),
        1 => Just(Action::Forgotten),
        2 => vec(odd_reset(), 0..3)
            .prop_map(|resets| Action::Calendar { resets }),
    ]
}

fn odd_reserve() -> impl Strategy<Value = Reserve> {
    let words = || option::of(select(vec!["a", "b"]).prop_map(text));
    let owner = option::of(any::<u32>().prop_map(|pid| Owner { pid, started: 9 }));
    let times = (odd_span(), option::of(odd_span()), option::weighted(0.2, odd_span()));
    let keys = (option::of(odd_key()), option::of(odd_key()));
    let id: BoxedStrategy<Option<Text>> = words().boxed();
    let costs = (odd_amounts(), odd_amounts());
    (odd_agent(), option::of(odd_tier()), costs, times, owner, id, keys).prop_map(
        |(agent, priority, costs, (patience, ttl, hold), owner, id, (retry_of, ticket))| Reserve {
            agent,
            priority,
            cost: costs.0,
            patience,
            ttl,
            owner,
            id,
            model: None,
            task: None,
            retry_of,
            ticket,
            hold,
            bytes: patience.0.is_multiple_of(3).then_some(patience.0),
            part_of: PoolRef::new("a/b").filter(|_| patience.0.is_multiple_of(3)),
            at_most: if patience.0.is_multiple_of(2) { costs.1 } else { Amounts::default() },
        },
    )
}

fn plain_reserve() -> Reserve {
    crate::support::player::Player::reserve("a", Amounts::default())
}

fn odd_agent() -> impl Strategy<Value = AgentName> {
    select(vec!["a", "b", "c", AgentName::OTHER]).prop_map(agent)
}

fn odd_tier() -> impl Strategy<Value = Priority> {
    select(Priority::ALL.to_vec())
}

fn odd_unit() -> impl Strategy<Value = Unit> {
    let other = Unit::named("gpu_seconds").expect("a name");
    select(vec![Unit::Requests, Unit::Tokens, Unit::OutputTokens, Unit::Parallel, other])
}

fn odd_amount() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0_u64..12, 1 => Just(bounds::AMOUNT), 1 => 0..=bounds::AMOUNT]
}

fn odd_amounts() -> impl Strategy<Value = Amounts> {
    vec((odd_unit(), odd_amount()), 0..4).prop_map(|mut list| {
        list.sort();
        list.dedup_by(|left, right| left.0 == right.0);
        Amounts::new(list).expect("distinct and within bounds")
    })
}

fn odd_reset() -> impl Strategy<Value = CalendarReset> {
    let day = prop_oneof![4 => Just(DAY), 1 => odd_span()];
    let around = prop_oneof![3 => (0_u64..DAY.0).prop_map(Span), 1 => odd_span()];
    (odd_unit(), day, around, odd_span()).prop_map(|(unit, day, left, odd)| {
        let since = if odd.0 % 4 == 0 { odd } else { Span(DAY.0.saturating_sub(left.0)) };
        CalendarReset { limit: LimitId::Window(unit, day), since, left }
    })
}

fn odd_commit() -> impl Strategy<Value = Commit> {
    (odd_key(), odd_amounts(), any::<bool>(), any::<bool>())
        .prop_map(|(lease, used, progress, refused)| Commit { lease, used, progress, refused })
}

fn odd_throttled() -> impl Strategy<Value = Throttled> {
    let kinds = vec![
        ThrottleKind::Quota,
        ThrottleKind::Concurrency,
        ThrottleKind::SlowDown,
        ThrottleKind::Overload,
        ThrottleKind::Terminal,
    ];
    let hit = (odd_unit(), option::of(odd_span()));
    let hit = option::of(hit.prop_map(|(unit, period)| Hit { unit, period }));
    (option::of(odd_key()), option::of(odd_agent()), select(kinds), option::of(odd_span()), hit)
        .prop_map(|(lease, agent, kind, retry_after, hit)| Throttled {
            lease,
            agent,
            kind,
            retry_after,
            hit,
        })
}

fn odd_reading() -> impl Strategy<Value = Reading> {
    let figure = || option::of(prop_oneof![odd_amount(), odd_number()]);
    let figures = (figure(), figure(), odd_number());
    let resets = (option::of(odd_span()), option::of(odd_span()));
    (odd_unit(), option::of(odd_span()), figures, resets).prop_map(
        |(unit, period, (limit, remaining, coarse), (reset_in, full_in))| Reading {
            unit,
            period,
            limit,
            remaining,
            coarse,
            reset_in,
            full_in,
        },
    )
}

fn odd_source() -> impl Strategy<Value = Source> {
    prop_oneof![
        (option::of(0_u64..4), 0_u64..4)
            .prop_map(|(version, written)| Source::File { version, written }),
        Just(Source::Code),
        Just(Source::Change),
    ]
}

/// Mostly one that can be used.
fn odd_config() -> impl Strategy<Value = PoolConfig> {
    let span = || prop_oneof![6 => (1_u64..5_000_000).prop_map(Span), 1 => odd_span()];
    let margin = prop_oneof![
        Just(Margin::Auto),
        (0_u16..=999).prop_map(Margin::Fixed),
        Just(Margin::Fixed(0)),
    ];
    let times = (span(), span(), span(), option::of(span()));
    let enforce = prop::bool::weighted(0.9);
    let order = select(vec![Order::Arrival, Order::Fair]);
    let rules = (vec(odd_limit(), 0..4), vec(odd_rule(), 0..3), odd_policy(), odd_amounts());
    (margin, times, (enforce, order), rules).prop_map(
        |(margin, (slack, claim, lease_ttl, longest_lease), (enforce, order), rules)| {
            let (limits, agents, policy, prices) = rules;
            PoolConfig {
                limits,
                margin,
                slack,
                claim,
                lease_ttl,
                longest_lease,
                enforce,
                order,
                policy,
                agents,
                prices,
                within: PoolRef::new("a/org"),
            }
        },
    )
}

fn odd_policy() -> impl Strategy<Value = Policy> {
    let span = || prop_oneof![6 => (0_u64..5_000_000).prop_map(Span), 1 => odd_span()];
    let factor = prop_oneof![Just(2_000_u32), any::<u32>()];
    let backoff = (span(), factor, option::of(span()), any::<bool>());
    let backoff = backoff.prop_map(|(base, factor_per_mille, cap, jitter)| Backoff {
        base,
        factor_per_mille,
        cap,
        jitter,
    });
    let windows = prop_oneof![
        Just(ReturnWindows::USUAL).boxed(),
        span().prop_map(ReturnWindows::smear).boxed(),
    ];
    let budget = (any::<u16>(), any::<u16>());
    let budget = budget.prop_map(|(per_mille, least)| RetryBudget { per_mille, least });
    let some = (option::of(backoff), option::of(windows), option::of(budget));
    let zones = select(vec![Zones::Off, Zones::Long, Zones::All]);
    (some, any::<[bool; 8]>(), option::of(span()), zones).prop_map(
        |((backoff, comeback, retries), on, terminal_probe, zones)| Policy {
            backoff,
            comeback,
            cascade: on[0].then_some(CascadeThreshold { agents: 2, within: SECOND }),
            retries,
            learn: on[1],
            terminal_probe,
            zones,
            yields: on[2],
            spreads: on[7],
            promotes: on[3],
            breaker: on[4],
            reconciles: on[5],
            estimates: on[6],
        },
    )
}

fn odd_limit() -> impl Strategy<Value = Limit> {
    let amount = || prop_oneof![8 => 1_u64..12, 1 => odd_amount(), 1 => odd_number()];
    let period = || prop_oneof![6 => Just(SECOND), 2 => Just(DAY), 1 => odd_span()];
    let rule = prop_oneof![
        (odd_unit(), amount(), period()).prop_map(|(unit, amount, period)| Rule::Window {
            unit,
            amount,
            period
        }),
        (odd_unit(), amount(), period(), amount())
            .prop_map(|(unit, amount, period, burst)| Rule::Bucket { unit, amount, period, burst }),
        amount().prop_map(|amount| Rule::Parallel { amount }),
    ];
    let charged = select(vec![Charged::Start, Charged::End]);
    let calendar = Resets::Calendar(text("00:00 UTC"));
    let resets = select(vec![Resets::Rolling, Resets::Provider, calendar]);
    (rule, option::weighted(0.2, odd_span()), charged, resets)
        .prop_map(|(rule, pace, charged, resets)| Limit { rule, pace, charged, resets })
}

fn odd_rule() -> impl Strategy<Value = AgentRule> {
    let portion = prop_oneof![
        (1_u16..=1_000).prop_map(Portion::PerMille),
        (odd_amount(), odd_span()).prop_map(|(amount, period)| Portion::Rate { amount, period }),
        odd_amount().prop_map(Portion::Slots),
    ];
    let of = prop_oneof![
        Just(LimitSelector::All),
        odd_unit().prop_map(LimitSelector::Unit),
        Just(LimitSelector::Parallel)
    ];
    let share = (of, portion).prop_map(|(of, portion)| Share { of, portion }).boxed();
    let weight = prop_oneof![8 => 1_u16..=1_000, 1 => any::<u16>()];
    let shares = (vec(share.clone(), 0..2), vec(share, 0..2));
    (odd_agent(), option::of(odd_tier()), shares, weight).prop_map(
        |(name, priority, (floors, caps), weight)| AgentRule {
            name,
            priority,
            floors,
            caps,
            weight,
        },
    )
}
