//! Warnings about a pool: its zone, use by others, denied agents, and what it cost.

use standpipe::PoolStatus;
use standpipe::observe::LimitStatus;

use crate::show::amount::amount;
use crate::show::duration::length;
use crate::show::style::{Style, TextRole};

pub(super) fn lines(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines = Vec::new();
    match status.zone.as_str() {
        "amber" => lines.push(style.paint(
            TextRole::Warning,
            "zone amber: while a higher priority is active, background and standard calls are \
             spaced out",
        )),
        "red" => lines.push(style.paint(
            TextRole::Error,
            "zone red: while a higher priority is active, background waits and standard gets one \
             call a second",
        )),
        _ => {}
    }
    // While calls wait, their reasons and the hint say what to do.
    if status.breaker.as_str() == "pre_emptive" && status.waiting == 0 {
        lines.push(style.paint(TextRole::Warning, &forecast(status)));
    }
    for limit in status.limits.iter().filter(|limit| limit.outside > 0) {
        let units = amount(&limit.unit, limit.outside);
        let text = format!(
            "outside use: {units} of {} did not go through Standpipe; see `standpipe doctor`",
            limit.limit
        );
        lines.push(style.paint(TextRole::Error, &text));
    }
    for agent in &status.agents {
        if agent.promoted {
            lines.push(format!(
                "{} was denied for long: its next call is served as standard",
                agent.name
            ));
        } else if let Some(ms) = agent.denied_ms.filter(|ms| *ms >= 60_000) {
            lines.push(format!(
                "{}, a background agent, has been denied for {}",
                agent.name,
                length(ms)
            ));
        }
    }
    if let Some(money) = &status.money {
        let (spent, wasted) = (dollars(money.spent_micro_usd), dollars(money.wasted_micro_usd));
        let waste = match money.wasted_micro_usd {
            0 => String::new(),
            _ => format!(", {wasted} of it for refused and failed calls"),
        };
        lines.push(style.paint(TextRole::Muted, &format!("the last day cost {spent}{waste}")));
    }
    lines
}

/// Describes a quota that is used up, or will be.
fn forecast(status: &PoolStatus) -> String {
    let is_rate = |limit: &&LimitStatus| limit.kind.as_str() != "parallel";
    let full = status.limits.iter().filter(is_rate).filter(|limit| limit.left == 0);
    let full: Vec<&str> = full.map(|limit| limit.limit.as_str()).collect();
    let verb = if full.len() == 1 { "is" } else { "are" };
    match (full.as_slice(), status.enforce) {
        ([], _) => "quota will run out at this rate; send fewer or smaller calls".to_owned(),
        (full, true) => format!("{} {verb} used up", full.join(" and ")),
        (full, false) => {
            format!("{} {verb} used up; shadow mode admits calls anyway", full.join(" and "))
        }
    }
}

fn dollars(micro: u64) -> String {
    amount("usd", micro)
}
