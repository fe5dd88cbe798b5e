//! Asking to be admitted, for `hold` and `reserve`: the wait, what is said about it, and its end.

use std::time::Duration;

use standpipe::{Backpressure, Lease, Pool, PoolStatus, Request};

use crate::args::{Call, Priority, Work, total};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::process::signals::Signals;
use crate::process::wait::{Ended, wait_for};
use crate::settings::Settings;
use crate::show::length::length;
use crate::show::status::waits_for;

/// A wait longer than this is worth a word.
const WORTH_A_WORD: Duration = Duration::from_secs(1);

impl From<Priority> for standpipe::Priority {
    fn from(priority: Priority) -> Self {
        match priority {
            Priority::Critical => Self::Critical,
            Priority::Standard => Self::Standard,
            Priority::Background => Self::Background,
        }
    }
}

/// What the words of the command line ask for.
pub(super) fn request(
    call: &Call,
    work: Option<&Work>,
    settings: &Settings,
) -> Result<Request, Failure> {
    let agent = settings.agent(call.agent.clone())?;
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
    if let Some(bytes) = call.bytes {
        request = request.bytes(bytes);
    }
    if let Some(tokens) = call.max_output {
        request = request.max_output_tokens(tokens);
    }
    Ok(match call.priority {
        Some(priority) => request.priority(priority.into()),
        None => request,
    })
}

/// Asks, waits as long as the request has patience, and answers the lease. A signal that means
/// "end" takes everything back and ends this process as it would have without us.
pub(super) fn admit(
    pool: &Pool,
    request: Request,
    printer: &Printer,
    signals: &Signals,
) -> Result<Lease, Failure> {
    let notice = || {
        if printer.somebody_watches() {
            printer.talk(&waiting(pool));
        }
    };
    let lease = match wait_for(pool.reserve(request), signals, WORTH_A_WORD, notice) {
        Ended::Ready(lease) => lease?,
        Ended::Interrupted(signal) => return Err(end_by(signal)),
    };
    if let Some(signal) = signals.take_ending() {
        // The call is not made after all.
        let _reclaimed_anyway = lease.cancel();
        return Err(end_by(signal));
    }
    if let Some(told) = lease.backpressure() {
        printer.talk(&upstream(told));
    }
    Ok(lease)
}

/// Reports the pool that the call's task was routed to, if it is another than the one named.
pub(super) fn tell_route(pool: &Pool, call: &Call, printer: &Printer) {
    if *pool.name() != call.pool {
        printer.talk(&format!("routed to `{}` by its task", pool.name()));
    }
}

/// Somebody this call depends on is throttled.
fn upstream(told: &Backpressure) -> String {
    let (agent, pool, left) = (&told.agent, &told.pool, length(told.until_ms));
    format!("`{agent}`, which this depends on, is throttled on `{pool}` for another {left}")
}

/// Puts up handlers for signals, before there is anything to take back.
pub(super) fn listen() -> Result<Signals, Failure> {
    Signals::listen().map_err(|error| Failure::system("cannot listen for signals", &error))
}

/// Ends this process by a signal, so that a shell's loop around it ends too. Comes back only if
/// that does not work, with the code that says the same.
pub(super) fn end_by(signal: i32) -> Failure {
    let _never_comes_back = signal_hook::low_level::emulate_default_handler(signal);
    let code = u8::try_from(128 + signal).unwrap_or(u8::MAX);
    let mut quiet = Failure::usage("", "").ending_with(Exit::Code(code));
    quiet.lines.clear();
    quiet.problem.clear();
    quiet
}

/// What we wait for and until when, by our own ticket.
fn waiting(pool: &Pool) -> String {
    let name = pool.name();
    let ours = std::process::id();
    let ticket = |status: PoolStatus| {
        let mut tickets = status.tickets.into_iter();
        let ticket = tickets.find(|ticket| ticket.pid == Some(ours))?;
        let why = waits_for(&ticket);
        let patience = length(ticket.deadline_ms);
        Some(format!("waiting for `{name}`: {why}; gives up in {patience}"))
    };
    let known = pool.status().ok().and_then(ticket);
    known.unwrap_or_else(|| format!("waiting for `{name}`; `standpipe status {name}` says why"))
}
