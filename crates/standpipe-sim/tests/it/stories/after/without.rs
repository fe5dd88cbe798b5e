//! What each policy is good for: what gets worse when it alone is switched off.

mod beside;
mod defaults;
mod foreseen;
mod long;
mod refused;
mod slow;

use std::fmt;

use standpipe_core::{Margin, Policy, Priority, Zones};
use standpipe_sim::{Report, WaitMode};

use self::foreseen::{hammered, unknown_sizes};
use self::refused::{crowded, declared_too_high, taken_twice};
use super::once::Once;
use super::table::{Table, percent, seconds};
use super::{floors, foreign, herd, inversion, quota, stacking};
use crate::stories::scene::SECOND;

const ALL: Margin = Margin::Fixed(0);

/// Something that was measured, with a policy and without it.
#[derive(Clone)]
struct Line {
    policy: &'static str,
    what: &'static str,
    with: Figure,
    without: Figure,
    effect: Effect,
}

/// What a policy does to a figure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// The figure is better with it.
    Brings,
    /// The figure is worse with it.
    Costs,
    /// The figure is the same: in this scene the policy does not earn its place.
    Nothing,
}

/// A figure, and whether more of it is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Figure {
    /// Of which fewer are better.
    Few(usize),
    /// Of which more are better.
    Many(usize),
    /// The shorter the better.
    Time(u64),
    /// In thousandths, the more the better.
    Share(u64),
}

impl Figure {
    /// Whether it is better than another.
    fn beats(self, other: Self) -> bool {
        match (self, other) {
            (Self::Few(one), Self::Few(other)) => one < other,
            (Self::Many(one), Self::Many(other)) => one > other,
            (Self::Time(one), Self::Time(other)) => one < other,
            (Self::Share(one), Self::Share(other)) => one > other,
            _ => false,
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Few(count) | Self::Many(count) => write!(f, "{count}"),
            Self::Time(length) => f.write_str(&seconds(*length)),
            Self::Share(share) => f.write_str(&percent(*share)),
        }
    }
}

/// The usual policy but for one thing.
fn but(change: impl Fn(&mut Policy)) -> Policy {
    let mut policy = Policy::usual();
    change(&mut policy);
    policy
}

/// Runs a scene with everything, and without one thing.
fn both<T>(scene: impl Fn(Policy) -> T, off: impl Fn(&mut Policy)) -> (T, T) {
    (scene(Policy::usual()), scene(but(off)))
}

/// Some lines about one policy.
#[derive(Clone)]
struct About(&'static str, Vec<Line>);

impl About {
    const fn new(policy: &'static str) -> Self {
        Self(policy, Vec::new())
    }

    fn brings(self, what: &'static str, with: Figure, without: Figure) -> Self {
        self.line(what, with, without, Effect::Brings)
    }

    fn costs(self, what: &'static str, with: Figure, without: Figure) -> Self {
        self.line(what, with, without, Effect::Costs)
    }

    fn changes_nothing(self, what: &'static str, with: Figure, without: Figure) -> Self {
        self.line(what, with, without, Effect::Nothing)
    }

    fn line(mut self, what: &'static str, with: Figure, without: Figure, effect: Effect) -> Self {
        self.1.push(Line { policy: self.0, what, with, without, effect });
        self
    }
}

fn refused(story: &Report) -> Figure {
    Figure::Few(story.refused)
}

fn ended(story: &Report) -> Figure {
    Figure::Time(story.ended)
}

fn longest(story: &Report, tier: u8) -> Figure {
    Figure::Time(inversion::tier(story, tier).2)
}

fn tiers() -> Vec<About> {
    let ((lit, lit_used), (dark, dark_used)) = both(hammered, |policy| policy.zones = Zones::Off);
    let zones = About::new("`zones`")
        .brings("longest wait of a critical call", longest(&lit, 0), longest(&dark, 0))
        .costs("quota used", Figure::Share(lit_used), Figure::Share(dark_used));
    let three = |policy| inversion::after_by(40, policy).0;
    let (with, without) = both(three, |policy| policy.spreads = false);
    let spread = About::new("`spread`")
        .brings("longest wait of a background call", longest(&with, 2), longest(&without, 2))
        .brings("all calls done after", ended(&with), ended(&without));
    let greedy = |policy| inversion::after_by(40, Policy { spreads: false, ..policy }).0;
    let (with, without) = both(greedy, |policy| policy.yields = false);
    let yields = About::new("`yield`, `spread = false`")
        .brings("longest wait of a critical call", longest(&with, 0), longest(&without, 0))
        .brings("longest wait of a standard call", longest(&with, 1), longest(&without, 1))
        .costs("all calls done after", ended(&with), ended(&without));
    let starved = |policy| inversion::starved_by(WaitMode::Queue, policy).0;
    let (with, without) = both(starved, |policy| policy.promotes = false);
    let first = |story: &Report| Figure::Time(story.agents[6].waits[0]);
    let promotion = About::new("`promotion`")
        .brings("wait of a background call", first(&with), first(&without))
        .costs("longest wait of a standard call", longest(&with, 1), longest(&without, 1));
    let owner = |floor, waits| {
        let (_, own) = floors::returning_to(floor, Priority::Standard, waits);
        Figure::Many(own[0])
    };
    let poll = WaitMode::Poll(2 * SECOND);
    let floor = About::new("`floor`")
        .brings(
            "its calls in the first minute",
            owner(250, WaitMode::Queue),
            owner(0, WaitMode::Queue),
        )
        .brings("the same, if it only polls", owner(250, poll), owner(0, poll));
    let critical = |cap| Figure::Time(inversion::seldom(cap).agents[1].longest_wait());
    let cap = About::new("`cap`").brings(
        "longest wait of a critical call",
        critical(Some(900)),
        critical(None),
    );
    vec![zones, spread, yields, promotion, floor, cap]
}

fn quotas() -> Vec<About> {
    let jitter = |margin| quota::saturated(margin, 0, quota::JITTERY);
    let (auto, all) = (jitter(Margin::Auto), jitter(ALL));
    let margin = About::new("`margin`")
        .brings("refused", Figure::Few(auto.1), Figure::Few(all.1))
        .brings("quota used", Figure::Share(auto.0), Figure::Share(all.0));
    let shared = |margin, reconciles| {
        foreign::shared(foreign::Scene { margin, reconciles, ..foreign::USUAL })
    };
    let refused_of = |shared: &foreign::Shared| Figure::Few(shared.refused);
    let used_of = |shared: &foreign::Shared| Figure::Share(shared.used());
    let (auto, blind) = (shared(Margin::Auto, true), shared(Margin::Auto, false));
    let (all, storm) = (shared(ALL, true), shared(ALL, false));
    let reconcile = About::new("`reconcile`")
        .brings("refused", refused_of(&auto), refused_of(&blind))
        .brings("refused, with margin 0", refused_of(&all), refused_of(&storm))
        .brings("quota used, with margin 0", used_of(&all), used_of(&storm));
    let ((with, with_used), (without, without_used)) =
        both(unknown_sizes, |policy| policy.estimates = false);
    let estimates = About::new("`estimates`")
        .brings("calls done", Figure::Many(with.done), Figure::Many(without.done))
        .brings("quota used", Figure::Share(with_used), Figure::Share(without_used));
    let (with, without) = both(declared_too_high, |policy| policy.learn = false);
    let learn = About::new("`learn`").brings("refused", refused(&with), refused(&without)).brings(
        "all calls done after",
        ended(&with),
        ended(&without),
    );
    vec![margin, reconcile, estimates, learn]
}

fn refusals() -> Vec<About> {
    let (with, without) = both(taken_twice, |policy| policy.backoff = None);
    let backoff = About::new("`backoff`")
        .brings("refused", refused(&with), refused(&without))
        .costs("all calls done after", ended(&with), ended(&without));
    let ((with, story), (without, other)) =
        both(herd::refused_after, |policy| policy.comeback = None);
    let given_up = |story: &Report| Figure::Few(story.given_up);
    let windows = About::new("`return_windows`")
        .brings("refused after the pause", Figure::Few(with), Figure::Few(without))
        .brings("given up", given_up(&story), given_up(&other));
    let slow = |policy| crowded(3 * SECOND, policy);
    let (with, without) = both(slow, |policy| policy.cascade = None);
    let at_once = |policy| crowded(0, Policy { comeback: None, ..policy });
    let (herd, storm) = both(at_once, |policy| policy.cascade = None);
    let cascade = About::new("`cascade`")
        .brings("refused", refused(&with), refused(&without))
        .brings("the same without return windows", refused(&herd), refused(&storm));
    let shaken = |policy| stacking::shaken_by(policy).0;
    let (with, without) = both(shaken, |policy| policy.retries = None);
    let retries = About::new("`retry_budget`")
        .brings("refused", refused(&with), refused(&without))
        .costs("given up", given_up(&with), given_up(&without));
    vec![backoff, windows, cascade, retries]
}

fn all() -> Vec<About> {
    static RUN: Once<(), Vec<About>> = Once::new();
    RUN.of((), |()| [tiers(), quotas(), refusals()].into_iter().flatten().collect())
}

/// What was measured on long quotas with slow agents.
fn all_long() -> Vec<About> {
    static RUN: Once<(), Vec<About>> = Once::new();
    RUN.of((), |()| long::all())
}

pub(super) fn table() -> Table {
    tabulated("without", all())
}

pub(super) use self::beside::table as beside_table;
pub(super) use self::defaults::table as defaults_table;

pub(super) fn long_table() -> Table {
    tabulated("without-long", all_long())
}

fn tabulated(name: &'static str, all: Vec<About>) -> Table {
    let table = Table::wide(name, &["what", "with it", "without it"]);
    all.into_iter().flat_map(|about| about.1).fold(table, |table, line| {
        let what = match line.effect {
            Effect::Brings => line.what.to_owned(),
            Effect::Costs => format!("cost: {}", line.what),
            Effect::Nothing => format!("{} (no difference)", line.what),
        };
        table.cells(line.policy, &[&what, &line.with, &line.without])
    })
}

/// Without a policy each figure that it brings is worse, and only what it costs is better.
fn each_is_as_said(all: Vec<About>) {
    for About(policy, lines) in all {
        let brings = lines.iter().any(|line| line.effect == Effect::Brings);
        assert!(brings, "`{policy}` brings nothing");
        for line in lines {
            let (what, with, without) = (line.what, line.with, line.without);
            let as_said = match line.effect {
                Effect::Brings => with.beats(without),
                Effect::Costs => without.beats(with),
                Effect::Nothing => with == without,
            };
            assert!(as_said, "{policy}: {what}: {with} with it, {without} without it");
        }
    }
}

#[test]
fn without_any_of_them_something_gets_worse() {
    each_is_as_said(all());
}

#[test]
fn on_long_quotas_each_brings_and_costs_what_is_said() {
    each_is_as_said(all_long());
}
