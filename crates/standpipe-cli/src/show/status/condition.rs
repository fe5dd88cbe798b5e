//! The condition of a whole pool: its worst state, what causes it, until when, and what to do.

use std::collections::BTreeSet;

use standpipe::observe::{
    LeaseStatus, LimitStatus, OfflineStatus, ParentStatus, PoolState, TicketStatus, Why,
};
use standpipe::{PoolStatus, Reason, Refused, escape};

use super::{limits, throttling, warnings};
use crate::show::duration::{length, remaining};
use crate::show::local_time::clock;
use crate::show::reasons::{Situation, to_do};
use crate::show::style::{Style, TextRole};
use crate::show::when::is_late;

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
        PoolState::Active => TextRole::Good,
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
    lines.extend(status.parents.iter().map(|parent| above(style, parent)));
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
    if status.enforce {
        lines.extend(held_back(style, status));
    } else {
        lines.extend(not_held_back(style, status));
        lines.extend(warnings::lines(style, status));
    }
    if let Some(learning) = &status.learning {
        let has_rates = status.limits.iter().any(|limit| limit.period_ms.is_some());
        let rates_returned = has_rates && status.recovering.is_none();
        let text = format!(
            "the store lost the ledger: its slots count as full until {} ({}){}",
            clock(learning.until),
            remaining(learning.for_ms),
            if rates_returned { "; its rates returned" } else { "" }
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
    if let Some(at) = status.limits_lost_at.filter(|_| status.limits.is_empty()) {
        let text = format!(
            "the store lost the ledger at {}, and its limits with it: state them in \
             standpipe.toml or with --limit",
            clock(at)
        );
        lines.push(style.paint(TextRole::Warning, &text));
    } else if status.limits.is_empty() && status.trouble.cautious.is_none() {
        let text = "no limits known yet: state them in standpipe.toml or with --limit";
        lines.push(style.paint(TextRole::Muted, text));
    }
    lines.extend(hint(status).map(|hint| format!("hint: {hint}")));
    lines
}

/// A pool that every call draws on too, and that is paused or stopped.
fn above(style: Style, parent: &ParentStatus) -> String {
    let name = escape::text(&parent.pool);
    match (&parent.terminal, &parent.pause) {
        (Some(_), _) => style.paint(TextRole::Error, &format!("the provider stopped {name}")),
        (None, Some(pause)) => {
            let by = pause.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let (end, left) = (clock(pause.until), remaining(pause.for_ms));
            style.paint(TextRole::Warning, &format!("{name} is paused until {end} ({left}){by}"))
        }
        (None, None) => String::new(),
    }
}

/// What keeps calls back, and the return after it.
fn held_back(style: Style, status: &PoolStatus) -> Vec<String> {
    let mut lines: Vec<String> = stopped(style, status).into_iter().collect();
    if let Some(pause) = &status.pause {
        let why = throttling::cause(pause, &status.trouble);
        let text =
            format!("paused until {} ({}){why}", clock(pause.until), remaining(pause.for_ms));
        lines.push(style.paint(TextRole::Warning, &text));
    }
    lines.extend(warnings::lines(style, status));
    let after = throttling::lines(status).into_iter();
    lines.extend(after.map(|text| style.paint(TextRole::Warning, &text)));
    lines
}

/// A pause or stop in shadow mode: it would hold calls back, and does not.
fn not_held_back(style: Style, status: &PoolStatus) -> Option<String> {
    let would = match (&status.terminal, &status.pause) {
        (Some(_), _) => "stopped by the provider".to_owned(),
        (None, Some(pause)) => {
            let why = throttling::cause(pause, &status.trouble);
            format!("paused until {} ({}){why}", clock(pause.until), remaining(pause.for_ms))
        }
        (None, None) => return None,
    };
    let text = format!("calls are admitted all the same; without shadow mode: {would}");
    Some(style.paint(TextRole::Warning, &text))
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
    let lost = || status.loss_remedy().map(|remedy| format!("{remedy}; else wait"));
    match status.state() {
        PoolState::Unavailable => Some("`standpipe doctor` checks the store".to_owned()),
        PoolState::Stopped if status.terminal.is_none() => {
            let stopped = status.parents.iter().find(|parent| parent.terminal.is_some())?;
            Some(format!("{}, then `standpipe resume {}`", Refused::FIX_ACCOUNT, stopped.pool))
        }
        PoolState::Paused if status.pause.is_none() => {
            let paused = status.parents.iter().find(|parent| parent.pause.is_some())?;
            Some(format!("`standpipe resume {}` ends the pause", paused.pool))
        }
        PoolState::Stopped => {
            Some(format!("{}, then `standpipe resume {pool}`", Refused::FIX_ACCOUNT))
        }
        PoolState::Paused if is_refused(status) => Some(format!(
            "wait; `standpipe resume {pool}` ends the pause, but the provider may refuse again"
        )),
        PoolState::Paused => Some(format!("`standpipe resume {pool}` ends the pause")),
        PoolState::Waiting | PoolState::Full if status.loss_remedy().is_some() => lost(),
        PoolState::Waiting => waiting(status),
        PoolState::Full if status.enforce => unowned_slot(status).or_else(|| {
            let is_slots = |limit: &LimitStatus| limit.unit == "parallel" && limit.left == 0;
            Some(match status.limits.iter().any(is_slots) {
                true => "a new call would wait for one of the calls in flight to end".to_owned(),
                false => {
                    format!("a new call would wait; `standpipe explain {pool}` shows how long")
                }
            })
        }),
        PoolState::Full => None,
        PoolState::Degraded | PoolState::Active | PoolState::Idle => kept(status),
    }
}

/// What to do about the first call that waits: about the rule that decides its time.
fn waiting(status: &PoolStatus) -> Option<String> {
    if let Some(pid) = status.tickets.iter().find_map(stopped_at_its_turn) {
        return Some(format!(
            "the turn of process {pid} has come, but it is stopped (kill -CONT {pid} resumes it, \
             kill -9 {pid} ends it)"
        ));
    }
    let first = status.tickets.iter().find(|ticket| ticket.reason.is_some())?;
    let why = first.next.as_ref().map_or_else(|| first.why(), |next| Some(next.why()))?;
    let why = Why { agent: Some(&first.agent), ..why };
    if is_late(first) {
        return Some(format!(
            "the call of {} gives up before its turn: start it with a longer --timeout",
            first.agent
        ));
    }
    let stopped = stopped_pids(status);
    let unowned = || unowned_slot(status).filter(|_| why.limit == Some("parallel"));
    let unowned = stopped.is_empty().then(unowned).flatten();
    let situation = Situation {
        pool: first.on.as_deref().unwrap_or(&status.pool),
        priority: first.priority.as_str(),
        stopped: &stopped,
        limits: if first.on.is_some() { &[] } else { &status.limits },
        from_file: status.origin.source.as_str() == "file",
        lacks_two: first.next.is_some() && first.reason == Some(Reason::Limit.into()),
    };
    Some(unowned.unwrap_or_else(|| to_do(&why, &situation))).filter(|text| !text.is_empty())
}

/// The process of a call whose turn has come, if it is stopped.
fn stopped_at_its_turn(ticket: &TicketStatus) -> Option<u32> {
    ticket.pid.filter(|_| ticket.stopped && ticket.reason.is_none())
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
    unowned_lease(&status.leases)
}

/// A lease that no process has held for a while, and how to end it.
pub(crate) fn unowned_lease(leases: &[LeaseStatus]) -> Option<String> {
    let lease = leases.iter().find(|lease| lease.may_be_leaked())?;
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
