//! Admission for `hold` and `reserve`: building the request, waiting, and the notes about the wait.

use std::time::{Duration, SystemTime};

use standpipe::observe::{LeaseStatus, Timestamp};
use standpipe::{
    AgentName, Backpressure, Error, Lease, Pool, PoolStatus, Reason, Request, Standpipe,
};

use crate::args::{Call, CallLabels, total};
use crate::context::priority;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::process::signals::Signals;
use crate::process::wait::{WaitOutcome, wait_for};
use crate::show::amount::{amount, percent};
use crate::show::duration::length;
use crate::show::local_time::clock;
use crate::show::problem::refusal_beside;
use crate::show::when::{is_late, wait_reason};

/// A longer wait is noted on a terminal. So often a waiting call sees whether the store answers.
const NOTICE_AFTER: Duration = Duration::from_secs(1);

/// A longer wait is noted in a log, where most waits are of no interest.
const LOG_AFTER: Duration = Duration::from_secs(10);

/// The most holders of a limit that are named.
const MAX_HOLDERS: usize = 3;

/// Builds the library's request from the flags.
pub(super) fn request(
    call: &Call,
    work: Option<&CallLabels>,
    agent: &AgentName,
) -> Result<Request, Failure> {
    let mut request = Request::by(agent.as_str());
    for (unit, figure) in total(&call.cost)? {
        request = request.unit(unit.name(), figure);
    }
    if let Some(model) = work.and_then(|work| work.model.as_deref()) {
        request = request.model(model);
    }
    if let Some(task) = work.and_then(|work| work.task.as_deref()) {
        request = request.task(task);
    }
    let mut named = vec![&call.pool];
    for pool in &call.also {
        if named.contains(&pool) {
            let hint = "name each pool once; --also takes other pools than POOL";
            return Err(Failure::usage(&format!("`{pool}` is named twice"), hint));
        }
        named.push(pool);
        request = request.also(pool.as_str());
    }
    if let Some(bytes) = call.bytes {
        request = request.bytes(bytes);
    }
    if let Some(tokens) = call.max_output {
        request = request.max_output_tokens(tokens);
    }
    Ok(match priority(call.priority)? {
        Some(priority) => request.priority(priority),
        None => request,
    })
}

/// Reserves, waiting for `timeout`, which the request has too. A terminating signal cancels the
/// ticket and ends this process by that signal.
pub(super) fn admit(
    (tap, pool): (&Standpipe, &Pool),
    request: Request,
    timeout: Duration,
    printer: &Printer,
    signals: &Signals,
) -> Result<Lease, Failure> {
    let end = SystemTime::now() + timeout;
    let (mut is_noted, mut is_cut_off) = (false, false);
    let notice = |after| match outage(pool) {
        // Also for a log: a store that does not answer is not a wait for quota.
        Some(what) if !is_cut_off => {
            is_cut_off = true;
            printer.note(&format!("{what}; retrying until {}", clock(Timestamp::of(end))));
        }
        Some(_) => {}
        None if is_cut_off || !is_noted && (after >= LOG_AFTER || printer.is_watched()) => {
            // With the other pools that the call draws on.
            let seen = tap.snapshot(std::slice::from_ref(pool)).blocking().ok();
            let status = seen.and_then(|mut seen| seen.pools.pop());
            let answers = if is_cut_off { "the store answers again; " } else { "" };
            printer.note(&format!("{answers}{}", wait_note(pool, status)));
            (is_noted, is_cut_off) = (true, false);
        }
        None => {}
    };
    let lease = match wait_for(pool.reserve(request), signals, NOTICE_AFTER, notice) {
        WaitOutcome::Ready(lease) => lease.map_err(|error| not_admitted(error, pool))?,
        WaitOutcome::Interrupted(signal) => return Err(end_by_signal(signal)),
    };
    if let Some(signal) = signals.take_terminating() {
        // The call will not be made.
        let _reclaimed_anyway = lease.cancel().blocking();
        return Err(end_by_signal(signal));
    }
    if let Some(throttled) = lease.backpressure() {
        printer.note(&backpressure_note(throttled));
    }
    Ok(lease)
}

/// Why the store does not answer, if it does not.
fn outage(pool: &Pool) -> Option<String> {
    match pool.status().blocking() {
        Err(error @ Error::Store(_)) => Some(Failure::from(error).joined()),
        Ok(status) if status.cut_off.is_none() => Some(status.unavailable?.detail),
        _ => None,
    }
}

/// The failure of a call that was not admitted, with those whose calls it waited for.
fn not_admitted(error: Error, pool: &Pool) -> Failure {
    match error {
        Error::Refused(refused) if refused.waits_for_a_slot() => {
            let status = pool.status().blocking().ok();
            refusal_beside(&refused, status.and_then(|status| holders(&status)).as_deref())
        }
        Error::Refused(refused)
            if refused.waited_for.unwrap_or(refused.reason) == Reason::Limit =>
        {
            let status = pool.status().blocking().ok();
            let room = status.and_then(|status| room(&status, refused.limit.as_deref()?));
            let failure = Failure::from(Error::Refused(refused));
            match room {
                Some(room) => {
                    let what = format!("{}; {room}", failure.detail());
                    failure.with_detail(&what)
                }
                None => failure,
            }
        }
        error => without_limits(error, pool),
    }
}

/// The failure of a pool without limits, if it lost them with its ledger; of any other error, its
/// own.
pub(super) fn without_limits(error: Error, pool: &Pool) -> Failure {
    let is_without = matches!(error, Error::NoLimits { .. });
    let status = is_without.then(|| pool.status().blocking().ok()).flatten();
    let failure = Failure::from(error);
    match status.and_then(|status| status.limits_lost_at) {
        Some(at) => failure.with_detail(&format!(
            "the pool `{}` has no limits: the store lost its ledger at {}, and its limits with it",
            pool.name(),
            clock(at)
        )),
        None => failure,
    }
}

/// `1 of 1 usable is used (limit 2, margin 20 %)`: a person who stated 2 sees where the rest is.
fn room(status: &PoolStatus, name: &str) -> Option<String> {
    let limit = status.limits.iter().find(|limit| limit.limit == name)?;
    let figure = |units: u64| amount(&limit.unit, units);
    let taken = limit.used.saturating_add(limit.held);
    let stated = limit.learned.map_or(limit.amount, |learned| learned.min(limit.amount));
    let mut about = vec![format!("limit {}", figure(stated))];
    about.extend(
        limit
            .margin_per_mille
            .filter(|margin| *margin > 0)
            .map(|margin| format!("margin {}", percent(margin))),
    );
    about.extend(
        (limit.by_others > 0).then(|| format!("{} used by others", figure(limit.by_others))),
    );
    let verb = if taken == 1 { "is" } else { "are" };
    let (taken, usable) = (figure(taken), figure(limit.effective));
    Some(format!("{taken} of {usable} usable {verb} used ({})", about.join(", ")))
}

/// `blog (pid 4711) holds it`
pub(super) fn holders(status: &PoolStatus) -> Option<String> {
    let holder = |lease: &LeaseStatus| match lease.pid {
        Some(pid) => format!("{} (pid {pid})", lease.agent),
        None => lease.agent.clone(),
    };
    let mut named: Vec<String> = status.leases.iter().take(MAX_HOLDERS).map(holder).collect();
    let more = status.in_flight.saturating_sub(named.len());
    if more > 0 {
        named.push(format!("{more} more"));
    }
    let last = named.pop()?;
    Some(match named.is_empty() {
        true => format!("{last} holds it"),
        false => format!("{} and {last} hold it", named.join(", ")),
    })
}

/// Notes the pool that the call's task was routed to, if it differs from the one named.
pub(super) fn report_route(pool: &Pool, call: &Call, printer: &Printer) {
    if *pool.name() != call.pool {
        printer.note(&format!("routed to `{}` by its task", pool.name()));
    }
}

/// The note that an agent this call depends on is throttled.
fn backpressure_note(throttled: &Backpressure) -> String {
    let (agent, pool, left) = (&throttled.agent, &throttled.pool, length(throttled.until_ms));
    format!("`{agent}`, which this depends on, is throttled on `{pool}` for another {left}")
}

/// Installs the signal handlers, before there is a ticket to cancel.
pub(super) fn listen() -> Result<Signals, Failure> {
    Signals::listen().map_err(|error| Failure::system("cannot install signal handlers", &error))
}

/// Ends this process by a signal, so that a shell's loop around it ends too. Returns only if that
/// fails, with the equivalent exit code.
pub(super) fn end_by_signal(signal: i32) -> Failure {
    let _does_not_return = signal_hook::low_level::emulate_default_handler(signal);
    let code = u8::try_from(128 + signal).unwrap_or(u8::MAX);
    Failure::silent(Exit::Code(code))
}

/// The note that says what this process waits for, and until when.
fn wait_note(pool: &Pool, status: Option<PoolStatus>) -> String {
    let name = pool.name();
    let ours = std::process::id();
    let ticket = |status: PoolStatus| {
        let mut tickets = status.tickets.into_iter();
        let ticket = tickets.find(|ticket| ticket.pid == Some(ours))?;
        let why = wait_reason(&ticket);
        if is_late(&ticket) {
            // The reason says when it gives up.
            return Some(format!("waiting for `{name}`: {why}"));
        }
        let patience = length(ticket.deadline_ms);
        Some(format!("waiting for `{name}`: {why}; gives up in {patience}"))
    };
    status
        .and_then(ticket)
        .unwrap_or_else(|| format!("waiting for `{name}`; see `standpipe status {name}`"))
}
