//! `status` for people: a heading per pool, a bar per limit, leases, tickets, agents.

mod calls;
mod limits;
mod throttling;
mod warnings;

use standpipe::observe::OfflineStatus;
use standpipe::{Backpressure, PoolStatus, escape};

use crate::show::amount::percent;
use crate::show::duration::length;
use crate::show::local_time::clock;
use crate::show::style::{Style, TextRole, columns};
use crate::show::table::sentence;

pub(crate) use calls::{behind_text, cost_text, expiry, priority_label, reason_text, wait_reason};

/// The text for a store without pools.
pub(crate) const NO_POOLS: &str = "\
No pools yet. The first `hold` or `reserve` on a pool
creates it:

  standpipe hold my/slots --limit parallel=2 -- sleep 10

To write limits to a file, once for every caller:

  standpipe config init
";

/// Formats all pools, separated by empty lines.
pub(crate) fn pools(style: Style, all: &[PoolStatus]) -> String {
    let each = all.iter().map(|status| pool(style, status).join("\n") + "\n");
    each.collect::<Vec<_>>().join("\n")
}

/// Formats the throttled agents that workflows depend on.
pub(crate) fn backpressure(all: &[Backpressure]) -> String {
    let each = all.iter().map(|throttled| {
        let (agent, pool, left) = (&throttled.agent, &throttled.pool, length(throttled.until_ms));
        format!("\nworkflows: {agent} is throttled on {pool} for another {left}\n")
    });
    each.collect()
}

fn pool(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines = vec![heading(style, status)];
    lines.extend(summary(style, status));
    lines.extend(calls::leases(style, &status.leases));
    lines.extend(calls::tickets(style, &status.tickets));
    lines.extend(calls::agents(style, &status.agents));
    lines
}

/// Formats what follows a pool's name: its state, then a bar per limit.
pub(crate) fn summary(style: Style, status: &PoolStatus) -> Vec<String> {
    let state = state(style, status).into_iter();
    let mut lines: Vec<_> = state.flat_map(|line| sentence(2, style.width, &line)).collect();
    lines.extend(limits::lines(style, &status.limits));
    lines
}

/// The name at the left, the number of calls at the right.
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
        about.push("shadow mode: limits are not enforced".to_owned());
    }
    let about = about.join(style.dot());
    let used = columns(&status.pool) + columns(&about);
    let gap = style.width.min(100).saturating_sub(used).max(2);
    format!("{}{}{about}", style.paint(TextRole::Title, &status.pool), " ".repeat(gap))
}

/// The lines about the whole pool.
fn state(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(parent) = &status.within {
        let text = format!("within {}: every call draws on it too", escape::text(parent));
        lines.push(style.paint(TextRole::Muted, &text));
    }
    if let Some(away) = &status.cut_off {
        let text = cut_off(away);
        lines.push(style.paint(TextRole::Error, &text));
    }
    if let Some(stop) = &status.terminal {
        let end = match (stop.for_ms, stop.until) {
            (Some(ms), Some(until)) => format!("until {} ({})", clock(until), length(ms)),
            _ => "until it is resumed by hand".to_owned(),
        };
        let look = stop.look_ms.map(|ms| format!("; one call may try in {}", length(ms)));
        let end = end + &look.unwrap_or_default();
        let resume = format!("standpipe resume {}", status.pool);
        lines.push(
            style.paint(TextRole::Error, &format!("the provider said stop, {end}: {resume}")),
        );
    }
    if let Some(pause) = &status.pause {
        let why = throttling::cause(&status.trouble);
        let text = format!("paused until {} ({}){why}", clock(pause.until), length(pause.for_ms));
        lines.push(style.paint(TextRole::Warning, &text));
    }
    lines.extend(warnings::lines(style, status));
    let after = throttling::lines(&status.trouble).into_iter();
    lines.extend(after.map(|text| style.paint(TextRole::Warning, &text)));
    if let Some(learning) = &status.learning {
        let left = length(learning.for_ms);
        let text = format!("the ledger was lost; it is complete again in {left}");
        lines.push(style.paint(TextRole::Warning, &text));
    }
    if status.limits.is_empty() && status.trouble.cautious.is_none() {
        let text = "no limits known yet: give it some in standpipe.toml or with --limit";
        lines.push(style.paint(TextRole::Muted, text));
    }
    lines
}

/// What this process does while the store is unavailable.
fn cut_off(away: &OfflineStatus) -> String {
    let since = length(away.for_ms);
    match (away.mode.as_str(), away.among) {
        ("share", among) => format!(
            "cut off: the store has been unavailable for {since}; each of {among} processes \
             uses its share"
        ),
        _ => format!(
            "cut off: the store has been unavailable for {since}; every call is admitted meanwhile"
        ),
    }
}
