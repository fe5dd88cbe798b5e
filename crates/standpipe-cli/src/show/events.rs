//! What happened, for people: a line each.

use standpipe::journal::{Event, Usage, What};

use crate::show::amount::{amount, cost, percent};
use crate::show::length::length;
use crate::show::status::why;

/// `2026-01-31 12:00:00Z  wait  my/slots  blog waited 3.1s: …`
pub(crate) fn line(event: &Event) -> String {
    let at = event.at.to_string();
    let day = at.get(..10).unwrap_or_default();
    let time = at.get(11..19).unwrap_or_default();
    let kind = event.what.kind().as_str();
    format!("{day} {time}Z  {kind:<12}  {}  {}", event.pool, what(&event.what))
}

/// What happened, in a sentence.
pub(crate) fn what(what: &What) -> String {
    match what {
        What::Wait { agent, model, ended, count, waited_ms, longest_ms, .. } => {
            let who = by(agent, model.as_deref());
            let why = waited_for(what);
            let waited = length(*waited_ms);
            match count {
                1 => format!("{who} waited {waited} ({why}), then {ended}"),
                n => {
                    let longest = length(*longest_ms);
                    format!(
                        "{n} calls of {who} waited {waited}, the longest {longest} ({why}), \
                         then {ended}"
                    )
                }
            }
        }
        What::Shadow { agent, model, reason, limit } => {
            let who = by(agent, model.as_deref());
            format!("{who} would have waited: {}", why(reason, limit.as_deref(), 0))
        }
        What::Throttle { agent, about, retry_after_ms, said, .. } => {
            let who = agent.as_deref().unwrap_or("a call");
            let after = retry_after_ms.map(|ms| format!(", retry after {}", length(ms)));
            let said = said.as_ref().map(|said| format!(": “{said}”"));
            let (after, said) = (after.unwrap_or_default(), said.unwrap_or_default());
            format!("{who} was refused by the provider: {about}{after}{said}")
        }
        What::Observe { headers, .. } => {
            let each = headers.iter().map(|(name, value)| format!("{name}: {value}"));
            each.collect::<Vec<_>>().join(", ")
        }
        What::Reclaim { agent, why, .. } => match why.as_str() {
            "expired" => format!("a lease of {agent} was taken back: its time was up"),
            _ => format!("a lease of {agent} was taken back: its process is gone"),
        },
        What::Pause { for_ms, until } => format!("paused for {}, until {until}", length(*for_ms)),
        What::Resume => "admits calls again".to_owned(),
        What::Stop { until: Some(until) } => format!("the provider said stop, until {until}"),
        What::Stop { until: None } => "the provider said stop".to_owned(),
        What::SessionEnd { session } => format!("session {session:x} ended"),
        What::Config { result, source } => format!("a configuration from {source}: {result}"),
        What::WindowReset { limit } => format!("the provider's window of {limit} began anew"),
        What::Sequential { on: true } => {
            "several agents were throttled: calls go one at a time".to_owned()
        }
        What::Sequential { on: false } => "calls no longer go one at a time".to_owned(),
        What::Learn { limit, amount } => format!("the provider taught a limit: {amount} {limit}"),
        What::Zone { zone } => format!("the light is {zone}"),
        What::Promote { agent } => {
            format!("{agent} was denied for 5 minutes and is served as a standard agent, once")
        }
        What::Margin { limit, per_mille } => {
            format!("margin of {limit} is now {}", percent(*per_mille))
        }
        What::Outside { limit, units, total } => {
            format!("somebody drew {units} of {limit} without asking, {total} in all")
        }
        What::Breaker { on: true } => {
            "at this rate calls will have to wait: they are advised to ask for less".to_owned()
        }
        What::Breaker { on: false } => "calls need not wait".to_owned(),
        What::Doubt { about, value, why } => doubted(about, value, why),
        What::Store { what } => what.clone(),
        What::Usage(usage) => used(usage),
        What::Lost { lines } => format!("{lines} line(s) of the journal could not be written"),
        _ => String::new(),
    }
}

/// A message that was not believed has no value that may be shown.
fn doubted(about: &str, value: &str, why: &str) -> String {
    let value = if value.is_empty() { String::new() } else { format!(" `{value}`") };
    format!("{about}{value} was not believed: {why}")
}

/// `requests per 1min has no room: 60 of 60 used`
fn waited_for(what: &What) -> String {
    let What::Wait { reason, limit, used, usable, .. } = what else { return String::new() };
    let why = why(reason, limit.as_deref(), 0);
    match (limit, used, usable) {
        (Some(limit), Some(used), Some(usable)) => {
            let unit = limit.split(' ').next().unwrap_or_default();
            format!("{why}: {} of {} used", amount(unit, *used), amount(unit, *usable))
        }
        _ => why,
    }
}

/// `blog (sonnet): 12 calls, 3 refused, waited 4.2s, used 12 requests, 48,300 input_tokens`
fn used(usage: &Usage) -> String {
    let calls = if usage.calls == 1 { "call" } else { "calls" };
    let counts = [
        (usage.calls, calls),
        (usage.retries, "of them retries"),
        (usage.refused, "refused"),
        (usage.cancelled, "never sent"),
    ];
    let counted = counts.into_iter().filter(|(count, _)| *count > 0);
    let mut said: Vec<String> = counted.map(|(count, what)| format!("{count} {what}")).collect();
    if !usage.refusals.is_empty() {
        let all = usage.refusals.values().fold(0, |all: u64, more| all.saturating_add(*more));
        let why: Vec<String> =
            usage.refusals.iter().map(|(reason, times)| format!("{times} {reason}")).collect();
        said.push(format!("{all} not admitted ({})", why.join(", ")));
    }
    if usage.waited_ms > 0 {
        said.push(format!("waited {}", length(usage.waited_ms)));
    }
    if !usage.units.is_empty() {
        let units = usage.units.iter().map(|(unit, figure)| (unit.as_str(), *figure));
        said.push(format!("used {}", cost(units)));
    }
    let shadow = if usage.enforced { "" } else { " in shadow mode" };
    format!("{}{shadow}: {}", by(&usage.agent, usage.model.as_deref()), said.join(", "))
}

fn by(agent: &str, model: Option<&str>) -> String {
    model.map_or_else(|| agent.to_owned(), |model| format!("{agent} ({model})"))
}
