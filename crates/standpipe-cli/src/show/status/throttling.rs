//! The state that a provider's refusals left: the cause of a pause, and the return after it.

use standpipe::PoolStatus;
use standpipe::observe::{Pause, ThrottleStatus};

use crate::show::amount::{counted, percent, times};
use crate::show::duration::{length, remaining};
use crate::show::local_time::clock;

/// Describes what set the end of a pause: an agent that ordered it, or a refusal.
pub(super) fn cause(pause: &Pause, trouble: &ThrottleStatus) -> String {
    if let (Some(by), Some(at)) = (&pause.by, pause.at) {
        let refused = trouble.incident.as_ref().map(|incident| {
            let who = incident.agent.as_deref().unwrap_or("a call");
            format!("; the provider refused {who} at {}", clock(incident.at))
        });
        return format!(" by {by} at {}{}", clock(at), refused.unwrap_or_default());
    }
    // Without either the store pauses while processes restore what it lost.
    let Some(incident) = &trouble.incident else { return String::new() };
    let who = incident.agent.as_deref().unwrap_or("a call");
    let what = match incident.kind.as_str() {
        "quota" => "got a 429 (quota)",
        "concurrency" => "got a 429 (concurrency)",
        "slow_down" => "got a 429 (slow down)",
        "overload" => "got an overload error",
        _ => "was refused",
    };
    let streak = match trouble.streak.max(trouble.overloads) {
        0 | 1 => String::new(),
        n => format!(", refused {} in a row", times(n)),
    };
    let (at, ago) = (clock(incident.at), length(incident.ago_ms));
    format!(": {who} {what} at {at} ({ago} ago){streak}")
}

/// Describes the return after a pause, and what was learned.
pub(super) fn lines(status: &PoolStatus) -> Vec<String> {
    let trouble = &status.trouble;
    let mut lines = Vec::new();
    match (trouble.probe.as_ref().map(|probe| probe.as_str()), &trouble.coming_back) {
        (Some("sent"), _) => lines.push("the first call after a pause is in flight".to_owned()),
        (Some(_), _) => lines.push("after a pause: the next call probes alone".to_owned()),
        (None, Some(back)) => {
            lines.push(format!(
                "after a pause calls return staggered by priority; the return windows end {} \
                 ({}), and limits may delay calls longer",
                clock(back.until),
                remaining(back.for_ms)
            ));
        }
        (None, None) => {}
    }
    if let Some(mode) = &trouble.one_at_a_time {
        let left = remaining(mode.for_ms);
        lines.push(format!(
            "several agents were throttled: one call at a time until three in a row succeed, for \
             {left} at most"
        ));
    }
    lines.extend(ramp(status));
    if let Some(calls) = trouble.learned_concurrency {
        let calls = counted(calls, "call");
        lines.push(format!(
            "the provider accepts {calls} at once; one more after each minute without a 429"
        ));
    }
    if let Some((retries, ends)) =
        trouble.retries.as_ref().and_then(|r| Some((r, r.used_up.as_ref()?)))
    {
        let (all, end, left) = (retries.per_minute, clock(ends.until), remaining(ends.for_ms));
        lines.push(format!("retries: 0 of {all} left until {end} ({left})"));
    }
    if let Some(calls) = trouble.cautious {
        let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
        lines.push(format!(
            "no limits known yet: at most {calls} in flight, doubling with each answer"
        ));
    }
    lines
}

/// `ramp after a pause: 50 % of requests per 1min is usable until 12:02:00 (57 s)`
fn ramp(status: &PoolStatus) -> Option<String> {
    let ends = status.trouble.ramp.as_ref()?;
    let per_mille = status.trouble.speed_per_mille?;
    let ramped = status.limits.iter().filter_map(|limit| Some((limit, limit.ramp?)));
    let names: Vec<&str> = ramped.clone().map(|(limit, _)| limit.limit.as_str()).collect();
    let first = ramped.map(|(_, step)| step.until_ms).max()?;
    let part = percent(u16::try_from(per_mille).unwrap_or(u16::MAX));
    let (end, left) = (clock(ends.until), remaining(ends.for_ms));
    let doubles = if first < ends.for_ms { ", doubling with each period," } else { "" };
    let names = names.join(" and ");
    Some(format!("ramp after a pause: {part} of {names} is usable{doubles} until {end} ({left})"))
}
