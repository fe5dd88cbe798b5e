//! Reconfiguring never hands out a second quota: random changes of limits, kinds, periods, bursts,
//! caps, slack and `enforce` between random calls, against an oracle that counts every limit as if
//! it had always been in force over the remembered charges.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use standpipe_core::{
    Action, AgentRule, Amounts, Answer, Configure, Configured, Decision, Limit, LimitSelector,
    PoolConfig, Portion, Priority, Reason, Share, Source, Span, Unit,
};

use crate::support::cases;
use crate::support::remembered::Remembered;
use crate::support::words::{
    HOUR, MINUTE, OUTPUT, REQUESTS, SECOND, TOKENS, at_end, bucket, capped, cost, paced, parallel,
    pool, ranked, secs, window,
};
use crate::support::world::World;

#[derive(Clone, Debug)]
enum Step {
    Pass(Span),
    Ask { agent: usize, requests: u64, tokens: u64, output: u64 },
    Commit { which: usize, thousandths: u64 },
    Cancel(usize),
    Configure(Box<PoolConfig>),
}

const AGENTS: [&str; 3] = ["first", "second", "third"];

proptest! {
    #![proptest_config(cases(1_500))]

    /// What is admitted fits every limit and cap of the configuration in force, counted over all
    /// charges that are remembered; and what is refused by one of them does not fit.
    #[test]
    fn nothing_is_handed_out_twice(first in config(), steps in vec(step(), 1..50)) {
        let mut world = World::new(first.clone());
        let mut oracle = Remembered::new(first, world.now);
        let mut leases = Vec::new();
        for step in steps {
            match step {
                Step::Pass(span) => drop(world.after(span)),
                Step::Configure(config) => {
                    let _ = world.change((*config).clone());
                    oracle.reconfigure(*config, world.now);
                }
                Step::Ask { agent, requests, tokens, output } => {
                    let figures = [(REQUESTS, requests), (TOKENS, tokens), (OUTPUT, output)];
                    let amounts = cost(&figures);
                    let ask = world.reserve("p", AGENTS[agent]).tier(Priority::Critical);
                    let decision = ask.amounts(amounts.clone()).send();
                    judge(&oracle, agent, &amounts, &decision, &world)?;
                    if let Decision::Admit(grant) = decision {
                        oracle.admit(grant.lease, agent, &amounts, world.now);
                        leases.push((grant.lease, amounts));
                    }
                }
                Step::Commit { which, thousandths } if !leases.is_empty() => {
                    let (lease, amounts) = leases.remove(which % leases.len());
                    let part = |units: u64| units * thousandths / 1_000;
                    let used = amounts.iter().map(|(unit, n)| (unit.clone(), part(n)));
                    let used: Vec<(Unit, u64)> = used.collect();
                    let _ = world.commit(lease).used(&used).send();
                    oracle.commit(lease, &used, world.now);
                }
                Step::Cancel(which) if !leases.is_empty() => {
                    let (lease, _) = leases.remove(which % leases.len());
                    let _ = world.cancel(lease);
                    oracle.cancel(lease);
                }
                Step::Commit { .. } | Step::Cancel(_) => {}
            }
        }
    }
}

fn judge(
    oracle: &Remembered,
    agent: usize,
    cost: &Amounts,
    decision: &Decision,
    world: &World,
) -> Result<(), TestCaseError> {
    match decision {
        Decision::Admit(grant) if grant.instead_of.is_none() => {
            let over = oracle.certainly_over(agent, cost, world.now);
            prop_assert_eq!(over, None, "{} admitted {:?} at {:?}", AGENTS[agent], cost, world.now);
        }
        Decision::Refuse(refusal) if [Reason::Limit, Reason::Cap].contains(&refusal.reason) => {
            let over = oracle.possibly_over(agent, cost, world.now);
            prop_assert!(over, "{} refused {:?}: {:?}", AGENTS[agent], cost, refusal);
        }
        _ => {}
    }
    Ok(())
}

fn step() -> impl Strategy<Value = Step> {
    let pass = prop_oneof![
        3 => (0_u64..=3_000_000).prop_map(Span),
        2 => (1_u64..=90).prop_map(secs),
        1 => (1_u64..=70).prop_map(|minutes| Span(minutes * MINUTE.0)),
    ];
    let ask = (0..AGENTS.len(), 0_u64..=3, 0_u64..=6, 0_u64..=6).prop_map(
        |(agent, requests, tokens, output)| Step::Ask { agent, requests, tokens, output },
    );
    prop_oneof![
        4 => pass.prop_map(Step::Pass),
        8 => ask,
        2 => (0_usize..8, 0_u64..=1_500)
            .prop_map(|(which, thousandths)| Step::Commit { which, thousandths }),
        1 => (0_usize..8).prop_map(Step::Cancel),
        4 => config().prop_map(|config| Step::Configure(Box::new(config))),
    ]
}

fn config() -> impl Strategy<Value = PoolConfig> {
    let slack = prop_oneof![2 => Just(Span::ZERO), 1 => Just(Span::millis(50)), 1 => Just(secs(7))];
    let cap = option::of(prop_oneof![
        (100_u16..=900).prop_map(|share| capped("first", share)),
        (1_u64..=8, period()).prop_map(|(amount, period)| rate_cap(amount, period)),
    ]);
    let slots = option::weighted(0.3, 1_u64..=5);
    (vec(limit(), 1..=3), slots, slack, cap, prop::bool::weighted(0.9)).prop_map(
        |(limits, slots, slack, cap, enforce)| {
            let mut distinct: Vec<Limit> = slots.map(parallel).into_iter().collect();
            for limit in limits {
                if distinct.iter().all(|known| known.id() != limit.id()) {
                    distinct.push(limit);
                }
            }
            let agents = cap.into_iter().collect();
            PoolConfig { slack, agents, enforce, longest_lease: None, ..pool(distinct) }
        },
    )
}

/// A cap in requests with a period of its own.
fn rate_cap(amount: u64, period: Span) -> AgentRule {
    let portion = Portion::Rate { amount, period };
    let caps = vec![Share { of: LimitSelector::Unit(REQUESTS), portion }];
    AgentRule { caps, ..ranked("first", Priority::Critical) }
}

/// Output is always charged at the end, the rest at the start.
fn limit() -> impl Strategy<Value = Limit> {
    let unit = prop_oneof![3 => Just(REQUESTS), 2 => Just(TOKENS), 2 => Just(OUTPUT)];
    let rate =
        (unit, 1_u64..=20, period(), option::of(1_u64..=20), option::weighted(0.1, 1_u64..5));
    rate.prop_map(|(unit, amount, period, burst, pace)| {
        let end = unit == OUTPUT;
        let limit = match burst {
            Some(burst) => bucket(unit, amount, period, burst),
            None => window(unit, amount, period),
        };
        let limit = if end { at_end(limit) } else { limit };
        pace.map_or(limit.clone(), |pace| paced(limit, secs(pace)))
    })
}

fn period() -> impl Strategy<Value = Span> {
    prop_oneof![2 => Just(SECOND), 3 => Just(MINUTE), 1 => Just(secs(90)), 1 => Just(HOUR)]
}

/// Histories are kept at the resolution of the periods in force. After a change they must fit the
/// new ones, or the next snapshot would be rejected as one that no ledger has.
#[test]
fn a_snapshot_after_a_change_of_periods_can_be_loaded() {
    let day = || window(REQUESTS, 100_000, Span(24 * HOUR.0));
    let minute = || window(REQUESTS, 100_000, MINUTE);
    let both = || vec![minute(), day()];
    for (first, second) in [(vec![day()], both()), (both(), vec![day()]), (both(), vec![minute()])]
    {
        let mut world = World::new(pool(first));
        world.bulk = true;
        for n in 0..3_000_u64 {
            world.after(Span(n % 7 * 5_000_000));
            let lease = world.reserve("p", AGENTS[0]).admitted();
            let _ = world.commit(lease).send();
        }
        world.after(secs(1));
        let used = |world: &World| world.state.figures(world.now).last().unwrap().used;
        let before = used(&world);
        let _ = world.change(pool(second));
        world.check();
        assert!(used(&world) <= before, "nothing is invented");
        // The history of what the previous configuration counted is dropped with the next change.
        for limits in [vec![minute()], vec![window(REQUESTS, 99_999, MINUTE)], vec![minute()]] {
            let _ = world.change(pool(limits));
            world.check();
        }
    }
}

/// A bucket that is charged at another time of the call counts other charges: it must not continue
/// with the level of those it counted before.
#[test]
fn a_bucket_charged_at_another_time_counts_what_was_charged_then() {
    let limits = |bucket| pool([window(TOKENS, 9_000, MINUTE), bucket]);
    let rate = || bucket(TOKENS, 2_000, MINUTE, 2_000);
    let mut world = World::new(limits(at_end(rate())));
    let lease = world.reserve("p", AGENTS[0]).cost(&[(TOKENS, 1_000)]).admitted();
    let _ = world.change(limits(rate()));
    let missing = |world: &World| world.state.figures(world.now)[1].used;
    assert_eq!(missing(&world), 1_000, "charged when the call began");
    let _ = world.commit(lease).used(&[(TOKENS, 400)]).send();
    assert_eq!(missing(&world), 400);
}

/// A rule of an agent that only one of two configurations from code has is kept, and the one that
/// came first stays, so that two processes never alternate.
#[test]
fn rules_of_agents_from_code_are_merged() {
    let config = |agents| PoolConfig { agents, ..pool([window(REQUESTS, 10, MINUTE)]) };
    let mut world = World::new(config(vec![]));
    let mut offer = |agents| {
        let configure = Configure { source: Source::Code, config: config(agents) };
        let answer = world.send("x", Action::Configure(Box::new(configure))).answer;
        let rules = world.state.facts().config.iter().flat_map(|config| &config.agents);
        (answer, rules.map(|rule| (rule.name.as_str().to_owned(), rule.priority)).collect())
    };
    let rule = |name: &str, priority| (name.to_owned(), Some(priority));
    let (applied, same) =
        (Answer::Configured(Configured::Applied), Answer::Configured(Configured::Same));
    let first = vec![rule("data", Priority::Background)];
    assert_eq!(offer(vec![ranked("data", Priority::Background)]), (applied.clone(), first.clone()));
    assert_eq!(offer(vec![]), (same.clone(), first.clone()));
    assert_eq!(offer(vec![ranked("data", Priority::Critical)]), (same, first.clone()));
    let both = [first, vec![rule("picard", Priority::Critical)]].concat();
    assert_eq!(offer(vec![ranked("picard", Priority::Critical)]), (applied, both));
}
