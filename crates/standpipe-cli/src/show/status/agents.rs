//! Who uses a pool: each agent's share of every limit, its calls, its floor and its cap.

use std::cmp::Reverse;

use standpipe::PoolStatus;
use standpipe::observe::{AgentStatus, LimitStatus, share};

use super::calls::{MAX_ROWS, priority_label, title, truncated};
use crate::show::amount::{amount, cost};
use crate::show::bar::share_bar;
use crate::show::duration::{last, length};
use crate::show::style::{Style, TextRole};

/// The columns of a bar.
const BAR: usize = 10;
/// An agent that called within this time is listed on a pool without limits.
const RECENT_MS: u64 = 60_000;

/// The most rates of which an agent's share is shown.
const MAX_RATES: usize = 2;

/// What one agent uses of one limit.
struct Used<'a> {
    limit: &'a LimitStatus,
    units: u64,
    /// What the share is of: the usable part, with what others use.
    whole: u64,
}

/// The agents, the one with the largest share of a limit first. A slot is a share too, so the
/// holders of slots come before the calls that wait for one.
pub(super) fn lines(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut agents: Vec<_> =
        status.agents.iter().map(|agent| (agent, used(status, agent))).collect();
    agents.retain(|(agent, used)| !used.is_empty() || is_listed(status, agent));
    // A stable sort: among equals the last active one is first.
    agents.sort_by_key(|(agent, used)| Reverse((largest(used), agent.in_flight > 0)));
    let rows = agents.iter().take(MAX_ROWS).enumerate();
    let rows = rows.map(|(at, (agent, used))| {
        vec![
            title(style, at, "used by"),
            agent.name.clone(),
            // Without limits there is nothing to have a share of.
            match status.limits.is_empty() {
                true => String::new(),
                false => share_bar(style, BAR, largest(used)),
            },
            [
                text(style, used, status, agent),
                style.paint(TextRole::Muted, &about(style, agent, used)),
            ]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(style.dot()),
        ]
    });
    let mut rows: Vec<Vec<String>> = rows.collect();
    if let Some((per_mille, text)) = others(style, status) {
        let title = title(style, rows.len(), "used by");
        rows.push(vec![title, "others".to_owned(), share_bar(style, BAR, per_mille), text]);
    }
    truncated(style, rows, agents.len())
}

/// What did not go through Standpipe, as far as the provider's headers show it: the largest share,
/// and a text.
fn others(style: Style, status: &PoolStatus) -> Option<(u64, String)> {
    let each = status.limits.iter().filter_map(|limit| {
        let (units, _) = status.notable_use_by_others(limit)?;
        let whole = whole(status, limit);
        let per_mille = u128::from(units) * 1_000 / u128::from(whole.max(1));
        let per_mille = u64::try_from(per_mille).unwrap_or(u64::MAX);
        let part = share(units.into(), whole.into());
        Some((per_mille, format!("{part} of {} ({})", limit.unit, amount(&limit.unit, units))))
    });
    let each: Vec<(u64, String)> = each.collect();
    let largest = each.iter().map(|(per_mille, _)| *per_mille).max()?;
    let units: Vec<&str> = each.iter().map(|(_, units)| units.as_str()).collect();
    Some((largest, format!("{} not through Standpipe", units.join(style.dot()))))
}

/// What an agent uses of the limits of its pool, for one line.
pub(crate) fn share_text(style: Style, status: &PoolStatus, agent: &AgentStatus) -> String {
    text(style, &used(status, agent), status, agent)
}

/// Without limits nothing is used of them, and those who called lately are listed.
fn is_listed(status: &PoolStatus, agent: &AgentStatus) -> bool {
    let has_rule = !agent.floor.is_empty() || !agent.cap.is_empty() || agent.weight.is_some();
    let is_recent = agent.active_ms < RECENT_MS && !agent.never_called;
    let is_caller = status.limits.is_empty() && is_recent;
    agent.in_flight > 0 || has_rule || is_caller
}

/// The limits that an agent uses, the largest share first.
fn used<'a>(status: &'a PoolStatus, agent: &AgentStatus) -> Vec<Used<'a>> {
    let used = status.limits.iter().filter_map(|limit| {
        let own = agent.usage.iter().find(|own| own.limit == limit.limit)?;
        let units = own.used.saturating_add(own.held);
        Some(Used { limit, units, whole: whole(status, limit) })
    });
    let mut used: Vec<Used<'_>> = used.filter(|used| used.units > 0).collect();
    used.sort_by_key(|used| Reverse(used.per_mille()));
    used
}

/// What all shares of a limit are of: what is usable in its period, with what others use.
fn whole(status: &PoolStatus, limit: &LimitStatus) -> u64 {
    limit.refill.unwrap_or(limit.effective).saturating_add(by_others(status, limit))
}

fn by_others(status: &PoolStatus, limit: &LimitStatus) -> u64 {
    status.notable_use_by_others(limit).map_or(0, |(units, _)| units)
}

impl Used<'_> {
    fn per_mille(&self) -> u64 {
        let share = u128::from(self.units) * 1_000 / u128::from(self.whole.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }
}

fn largest(used: &[Used<'_>]) -> u64 {
    used.first().map_or(0, Used::per_mille)
}

/// `62 % of requests (30) · 41 % of input_tokens (131k) · 2 of 5 in flight`
fn text(style: Style, used: &[Used<'_>], status: &PoolStatus, agent: &AgentStatus) -> String {
    let mut rates = 0;
    let shown = used.iter().filter(|used| {
        rates += usize::from(used.limit.period_ms.is_some());
        used.limit.period_ms.is_none() || rates <= MAX_RATES
    });
    let each = shown.map(|Used { limit, units, whole }| {
        let Some(period_ms) = limit.period_ms else {
            // A call may take several slots.
            let what = if *units == agent.in_flight as u64 { "in flight" } else { "slots" };
            return format!("{units} of {} {what}", limit.effective);
        };
        if let Some(all) = limit.last_period {
            // With its burst a bucket passes more than its rate.
            let part = share((*units).into(), (*whole).into());
            let all = all.saturating_add(limit.held).saturating_add(by_others(status, limit));
            let of_all = share((*units).into(), all.max(*units).into());
            let (count, last) = (cost([(limit.unit.as_str(), *units)]), last(period_ms));
            return format!("{count} in the {last} ({part} of the limit, {of_all} of all)");
        }
        let part = share((*units).into(), (*whole).max(*units).into());
        let same = status.limits.iter().filter(|other| other.unit == limit.unit).count();
        let name = if same > 1 { &limit.limit } else { &limit.unit };
        format!("{part} of {name} ({})", amount(&limit.unit, *units))
    });
    each.collect::<Vec<_>>().join(style.dot())
}

/// When an agent was last active: `active now`, `active 5 s ago`, `has not called yet`.
pub(crate) fn active_text(agent: &AgentStatus) -> String {
    if agent.never_called {
        "has not called yet".to_owned()
    } else if agent.in_flight + agent.waiting > 0 {
        "active now".to_owned()
    } else {
        format!("active {} ago", length(agent.active_ms))
    }
}

/// Its calls, priority, floor, cap and weight. Slots that are counted already, one per call, are
/// not repeated.
fn about(style: Style, agent: &AgentStatus, used: &[Used<'_>]) -> String {
    let is_counted =
        |used: &Used<'_>| used.limit.period_ms.is_none() && used.units == agent.in_flight as u64;
    let in_flight = if used.iter().any(is_counted) { 0 } else { agent.in_flight };
    let portion = |what: &str, stated: &[String]| match stated {
        [] => String::new(),
        some => format!("{what} {}", some.join(", ")),
    };
    let count = |count: usize, what: &str| match count {
        0 => String::new(),
        count => format!("{count} {what}"),
    };
    let idle = agent.in_flight + agent.waiting == 0;
    let about = [
        count(in_flight, "in flight"),
        count(agent.waiting, "waiting"),
        keeps(agent),
        priority_label(agent.priority.as_str()),
        portion("floor", &agent.floor),
        portion("cap", &agent.cap),
        agent.weight.map(|weight| format!("weight {weight}")).unwrap_or_default(),
        if idle { active_text(agent) } else { String::new() },
    ];
    let about: Vec<String> = about.into_iter().filter(|remark| !remark.is_empty()).collect();
    about.join(style.dot())
}

/// `kept while it waits for al/b`: a call on several pools that has not been made.
fn keeps(agent: &AgentStatus) -> String {
    match agent.keeps_for.as_slice() {
        [] => String::new(),
        pools => format!("kept while it waits for {}", pools.join(" and ")),
    }
}
