//! What a provider's refusals left behind, in sentences.

use standpipe::Trouble;

use crate::show::length::length;

/// What a pause began with, behind its length.
pub(super) fn cause(trouble: &Trouble) -> String {
    let Some(incident) = &trouble.incident else { return String::new() };
    let who = incident.agent.as_deref().unwrap_or("a call");
    let what = match incident.kind {
        "quota" => "was told that its quota is used up",
        "concurrency" => "was told that too many calls are in flight",
        "slow_down" => "was told to slow down",
        "overload" => "found the provider overloaded",
        _ => "was told to stop",
    };
    let streak = match trouble.streak.max(trouble.overloads) {
        0 | 1 => String::new(),
        n => format!(", {n} times in a row"),
    };
    format!(": {who} {what} {} ago{streak}", length(incident.ago_ms))
}

/// What comes after a pause, and what was learned.
pub(super) fn lines(trouble: &Trouble) -> Vec<String> {
    let mut lines = Vec::new();
    match (trouble.probe, &trouble.coming_back) {
        (Some("sent"), _) => lines.push("the first call after a pause is under way".to_owned()),
        (Some(_), _) => lines.push("after a pause: the next call goes first, alone".to_owned()),
        (None, Some(back)) => {
            lines.push(format!("after a pause: all are back in {}", length(back.for_ms)));
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
    if let Some(calls) = trouble.bears {
        lines.push(format!("the provider bears {calls} at once; one more every quiet minute"));
    }
    if let Some(calls) = trouble.cautious {
        lines.push(format!(
            "no limits known yet: at most {calls} unanswered, twice as many after each answer"
        ));
    }
    lines
}
