//! Who uses a pool: each agent's share of every rate, its calls, its floor and its cap.

use standpipe::PoolStatus;
use standpipe::observe::{AgentLimitUse, AgentStatus};

use super::calls::{MAX_ROWS, priority_label, title, truncated};
use crate::show::amount::amount;
use crate::show::bar::share_bar;
use crate::show::duration::length;
use crate::show::style::{Style, TextRole};

/// The columns of a bar.
const BAR: usize = 10;

/// The agents, the one with the largest share of a limit first.
pub(super) fn lines(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut agents: Vec<&AgentStatus> = status.agents.iter().filter(|a| is_listed(a)).collect();
    // A stable sort: among equals the last active one is first.
    agents.sort_by_key(|agent| std::cmp::Reverse(largest(agent)));
    let rows = agents.iter().take(MAX_ROWS).enumerate().map(|(at, agent)| {
        vec![
            title(style, at, "used by"),
            agent.name.clone(),
            share_bar(style, BAR, largest(agent)),
            share_text(style, agent),
            style.paint(TextRole::Muted, &about(style, agent)),
        ]
    });
    truncated(style, rows.collect(), agents.len())
}

fn is_listed(agent: &AgentStatus) -> bool {
    let has_rule = !agent.floor.is_empty() || !agent.cap.is_empty() || agent.weight.is_some();
    largest(agent) > 0 || agent.in_flight > 0 || agent.waiting > 0 || has_rule
}

/// The largest share of a rate that an agent uses, in thousandths.
fn largest(agent: &AgentStatus) -> u32 {
    rates(agent).filter_map(|own| own.share_per_mille).max().unwrap_or(0)
}

fn rates(agent: &AgentStatus) -> impl Iterator<Item = &AgentLimitUse> {
    agent.usage.iter().filter(|own| own.unit != "parallel" && own.share_per_mille.is_some())
}

/// `62 % of requests (30), 41 % of input_tokens (131k)`, the largest share first.
pub(crate) fn share_text(style: Style, agent: &AgentStatus) -> String {
    let mut used: Vec<&AgentLimitUse> = rates(agent).filter(|own| own.used > 0).collect();
    used.sort_by_key(|own| std::cmp::Reverse(own.share_per_mille));
    let each = used.iter().map(|own| {
        let twice = rates(agent).filter(|other| other.unit == own.unit).count() > 1;
        let limit = if twice { &own.limit } else { &own.unit };
        let share = own.share_per_mille.unwrap_or(0);
        let share = if share < 10 { "<1 %".to_owned() } else { format!("{} %", share / 10) };
        format!("{share} of {limit} ({})", amount(&own.unit, own.used))
    });
    each.collect::<Vec<_>>().join(style.dot())
}

/// Its calls, priority, floor, cap and weight.
fn about(style: Style, agent: &AgentStatus) -> String {
    let counts = [(agent.in_flight, "in flight"), (agent.waiting, "waiting")];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut about: Vec<String> = counts.map(|(count, what)| format!("{count} {what}")).collect();
    about.push(priority_label(agent.priority.as_str()));
    about.push(portion("floor", &agent.floor, agent, |own| own.floor));
    about.push(portion("cap", &agent.cap, agent, |own| own.cap));
    about.extend(agent.weight.map(|weight| format!("weight {weight}")));
    if agent.in_flight + agent.waiting == 0 {
        about.push(format!("active {} ago", length(agent.active_ms)));
    }
    about.retain(|remark| !remark.is_empty());
    about.join(style.dot())
}

/// A floor or a cap as stated, and as units where it is stated as a share.
fn portion(
    what: &str,
    stated: &[String],
    agent: &AgentStatus,
    units: impl Fn(&AgentLimitUse) -> Option<u64>,
) -> String {
    if stated.is_empty() {
        return String::new();
    }
    let figures = agent
        .usage
        .iter()
        .filter_map(|own| Some(format!("{} {}", amount(&own.unit, units(own)?), own.unit)));
    let figures: Vec<String> = figures.collect();
    let text = format!("{what} {}", stated.join(", "));
    match stated.iter().any(|share| share.contains('%')) && !figures.is_empty() {
        true => format!("{text} ({})", figures.join(", ")),
        false => text,
    }
}
