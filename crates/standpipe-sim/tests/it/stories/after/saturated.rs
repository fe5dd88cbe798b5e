//! How much of a quota is used when two dozen agents of all tiers want more than there is: nearly
//! all, and nobody is refused.

use std::ops::Range;

use standpipe_core::{
    Limit, LimitId, Margin, Notice, PoolConfig, Rule as Declared, Span, Unit as Counted,
};
use standpipe_sim::{
    Call, ClientOptions, Pattern, PlannedCall, Rule, Shape, Unit, Used, Work, World,
};

use super::once::Once;
use super::scene::{Tale, declared, usual};
use super::table::{Table, percent};
use crate::stories::scene::{HOUR, MINUTE, SECOND, STEADY, provider};

const REQUESTS: u64 = 120;
const TOKENS: u64 = 120_000;

/// How the provider counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// In any minute.
    Rolling,
    /// In a bucket that refills all the time.
    Bucket,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sizes {
    /// Many small calls and some large ones, of up to 3 % of the tokens: they run out first.
    Mixed,
    /// Small calls only: the requests run out first.
    Small,
}

impl Counts {
    fn rules(self) -> [Rule; 2] {
        [(Unit::Requests, REQUESTS), (Unit::Tokens, TOKENS)].map(|(unit, amount)| match self {
            Self::Rolling => Rule::Rolling { unit, amount, period: MINUTE },
            Self::Bucket => Rule::Bucket { unit, amount, period: MINUTE, burst: amount },
        })
    }
}

impl Sizes {
    /// The tokens of an agent's calls, on average; they vary by four fifths.
    const fn mean(self, agent: u64) -> u64 {
        match self {
            Self::Mixed if agent.is_multiple_of(3) => 2_000,
            Self::Mixed => 700,
            Self::Small => 500,
        }
    }

    /// The rule that runs out first.
    const fn scarce(self) -> (usize, u64) {
        match self {
            Self::Mixed => (1, TOKENS),
            Self::Small => (0, REQUESTS),
        }
    }
}

/// What came of it.
#[derive(Clone)]
struct Run {
    /// What was used of what runs out first, minute by minute.
    used: Vec<u64>,
    limit: u64,
    refused: usize,
    /// When the margin of a limit fell, and to what.
    rises: Vec<(u64, LimitId, u16)>,
}

impl Run {
    /// What was used in these minutes, in thousandths.
    fn share(&self, minutes: Range<usize>) -> u64 {
        let used = &self.used[minutes];
        used.iter().sum::<u64>() * 1_000 / (self.limit * used.len() as u64)
    }
}

fn saturated(counts: Counts, sizes: Sizes, margin: Margin, minutes: u64) -> Run {
    let tokens = Declared::Window { unit: Counted::Tokens, amount: TOKENS, period: Span(MINUTE) };
    let limits = vec![declared(REQUESTS, MINUTE), Limit::new(tokens)];
    let tale = Tale::new(Shape::OpenAi, PoolConfig { margin, ..usual(limits) });
    let options = ClientOptions { patience: 4 * HOUR, ..ClientOptions::USUAL };
    let agent = |n: u64| {
        let input = sizes.mean(n);
        let (call, used) = (Call { input, ..Call::default() }, Used { input, ..Used::default() });
        let like = PlannedCall { call, used, lasts: 2 * SECOND, ..PlannedCall::default() };
        let work = Work { calls: 1_000, like, pattern: Pattern::AtOnce, vary: 800 };
        let priority = [1, 2, 0, 1][n as usize % 4];
        tale.agent_with(options, &format!("agent {n}"), work.calls(n)).priority(priority)
    };
    let upstream = provider(Shape::OpenAi, &counts.rules());
    let mut world = World::new(upstream, STEADY, (0..24).map(agent).collect(), 1);
    let _ = world.run(minutes * MINUTE);
    let record = world.provider().record();
    let (rule, limit) = sizes.scarce();
    let rise = |(at, notice): (u64, Notice)| match notice {
        Notice::Margin { limit, per_mille } => Some((at / MINUTE, limit, per_mille)),
        _ => None,
    };
    let rises = tale.notices().into_iter().filter_map(rise).collect();
    Run { used: record.used(rule).to_vec(), limit, refused: record.refused(), rises }
}

const ALL: Margin = Margin::Fixed(0);

/// The half hour that is measured, once the margin has fallen to nothing.
const WARM: Range<usize> = 22..52;
/// The same length with nothing to wait for.
const AT_ONCE: Range<usize> = 2..32;

fn with_auto(counts: Counts, sizes: Sizes) -> Run {
    static RUNS: Once<(Counts, Sizes), Run> = Once::new();
    let run = |_: &_| saturated(counts, sizes, Margin::Auto, WARM.end as u64);
    RUNS.of((counts, sizes), run)
}

fn with_all(counts: Counts, sizes: Sizes) -> Run {
    static RUNS: Once<(Counts, Sizes), Run> = Once::new();
    RUNS.of((counts, sizes), |_| saturated(counts, sizes, ALL, AT_ONCE.end as u64))
}

/// Every provider, every mix.
const SCENES: [(Counts, Sizes); 4] = [
    (Counts::Rolling, Sizes::Mixed),
    (Counts::Rolling, Sizes::Small),
    (Counts::Bucket, Sizes::Mixed),
    (Counts::Bucket, Sizes::Small),
];

#[test]
fn with_margin_auto_97_percent_is_used_once_warm_and_nobody_is_refused() {
    for (counts, sizes) in SCENES {
        let run = with_auto(counts, sizes);
        let told = format!("{counts:?}, {sizes:?}");
        assert_eq!(run.refused, 0, "{told}");
        assert!(run.share(WARM) >= 970, "{told}: {}", run.share(WARM));
        // What comes out is better than what is promised.
        let exactly = if matches!(sizes, Sizes::Mixed) { 993 } else { 1_000 };
        assert_eq!(run.share(WARM), exactly, "{told}");
    }
}

#[test]
fn with_margin_zero_99_percent_is_used_and_nobody_is_refused() {
    for (counts, sizes) in SCENES {
        let run = with_all(counts, sizes);
        let told = format!("{counts:?}, {sizes:?}");
        assert_eq!(run.refused, 0, "{told}");
        assert!(run.share(AT_ONCE) >= 990, "{told}: {}", run.share(AT_ONCE));
    }
}

/// The first answer shows what is left, so the margin is 5 % from then on. Each limit loses one
/// percentage point after each minute.
#[test]
fn margin_falls_by_one_percent_a_minute() {
    let run = with_auto(Counts::Rolling, Sizes::Mixed);
    assert_eq!(run.share(1..2), 952);
    let rises = |of: &Counted| -> Vec<(u64, u16)> {
        let its = run.rises.iter().filter(|(_, limit, _)| limit.unit() == Some(of));
        its.map(|(at, _, per_mille)| (*at, *per_mille)).collect()
    };
    let each_minute: Vec<_> = (0..=5).map(|minute| (minute, 50 - 10 * minute as u16)).collect();
    assert_eq!(rises(&Counted::Requests), each_minute);
    assert_eq!(rises(&Counted::Tokens), each_minute);
}

pub(super) fn table() -> Table {
    let (counts, sizes) = (Counts::Rolling, Sizes::Mixed);
    let auto = with_auto(counts, sizes);
    let all = with_all(counts, sizes);
    let bucket = with_auto(Counts::Bucket, sizes);
    let table = Table::empty("saturated", "quota used", "refused");
    table
        .row("margin auto, the second minute", percent(auto.share(1..2)), auto.refused)
        .row("margin auto, once warm", percent(auto.share(WARM)), auto.refused)
        .row("margin auto, once warm, a bucket", percent(bucket.share(WARM)), bucket.refused)
        .row("margin 0", percent(all.share(AT_ONCE)), all.refused)
}
