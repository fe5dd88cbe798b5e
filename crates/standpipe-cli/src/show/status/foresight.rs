//! What is foreseen of a pool, in sentences: the light, what others use, who is denied, money.

use standpipe::PoolStatus;

use crate::show::amount::amount;
use crate::show::length::length;
use crate::show::style::{Ink, Style};

pub(super) fn lines(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines = Vec::new();
    match status.zone {
        "amber" => lines.push(style.ink(
            Ink::Short,
            "the light is amber: background keeps a distance, standard half of it",
        )),
        "red" => lines.push(style.ink(
            Ink::Bad,
            "the light is red: background parks, standard goes once a second, critical passes",
        )),
        _ => {}
    }
    if status.breaker == "pre_emptive" {
        let text = "at this rate calls will have to wait: better ask for less, or elsewhere";
        lines.push(style.ink(Ink::Short, text));
    }
    for limit in status.limits.iter().filter(|limit| limit.outside > 0) {
        let units = amount(&limit.unit, limit.outside);
        let text = format!(
            "outside: somebody drew {units} of {} without asking; `standpipe doctor` says more",
            limit.limit
        );
        lines.push(style.ink(Ink::Bad, &text));
    }
    for agent in &status.agents {
        if agent.promoted {
            lines.push(format!(
                "{} was denied for long: it is served as a standard agent, once",
                agent.name
            ));
        } else if let Some(ms) = agent.denied_ms.filter(|ms| *ms >= 60_000) {
            lines.push(format!(
                "{} asks in the background, in vain for {}",
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
        lines.push(style.ink(Ink::Dim, &format!("the last day cost {spent}{waste}")));
    }
    lines
}

fn dollars(micro: u64) -> String {
    amount("usd", micro)
}
