//! Metrics by pool, agent and priority.
//!
//! Agents with counters keep their series; agents beyond the bounds are `other`.

use std::collections::{BTreeMap, BTreeSet};

use standpipe::observe::journal::Usage;

use super::PoolMetrics;
use super::counters::{MAX_AGENTS, MAX_AGENTS_TOTAL, OTHER, TierCounters};
use super::exposition::{Amount, Exposition, thousandths};
use super::labels::{AGENT, KIND, Label, POOL, PRIORITY, REASON, UNIT};

/// The labels of the calls of an agent.
const WHO: [Label; 3] = [POOL, AGENT, PRIORITY];
const WHO_AND_WHY: [Label; 4] = [POOL, AGENT, PRIORITY, REASON];

/// The metrics of one agent and priority.
#[derive(Debug, Default)]
struct Line<'a> {
    /// Its calls in flight and its waiting calls.
    now: Option<(usize, usize)>,
    row: Option<&'a TierCounters>,
}

/// By pool, agent and priority.
type Lines<'a> = BTreeMap<(&'a str, &'a str, &'a str), Line<'a>>;

pub(super) fn write(page: &mut Exposition, pools: &BTreeMap<&str, PoolMetrics<'_>>) {
    let lines = lines(pools);
    now(page, &lines);
    counts(page, &lines);
    by_reason(page, &lines);
    let help = "Units that calls used; the estimate if no usage was reported.";
    let mut family = page.counter("agent_units_total", &[POOL, AGENT, PRIORITY, UNIT], help);
    for_rows(&lines, |[pool, agent, priority], row| {
        for (unit, amount) in row.units.each() {
            family.put(&[pool, agent, priority, unit], Amount(unit, amount));
        }
    });
    let help = "How long calls waited, admitted or not; those admitted at once waited for 0.";
    let mut family = page.histogram("agent_wait_seconds", &WHO, help);
    for_rows(&lines, |labels, row| {
        let bounds = Usage::WAITS_MS.iter().map(|bound| thousandths(*bound));
        family.put_counts(&labels, bounds, &row.waits, thousandths(row.waited_ms));
    });
    let help = "Calls that the provider refused, by agent.";
    let mut family = page.counter("agent_throttled_total", &[POOL, AGENT, KIND], help);
    for (pool, metrics) in pools {
        for (agent, counters) in metrics.counters.into_iter().flat_map(|counters| &counters.agents)
        {
            for (kind, count) in counters.throttled.some() {
                family.put(&[pool, agent, kind], count);
            }
        }
    }
}

fn lines<'a>(pools: &BTreeMap<&'a str, PoolMetrics<'a>>) -> Lines<'a> {
    let counted =
        |metrics: &PoolMetrics<'_>| metrics.counters.map_or(0, |counters| counters.agents.len());
    let in_all: usize = pools.values().map(counted).sum();
    let mut room = MAX_AGENTS_TOTAL.saturating_sub(in_all);
    let mut lines = Lines::new();
    for (pool, metrics) in pools {
        let counters = metrics.counters.into_iter().flat_map(|counters| &counters.agents);
        let mut apart: BTreeSet<&str> = counters.clone().map(|(name, _)| name.as_str()).collect();
        for (agent, counters) in counters {
            for (priority, row) in counters.rows() {
                lines.entry((pool, agent, priority)).or_default().row = Some(row);
            }
        }
        for agent in metrics.status.iter().flat_map(|status| &status.agents) {
            let new = !apart.contains(agent.name.as_str());
            let shown = !new || (room > 0 && apart.len() < MAX_AGENTS);
            if new && shown {
                room -= 1;
                apart.insert(&agent.name);
            }
            let name = if shown { agent.name.as_str() } else { OTHER };
            let line = lines.entry((pool, name, agent.priority.as_str())).or_default();
            let (in_flight, waiting) = line.now.unwrap_or_default();
            line.now = Some((in_flight + agent.in_flight, waiting + agent.waiting));
        }
    }
    lines
}

fn now(page: &mut Exposition, lines: &Lines<'_>) {
    let mut family = page.gauge("agent_in_flight", &WHO, "An agent's calls in flight.");
    for (labels, line) in labelled(lines) {
        if let Some((in_flight, _)) = line.now {
            family.put(&labels, in_flight);
        }
    }
    let mut family = page.gauge("agent_waiting", &WHO, "An agent's calls that wait.");
    for (labels, line) in labelled(lines) {
        if let Some((_, waiting)) = line.now {
            family.put(&labels, waiting);
        }
    }
}

fn counts(page: &mut Exposition, lines: &Lines<'_>) {
    let mut family = page.counter("agent_admitted_total", &WHO, "Calls that were admitted.");
    for (labels, line) in labelled(lines) {
        family.put(&labels, line.row.map_or(0, |row| row.admitted));
    }
    let help = "Admitted calls that were retries.";
    let mut family = page.counter("agent_retries_total", &WHO, help);
    for_rows(lines, |labels, row| family.put(&labels, row.retries));
    let help = "Admitted calls that were never sent.";
    let mut family = page.counter("agent_cancelled_total", &WHO, help);
    for_rows(lines, |labels, row| family.put(&labels, row.cancelled));
}

fn by_reason(page: &mut Exposition, lines: &Lines<'_>) {
    let help = "Calls that waited, by what they first waited for.";
    let mut family = page.counter("agent_waited_total", &WHO_AND_WHY, help);
    for_rows(lines, |[pool, agent, priority], row| {
        for (reason, count) in row.waited.some() {
            family.put(&[pool, agent, priority, reason], count);
        }
    });
    let help = "Calls that were not admitted, by reason.";
    let mut family = page.counter("agent_refused_total", &WHO_AND_WHY, help);
    for_rows(lines, |[pool, agent, priority], row| {
        for (reason, count) in row.refused.some() {
            family.put(&[pool, agent, priority, reason], count);
        }
    });
}

type Who<'a> = [&'a str; 3];

fn labelled<'a>(lines: &'a Lines<'a>) -> impl Iterator<Item = (Who<'a>, &'a Line<'a>)> {
    let who = |(pool, agent, priority): (&'a str, &'a str, &'a str)| [pool, agent, priority];
    lines.iter().map(move |(names, line)| (who(*names), line))
}

/// Calls `put` for every agent with counters.
fn for_rows<'a>(lines: &'a Lines<'a>, mut put: impl FnMut(Who<'a>, &'a TierCounters)) {
    for (labels, line) in labelled(lines) {
        if let Some(row) = line.row {
            put(labels, row);
        }
    }
}
