//! Random pools and random things that happen on them.
//!
//! A step names what it is about by a number that `player` takes modulo what there is then, so that
//! a scene stays meaningful when steps are left out while a failure is being shrunk.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use standpipe_core::{
    AgentRule, Backoff, CascadeThreshold, Hit, Key, Limit, Margin, Order, Policy, PoolConfig,
    Priority, RetryBudget, ReturnWindows, Share, Span, ThrottleKind, Unit, Zones, bounds,
};

use super::words::{
    HOUR, MINUTE, OUTPUT, REQUESTS, SECOND, TOKENS, at_end, bucket, capped, floored, paced,
    parallel, pool, ranked, secs, window,
};

/// A pool and what happens on it.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) config: PoolConfig,
    pub(crate) steps: Vec<Step>,
}

/// What a scene may contain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sorts {
    /// Calls that wait. Critical ones never do, so that one of them sees all the room there is.
    pub(crate) tickets: bool,
    /// Pauses, and refusals of the provider.
    pub(crate) pauses: bool,
    /// Agents with floors and caps, and calls with ids.
    pub(crate) shares: bool,
    /// Limits that are raised and lowered on the way.
    pub(crate) changes: bool,
    /// What a pool does when its provider says no, each on or off, and a provider that does.
    pub(crate) policies: bool,
}

pub(crate) const WITH_TICKETS: Sorts =
    Sorts { tickets: true, pauses: true, shares: false, changes: false, policies: false };
pub(crate) const WITH_SHARES: Sorts = Sorts { shares: true, ..WITH_TICKETS };
pub(crate) const WITH_CHANGES: Sorts = Sorts { changes: true, ..WITH_TICKETS };
pub(crate) const WITH_POLICIES: Sorts = Sorts { policies: true, ..WITH_SHARES };

/// One thing that happens.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Pass(Jump),
    Ask {
        who: usize,
        figures: [Figure; 3],
        patience: Span,
        ttl: Option<Span>,
        id: Option<u8>,
    },
    Claim(usize),
    Commit {
        lease: usize,
        figures: [Usage; 3],
        progress: bool,
        refused: bool,
    },
    Cancel(usize),
    Redate(usize),
    Withdraw(usize),
    GiveUp(usize),
    Throttle {
        lease: Option<usize>,
        retry_after: Option<Span>,
    },
    Beat {
        process: usize,
        lease: Option<usize>,
        ttl: Option<Span>,
    },
    Die(usize),
    Pause(Span),
    Resume,
    /// Other amounts for the limits, and another margin.
    Change([u64; 4], u16),
    Again(usize),
    Stray(Key),
    /// The provider refuses a call in any of its ways.
    Refusal {
        lease: Option<usize>,
        who: usize,
        kind: ThrottleKind,
        retry_after: Option<Span>,
        hit: Option<Hit>,
    },
    /// It says how large a limit is.
    Told(Unit, Option<Span>, u64),
    /// A call that is tried again.
    Retry(usize, usize),
    /// A call that must not be made before then.
    Held(usize, Span, Span),
}

/// How time passes.
#[derive(Clone, Debug)]
pub(crate) enum Jump {
    For(u64),
    Periods {
        limit: usize,
        thousandths: u64,
    },
    /// To, or just before or after, an instant that an answer named.
    Named {
        which: usize,
        offset: i64,
    },
    /// The same for an instant at which units stop counting.
    Edge {
        which: usize,
        offset: i64,
    },
    /// The same for an instant at which a lease ends by itself.
    Expiry {
        which: usize,
        offset: i64,
    },
}

/// What a call asks for of one unit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Figure {
    None,
    Of(u64),
    Effective,
    Stated,
    Above,
}

/// What a call says it used of one unit, against what it asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Usage {
    Unsaid,
    Thousandths(u64),
    More(u64),
}

/// Who asks: a process, an agent on it, and the agent's tier.
pub(crate) const CAST: [(&str, &str, Priority); 6] = [
    ("p1", "first", Priority::Critical),
    ("p1", "second", Priority::Standard),
    ("p2", "second", Priority::Standard),
    ("p2", "third", Priority::Background),
    ("p3", "fourth", Priority::Standard),
    ("p3", "first", Priority::Critical),
];

/// The units of the scenes, in the order of a step's figures.
pub(crate) const UNITS: [Unit; 3] = [REQUESTS, TOKENS, OUTPUT];

pub(crate) fn scene(sorts: Sorts) -> impl Strategy<Value = Scene> {
    (config(sorts), vec(step(sorts), 1..60)).prop_map(|(config, steps)| Scene { config, steps })
}

/// A pool of one to four limits.
pub(crate) fn config(sorts: Sorts) -> impl Strategy<Value = PoolConfig> {
    // One that tunes itself is a policy too: who looks on without them knows nothing of it.
    let tuned = if sorts.policies { Margin::Auto } else { Margin::Fixed(200) };
    let margin = prop_oneof![
        3 => Just(Margin::Fixed(0)),
        1 => Just(tuned),
        1 => (0_u16..=999).prop_map(Margin::Fixed),
    ];
    let slack = prop_oneof![2 => Just(Span::ZERO), 1 => Just(Span::millis(50)), 1 => odd_span()];
    let longest = prop_oneof![
        3 => Just(Some(HOUR)),
        1 => Just(None),
        1 => (1_u64..=200).prop_map(|n| Some(secs(n))),
    ];
    let agents = any::<bool>().prop_map(move |some| agents(sorts.shares && some));
    let policy = if sorts.policies { policy().boxed() } else { Just(Policy::NONE).boxed() };
    (vec(limit(), 1..=4), margin, slack, longest, agents, policy).prop_map(
        |(limits, margin, slack, longest_lease, agents, policy)| {
            let mut distinct: Vec<Limit> = Vec::new();
            for limit in limits {
                if distinct.iter().all(|known| known.id() != limit.id()) {
                    distinct.push(limit);
                }
            }
            // One pool in three is fair.
            let fair = distinct.iter().map(Limit::stated).sum::<u64>() % 3 == 0;
            let order = if fair { Order::Fair } else { Order::Arrival };
            PoolConfig { margin, slack, longest_lease, agents, order, policy, ..pool(distinct) }
        },
    )
}

/// Each on or off.
fn policy() -> impl Strategy<Value = Policy> {
    let backoff = (1_u64..=20_000_000, option::of(1_u64..=90_000_000), any::<bool>()).prop_map(
        |(base, cap, jitter)| Backoff {
            base: Span(base),
            cap: cap.map(Span),
            jitter,
            ..Backoff::USUAL
        },
    );
    let windows = prop_oneof![
        2 => Just(ReturnWindows::USUAL),
        1 => (0_u64..=30_000_000).prop_map(|n| ReturnWindows::smear(Span(n))),
    ];
    let budget = (0_u16..=1_000, 0_u16..=3);
    let budget = budget.prop_map(|(per_mille, least)| RetryBudget { per_mille, least });
    let look = (1_u64..=100).prop_map(secs);
    let each = (option::of(backoff), option::of(windows), any::<bool>(), option::of(budget));
    let zones = prop_oneof![Just(Zones::Off), Just(Zones::Long), Just(Zones::All)];
    let before = (zones, any::<[bool; 6]>());
    (each, any::<bool>(), option::of(look), before).prop_map(
        |((backoff, comeback, cascade, retries), learn, terminal_probe, (zones, on))| Policy {
            backoff,
            comeback,
            cascade: cascade.then_some(CascadeThreshold::USUAL),
            retries,
            learn,
            terminal_probe,
            zones,
            yields: on[0],
            spreads: on[5],
            promotes: on[1],
            breaker: on[2],
            reconciles: on[3],
            estimates: on[4],
        },
    )
}

/// The rules for the agents of [`CAST`].
fn agents(shares: bool) -> Vec<AgentRule> {
    let mut rules = vec![
        ranked("first", Priority::Critical),
        ranked("second", Priority::Standard),
        ranked("third", Priority::Background),
    ];
    rules[1].weight = 3;
    if shares {
        rules[1] = floored("second", 300);
        rules.push(capped("fourth", 600));
        let floor: Share = rules[1].floors[0].clone();
        rules[2].floors.push(floor);
    }
    rules
}

pub(crate) fn limit() -> impl Strategy<Value = Limit> {
    let amount = 1_u64..=20;
    let rate = prop_oneof![
        (unit(), amount.clone(), period()).prop_map(|(unit, n, period)| window(unit, n, period)),
        (unit(), amount.clone(), period(), amount)
            .prop_map(|(unit, n, period, burst)| bucket(unit, n, period, burst)),
    ];
    let rate = (rate, prop::bool::weighted(0.3))
        .prop_map(|(limit, end)| if end { at_end(limit) } else { limit });
    let any = prop_oneof![4 => rate, 1 => (1_u64..=4).prop_map(parallel)];
    (any, option::weighted(0.2, odd_span()))
        .prop_map(|(limit, pace)| if let Some(pace) = pace { paced(limit, pace) } else { limit })
}

pub(crate) fn unit() -> impl Strategy<Value = Unit> {
    prop_oneof![Just(REQUESTS), Just(TOKENS), Just(OUTPUT)]
}

fn period() -> impl Strategy<Value = Span> {
    prop_oneof![
        3 => Just(SECOND),
        3 => Just(MINUTE),
        1 => Just(HOUR),
        1 => odd_span(),
        1 => (1_u64..=50).prop_map(Span),
    ]
}

fn odd_span() -> impl Strategy<Value = Span> {
    prop_oneof![(1_u64..=1_000).prop_map(Span), (1_u64..=3_000_000).prop_map(Span)]
}

pub(crate) fn step(sorts: Sorts) -> BoxedStrategy<Step> {
    let lease = || 0_usize..16;
    let mut steps: Vec<(u32, BoxedStrategy<Step>)> = vec![
        (10, jump().prop_map(Step::Pass).boxed()),
        (10, ask(sorts).boxed()),
        (5, commit().boxed()),
        (2, lease().prop_map(Step::Cancel).boxed()),
        (3, lease().prop_map(Step::Redate).boxed()),
        (1, lease().prop_map(Step::Withdraw).boxed()),
        (3, beat().boxed()),
        (1, (0_usize..4).prop_map(Step::Die).boxed()),
        (2, (0_usize..64).prop_map(Step::Again).boxed()),
        (1, stray().prop_map(Step::Stray).boxed()),
    ];
    if sorts.tickets {
        steps.push((6, lease().prop_map(Step::Claim).boxed()));
        steps.push((1, lease().prop_map(Step::GiveUp).boxed()));
    }
    if sorts.pauses {
        let after = option::of((0_u64..90).prop_map(secs));
        let throttle = (option::of(lease()), after)
            .prop_map(|(lease, retry_after)| Step::Throttle { lease, retry_after });
        steps.push((1, throttle.boxed()));
        steps.push((1, (0_u64..90_000_000).prop_map(|n| Step::Pause(Span(n))).boxed()));
        steps.push((1, Just(Step::Resume).boxed()));
    }
    if sorts.changes {
        let change = ([1_u64..=20, 1..=20, 1..=20, 1..=20], 0_u16..=700);
        steps.push((2, change.prop_map(|(n, margin)| Step::Change(n, margin)).boxed()));
    }
    if sorts.policies {
        steps.push((4, refusal().boxed()));
        let told = (unit(), option::of(period()), 0_u64..=25);
        steps.push((1, told.prop_map(|(unit, per, n)| Step::Told(unit, per, n)).boxed()));
        steps
            .push((2, (0..CAST.len(), lease()).prop_map(|(who, of)| Step::Retry(who, of)).boxed()));
        let held = (0..CAST.len(), odd_span(), prop_oneof![Just(Span::ZERO), odd_span()]);
        steps.push((1, held.prop_map(|(who, for_, wait)| Step::Held(who, for_, wait)).boxed()));
    }
    proptest::strategy::Union::new_weighted(steps).boxed()
}

fn refusal() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![
        6 => Just(ThrottleKind::Quota),
        3 => Just(ThrottleKind::Concurrency),
        2 => Just(ThrottleKind::SlowDown),
        2 => Just(ThrottleKind::Overload),
        1 => Just(ThrottleKind::Terminal),
    ];
    let after = option::of(prop_oneof![
        4 => odd_span(),
        1 => (0_u64..90).prop_map(secs),
        1 => Just(Span(u64::MAX)),
    ]);
    let hit = option::of((unit(), option::of(period())));
    let hit = hit.prop_map(|hit| hit.map(|(unit, period)| Hit { unit, period }));
    let lease = option::weighted(0.8, 0_usize..16);
    (lease, 0..CAST.len(), kind, after, hit).prop_map(|(lease, who, kind, retry_after, hit)| {
        Step::Refusal { lease, who, kind, retry_after, hit }
    })
}

fn ask(sorts: Sorts) -> impl Strategy<Value = Step> {
    let patience = if sorts.tickets {
        prop_oneof![Just(Span::ZERO), Just(secs(300)), odd_span(), Just(HOUR)].boxed()
    } else {
        Just(Span::ZERO).boxed()
    };
    let ttl = option::weighted(0.2, prop_oneof![(1_u64..=900).prop_map(secs), odd_span()]);
    let id = option::weighted(0.2, 0_u8..3).prop_map(move |id| id.filter(|_| sorts.shares));
    (0..CAST.len(), [figure(), figure(), figure()], patience, ttl, id)
        .prop_map(|(who, figures, patience, ttl, id)| Step::Ask { who, figures, patience, ttl, id })
}

pub(crate) fn figure() -> impl Strategy<Value = Figure> {
    prop_oneof![
        4 => Just(Figure::None),
        8 => (0_u64..=6).prop_map(Figure::Of),
        2 => Just(Figure::Effective),
        1 => Just(Figure::Stated),
        1 => Just(Figure::Above),
    ]
}

fn commit() -> impl Strategy<Value = Step> {
    let usage = || {
        prop_oneof![
            2 => Just(Usage::Unsaid),
            4 => (0_u64..=1_000).prop_map(Usage::Thousandths),
            1 => (1_u64..=30).prop_map(Usage::More),
        ]
    };
    let progress = prop::bool::weighted(0.4);
    let refused = prop::bool::weighted(0.1);
    (0_usize..16, [usage(), usage(), usage()], progress, refused).prop_map(
        |(lease, figures, progress, refused)| Step::Commit { lease, figures, progress, refused },
    )
}

fn beat() -> impl Strategy<Value = Step> {
    let ttl = option::weighted(0.3, (1_u64..=900).prop_map(secs));
    (0_usize..4, option::weighted(0.4, 0_usize..16), ttl)
        .prop_map(|(process, lease, ttl)| Step::Beat { process, lease, ttl })
}

fn stray() -> impl Strategy<Value = Key> {
    (0_u64..6, 0_u64..9).prop_map(|(session, number)| Key { session, number })
}

fn jump() -> impl Strategy<Value = Jump> {
    let offset = || prop_oneof![Just(-1_i64), Just(0), Just(0), Just(1)];
    let near_silence = bounds::SILENCE.0 - 1_000_000..=bounds::SILENCE.0 + 1_000_000;
    prop_oneof![
        2 => Just(Jump::For(0)),
        3 => (1_u64..=1_000).prop_map(Jump::For),
        2 => (1_u64..=30_000_000).prop_map(Jump::For),
        1 => near_silence.prop_map(Jump::For),
        4 => (0_usize..4, 1_u64..=3_000)
            .prop_map(|(limit, thousandths)| Jump::Periods { limit, thousandths }),
        4 => (0_usize..8, offset()).prop_map(|(which, offset)| Jump::Named { which, offset }),
        4 => (0_usize..16, offset()).prop_map(|(which, offset)| Jump::Edge { which, offset }),
        2 => (0_usize..8, offset()).prop_map(|(which, offset)| Jump::Expiry { which, offset }),
    ]
}
