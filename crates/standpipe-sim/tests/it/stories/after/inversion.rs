//! Priority inversion: what must not wait passes what may, and what may is not starved for ever.

use std::collections::BTreeMap;

use standpipe_core::{
    AgentName, AgentRule, Decision, Limit, LimitSelector, Notice, Policy, PoolConfig, Portion,
    Rule as Declared, Share, Span, Unit,
};
use standpipe_sim::{
    Agent, Call, ClientOptions, Pattern, PlannedCall, Provider, Report, Rule, Shape, Used,
    WaitMode, Work,
};

use super::scene::{Tale, declared, play, usual};
use super::table::{Table, seconds};
use crate::stories::scene::{
    HOUR, MILLI, MINUTE, SECOND, STEADY, alone, calls, provider, requests, run,
};

/// Whoever wants something wants it for as long as it takes.
const PATIENT: ClientOptions = ClientOptions { patience: 2 * HOUR, ..ClientOptions::USUAL };

fn upstream() -> Provider {
    provider(Shape::Anthropic, &[requests(120, MINUTE)])
}

/// Three tiers on 120 calls a minute, for twenty minutes: decisions, three at a time; so much
/// steady work; and background work that wants all there is.
fn three(standard: u64, agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let deciding = |n: u64| {
        let mut work = calls(120, 400 * MILLI, Pattern::Every(10 * SECOND));
        work.iter_mut().for_each(|call| call.at += 3 * SECOND + n * 10 * MILLI);
        work
    };
    let steady = || {
        let count = usize::try_from(standard * 5).unwrap();
        calls(count, 700 * MILLI, Pattern::Every(4 * MINUTE / standard))
    };
    let endless = || calls(600, 500 * MILLI, Pattern::Every(2 * SECOND));
    let critical = (0..3).map(|n| agent(&format!("critical {n}"), deciding(n)).priority(0));
    let standard = (0..4).map(|n| agent(&format!("standard {n}"), steady()).lanes(40));
    let background =
        (0..4).map(|n| agent(&format!("background {n}"), endless()).priority(2).lanes(4));
    critical.chain(standard).chain(background).collect()
}

fn before() -> Report {
    run(upstream(), STEADY, three(40, &|name, work| Agent::new(name, alone(40), work)))
}

fn after(standard: u64) -> (Report, Tale) {
    after_by(standard, Policy::usual())
}

pub(super) fn after_by(standard: u64, policy: Policy) -> (Report, Tale) {
    let config = PoolConfig { policy, ..usual(vec![declared(120, MINUTE)]) };
    let tale = Tale::new(Shape::Anthropic, config);
    let agents = three(standard, &|name, work| tale.agent_with(PATIENT, name, work));
    (play(upstream(), agents).0, tale)
}

/// What became of a tier: calls done, calls refused, the longest wait.
pub(super) fn tier(story: &Report, priority: u8) -> (usize, usize, u64) {
    let of = story.agents.iter().filter(|agent| agent.priority == priority);
    of.fold((0, 0, 0), |(done, refused, longest), agent| {
        (done + agent.done, refused + agent.refused, longest.max(agent.longest_wait()))
    })
}

pub(super) fn table() -> Table {
    let (before, (after, _)) = (before(), after(40));
    let names = ["critical", "standard", "background"];
    let table = Table::empty("inversion", "without Standpipe", "through Standpipe");
    (0..3).zip(names).fold(table, |table, (priority, name)| {
        let (left, right) = (tier(&before, priority), tier(&after, priority));
        table
            .row(&format!("{name}: done"), left.0, right.0)
            .row(&format!("{name}: refused"), left.1, right.1)
            .row(&format!("{name}: longest wait"), seconds(left.2), seconds(right.2))
    })
}

/// The way to the provider is all that a decision wait_mode for, and all that steady work does;
/// background has what they leave, and its backlog.
#[test]
fn b37_critical_never_waits_behind_background() {
    let (story, _) = after(40);
    let table = table();
    let critical = story.agents.iter().filter(|agent| agent.priority == 0);
    let waits: Vec<_> = critical.flat_map(|agent| &agent.waits).collect();
    assert_eq!(waits.len(), 360, "\n{table}");
    assert!(waits.iter().all(|wait| **wait == STEADY.there), "\n{table}");
    assert_eq!(tier(&story, 1), (800, 0, STEADY.there), "\n{table}");
    assert_eq!(tier(&story, 2), (2_400, 0, 642_786_843), "\n{table}");
    // Each for itself it was another story.
    let before = before();
    assert_eq!(tier(&before, 0), (360, 1_626, 481_650 * MILLI), "\n{table}");
    assert_eq!(tier(&before, 2), (2_400, 10_256, 649_850 * MILLI), "\n{table}");
}

/// A critical call that waited while one of a lower tier was admitted: which, and which.
fn passed(story: &Report, tale: &Tale) -> Option<(usize, usize)> {
    let told = tale.tap.decisions(0);
    let is_critical = |agent: usize| story.agents[agent].priority == 0;
    let lower = tale.admitted().into_iter().filter(|told| !is_critical(told.agent));
    let lower: Vec<_> = lower.map(|told| (told.at, told.call)).collect();
    let mut asked = BTreeMap::new();
    told.iter().filter(|told| is_critical(told.agent)).find_map(|told| {
        let since = *asked.entry(told.call).or_insert(told.at);
        let until = matches!(told.decision, Decision::Admit(_)).then_some(told.at)?;
        let (_, other) = lower.iter().find(|(at, _)| since < *at && *at < until)?;
        Some((told.call, *other))
    })
}

/// Where standard work alone wants all there is, a decision can find nothing left. Then it has the
/// next unit that comes back: nobody is admitted between its asking and its going.
#[test]
fn b37_where_nothing_is_left_critical_has_the_next_unit() {
    let (story, tale) = after(120);
    assert_eq!(passed(&story, &tale), None, "{story}");
    assert_eq!(tier(&story, 0), (360, 0, 7_050 * MILLI), "{story}");
    assert_eq!(tier(&story, 1), (2_400, 0, 190_050 * MILLI), "{story}");
    assert_eq!(tier(&story, 2), (2_400, 0, 1_442_850 * MILLI), "{story}");
    assert_eq!((story.refused, story.given_up), (0, 0), "{story}");
}

/// A background call that takes nine tenths of the tokens stands in front of everybody else of its
/// tier, and in front of nobody above it.
#[test]
fn b37_a_huge_background_call_holds_nobody_up() {
    let tokens = Declared::Window { unit: Unit::Tokens, amount: 10_000, period: Span(MINUTE) };
    let tale = Tale::new(Shape::OpenAi, usual(vec![Limit::new(tokens)]));
    let work = |at, input: u64, calls| {
        let (call, used) = (Call { input, ..Call::default() }, Used { input, ..Used::default() });
        let like = PlannedCall { call, used, at, lasts: 300 * MILLI, ..PlannedCall::default() };
        Work { calls, like, pattern: Pattern::Every(2 * SECOND), vary: 0 }.calls(1)
    };
    let agents = vec![
        tale.agent_with(PATIENT, "huge", work(20 * SECOND, 9_000, 1)).priority(2),
        tale.agent_with(PATIENT, "critical", work(0, 200, 150)).priority(0),
    ];
    let rule = Rule::Rolling { unit: standpipe_sim::Unit::Tokens, amount: 10_000, period: MINUTE };
    let (story, _) = play(provider(Shape::OpenAi, &[rule]), agents);
    let [huge, critical] = &story.agents[..] else { panic!() };
    assert_eq!(critical.waits, [STEADY.there; 150], "{story}");
    // It fits when what the last decisions took comes back.
    assert_eq!((huge.done, huge.longest_wait()), (1, 328_050 * MILLI), "{story}");
}

/// As in part one: a background agent asks for new work all the time, the one whose decisions
/// everybody wait_mode for once a minute.
pub(super) fn seldom(cap: Option<u16>) -> Report {
    let caps = cap.map(|share| Share { of: LimitSelector::All, portion: Portion::PerMille(share) });
    let name = AgentName::new("background").unwrap();
    let (priority, floors) = (None, Vec::new());
    let rule = AgentRule { name, priority, floors, caps: caps.into_iter().collect(), weight: 1 };
    let config = PoolConfig { agents: vec![rule], ..usual(vec![declared(80, MINUTE)]) };
    let tale = Tale::new(Shape::Anthropic, config);
    let polling = calls(600, 100 * MILLI, Pattern::Every(500 * MILLI));
    let mut deciding = calls(5, 100 * MILLI, Pattern::Every(MINUTE));
    deciding.iter_mut().for_each(|call| call.at += 45 * SECOND);
    let agents = vec![
        tale.agent_with(PATIENT, "background", polling).priority(2).lanes(8),
        tale.agent_with(PATIENT, "critical", deciding).priority(0),
    ];
    play(provider(Shape::Anthropic, &[requests(80, MINUTE)]), agents).0
}

/// Its first call finds that background has used everything, and the next unit comes back 15 s
/// later. From then on background is paced for it. Background that may use nine tenths at most
/// leaves what the first one needs as well.
#[test]
fn who_calls_seldom_is_helped_by_a_cap_on_the_others() {
    let there = STEADY.there;
    let wait_mode = [15_050 * MILLI, there, there, there, there];
    assert_eq!(seldom(None).agents[1].waits, wait_mode);
    assert_eq!(seldom(Some(900)).agents[1].waits, [STEADY.there; 5]);
}

/// Standard work that takes all there is, a call a second, and one background call.
fn starved(wait_mode: WaitMode) -> (Report, Tale) {
    starved_by(wait_mode, Policy::usual())
}

pub(super) fn starved_by(wait_mode: WaitMode, policy: Policy) -> (Report, Tale) {
    let config = PoolConfig { policy, ..usual(vec![declared(60, MINUTE)]) };
    let tale = Tale::new(Shape::Anthropic, config);
    let standard = |n: u64| {
        let mut work = calls(150, 300 * MILLI, Pattern::Every(5 * SECOND));
        work.iter_mut().for_each(|call| call.at += n * 800 * MILLI);
        tale.agent_with(PATIENT, &format!("standard {n}"), work)
    };
    let mut agents: Vec<_> = (0..6).map(standard).collect();
    let one = |at| PlannedCall { at, lasts: 300 * MILLI, ..PlannedCall::default() };
    let (first, second) = (one(100 * SECOND), one(101 * SECOND));
    let options = ClientOptions { wait_mode, ..PATIENT };
    agents.push(tale.agent_with(options, "background", vec![first, second]).priority(2));
    (play(provider(Shape::Anthropic, &[requests(60, MINUTE)]), agents).0, tale)
}

/// Five minutes after it first asked, to the instant, and the second call five minutes after the
/// first was admitted; however short the spells in which it asks.
#[test]
fn b37_background_is_promoted_at_five_minutes_and_not_before() {
    for wait_mode in [WaitMode::Queue, WaitMode::Spells(30 * SECOND), WaitMode::Spells(37 * SECOND)]
    {
        let (story, tale) = starved(wait_mode);
        let promoted = tale.notices().into_iter();
        let promoted = promoted.filter(|(_, notice)| matches!(notice, Notice::Promoted { .. }));
        let promoted: Vec<_> = promoted.map(|(at, _)| at / MILLI).collect();
        assert_eq!(promoted, [400_000, 705_400], "{wait_mode:?}: {story}");
        // Behind the few of standard who came before.
        assert_eq!(
            story.agents[6].waits,
            [305_050 * MILLI, 619_050 * MILLI],
            "{wait_mode:?}: {story}"
        );
        assert_eq!(story.refused, 0, "{wait_mode:?}: {story}");
    }
}

/// Sixty agents who want a call each, and the next one when that is done: a long line.
fn long_line(wait_mode: WaitMode) -> Report {
    let tale = Tale::new(Shape::Anthropic, usual(vec![declared(60, MINUTE)]));
    let standard = |n: u64| {
        let like = PlannedCall { at: n * SECOND, lasts: 300 * MILLI, ..PlannedCall::default() };
        let work = Work { calls: 20, like, pattern: Pattern::AtOnce, vary: 0 }.calls(n);
        tale.agent_with(PATIENT, &format!("standard {n}"), work)
    };
    let mut agents: Vec<_> = (0..60).map(standard).collect();
    let one = PlannedCall { at: 100 * SECOND, lasts: 300 * MILLI, ..PlannedCall::default() };
    let options = ClientOptions { wait_mode, ..PATIENT };
    agents.push(tale.agent_with(options, "background", vec![one]).priority(2));
    play(provider(Shape::Anthropic, &[requests(60, MINUTE)]), agents).0
}

/// Promoted after five minutes, it stands where it stood then, however short it asks, and is
/// admitted a line later. Even who only polls is, when it next looks.
#[test]
fn b37_whoever_was_promoted_keeps_its_place_over_many_asks() {
    let first = |wait_mode| long_line(wait_mode).agents[60].waits[0] / MILLI;
    for wait_mode in [WaitMode::Queue, WaitMode::Spells(30 * SECOND), WaitMode::Spells(7 * SECOND)]
    {
        assert_eq!(first(wait_mode), 326_250, "{wait_mode:?}");
    }
    assert_eq!(first(WaitMode::Poll(SECOND)), 380_050);
    assert_eq!(first(WaitMode::Poll(13 * SECOND)), 442_050);
}
