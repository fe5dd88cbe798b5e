//! A provider that counts by the hour, on the hour: what was used up at 10:59 is there again at
//! 11:00, for one call first and then for all.

use standpipe_core::{Limit, Notice, Resets};
use standpipe_sim::{
    Agent, ClientOptions, Options, Pattern, PlannedCall, Provider, Report, Rule, Shape, Unit, World,
};

use super::scene::{Tale, declared, play, usual};
use super::table::Table;
use crate::stories::scene::{HOUR, MILLI, SECOND, STEADY, alone, calls, run};

const AMOUNT: u64 = 500;

/// 2025-08-21T10:59:00Z, where the world begins.
const BEGINNING: u64 = 1_755_773_940 * SECOND;

fn upstream() -> Provider {
    let hourly =
        Rule::FixedWindow { unit: Unit::Requests, amount: AMOUNT, period: HOUR, offset: 0 };
    let options = Options { origin: BEGINNING, ..Options::of(Shape::GitHub) };
    Provider::new(Shape::GitHub, vec![hourly], 1).with(options)
}

/// Ten agents with eighty calls each, wanted from the start.
fn ten(agent: &dyn Fn(&str, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    let work = || calls(80, 200 * MILLI, Pattern::AtOnce);
    (0..10).map(|n| agent(&format!("agent {n}"), work())).collect()
}

fn hourly(resets: Resets) -> (Report, World, Tale) {
    let limit = Limit { resets, ..declared(AMOUNT, HOUR) };
    let tale = Tale::new(Shape::GitHub, usual(vec![limit]));
    let options = ClientOptions { patience: 3 * HOUR, ..ClientOptions::USUAL };
    let (story, world) = play(upstream(), ten(&|name, work| tale.agent_with(options, name, work)));
    (story, world, tale)
}

fn before() -> Report {
    run(upstream(), STEADY, ten(&|name, work| Agent::new(name, alone(20), work)))
}

pub(super) fn table() -> Table {
    Table::of("hour", &before(), &hourly(Resets::Provider).0)
}

/// The allowance is used up by 10:59:15. The reset is announced in whole seconds, so that it is
/// known to come by 11:00:01. One call goes then, and with its answer everybody.
#[test]
fn after_the_hour_one_call_looks_and_then_all_go() {
    let (story, world, tale) = hourly(Resets::Provider);
    let table = table();
    assert_eq!(
        story.to_string(),
        "wanted 800: done 800, given up 0, lost 0; \
         made 800: refused 0, wasted 0, at most 40 a second; \
         70.3 s, waves of refusals: 0",
        "\n{table}"
    );
    assert_eq!(world.provider().record().used(0), [AMOUNT, 300], "\n{table}");
    let at: Vec<_> = tale.admitted().iter().map(|told| told.at / MILLI).collect();
    // The last of the old hour, the one that looks, and those who go with its answer.
    assert_eq!(at[499..503], [14_700, 61_000, 61_300, 61_300], "\n{table}");
    assert_eq!(at.iter().filter(|at| **at == 61_300).count(), 10, "\n{table}");
    let anew = tale.notices().into_iter();
    let anew = anew.filter(|(_, notice)| matches!(notice, Notice::WindowReset { .. }));
    assert_eq!(anew.map(|(at, _)| at / MILLI).collect::<Vec<_>>(), [61_300], "\n{table}");
}

/// Declared as any other limit, it is kept in every stretch of an hour: nobody is refused, and
/// nobody goes before 11:59.
#[test]
fn who_does_not_say_so_waits_for_the_hour_to_pass() {
    let (story, _, tale) = hourly(Resets::Rolling);
    let at: Vec<_> = tale.admitted().iter().map(|told| told.at / MILLI).collect();
    assert_eq!((at[499], at[500]), (14_700, 3_600_000), "{story}");
    assert_eq!(story.refused, 0, "{story}");
}

/// Each for itself, each finds out for itself, by being refused.
#[test]
fn each_for_itself_finds_out_by_being_refused() {
    assert_eq!(
        before().to_string(),
        "wanted 800: done 800, given up 0, lost 0; \
         made 1010: refused 210, wasted 210, at most 40 a second; \
         100.1 s, waves of refusals: 13"
    );
}
