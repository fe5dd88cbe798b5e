//! The condition of a whole pool: its worst state, what causes it, until when, and what to do.

use std::collections::BTreeSet;

use standpipe::observe::{LeaseStatus, LimitStatus, OfflineStatus, PoolState};
use standpipe::{PoolStatus, Refused, escape};

use super::{limits, throttling, warnings};
use crate::show::duration::{length, remaining};
use crate::show::local_time::clock;
use crate::show::reasons::to_do;
use crate::show::style::{Style, TextRole};

/// Returns the worst state of a pool, coloured.
pub(crate) fn state_text(style: Style, status: &PoolStatus) -> String {
    let state = status.state();
    style.paint(state_role(state), state.as_str())
}

/// Returns the colour of a state.
pub(crate) const fn state_role(state: PoolState) -> TextRole {
    match state {
        PoolState::Unavailable | PoolState::Stopped => TextRole::Error,
        PoolState::Paused | PoolState::Waiting | PoolState::Full | PoolState::Degraded => {
            TextRole::Warning
        }
        PoolState::Busy => TextRole::Good,
        PoolState::Idle => TextRole::Muted,
    }
}

/// The lines about the whole pool, the hint last.
pub(super) fn lines(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(parent) = &status.within {
        let text = format!("within {}: every call draws on it too", escape::text(parent));
        lines.push(style.paint(TextRole::Muted, &text));
    }
    if let Some(stale) = &status.unavailable {
        let text = format!(
            "the store does not answer: {}; the figures are {} old",
            stale.detail,
            length(stale.age_ms)
        );
        lines.push(style.paint(TextRole::Error, &text));
    }
    if let Some(offline) = &status.cut_off {
        lines.push(style.paint(TextRole::Error, &cut_off(offline)));
    }
    lines.extend(stopped(style, status));
    if let Some(pause) = &status.pause {
        let why = throttling::cause(pause, &status.trouble);
        let text =
            format!("paused until {} ({}){why}", clock(pause.until), remaining(pause.for_ms));
        lines.push(style.paint(TextRole::Warning, &text));
    }
    lines.extend(warnings::lines(style, status));
    let after = throttling::lines(status).into_iter();
    lines.extend(after.map(|text| style.paint(TextRole::Warning, &text)));
    if let Some(learning) = &status.learning {
        let text = format!(
            "the store lost the ledger: calls in flight are known again at {} (in {})",
            clock(learning.until),
            remaining(learning.for_ms)
        );
        lines.push(style.paint(TextRole::Warning, &text));
    }
    if let Some(recovering) = &status.recovering {
        let text = format!(
            "the store lost the ledger: its rates count as full and return until {} ({})",
            clock(recovering.until),
            remaining(recovering.for_ms)
        );
        lines.push(style.paint(TextRole::Warning, &text));
    }
    if status.limits.is_empty() && status.trouble.cautious.is_none() {
        let text = "no limits known yet: state them in standpipe.toml or with --limit";
        lines.push(style.paint(TextRole::Muted, text));
    }
    lines.extend(hint(status).map(|hint| format!("hint: {hint}")));
    lines
}

fn stopped(style: Style, status: &PoolStatus) -> Option<String> {
    let stop = status.terminal.as_ref()?;
    let end = match (stop.for_ms, stop.until) {
        (Some(ms), Some(until)) => format!("until {} ({})", clock(until), remaining(ms)),
        _ => "until it is resumed".to_owned(),
    };
    let incident = status.trouble.incident.as_ref();
    let who = incident.filter(|incident| incident.kind.as_str() == "terminal").map(|incident| {
        let agent = incident.agent.as_deref().unwrap_or("a call");
        let (at, ago) = (clock(incident.at), length(incident.ago_ms));
        format!(": {agent} was refused at {at} ({ago} ago)")
    });
    let probe = stop.look_ms.map(|ms| format!("; one call may try in {}", remaining(ms)));
    let (who, probe) = (who.unwrap_or_default(), probe.unwrap_or_default());
    let text = format!("the provider stopped the pool {end}{who}{probe}");
    Some(style.paint(TextRole::Error, &text))
}

/// What to do about the worst state; `None` where there is nothing to do.
fn hint(status: &PoolStatus) -> Option<String> {
    let pool = &status.pool;
    match status.state() {
        PoolState::Unavailable => Some("`standpipe doctor` checks the store".to_owned()),
        PoolState::Stopped => {
            Some(format!("{}, then `standpipe resume {pool}`", Refused::FIX_ACCOUNT))
        }
        PoolState::Paused if is_refused(status) => Some(format!(
            "wait; `standpipe resume {pool}` ends the pause, but the provider may refuse again"
        )),
        PoolState::Paused => Some(format!("`standpipe resume {pool}` ends the pause")),
        PoolState::Waiting => {
            let first = status.tickets.iter().find(|ticket| ticket.reason.is_some())?;
            let (why, stopped) = (first.why()?, stopped_pids(status));
            let unowned = || unowned_slot(status).filter(|_| why.limit == Some("parallel"));
            let unowned = stopped.is_empty().then(unowned).flatten();
            let known = || to_do(&why, pool, first.priority.as_str(), &stopped);
            Some(unowned.unwrap_or_else(known)).filter(|text| !text.is_empty())
        }
        PoolState::Full if status.enforce => unowned_slot(status).or_else(|| {
            Some(format!("a new call would wait; `standpipe explain {pool}` shows how long"))
        }),
        PoolState::Full => None,
        PoolState::Degraded | PoolState::Busy | PoolState::Idle => kept(status),
    }
}

/// A limit whose rest only agents with a floor may use: the next call of another agent waits.
fn kept(status: &PoolStatus) -> Option<String> {
    let is_kept = |limit: &&LimitStatus| limits::kept(limit) >= limit.left && limit.left > 0;
    let limit = status.limits.iter().find(is_kept).filter(|_| status.enforce)?;
    let (name, pool, owners) = (&limit.limit, &status.pool, limits::kept_text(limit)?);
    Some(format!(
        "what is left of {name} is {owners}; `standpipe explain {pool} --as AGENT` shows when a \
         call of another agent is admitted"
    ))
}

/// A slot of a full pool that no process holds, and how to end its lease: nothing shows whether its
/// call still runs.
fn unowned_slot(status: &PoolStatus) -> Option<String> {
    let is_full = |limit: &LimitStatus| limit.unit == "parallel" && limit.left == 0;
    status.limits.iter().find(|limit| is_full(limit))?;
    let unowned = |lease: &&LeaseStatus| lease.pid.is_none() && lease.holder.as_str() == "ttl";
    let lease = status.leases.iter().find(unowned)?;
    let (agent, id, left) = (&lease.agent, &lease.id, remaining(lease.expires_ms?));
    Some(format!(
        "{agent} holds a slot without a process, for {left} at most; if its call is over: \
         `standpipe commit {id}`"
    ))
}

/// The stopped processes that hold leases.
fn stopped_pids(status: &PoolStatus) -> Vec<u32> {
    let stopped = status.leases.iter().filter(|lease| lease.stopped);
    let pids: BTreeSet<u32> = stopped.filter_map(|lease| lease.pid).collect();
    pids.into_iter().take(3).collect()
}

/// Whether the provider refused a call during the pause: `Retry-After` may still run.
const fn is_refused(status: &PoolStatus) -> bool {
    status.trouble.incident.is_some()
}

/// What this process does while the store is unavailable.
fn cut_off(offline: &OfflineStatus) -> String {
    let since = length(offline.for_ms);
    match (offline.mode.as_str(), offline.among) {
        ("share", among) => format!(
            "the store has been unavailable for {since}; each of {among} processes uses its share \
             meanwhile"
        ),
        _ => {
            format!("the store has been unavailable for {since}; every call is admitted meanwhile")
        }
    }
}
