//! The state that a provider's refusals left: the cause of a pause, and the return after it.

use standpipe::observe::{Pause, ThrottleStatus};

use crate::show::duration::length;
use crate::show::local_time::clock;

/// Describes what set the end of a pause: an agent that ordered it, or a refusal.
pub(super) fn cause(pause: &Pause, trouble: &ThrottleStatus) -> String {
    if let (Some(by), Some(at)) = (&pause.by, pause.at) {
        return format!(" by {by} at {}", clock(at));
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
        n => format!(", {n} times in a row"),
    };
    let (at, ago) = (clock(incident.at), length(incident.ago_ms));
    format!(": {who} {what} at {at} ({ago} ago){streak}")
}

/// Describes the return after a pause, and what was learned.
pub(super) fn lines(trouble: &ThrottleStatus) -> Vec<String> {
    let mut lines = Vec::new();
    match (trouble.probe.as_ref().map(|probe| probe.as_str()), &trouble.coming_back) {
        (Some("sent"), _) => lines.push("the first call after a pause is in flight".to_owned()),
        (Some(_), _) => lines.push("after a pause: the next call probes alone".to_owned()),
        (None, Some(back)) => {
            lines.push(format!(
                "after a pause: all agents have returned in {}",
                length(back.for_ms)
            ));
        }
        (None, None) => {}
    }
    if let Some(mode) = &trouble.one_at_a_time {
        let left = length(mode.for_ms);
        lines
            .push(format!("several agents were throttled: one call at a time, for {left} at most"));
    }
    if let Some(speed) = trouble.speed_per_mille {
        let percent = format!("{}.{}", speed / 10, speed % 10);
        let percent = percent.trim_end_matches(".0");
        lines.push(format!(
            "ramp after a pause: {percent} % of the shortest rates, doubling with each period"
        ));
    }
    if let Some(calls) = trouble.learned_concurrency {
        lines.push(format!(
            "the provider accepts {calls} calls at once; one more after each minute without a 429"
        ));
    }
    if let Some(calls) = trouble.cautious {
        let calls = if calls == 1 { "1 call".to_owned() } else { format!("{calls} calls") };
        lines.push(format!(
            "no limits known yet: at most {calls} in flight, doubling with each answer"
        ));
    }
    lines
}
