//! When a call may be admitted, in the time zone of this machine.

use standpipe::observe::{
    Denial, NextReason, PausedBy, ProviderReset, TicketStatus, Timestamp, Why,
};
use standpipe::{Refused, When};

use crate::show::duration::remaining;
use crate::show::local_time::clock;

/// Describes when a call may be admitted.
pub(crate) fn when(when: &When) -> String {
    when.describe(&local)
}

/// `admitted in 34 s (16:59:20)`; a forecast and a bound are no promise to admit the call.
fn admitted(at: &When) -> String {
    match at.until {
        Some(_) => format!("admitted {}", when(at)),
        None => when(at),
    }
}

/// Describes why a call is not admitted, and when it may be or what must happen first. `next` is
/// the rule that decides the time, if it is another one.
pub(crate) fn why_and_when(why: &Why<'_>, next: Option<&NextReason>, at: &When) -> String {
    let text = match next {
        Some(next) => format!("{}; then {}", reason(why), reason(&next.why())),
        None => reason(why),
    };
    // These name what must happen already, unless a response of the provider decides.
    let is_named = ["order", "probe"].contains(&why.reason) && why.reset.is_none();
    // The time of a rate is known, so what is unknown is a slot that the call needs as well.
    let is_slot = why.limit.is_none_or(|limit| limit == "parallel");
    let is_slot = is_slot || next.is_some();
    let needs_slot = at.waiting_for.as_deref() == Some("a call in flight to end") && !is_slot;
    let mut timed = at.clone();
    timed.waiting_for = None;
    match &at.waiting_for {
        _ if at.is_empty() => text,
        // The instant is that of the call, not of what the text says.
        None => format!("{text}; {}", admitted(at)),
        Some(_) if is_named && timed.is_empty() => text,
        Some(_) if is_named => format!("{text}; {}", when(&timed)),
        Some(event) if needs_slot && timed.is_empty() => format!("{text}; it also needs {event}"),
        Some(event) if needs_slot => format!("{text}; it also needs {event}, {}", when(&timed)),
        Some(_) => format!("{text}; {}", when(at)),
    }
}

/// Describes a rule that denies a call but does not decide about it, and how long it does.
pub(crate) fn why_and_until(why: &Why<'_>, at: &When) -> String {
    let (bound, end) = match (at.until, at.not_before) {
        (Some(end), _) => ("until", end),
        (None, Some(end)) => ("at least until", end),
        (None, None) => return why_and_when(why, None, at),
    };
    let left = remaining(at.until_ms.or(at.not_before_ms).unwrap_or(0));
    format!("{}, {bound} {} ({left})", reason(why), clock(end))
}

/// Describes a denial that decides. For a pause that is when it ends, when calls of the priority
/// return from it, and when the call is admitted.
pub(crate) fn denied(no: &Denial, next: Option<&NextReason>, at: &When, priority: &str) -> String {
    let Some(returns) = &no.returns else { return why_and_when(&no.why(), next, at) };
    let (end, from, to) = (clock(returns.pause_ends), clock(returns.from), clock(returns.to));
    let window = if from == to { format!("at {from}") } else { format!("between {from} and {to}") };
    let paused = match &no.paused {
        Some(cause) => paused_by(cause, Some(&end)),
        None => format!(" until {end}"),
    };
    let next = next.map(|next| format!("; then {}", reason(&next.why()))).unwrap_or_default();
    let admitted = if at.is_empty() { String::new() } else { format!("; {}", admitted(at)) };
    format!("paused{paused}; {priority} calls return {window}{next}{admitted}")
}

/// ` by ops at 16:58:00 until 16:59:00`, or ` until 16:59:00: blog got a 429 (quota) at 16:58:00`
fn paused_by(cause: &PausedBy, end: Option<&str>) -> String {
    let by = format!("{} at {}", cause.cause(), clock(cause.at));
    let until = end.map(|end| format!(" until {end}")).unwrap_or_default();
    match cause.refusal {
        Some(_) => until + &by,
        None => by + &until,
    }
}

/// Describes a pool that the provider stopped: who was refused, and until when.
pub(crate) fn stopped(why: &Refused) -> String {
    let who = why.stopped_by.as_ref().map(|incident| {
        let agent = incident.agent.as_deref().unwrap_or("a call");
        format!(" ({agent} was refused at {})", clock(incident.at))
    });
    let at = why.when();
    let probe = at.until.map(|_| format!(", or a call may try {}", when(&at)));
    let (who, probe) = (who.unwrap_or_default(), probe.unwrap_or_default());
    format!("the provider stopped the pool{who} until it is resumed{probe}")
}

fn reason(why: &Why<'_>) -> String {
    let window = why.reset.map(window).unwrap_or_default();
    match why.paused {
        Some(cause) => {
            let end = cause.until.map(clock);
            format!("paused{}", paused_by(cause, end.as_deref()))
        }
        None => format!("{why}{window}"),
    }
}

/// `; the provider's window ended 16:59:20`
fn window(reset: &ProviderReset) -> String {
    let at = clock(reset.at);
    match (reset.followed, reset.ended) {
        (true, true) => format!("; the provider's window ended {at}"),
        (true, false) => format!("; the provider's window ends {at}"),
        (false, true) => format!("; the provider's reset at {at} has passed"),
        (false, false) => format!("; the provider announced a reset at {at}"),
    }
}

/// Describes why a call waits, and until when.
pub(crate) fn wait_reason(ticket: &TicketStatus) -> String {
    let on = ticket.on.as_ref().map(|pool| format!("on {pool}: ")).unwrap_or_default();
    let idle = || why_and_when_of(ticket, &When::default());
    let text = match ticket.reason {
        Some(_) if ticket.stopped => {
            format!("{}; its process is stopped and cannot take its turn", idle())
        }
        None if ticket.stopped => "its turn has come, but its process is stopped".to_owned(),
        None if ticket.lapsed => NO_RESPONSE.to_owned(),
        Some(_) if ticket.lapsed => format!("{}; {NO_RESPONSE}", idle()),
        Some(_) => why_and_when_of(ticket, &before(ticket)),
        None if ticket.when.is_empty() => "it is next".to_owned(),
        None => format!("it is next; {}", when(&before(ticket))),
    };
    // Where it waits is named already.
    let also = ticket.also.iter().filter(|name| ticket.on.as_ref() != Some(*name));
    let also: Vec<String> = also.cloned().collect();
    on + &text + &beside(&also, ticket.bound_by.as_deref()) + &gives_up(ticket)
}

/// Describes why calls in a row wait, all for the same reason, and until when the first and the
/// last one.
pub(crate) fn wait_reason_of_all(first: &TicketStatus, last: &TicketStatus) -> String {
    let (one, other) = (when(&first.when), when(&last.when));
    if one == other || first.when.in_ms().is_none() || last.when.in_ms().is_none() {
        return wait_reason(first);
    }
    let why = why_and_when_of(first, &When::default());
    let late =
        if is_late(last) { format!(" (the last one{})", gives_up(last)) } else { String::new() };
    format!("{why}; the first one {one}, the last one {other}{late}")
}

/// A waiting call whose turn came, and whose caller did not take it.
const NO_RESPONSE: &str = "its caller does not respond, so others pass it";

fn why_and_when_of(ticket: &TicketStatus, at: &When) -> String {
    let why = ticket.why();
    why.map(|why| why_and_when(&why, ticket.next.as_ref(), at)).unwrap_or_default()
}

/// The instant of a call, unless it gives up before its turn and that is not the instant.
fn before(ticket: &TicketStatus) -> When {
    let at = &ticket.when;
    if !at.times_out || at.in_ms().is_none_or(|ms| ms > ticket.deadline_ms) {
        return at.clone();
    }
    let mut unknown = When::default();
    unknown.waiting_for.clone_from(&at.waiting_for);
    unknown
}

/// `; it also draws on mu/y`, or the reason for the bound: `, because it also draws on mu/y`
pub(crate) fn beside(also: &[String], bound_by: Option<&str>) -> String {
    match (also, bound_by) {
        ([], _) => String::new(),
        (also, None) => format!("; it also draws on {}", also.join(" and ")),
        (also, Some(_)) => format!(", because it also draws on {}", also.join(" and ")),
    }
}

/// Whether the timeout of a call ends before its turn.
pub(crate) fn is_late(ticket: &TicketStatus) -> bool {
    let late = ticket.when.in_ms().is_some_and(|ms| ms > ticket.deadline_ms);
    late || ticket.when.times_out
}

/// `, but it gives up in 12 s (16:59:20)`
pub(crate) fn gives_up(ticket: &TicketStatus) -> String {
    if !is_late(ticket) {
        return String::new();
    }
    let (left, at) = (remaining(ticket.deadline_ms), clock(ticket.deadline()));
    match before(ticket).is_empty() {
        true => format!("; it gives up in {left} ({at}), before its turn"),
        false => format!(", but it gives up in {left} ({at})"),
    }
}

/// Describes until when a call waits, and why: in a narrow column the instant must not be cut off.
pub(crate) fn wait_instant(ticket: &TicketStatus) -> String {
    if let Some(why) = ticket.why().filter(|_| is_late(ticket)) {
        let (left, at) = (remaining(ticket.deadline_ms), clock(ticket.deadline()));
        let why = why_and_when(&why, None, &When::default());
        return format!("gives up in {left} ({at}), before its turn: {why}");
    }
    match ticket.why().filter(|_| ticket.when.waiting_for.is_none() && !ticket.when.is_empty()) {
        Some(why) => {
            format!("{}: {}", when(&ticket.when), why_and_when(&why, None, &When::default()))
        }
        None => wait_reason(ticket),
    }
}

/// Describes a reason of the admission rule, about a limit.
pub(crate) fn reason_text(reason: &str, limit: Option<&str>) -> String {
    Why::new(reason, limit).to_string()
}

/// Describes a refusal.
pub(crate) fn refused(refused: &Refused) -> String {
    refused.describe(&local)
}

fn local(at: Timestamp, _ms: u64) -> String {
    clock(at)
}
