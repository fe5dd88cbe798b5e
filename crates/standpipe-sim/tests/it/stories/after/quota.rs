//! How much of a quota is used while nobody is refused.

use standpipe_core::{Margin, PoolConfig, Span};
use standpipe_sim::{ClientOptions, Network, Pattern, PlannedCall, Shape, Work};

use super::scene::{Tale, declared, play_over, usual};
use super::table::{Table, percent};
use crate::stories::scene::{HOUR, MILLI, MINUTE, STEADY, provider, requests};

/// Ten agents who always want more than there is, for ten minutes: what of the quota was used in
/// the minutes between, in thousandths, and how many were refused.
pub(super) fn saturated(margin: Margin, slack: u64, network: Network) -> (u64, usize) {
    let config = PoolConfig { margin, slack: Span(slack), ..usual(vec![declared(600, MINUTE)]) };
    let tale = Tale::new(Shape::Anthropic, config);
    let like = PlannedCall { lasts: 400 * MILLI, ..PlannedCall::default() };
    let work = Work { calls: 640, like, pattern: Pattern::AtOnce, vary: 500 };
    let options = ClientOptions { patience: HOUR, ..ClientOptions::USUAL };
    let agents = (0..10).map(|n| tale.agent_with(options, &format!("agent {n}"), work.calls(n)));
    let upstream = provider(Shape::Anthropic, &[requests(600, MINUTE)]);
    let (_, world) = play_over(network, upstream, agents.collect());
    let record = world.provider().record();
    let used = &record.used(0)[1..9];
    (used.iter().sum::<u64>() * 1_000 / (600 * used.len() as u64), record.refused())
}

const ALL: Margin = Margin::Fixed(0);
const FOUR_FIFTHS: Margin = Margin::Fixed(200);

pub(super) const JITTERY: Network =
    Network { there: 20 * MILLI, back: 20 * MILLI, jitter: 45 * MILLI };

pub(super) fn table() -> Table {
    let rows = [
        ("margin 0, even network", saturated(ALL, 0, STEADY)),
        ("margin 20 %, even network", saturated(FOUR_FIFTHS, 0, STEADY)),
        ("margin 0, jitter of 45 ms, slack of 50 ms", saturated(ALL, 50 * MILLI, JITTERY)),
        ("margin 0, jitter of 45 ms, no slack", saturated(ALL, 0, JITTERY)),
    ];
    let table = Table::empty("quota", "quota used", "refused");
    rows.into_iter()
        .fold(table, |table, (what, (used, refused))| table.row(what, percent(used), refused))
}

#[test]
fn nearly_all_of_the_quota_is_used_and_nobody_refused() {
    let table = table();
    assert_eq!(saturated(ALL, 0, STEADY), (1_000, 0), "\n{table}");
    assert_eq!(saturated(FOUR_FIFTHS, 0, STEADY), (800, 0), "\n{table}");
}
