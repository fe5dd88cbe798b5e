//! Others on the same key: they take their part, nobody storms, and what they leave is used.

use standpipe_core::{Margin, Notice, Policy, PoolConfig};
use standpipe_sim::{
    Agent, ClientOptions, Options, Pattern, PlannedCall, Provider, Report, Rule, Shape, Unit, Work,
    World,
};

use super::once::Once;
use super::scene::{Tale, declared, play, usual};
use super::table::{Table, percent};
use crate::stories::scene::{
    HOUR, MILLI, MINUTE, SECOND, STEADY, alone, calls, provider, requests, run,
};

/// Fifty in ten seconds, of which others take a fifth.
fn upstream() -> Provider {
    let others = Rule::Foreign { per_second: 1, input: 0, output: 0, from: 0, until: HOUR };
    provider(Shape::OpenAi, &[requests(50, 10 * SECOND), others])
}

/// Six agents that want all there is for three minutes.
fn crowd(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let work = || calls(150, 100 * MILLI, Pattern::Every(1_200 * MILLI));
    (0..6).map(|n| agent(&format!("agent {n}"), work())).collect()
}

fn beside() -> (Report, Tale) {
    let tale = Tale::new(Shape::OpenAi, usual(vec![declared(50, 10 * SECOND)]));
    let (story, _) = play(upstream(), crowd(&|name, work| tale.agent(name, work)));
    (story, tale)
}

pub(super) fn table() -> Table {
    let before = run(upstream(), STEADY, crowd(&|name, work| Agent::new(name, alone(10), work)));
    let (after, _) = beside();
    let waves = |story: &Report| story.waves.len();
    let largest = |story: &Report| story.waves.iter().map(|wave| wave.refusals).max().unwrap_or(0);
    Table::of("foreign", &before, &after)
        .row("bursts of refusals", waves(&before), waves(&after))
        .row("refusals in the largest burst", largest(&before), largest(&after))
}

#[test]
fn a_fifth_taken_by_others_brings_no_storm() {
    let (story, _) = beside();
    let table = table();
    assert_eq!(
        story.to_string(),
        "wanted 900: done 900, given up 0, lost 0; \
         made 900: refused 0, wasted 0, at most 6 a second; \
         212.6 s, waves of refusals: 0",
        "\n{table}"
    );
}

/// Three hundred a minute, of which others want a fifth, one a second, for half an hour.
const AMOUNT: u64 = 300;
const MINUTES: u64 = 30;
/// When the margin has fallen to nothing.
const WARM: usize = 22;

/// What is different from one run to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Scene {
    pub(super) margin: Margin,
    pub(super) reconciles: bool,
    /// The provider's answers say nothing of its limits.
    pub(super) silent: bool,
    /// Its bucket refills all the time; else it counts in any minute.
    pub(super) bucket: bool,
}

pub(super) const USUAL: Scene =
    Scene { margin: Margin::Auto, reconciles: true, silent: false, bucket: false };
const ALL: Margin = Margin::Fixed(0);

/// What came of it.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) refused: usize,
    pub(super) waves: usize,
    /// What ours used of each minute.
    own: Vec<u64>,
    others: u64,
    /// What was told of others: when, what more, and how much in all.
    told: Vec<(u64, u64, u64)>,
}

impl Shared {
    fn of(world: &World, story: &Report, tale: Option<&Tale>) -> Self {
        let record = world.provider().record();
        let told = |(at, notice): (u64, Notice)| match notice {
            Notice::Outside { units, total, .. } => Some((at / SECOND, units, total)),
            _ => None,
        };
        Self {
            refused: record.refused(),
            waves: story.waves.len(),
            own: record.used(0)[..MINUTES as usize].to_vec(),
            others: record.foreign_accepted,
            told: tale.into_iter().flat_map(Tale::notices).filter_map(told).collect(),
        }
    }

    /// What was used of the quota by ours and others, in thousandths.
    pub(super) fn used(&self) -> u64 {
        (self.own.iter().sum::<u64>() + self.others) * 1_000 / (AMOUNT * MINUTES)
    }
}

/// Ten agents that want a third more than there is.
fn ten(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let one = |n: u64| {
        let like = PlannedCall { at: n * 77 * MILLI, lasts: 500 * MILLI, ..PlannedCall::default() };
        let pattern = Pattern::Every(1_500 * MILLI);
        let work = Work { calls: 1_500, like, pattern, vary: 500 };
        agent(&format!("agent {n}"), work.calls(n)).lanes(2)
    };
    (0..10).map(one).collect()
}

fn shared_key(scene: Scene) -> Provider {
    let others =
        Rule::Foreign { per_second: 1, input: 0, output: 0, from: 300 * MILLI, until: HOUR };
    let rule = if scene.bucket {
        Rule::Bucket { unit: Unit::Requests, amount: AMOUNT, period: MINUTE, burst: AMOUNT }
    } else {
        requests(AMOUNT, MINUTE)
    };
    let options =
        Options { refused_count: false, silent: scene.silent, ..Options::of(Shape::OpenAi) };
    Provider::new(Shape::OpenAi, vec![rule, others], 1).with(options)
}

pub(super) fn shared(scene: Scene) -> Shared {
    static RUNS: Once<Scene, Shared> = Once::new();
    RUNS.of(scene, |scene| share(*scene))
}

fn share(scene: Scene) -> Shared {
    let policy = Policy { reconciles: scene.reconciles, ..Policy::usual() };
    let limits = usual(vec![declared(AMOUNT, MINUTE)]);
    let config = PoolConfig { margin: scene.margin, policy, ..limits };
    let tale = Tale::new(Shape::OpenAi, config);
    let options = ClientOptions { patience: 2 * HOUR, ..ClientOptions::USUAL };
    let agents = ten(&|name, work| tale.agent_with(options, name, work));
    let mut world = World::new(shared_key(scene), STEADY, agents, 1);
    let story = world.run(MINUTES * MINUTE);
    Shared::of(&world, &story, Some(&tale))
}

fn each_for_itself() -> Shared {
    static RUN: Once<(), Shared> = Once::new();
    RUN.of((), |()| storm())
}

fn storm() -> Shared {
    let agents = ten(&|name, work| Agent::new(name, alone(40), work));
    let mut world = World::new(shared_key(USUAL), STEADY, agents, 1);
    let story = world.run(MINUTES * MINUTE);
    Shared::of(&world, &story, None)
}

/// Not one refusal: what others use is seen in the answers and left to them. The rest is ours, and
/// once the margin is 0, nothing is left over.
#[test]
fn what_others_leave_is_used_and_nobody_is_refused() {
    let shared = shared(USUAL);
    assert_eq!((shared.refused, shared.waves), (0, 0));
    assert_eq!(shared.own[WARM..], [AMOUNT / 5 * 4; MINUTES as usize - WARM]);
    assert_eq!(shared.used(), 995, "half an hour in which the margin falls for five minutes");
    // In the first minute it could have been anybody; what still counts in the third is others.
    assert_eq!(shared.told, [(120, 10, 10), (120, 50, 60)]);
}

/// Whoever uses all from the first second leaves others less than they want, but no more is refused
/// to ours, and the quota is used to the last.
#[test]
fn with_margin_zero_all_of_it_is_used() {
    let shared = shared(Scene { margin: ALL, ..USUAL });
    assert_eq!((shared.refused, shared.used()), (0, 1_000));
    assert_eq!(shared.told, [(120, 39, 39)]);
}

/// The provider does not show what is left: the only way to find out is to be refused. With
/// margin auto that is a few calls in a quarter of an hour, and nine tenths are used.
#[test]
fn where_nothing_is_shown_margin_finds_what_is_left() {
    let auto = shared(Scene { silent: true, ..USUAL });
    assert_eq!((auto.refused, auto.waves, auto.used()), (5, 2, 917));
    let all = shared(Scene { silent: true, margin: ALL, ..USUAL });
    assert_eq!((all.refused, all.waves, all.used()), (119, 61, 782));
    assert!(auto.told.is_empty() && all.told.is_empty());
}

/// A bucket shows how full it is, which says less: a call more in a minute is not seen before it is
/// empty.
#[test]
fn of_a_bucket_less_is_seen() {
    let shared = shared(Scene { bucket: true, ..USUAL });
    assert_eq!((shared.refused, shared.waves, shared.used()), (5, 2, 1_014));
    let (at, more, all) = shared.told[0];
    assert_eq!((at, more, all), (278, 12, 12));
}

/// Nobody else is there, however the calls of ours come and go: nobody is suspected.
#[test]
fn nobody_is_suspected_who_is_not_there() {
    for lasts in [200 * MILLI, 900 * MILLI, 4 * SECOND] {
        for margin in [Margin::Auto, ALL] {
            let limits = usual(vec![declared(120, MINUTE)]);
            let tale = Tale::new(Shape::Anthropic, PoolConfig { margin, ..limits });
            let options = ClientOptions { patience: 2 * HOUR, ..ClientOptions::USUAL };
            let like = PlannedCall { lasts, ..PlannedCall::default() };
            let work = Work { calls: 250, like, pattern: Pattern::AtOnce, vary: 500 };
            let agents = (0..4)
                .map(|n| tale.agent_with(options, &format!("agent {n}"), work.calls(n)).lanes(6));
            let upstream = provider(Shape::Anthropic, &[requests(120, MINUTE)]);
            let (story, _) = play(upstream, agents.collect());
            assert_eq!(story.refused, 0, "{lasts}, {margin:?}: {story}");
            let suspected = tale.notices().into_iter();
            let suspected = suspected.filter(|(_, it)| matches!(it, Notice::Outside { .. }));
            assert_eq!(suspected.count(), 0, "{lasts}, {margin:?}: {story}");
        }
    }
}

/// Each for itself as much is used, and for every call that is answered seven are refused.
#[test]
fn each_for_itself_uses_as_much_and_storms() {
    let before = each_for_itself();
    assert_eq!((before.refused, before.used()), (51_132, 1_000));
}

pub(super) fn shared_table() -> Table {
    let heads = ["refused", "bursts of refusals", "used by our agents", "used by all"];
    let row = |table: Table, what: &str, shared: Shared| {
        let own = shared.own.iter().sum::<u64>() * 1_000 / (AMOUNT * MINUTES);
        let (own, all) = (percent(own), percent(shared.used()));
        table.cells(what, &[&shared.refused, &shared.waves, &own, &all])
    };
    let all = Scene { margin: ALL, ..USUAL };
    let table = Table::wide("shared", &heads);
    let table = row(table, "without Standpipe", each_for_itself());
    let table = row(table, "margin auto", shared(USUAL));
    let table = row(table, "margin 0", shared(all));
    let table =
        row(table, "margin auto, limits not shown", shared(Scene { silent: true, ..USUAL }));
    row(table, "margin 0, limits not shown", shared(Scene { silent: true, ..all }))
}
