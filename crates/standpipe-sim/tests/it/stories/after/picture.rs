//! The picture in `README.md` and its figures in the page of the simulator: five agents on one key,
//! each for itself and through the tap. `cargo xtask reference` draws it again.

mod plot;

use std::path::PathBuf;

use standpipe_core::{Margin, PoolConfig};
use standpipe_sim::{
    Agent, ClientOptions, Pattern, PlannedCall, Record, Report, Retries, Shape, Uncoordinated,
    Work, World,
};

use self::plot::{Curves, DARK, LIGHT, Plot};
use super::page::document;
use super::scene::{Tale, declared, play, usual};
use super::table::{Table, seconds};
use crate::stories::scene::{HOUR, MILLI, MINUTE, SECOND, STEADY, provider, requests};

/// What the provider allows in any minute.
const LIMIT: u64 = 100;
/// Each agent keeps to this many calls per minute, which is far below the limit.
const EACH: u64 = 30;
const AGENTS: u64 = 5;
/// How many calls of an agent can be in flight.
const LANES: usize = 4;
/// How often an agent tries a call, each time with the retries of its SDK.
const ATTEMPTS: u32 = 4;
/// How long the agents have work, in minutes.
const WORK: u64 = 4;

/// An agent's calls, one every two seconds.
fn work(agent: u64) -> Vec<PlannedCall> {
    let like =
        PlannedCall { at: agent * 300 * MILLI, lasts: 800 * MILLI, ..PlannedCall::default() };
    let pattern = Pattern::Every(MINUTE / EACH);
    Work { calls: (EACH * WORK) as usize, like, pattern, vary: 500 }.calls(agent)
}

fn agents(agent: impl Fn(u64, Vec<PlannedCall>) -> Agent) -> Vec<Agent> {
    (0..AGENTS).map(|n| agent(n, work(n)).lanes(LANES)).collect()
}

/// Each agent makes up to four attempts with exponential backoff, each with the two retries of its
/// SDK, which obeys Retry-After.
fn uncoordinated() -> (Report, World) {
    let upstream = provider(Shape::Anthropic, &[requests(LIMIT, MINUTE)]);
    let agent = |n, work| {
        Agent::new(
            format!("agent {n}"),
            Uncoordinated::new(Retries::SDK, Retries::by_hand(ATTEMPTS - 1), n),
            work,
        )
    };
    let mut world = World::new(upstream, STEADY, agents(agent), 1);
    (world.run(HOUR), world)
}

/// The same agents through the ledger, with the default margin.
fn coordinated() -> (Report, World) {
    let upstream = provider(Shape::Anthropic, &[requests(LIMIT, MINUTE)]);
    let config = PoolConfig { margin: Margin::Auto, ..usual(vec![declared(LIMIT, MINUTE)]) };
    let tale = Tale::new(Shape::Anthropic, config);
    let agent = |n, work| tale.agent_with(ClientOptions::USUAL, &format!("agent {n}"), work);
    play(upstream, agents(agent))
}

/// How many calls arrived in the minute before an instant, and how many of them were accepted.
fn last_minute(record: &Record, at: u64) -> (u64, u64) {
    let inside = |seen: &&standpipe_sim::Seen| seen.at <= at && seen.at + MINUTE > at;
    let all = record.calls.iter().filter(inside);
    let accepted = all.clone().filter(|seen| seen.verdict.refused_by().is_none());
    (all.count() as u64, accepted.count() as u64)
}

fn plot() -> Plot {
    const STEP: u64 = 2 * SECOND;
    let (before, after) = (uncoordinated(), coordinated());
    let seconds = 7 * MINUTE;
    let of = |world: &World| -> Vec<(u64, u64)> {
        let record = world.provider().record();
        (0..=seconds / STEP).map(|step| last_minute(record, step * STEP)).collect()
    };
    let (before_calls, after_calls) = (of(&before.1), of(&after.1));
    let curves = Curves {
        sent: before_calls.iter().map(|(sent, _)| *sent).collect(),
        accepted: before_calls.iter().map(|(_, accepted)| *accepted).collect(),
        tapped: after_calls.iter().map(|(sent, _)| *sent).collect(),
    };
    Plot { limit: LIMIT, minutes: seconds / MINUTE, curves, refused: before.0.refused }
}

pub(super) fn table() -> Table {
    let (before, after) = (uncoordinated().0, coordinated().0);
    Table::empty("five-agents", "without Standpipe", "through Standpipe")
        .row("calls wanted", before.wanted, after.wanted)
        .row("calls sent", before.made, after.made)
        .row("refused (429)", before.refused, after.refused)
        .row("given up after the last attempt", before.given_up, after.given_up)
        .row("the last call ends after", seconds(before.ended), seconds(after.ended))
}

/// With `STANDPIPE_BLESS` the file is written instead of compared.
fn check(name: &str, drawn: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/images").join(name);
    if std::env::var_os("STANDPIPE_BLESS").is_some() {
        std::fs::write(&path, drawn).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap();
    assert!(there == drawn, "docs/images/{name} is stale; run `cargo xtask reference`");
}

#[test]
fn the_picture_of_the_readme_is_as_it_comes_out() {
    let plot = plot();
    check("send-rate-light.svg", &plot.draw(&LIGHT));
    check("send-rate-dark.svg", &plot.draw(&DARK));
}

#[test]
fn the_page_describes_the_agents_of_the_picture() {
    const PAGE: &str = "docs/concepts/simulator.md";
    let page = document(PAGE).split_whitespace().collect::<Vec<_>>().join(" ");
    const WORDS: [&str; 6] = ["zero", "one", "two", "three", "four", "Five"];
    let [agents, attempts, times] = [AGENTS, ATTEMPTS.into(), 1 + u64::from(Retries::SDK.more)]
        .map(|count| WORDS[count as usize]);
    let scene = format!(
        "{agents} agents share a key that allows {LIMIT} calls a minute. Each limits itself to \
         {EACH} calls a minute and makes up to {attempts} attempts; the SDK sends each attempt up \
         to {times} times"
    );
    assert!(page.contains(&scene), "not in {PAGE}: {scene}");
}

/// Through the tap no call is refused, all are done, and no later than by themselves.
#[test]
fn five_polite_agents_exceed_the_limit_only_without_the_tap() {
    let (before, _) = uncoordinated();
    let (after, world) = coordinated();
    assert_eq!((after.refused, after.done), (0, (AGENTS * EACH * WORK) as usize), "{after}");
    assert!(before.refused > 0, "{before}");
    let record = world.provider().record();
    assert!(record.calls.iter().all(|seen| last_minute(record, seen.at).0 <= LIMIT), "{after}");
}
