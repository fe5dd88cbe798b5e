//! Floors: what is kept for somebody is lent while it is away and is back when it returns, and a
//! floor is never a ceiling.

use standpipe_core::{AgentName, AgentRule, LimitSelector, PoolConfig, Portion, Priority, Share};
use standpipe_sim::{
    ClientOptions, Pattern, PlannedCall, Provider, Report, Shape, WaitMode, Work, World,
};

use super::scene::{Tale, declared, play, usual};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, STEADY, calls, provider, requests};

const AMOUNT: u64 = 120;
const PATIENT: ClientOptions = ClientOptions { patience: 4 * HOUR, ..ClientOptions::USUAL };

/// An agent of a tier with a floor and a cap, in thousandths; 0 is none.
pub(super) fn rule(name: &str, tier: Priority, floor: u16, cap: u16) -> AgentRule {
    let share = |share: u16| {
        let share = Share { of: LimitSelector::All, portion: Portion::PerMille(share) };
        Some(share).filter(|share| share.portion != Portion::PerMille(0)).into_iter().collect()
    };
    let name = AgentName::new(name).unwrap();
    AgentRule { name, priority: Some(tier), floors: share(floor), caps: share(cap), weight: 1 }
}

fn pool(agents: Vec<AgentRule>) -> Tale {
    let config = PoolConfig { agents, ..usual(vec![declared(AMOUNT, MINUTE)]) };
    Tale::new(Shape::Anthropic, config)
}

fn upstream() -> Provider {
    provider(Shape::Anthropic, &[requests(AMOUNT, MINUTE)])
}

/// What a lone agent uses of each minute, where others have floors and are away.
fn lone(tier: Priority, own: u16) -> Vec<u64> {
    let tale = pool(vec![
        rule("release", Priority::Critical, 250, 0),
        rule("review", Priority::Standard, 250, 0),
        rule("crawler", Priority::Background, 250, 0),
        rule("lone", tier, own, 0),
    ]);
    let work = calls(1_300, 700 * MILLI, Pattern::AtOnce);
    let agent = tale.agent_with(PATIENT, "lone", work).priority(tier as u8).lanes(4);
    let (story, world) = play(upstream(), vec![agent]);
    assert_eq!(story.refused, 0, "{story}");
    world.provider().record().used(0)[..10].to_vec()
}

#[test]
fn b38_a_lone_agent_of_any_tier_uses_everything() {
    for tier in Priority::ALL {
        for own in [0, 250] {
            assert_eq!(lone(tier, own), [AMOUNT; 10], "{tier:?} with a floor of {own}");
        }
    }
}

/// When the owner comes back.
const BACK: u64 = 3 * MINUTE + 17 * SECOND;

/// A crowd that takes everything, and the owner of a quarter who was never there before: what all
/// use of each minute, and what the owner is admitted in each minute from its return on.
fn returning(crowd: Priority, wait_mode: WaitMode) -> (Vec<u64>, Vec<usize>) {
    returning_to(250, crowd, wait_mode)
}

/// The same with a floor of so many thousandths.
pub(super) fn returning_to(
    floor: u16,
    crowd: Priority,
    wait_mode: WaitMode,
) -> (Vec<u64>, Vec<usize>) {
    let tale = pool(vec![rule("owner", Priority::Standard, floor, 0)]);
    let like = PlannedCall { lasts: 900 * MILLI, ..PlannedCall::default() };
    let work = |n| Work { calls: 300, like, pattern: Pattern::AtOnce, vary: 500 }.calls(n);
    let one = |n| {
        let agent = tale.agent_with(PATIENT, &format!("crowd {n}"), work(n));
        agent.priority(crowd as u8).lanes(6)
    };
    let mut agents: Vec<_> = (0..4).map(one).collect();
    let mut own = calls(240, 500 * MILLI, Pattern::AtOnce);
    own.iter_mut().for_each(|call| call.at = BACK);
    let options = ClientOptions { wait_mode, ..PATIENT };
    agents.push(tale.agent_with(options, "owner", own).lanes(6));
    let mut world = World::new(upstream(), STEADY, agents, 1);
    let story = world.run(BACK + 6 * MINUTE);
    assert_eq!(story.refused, 0, "{story}");
    let mut periods = vec![0; 6];
    for told in tale.admitted().iter().filter(|told| told.agent == 4) {
        let nth = usize::try_from((told.at - BACK) / MINUTE).unwrap();
        periods.iter_mut().skip(nth).take(1).for_each(|count| *count += 1);
    }
    (world.provider().record().used(0).to_vec(), periods)
}

/// With a ticket, asking for a few seconds at a time, sleeping as long as it is told, or polling
/// with no patience at all: a quarter is thirty calls, from the first minute on.
#[test]
fn b38_who_returns_has_its_floor_within_one_period() {
    let ways = [
        WaitMode::Queue,
        WaitMode::Spells(5 * SECOND),
        WaitMode::Sleep,
        WaitMode::Poll(500 * MILLI),
        WaitMode::Poll(2 * SECOND),
    ];
    for wait_mode in ways {
        for crowd in [Priority::Standard, Priority::Background] {
            let (used, own) = returning(crowd, wait_mode);
            // Until then it was lent.
            assert_eq!(used[..3], [AMOUNT; 3], "{crowd:?}, {wait_mode:?}");
            // Minute by minute, until it has all it wanted.
            let mut so_far = 0;
            for (minute, count) in (1..).zip(&own) {
                so_far += count;
                let least = (30 * minute).min(240);
                assert!(so_far >= least, "{crowd:?}, {wait_mode:?}: {own:?}");
            }
        }
    }
    let (_, own) = returning(Priority::Standard, WaitMode::Poll(2 * SECOND));
    assert_eq!(own, [30; 6]);
    // Nothing is kept from critical calls.
    let (_, own) = returning(Priority::Critical, WaitMode::Queue);
    assert!(own.iter().all(|count| *count < 10), "{own:?}");
}

/// Four agents of each tier, some with a floor, some with a cap, each with work by fits and starts.
fn race(seed: u64) -> (Report, Tale) {
    let mut rules = Vec::new();
    for tier in Priority::ALL {
        let name = |n: u64| format!("p{}-{n}", tier as u8);
        rules.push(rule(&name(0), tier, 150, 0));
        rules.push(rule(&name(1), tier, 100, 400));
        rules.push(rule(&name(2), tier, 0, 300));
    }
    let tale = pool(rules);
    let agents = (0..12_u64).map(|n| {
        let (tier, nth) = (n / 4, n % 4);
        let like = PlannedCall {
            at: n * 11 * SECOND,
            lasts: (300 + 400 * nth) * MILLI,
            ..PlannedCall::default()
        };
        let pattern = Pattern::Apart((1 + nth) * 2 * SECOND);
        let work = Work { calls: 150, like, pattern, vary: 700 }.calls(seed * 100 + n);
        let modes = [
            WaitMode::Queue,
            WaitMode::Sleep,
            WaitMode::Spells(9 * SECOND),
            WaitMode::Poll(SECOND),
        ];
        let options = ClientOptions { wait_mode: modes[nth as usize], ..PATIENT };
        let agent = tale.agent_with(options, &format!("p{tier} {nth}"), work);
        agent.priority(tier as u8).lanes(3)
    });
    (play(upstream(), agents.collect()).0, tale)
}

/// By the ledger's clock in no stretch of a minute more than the limit, and by the provider's not
/// one refusal.
#[test]
fn b38_while_tiers_race_the_sum_never_exceeds_the_limit() {
    for seed in 0..6 {
        let (story, tale) = race(seed);
        assert_eq!((story.done, story.refused), (1_800, 0), "seed {seed}: {story}");
        let at: Vec<_> = tale.admitted().iter().map(|told| told.at).collect();
        let amount = usize::try_from(AMOUNT).unwrap();
        let close = at.windows(amount + 1).find(|calls| calls[amount] - calls[0] < MINUTE);
        assert_eq!(close, None, "seed {seed}: {story}");
        // It was a race: the limit was reached.
        let full = at.windows(amount).any(|calls| calls[amount - 1] - calls[0] < MINUTE);
        assert!(full, "seed {seed}: {story}");
    }
}
