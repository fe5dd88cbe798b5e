//! Events for people: a line each.

use std::collections::BTreeMap;

use standpipe::LeaseId;
use standpipe::observe::Why;
use standpipe::observe::journal::{Event, EventData, Usage};

use crate::show::amount::{amount, cost, counted, percent};
use crate::show::duration::length;
use crate::show::local_time::{clock, day_and_clock};
use crate::show::when::reason_text;

/// `2026-01-31 12:00:00  wait  my/slots  blog waited 3.1s: …`
pub(crate) fn line(event: &Event, owners: &SessionOwners) -> String {
    let at = day_and_clock(event.at);
    let kind = event.what.kind().as_str();
    let what = match &event.what {
        EventData::SessionEnd { session } => session_end(*session, owners.get(session)),
        other => what(other),
    };
    format!("{at}  {kind:<12}  {}  {what}", event.pool)
}

/// The agents of sessions.
pub(crate) type SessionOwners = BTreeMap<u64, String>;

/// Finds whose sessions ended: the end of one reclaims the leases that it holds.
pub(crate) fn session_owners<'a>(events: impl IntoIterator<Item = &'a Event>) -> SessionOwners {
    let owner = |event: &Event| match &event.what {
        EventData::Reclaim { lease, agent, .. } => {
            Some((lease.parse::<LeaseId>().ok()?.key().session, agent.clone()))
        }
        _ => None,
    };
    events.into_iter().filter_map(owner).collect()
}

fn session_end(session: u64, agent: Option<&String>) -> String {
    let of = agent.map(|agent| format!(" of {agent}")).unwrap_or_default();
    format!("session {session:x}{of} ended")
}

/// Describes an event in a sentence.
pub(crate) fn what(what: &EventData) -> String {
    match what {
        EventData::Wait { .. } => waited(what),
        EventData::Refuse { .. } => refused(what),
        EventData::Shadow { agent, model, reason, limit } => {
            let who = by(agent, model.as_deref());
            format!("{who} would have waited: {}", reason_text(reason, limit.as_deref()))
        }
        EventData::Throttle { .. } => throttled(what),
        EventData::Observe { headers, .. } => {
            let each = headers.iter().map(|(name, value)| format!("{name}: {value}"));
            each.collect::<Vec<_>>().join(", ")
        }
        EventData::Reclaim { agent, why, .. } => match why.as_str() {
            "expired" => format!("a lease of {agent} was reclaimed: it expired"),
            _ => format!("a lease of {agent} was reclaimed: its process ended"),
        },
        EventData::Pause { for_ms, until, by } => {
            let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            format!("paused{by} for {}, until {}", length(*for_ms), clock(until))
        }
        EventData::Resume { by } => {
            by.as_ref().map_or("the pause is over".to_owned(), |by| format!("resumed by {by}"))
        }
        EventData::Stop { until } => {
            let until = until.map(|until| format!(", until {}", clock(until)));
            format!("stopped by the provider{}", until.unwrap_or_default())
        }
        EventData::SessionEnd { session } => session_end(*session, None),
        EventData::Config { result, source } => configured(source, result),
        EventData::WindowReset { limit } => format!("the provider's window of {limit} restarted"),
        EventData::Sequential { on } => match on {
            true => "several agents were throttled: calls go one at a time".to_owned(),
            false => "calls no longer go one at a time".to_owned(),
        },
        EventData::Learn { limit, amount } => learned(limit, *amount),
        EventData::Zone { zone } => format!("zone {zone}"),
        EventData::Promote { agent } => {
            format!("{agent} was denied for 5 minutes; its next call is served as standard")
        }
        EventData::Margin { limit, per_mille } => {
            format!("margin of {limit} is now {}", percent(*per_mille))
        }
        EventData::Outside { limit, units, total } => {
            format!("outside use: {units} of {limit} did not go through Standpipe, {total} in all")
        }
        EventData::Breaker { on: true } => {
            "quota will run out at this rate: callers are advised to request less".to_owned()
        }
        EventData::Breaker { on: false } => "quota no longer runs out at this rate".to_owned(),
        EventData::ClientRetry { agent, client, guessed } => {
            let what = match guessed {
                true => "repeated a refused call; it may retry on its own",
                false => "retries on its own; `standpipe doctor` has the switch",
            };
            format!("{agent} ({client}) {what}")
        }
        EventData::Settle { agent, by, pid, .. } => settled(agent.as_deref(), by, *pid),
        EventData::Anomaly { about, value, why } => anomaly(about, value, why),
        EventData::Store { what } => what.clone(),
        EventData::Usage(usage) => used(usage),
        EventData::Lost { lines } => {
            format!("{} of the journal could not be written", counted(*lines, "line"))
        }
        _ => String::new(),
    }
}

/// Describes a limit that was learned. No answer states how many calls are accepted at once.
fn learned(limit: &str, size: u64) -> String {
    match limit {
        "parallel" => {
            format!("learned: the provider accepts {} at once", counted(size, "call"))
        }
        _ => format!("the provider stated a limit: {size} {limit}"),
    }
}

/// Describes a refusal by the provider, with its own words.
fn throttled(what: &EventData) -> String {
    let EventData::Throttle { agent, about, retry_after_ms, said, .. } = what else {
        return String::new();
    };
    let who = agent.as_deref().unwrap_or("a call");
    let after = retry_after_ms.map(|ms| format!(", retry after {}", length(ms)));
    let said = said.as_ref().map(|said| format!(": “{said}”"));
    let (after, said) = (after.unwrap_or_default(), said.unwrap_or_default());
    format!("{who} was refused by the provider: {about}{after}{said}")
}

/// Describes a configuration that was sent. Limits of a `--limit` flag are recorded as those of
/// code.
fn configured(source: &str, result: &str) -> String {
    match source {
        "code" if result == "kept" => {
            "limits from code or flags were not applied: other limits are in force".to_owned()
        }
        "code" => format!("limits from code or flags: {result}"),
        _ => format!("a configuration from {source}: {result}"),
    }
}

/// Describes calls that waited.
fn waited(what: &EventData) -> String {
    let EventData::Wait { agent, model, ended, next, count, waited_ms, longest_ms, .. } = what
    else {
        return String::new();
    };
    let ended = match next {
        Some(next) => format!("{ended} on {next}"),
        None => ended.clone(),
    };
    let (who, why) = (by(agent, model.as_deref()), waited_for(what));
    let (waited, longest) = (length(*waited_ms), length(*longest_ms));
    match count {
        1 => format!("{who} waited {waited} ({why}), then {ended}"),
        n => format!(
            "{n} calls of {who} waited {waited}, the longest {longest} ({why}), then {ended}"
        ),
    }
}

/// Describes calls that were not admitted: `cron was refused (parallel has no room, in use by h;
/// timeout 0)`.
fn refused(what: &EventData) -> String {
    let EventData::Refuse {
        agent,
        model,
        reason,
        limit,
        short_by,
        by_cap,
        held_by,
        timeout_ms,
        count,
        ..
    } = what
    else {
        return String::new();
    };
    let who = by(agent, model.as_deref());
    let known = Why::new(reason, limit.as_deref());
    // Only a call that can never fit lacks the same later, and in each of several calls.
    let short_by = if reason == "never" && *count == 1 { *short_by } else { 0 };
    let why = held(Why { short_by, by_cap: *by_cap, ..known }.to_string(), held_by);
    let timeout = if *timeout_ms == 0 { "0".to_owned() } else { length(*timeout_ms) };
    match count {
        1 => format!("{who} was not admitted ({why}; timeout {timeout})"),
        n => format!("{n} calls of {who} were not admitted ({why}; timeout {timeout})"),
    }
}

/// Adds who holds the slots.
fn held(why: String, held_by: &[String]) -> String {
    if held_by.is_empty() { why } else { format!("{why}, in use by {}", held_by.join(", ")) }
}

/// Describes a lease that somebody else settled than the process that holds it.
fn settled(agent: Option<&str>, by: &str, pid: u32) -> String {
    let whose = agent.map(|agent| format!(" of {agent}")).unwrap_or_default();
    format!("a lease{whose} (pid {pid}) was settled by {by}; its process goes on")
}

/// Describes a value that was not believed. A message has no value that may be shown.
fn anomaly(about: &str, value: &str, why: &str) -> String {
    let value = if value.is_empty() { String::new() } else { format!(" `{value}`") };
    format!("{about}{value} was not believed: {why}")
}

/// `requests per min has no room: 60 of 60 used; 3 s of it: parallel has no room`
fn waited_for(what: &EventData) -> String {
    let EventData::Wait { reason, limit, used, usable, held_by, also, .. } = what else {
        return String::new();
    };
    let why = reason_text(reason, limit.as_deref());
    let text = match (limit, used, usable) {
        (Some(limit), Some(used), Some(usable)) => {
            let unit = limit.split(' ').next().unwrap_or_default();
            format!("{why}: {} of {} used", amount(unit, *used), amount(unit, *usable))
        }
        _ => why,
    };
    let mut text = held(text, held_by);
    for part in also {
        let why = reason_text(&part.reason, part.limit.as_deref());
        text.push_str(&format!("; {} of it: {why}", length(part.waited_ms)));
    }
    text
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
    let mut parts: Vec<String> = counted.map(|(count, what)| format!("{count} {what}")).collect();
    if !usage.refusals.is_empty() {
        let all = usage.refusals.values().fold(0, |all: u64, more| all.saturating_add(*more));
        let why: Vec<String> =
            usage.refusals.iter().map(|(reason, times)| format!("{times} {reason}")).collect();
        parts.push(format!("{all} not admitted ({})", why.join(", ")));
    }
    if usage.waited_ms > 0 {
        parts.push(format!("waited {}", length(usage.waited_ms)));
    }
    if !usage.units.is_empty() {
        let units = usage.units.iter().map(|(unit, figure)| (unit.as_str(), *figure));
        parts.push(format!("used {}", cost(units)));
    }
    let shadow = if usage.enforced { "" } else { " in shadow mode" };
    format!("{}{shadow}: {}", by(&usage.agent, usage.model.as_deref()), parts.join(", "))
}

fn by(agent: &str, model: Option<&str>) -> String {
    model.map_or_else(|| agent.to_owned(), |model| format!("{agent} ({model})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use standpipe::observe::Timestamp;

    #[test]
    fn the_end_of_a_session_names_the_agent_whose_lease_it_held() {
        let lease = "lease1_TcxdAgDNqakfGeiVAAAAAAAAAANnaXRodWIvY29yZQ".to_owned();
        let session = lease.parse::<LeaseId>().unwrap().key().session;
        let event = |what| {
            let (at, pool) = (Timestamp { millis: 0 }, "github/core".to_owned());
            Event { at, pool, what }
        };
        let (agent, why) = ("poller".to_owned(), "owner_gone".to_owned());
        let reclaim = event(EventData::Reclaim { lease, agent, why });
        let ended = event(EventData::SessionEnd { session });
        let owners = session_owners([&ended, &reclaim]);
        assert!(line(&ended, &owners).ends_with(&format!("session {session:x} of poller ended")));
        let unknown = line(&ended, &SessionOwners::new());
        assert!(unknown.ends_with(&format!("session {session:x} ended")), "{unknown}");
    }
}
