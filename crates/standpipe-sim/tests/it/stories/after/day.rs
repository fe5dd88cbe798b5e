//! A day of nine agents on one quota per hour. Each runs every five minutes, and together they want
//! more than there is: critical calls never wait, floors hold in every hour, and nothing is wasted.

use std::ops::Range;

use standpipe_core::{
    AgentName, AgentRule, LimitSelector, PoolConfig, Portion, Priority, Share, Span, Unit,
};
use standpipe_sim::{
    Agent, ClientOptions, Coordinated, Pattern, PlannedCall, Report, Shape, WaitMode, World,
};

use super::once::Once;
use super::scene::{Tale, declared, usual};
use super::table::{Table, percent, seconds};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, STEADY, calls, provider, requests};

const HOURS: usize = 24;
const ROUND: u64 = 5 * MINUTE;
const ROUNDS: u64 = 12 * HOURS as u64;

/// The one who decides, the seven who work, and the one who looks for new work.
const PICARD: usize = 0;
const CREW: [&str; 7] = ["worf", "data", "seven", "belanna", "troi", "neelix", "scribe"];
const RALPH: usize = 8;

/// How much there is per hour, and how much is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    amount: u64,
    /// The floor of the critical agent, and its calls per round.
    picard: (u64, u64),
    /// Calls that it wants besides, once an hour.
    burst: u64,
    /// The floor of each standard agent, and its calls per round.
    crew: (u64, u64),
    /// How long each of these waits.
    patience: u64,
    /// The background agent asks so often, and does not wait.
    ralph: u64,
}

/// Copilot: 80 per hour, 363 wanted.
const SMALL: Scale = Scale {
    amount: 80,
    picard: (20, 1),
    burst: 3,
    crew: (6, 2),
    patience: 2 * MINUTE,
    ralph: 20 * SECOND,
};

/// The same with agents that give up earlier.
const HASTY: Scale = Scale { patience: MINUTE, ..SMALL };

/// GitHub: 5,000 per hour, 6,680 wanted.
const LARGE: Scale = Scale {
    amount: 5_000,
    picard: (1_000, 40),
    burst: 200,
    crew: (400, 50),
    patience: 4 * SECOND,
    ralph: 2 * SECOND,
};

/// What came of a day.
#[derive(Clone)]
struct Day {
    story: Report,
    scale: Scale,
    /// By agent and hour: the calls that the provider accepted.
    hours: Vec<[u64; HOURS]>,
}

impl Day {
    /// What was used in the day, in thousandths.
    fn used(&self) -> u64 {
        let all: u64 = self.hours.iter().flatten().sum();
        all * 1_000 / (self.scale.amount * HOURS as u64)
    }

    /// The same of what floors do not keep for owners that want less than their floor. Part of
    /// that is lent, so that it could be more than all.
    fn used_of_free(&self) -> u64 {
        let all: u64 = self.hours.iter().flatten().sum();
        let kept: u64 = (PICARD..RALPH).map(|agent| self.scale.unwanted(agent)).sum();
        (all * 1_000 / ((self.scale.amount - kept) * HOURS as u64)).min(1_000)
    }

    /// The fewest calls of a standard agent in one of these hours.
    fn least(&self, of: Range<usize>) -> u64 {
        let crew = self.hours[PICARD + 1..RALPH].iter();
        crew.flat_map(|hours| &hours[of.clone()]).copied().min().unwrap_or(0)
    }

    fn done(&self, agent: usize) -> usize {
        self.story.agents[agent].done
    }
}

impl Scale {
    /// The part of an agent's floor that it does not want in an hour.
    const fn unwanted(&self, agent: usize) -> u64 {
        let rounds = HOUR / ROUND;
        match agent {
            PICARD => self.picard.0.saturating_sub(rounds * self.picard.1 + self.burst),
            _ => self.crew.0.saturating_sub(rounds * self.crew.1),
        }
    }

    fn agents(&self) -> Vec<AgentRule> {
        let of = |name: &str, tier, amount: u64| {
            let portion = Portion::Rate { amount, period: Span(HOUR) };
            let share = Share { of: LimitSelector::Unit(Unit::Requests), portion };
            let floors = if amount > 0 { vec![share] } else { Vec::new() };
            let name = AgentName::new(name).unwrap();
            AgentRule { name, priority: Some(tier), floors, caps: Vec::new(), weight: 1 }
        };
        let crew = CREW.into_iter().map(|name| of(name, Priority::Standard, self.crew.0));
        let picard = of("picard", Priority::Critical, self.picard.0);
        let ralph = of("ralph", Priority::Background, 0);
        [picard].into_iter().chain(crew).chain([ralph]).collect()
    }
}

/// So many calls at the start of each round.
fn rounds(per_round: u64, at: u64) -> Vec<PlannedCall> {
    let round = |nth: u64| PlannedCall {
        at: at + nth * ROUND,
        lasts: 500 * MILLI,
        ..PlannedCall::default()
    };
    (0..ROUNDS).flat_map(|nth| vec![round(nth); per_round as usize]).collect()
}

fn day(scale: Scale) -> Day {
    static RUNS: Once<Scale, Day> = Once::new();
    RUNS.of(scale, |scale| run(*scale))
}

fn run(scale: Scale) -> Day {
    let limits = usual(vec![declared(scale.amount, HOUR)]);
    let tale = Tale::new(Shape::GitHub, PoolConfig { agents: scale.agents(), ..limits });
    let upstream = provider(Shape::GitHub, &[requests(scale.amount, HOUR)]);
    let mut world = World::new(upstream, STEADY, nine(scale, &tale), 1);
    let story = world.run(HOURS as u64 * HOUR);
    let mut hours = vec![[0; HOURS]; RALPH + 1];
    let seen = world.provider().record().calls.iter();
    for seen in seen.filter(|seen| seen.verdict.refused_by().is_none()) {
        let hour = usize::try_from(seen.at / HOUR).unwrap().min(HOURS - 1);
        hours[seen.agent as usize][hour] += 1;
    }
    Day { story, scale, hours }
}

fn nine(scale: Scale, tale: &Tale) -> Vec<Agent> {
    // Not watched: a look at the ledger after each of a million steps is slow.
    let agent = |options, name: &str, work| {
        Agent::new(name, Coordinated::new(&tale.tap, AgentName::new(name).unwrap(), options), work)
    };
    let options = ClientOptions { patience: scale.patience, ..ClientOptions::USUAL };
    let mut decisions = rounds(scale.picard.1, 3 * SECOND);
    for hour in 0..HOURS as u64 {
        // Each hour in another round.
        let at = hour * HOUR + (hour * 7 % 12) * ROUND + 90 * SECOND;
        let one = PlannedCall { at, lasts: 500 * MILLI, ..PlannedCall::default() };
        decisions.extend((0..scale.burst).map(|_| one));
    }
    let mut all = vec![agent(options, "picard", decisions).priority(0).lanes(300)];
    for (name, at) in CREW.into_iter().zip(0..) {
        all.push(agent(options, name, rounds(scale.crew.1, at * SECOND)));
    }
    let asks = usize::try_from(HOURS as u64 * HOUR / scale.ralph).unwrap();
    let looking = calls(asks, 500 * MILLI, Pattern::Every(scale.ralph));
    let impatient =
        ClientOptions { patience: 0, wait_mode: WaitMode::Sleep, ..ClientOptions::USUAL };
    all.push(agent(impatient, "ralph", looking).priority(2));
    all
}

/// Each call of the critical agent is admitted at once, however much the others want.
#[test]
fn no_critical_call_waits_on_any_day() {
    for scale in [SMALL, HASTY, LARGE] {
        let Day { story, .. } = day(scale);
        let picard = &story.agents[PICARD];
        let wanted = ROUNDS * scale.picard.1 + HOURS as u64 * scale.burst;
        assert_eq!((picard.wanted as u64, picard.done as u64), (wanted, wanted), "{story}");
        assert!(picard.waits.iter().all(|wait| *wait == STEADY.there), "{story}");
    }
}

/// Each standard agent asks for more than its floor in each hour, and has at least that.
#[test]
fn floors_hold_in_every_hour() {
    for (scale, first, later) in [(SMALL, 6, 6), (HASTY, 6, 6), (LARGE, 400, 400)] {
        let day = day(scale);
        assert_eq!((day.least(0..1), day.least(1..HOURS)), (first, later), "{:?}", day.hours);
    }
}

/// What is neither used nor kept by a floor is less than 5 %, and the provider refuses nothing.
#[test]
fn what_floors_do_not_keep_is_used() {
    for scale in [SMALL, HASTY, LARGE] {
        let day = day(scale);
        assert!(day.used_of_free() >= 950, "{scale:?}: {}", day.used_of_free());
        assert_eq!(day.story.refused, 0, "{}", day.story);
    }
}

/// What a row shows of a day.
type Row = (&'static str, fn(&Day) -> String);

pub(super) fn table() -> Table {
    let days = [SMALL, HASTY, LARGE].map(day);
    let heads = ["80 per hour", "80 per hour, wait 1 min", "5,000 per hour"];
    let rows: [Row; 9] = [
        ("critical: calls done", |day| day.done(PICARD).to_string()),
        ("critical: longest wait", |day| seconds(day.story.agents[PICARD].longest_wait())),
        ("standard: floor per hour", |day| day.scale.crew.0.to_string()),
        ("fewest calls of an agent, first hour", |day| day.least(0..1).to_string()),
        ("fewest calls of an agent, later hours", |day| day.least(1..HOURS).to_string()),
        ("background: calls done", |day| day.done(RALPH).to_string()),
        ("quota used", |day| percent(day.used())),
        ("use of the quota outside the floors", |day| percent(day.used_of_free())),
        ("refused", |day| day.story.refused.to_string()),
    ];
    rows.into_iter().fold(Table::wide("day", &heads), |table, (what, of)| {
        let cells = days.each_ref().map(of);
        table.cells(what, &[&cells[0], &cells[1], &cells[2]])
    })
}

/// A critical agent with a floor of 20 of 80 calls once and is idle for so long, while a background
/// agent takes what it can get. What the critical one gets of the 19 that its floor has left.
fn returns_after(idle: u64) -> usize {
    let rules = Scale { crew: (0, 0), ..SMALL }.agents();
    let config = PoolConfig { agents: rules, ..usual(vec![declared(80, HOUR)]) };
    let tale = Tale::new(Shape::GitHub, config);
    let impatient =
        ClientOptions { patience: 0, wait_mode: WaitMode::Sleep, ..ClientOptions::USUAL };
    let one = |at| PlannedCall { at, lasts: 500 * MILLI, ..PlannedCall::default() };
    // It is idle from when its first call ends.
    let back = one(STEADY.there + 500 * MILLI + STEADY.back + idle);
    let wanted: Vec<_> = [one(0)].into_iter().chain([back; 30]).collect();
    let looking = calls((4 * HOUR / SECOND) as usize, 50 * MILLI, Pattern::Every(250 * MILLI));
    let all = vec![
        tale.agent_with(impatient, "picard", wanted).priority(0).lanes(31),
        tale.agent_with(impatient, "ralph", looking).priority(2),
    ];
    let upstream = provider(Shape::GitHub, &[requests(80, HOUR)]);
    let story = World::new(upstream, STEADY, all, 1).run(HOUR - SECOND);
    assert_eq!(story.refused, 0, "{story}");
    story.agents[0].done - 1
}

#[test]
fn an_agent_that_was_idle_for_31_s_has_its_floor() {
    assert_eq!(returns_after(31 * SECOND), 19);
}

pub(super) fn idle_table() -> Table {
    let rows = [
        ("31 s", 31 * SECOND),
        ("5 min", 5 * MINUTE),
        ("15 min", 15 * MINUTE),
        ("30 min", 30 * MINUTE),
        ("58 min", 58 * MINUTE),
    ];
    let table = Table::wide("idle", &["calls of 19"]);
    rows.into_iter().fold(table, |table, (what, idle)| table.cells(what, &[&returns_after(idle)]))
}
