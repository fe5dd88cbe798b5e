//! What agents do, by pool, agent and tier.
//!
//! Those that were counted are told apart first and stay so; the rest are `other`, as in the tally.

use std::collections::{BTreeMap, BTreeSet};

use standpipe::journal::Usage;

use super::Both;
use super::page::{Amount, Page, thousandths};
use super::tally::{MOST_AGENTS, MOST_AGENTS_IN_ALL, OTHER, Row};

/// What is to be said of one agent and tier.
#[derive(Debug, Default)]
struct Line<'a> {
    /// How many of its calls are in flight, and wait.
    now: Option<(usize, usize)>,
    row: Option<&'a Row>,
}

/// By pool, agent and tier.
type Lines<'a> = BTreeMap<(&'a str, &'a str, &'a str), Line<'a>>;

pub(super) fn write(page: &mut Page, pools: &BTreeMap<&str, Both<'_>>) {
    let lines = lines(pools);
    now(page, &lines);
    counts(page, &lines);
    by_reason(page, &lines);
    let help = "Units that calls used, at the estimate where no figure came.";
    let mut family = page.counter("agent_units_total", help);
    for_rows(&lines, |[pool, agent, priority], row| {
        for (unit, amount) in row.units.each() {
            family.put(&[pool, agent, priority, ("unit", unit)], Amount(unit, amount));
        }
    });
    let help = "How long calls waited, admitted or not; those admitted at once waited for 0.";
    let mut family = page.histogram("agent_wait_seconds", help);
    for_rows(&lines, |labels, row| {
        let bounds = Usage::WAITS_MS.iter().map(|bound| thousandths(*bound));
        family.put_counts(&labels, bounds, &row.waits, thousandths(row.waited_ms));
    });
    let help = "Calls that the provider refused, by agent.";
    let mut family = page.counter("agent_throttled_total", help);
    for (pool, both) in pools {
        for (agent, tally) in both.tally.into_iter().flat_map(|tally| &tally.agents) {
            for (kind, count) in tally.throttled.some() {
                family.put(&[("pool", pool), ("agent", agent), ("kind", kind)], count);
            }
        }
    }
}

fn lines<'a>(pools: &BTreeMap<&'a str, Both<'a>>) -> Lines<'a> {
    let counted = |both: &Both<'_>| both.tally.map_or(0, |tally| tally.agents.len());
    let in_all: usize = pools.values().map(counted).sum();
    let mut room = MOST_AGENTS_IN_ALL.saturating_sub(in_all);
    let mut lines = Lines::new();
    for (pool, both) in pools {
        let tallies = both.tally.into_iter().flat_map(|tally| &tally.agents);
        let mut apart: BTreeSet<&str> = tallies.clone().map(|(name, _)| name.as_str()).collect();
        for (agent, tally) in tallies {
            for (priority, row) in tally.rows() {
                lines.entry((pool, agent, priority)).or_default().row = Some(row);
            }
        }
        for agent in both.status.iter().flat_map(|status| &status.agents) {
            let new = !apart.contains(agent.name.as_str());
            let shown = !new || (room > 0 && apart.len() < MOST_AGENTS);
            if new && shown {
                room -= 1;
                apart.insert(&agent.name);
            }
            let name = if shown { agent.name.as_str() } else { OTHER };
            let line = lines.entry((pool, name, agent.priority)).or_default();
            let (in_flight, waiting) = line.now.unwrap_or_default();
            line.now = Some((in_flight + agent.in_flight, waiting + agent.waiting));
        }
    }
    lines
}

fn now(page: &mut Page, lines: &Lines<'_>) {
    let mut family = page.gauge("agent_in_flight", "An agent's calls in flight.");
    for (labels, line) in labelled(lines) {
        if let Some((in_flight, _)) = line.now {
            family.put(&labels, in_flight);
        }
    }
    let mut family = page.gauge("agent_waiting", "An agent's calls that wait.");
    for (labels, line) in labelled(lines) {
        if let Some((_, waiting)) = line.now {
            family.put(&labels, waiting);
        }
    }
}

fn counts(page: &mut Page, lines: &Lines<'_>) {
    let mut family = page.counter("agent_admitted_total", "Calls that were admitted.");
    for (labels, line) in labelled(lines) {
        family.put(&labels, line.row.map_or(0, |row| row.admitted));
    }
    let help = "Admitted calls that tried another again.";
    let mut family = page.counter("agent_retries_total", help);
    for_rows(lines, |labels, row| family.put(&labels, row.retries));
    let help = "Admitted calls that were never sent.";
    let mut family = page.counter("agent_cancelled_total", help);
    for_rows(lines, |labels, row| family.put(&labels, row.cancelled));
}

fn by_reason(page: &mut Page, lines: &Lines<'_>) {
    let help = "Calls that waited, by what they first waited for.";
    let mut family = page.counter("agent_waited_total", help);
    for_rows(lines, |[pool, agent, priority], row| {
        for (reason, count) in row.waited.some() {
            family.put(&[pool, agent, priority, ("reason", reason)], count);
        }
    });
    let help = "Calls that were not admitted, by reason.";
    let mut family = page.counter("agent_refused_total", help);
    for_rows(lines, |[pool, agent, priority], row| {
        for (reason, count) in row.refused.some() {
            family.put(&[pool, agent, priority, ("reason", reason)], count);
        }
    });
}

type Who<'a> = [(&'static str, &'a str); 3];

fn labelled<'a>(lines: &'a Lines<'a>) -> impl Iterator<Item = (Who<'a>, &'a Line<'a>)> {
    let who = |(pool, agent, priority): (&'a str, &'a str, &'a str)| {
        [("pool", pool), ("agent", agent), ("priority", priority)]
    };
    lines.iter().map(move |(names, line)| (who(*names), line))
}

/// Those of which something was counted.
fn for_rows<'a>(lines: &'a Lines<'a>, mut put: impl FnMut(Who<'a>, &'a Row)) {
    for (labels, line) in labelled(lines) {
        if let Some(row) = line.row {
            put(labels, row);
        }
    }
}
