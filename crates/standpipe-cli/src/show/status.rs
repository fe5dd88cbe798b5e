//! How pools stand, for people: a heading, a bar per limit, who holds what, who waits for what.

mod calls;
mod foresight;
mod limits;
mod trouble;

use standpipe::{Away, Backpressure, PoolStatus};

use crate::show::amount::percent;
use crate::show::length::length;
use crate::show::style::{Ink, Style, columns};
use crate::show::table::sentence;

pub(crate) use calls::{ends, tier, waits_for, why, words};

/// What a person is told who has no pool yet.
pub(crate) const NO_POOLS: &str = "\
No pools yet. A pool comes into being when something is
held or reserved on it:

  standpipe hold my/slots --limit parallel=2 -- sleep 10

To write limits down once for everybody:

  standpipe config init
";

/// All pools, with an empty line between.
pub(crate) fn pools(style: Style, all: &[PoolStatus]) -> String {
    let each = all.iter().map(|status| pool(style, status).join("\n") + "\n");
    each.collect::<Vec<_>>().join("\n")
}

/// Whom others depend on and cannot, just now.
pub(crate) fn upstream(pressed: &[Backpressure]) -> String {
    let each = pressed.iter().map(|told| {
        let (agent, pool, left) = (&told.agent, &told.pool, length(told.until_ms));
        format!("\nworkflows: {agent} is throttled on {pool} for another {left}\n")
    });
    each.collect()
}

fn pool(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines = vec![heading(style, status)];
    lines.extend(summary(style, status));
    lines.extend(calls::holds(style, &status.leases));
    lines.extend(calls::waits(style, &status.tickets));
    lines.extend(calls::agents(style, &status.agents));
    lines
}

/// What is said below a pool's name: what concerns all of it, then a bar per limit.
pub(crate) fn summary(style: Style, status: &PoolStatus) -> Vec<String> {
    let state = state(style, status).into_iter();
    let mut lines: Vec<_> = state.flat_map(|line| sentence(2, style.width, &line)).collect();
    lines.extend(limits::lines(style, &status.limits));
    lines
}

/// The name at the left, how much goes on at the right.
fn heading(style: Style, status: &PoolStatus) -> String {
    let mut about = Vec::new();
    match (status.leases.len(), status.tickets.len()) {
        (0, 0) => about.push("idle".to_owned()),
        (held, 0) => about.push(format!("{held} in flight")),
        (held, waiting) => {
            about.extend([format!("{held} in flight"), format!("{waiting} waiting")])
        }
    }
    if status.limits.iter().any(|limit| limit.margin_per_mille > Some(0)) {
        about.push(format!("margin {}", percent(status.margin_per_mille)));
    }
    if !status.enforce {
        about.push("shadow mode: nobody is held back".to_owned());
    }
    let about = about.join(style.dot());
    let used = columns(&status.pool) + columns(&about);
    let gap = style.width.min(100).saturating_sub(used).max(2);
    format!("{}{}{about}", style.ink(Ink::Bold, &status.pool), " ".repeat(gap))
}

/// What concerns the whole pool.
fn state(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(away) = &status.cut_off {
        let text = cut_off(away);
        lines.push(style.ink(Ink::Bad, &text));
    }
    if let Some(stop) = &status.terminal {
        let end = match (stop.for_ms, stop.until) {
            (Some(ms), Some(until)) => format!("until {until}, {} to go", length(ms)),
            _ => "until somebody lifts it".to_owned(),
        };
        let look = stop.look_ms.map(|ms| format!("; one call may try in {}", length(ms)));
        let end = end + &look.unwrap_or_default();
        let resume = format!("standpipe resume {}", status.pool);
        lines.push(style.ink(Ink::Bad, &format!("the provider said stop, {end}: {resume}")));
    }
    if let Some(pause) = &status.pause {
        let why = trouble::cause(&status.trouble);
        let text = format!("paused for {} (until {}){why}", length(pause.for_ms), pause.until);
        lines.push(style.ink(Ink::Short, &text));
    }
    lines.extend(foresight::lines(style, status));
    let after = trouble::lines(&status.trouble).into_iter();
    lines.extend(after.map(|text| style.ink(Ink::Short, &text)));
    if let Some(learning) = &status.learning {
        let left = length(learning.for_ms);
        let text = format!("the ledger lost its memory; it knows all again in {left}");
        lines.push(style.ink(Ink::Short, &text));
    }
    if status.limits.is_empty() && status.trouble.cautious.is_none() {
        let text = "no limits known yet: give it some in standpipe.toml or with --limit";
        lines.push(style.ink(Ink::Dim, text));
    }
    lines
}

/// What is done while the store is away.
fn cut_off(away: &Away) -> String {
    let since = length(away.for_ms);
    match (away.mode, away.among) {
        ("share", among) => format!(
            "cut off: the store is away for {since}; each of {among} processes takes its share"
        ),
        _ => format!("cut off: the store is away for {since}; nobody is held back meanwhile"),
    }
}
