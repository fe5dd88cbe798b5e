//! `hold`: runs a command while holding a lease.
//!
//! Guarantee: the exit code of the command is passed through, whatever happens to its lease. The
//! crate documentation lists every step.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use standpipe::dialect::{PrintedReset, printed_limit, printed_reset};
use standpipe::{Lease, Pool, Standpipe, StoreUrl, Throttle, ThrottleKind};

use super::admission::{admit, end_by_signal, listen, report_route, request};
use super::{CommandResult, units};
use crate::args::{Hold, parse};
use crate::caller;
use crate::context::{Context, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::process::lookup;
use crate::process::reset::{Reset, resolve};
use crate::process::run::{self, Completed, NOT_FOUND, code_of};
use crate::process::signals::child_received_too;

/// When maintenance first runs; most commands have ended by then.
const FIRST_ROUND: Duration = Duration::from_secs(1);

pub(super) fn run(args: &Hold, context: &Context, printer: &Printer) -> CommandResult {
    if args.throttled_exit.contains(&0) {
        let what = "--throttled-exit 0 would take every success for a refusal";
        return Err(Failure::usage(what, "name the code with which the command reports a 429"));
    }
    let command = args.command.first().map(|word| word.as_os_str()).unwrap_or_default();
    let file = lookup::find(command, std::env::var_os("PATH").as_deref())
        .map_err(|error| cannot_run(command, &error))?;
    let running = || caller::agent_running(&args.command);
    let agent = context.agent_or(args.call.agent.clone(), running)?;
    let request = request(&args.call, Some(&args.work), &agent)?;
    units::check_limits(&args.call, &args.admission)?;
    let tap = context.open()?;
    tap.maintain_without_thread()?;
    if context.store(tap.settings()) == StoreUrl::Memory {
        printer.note("the store `memory` limits only this process: other callers are not counted");
    }
    let (pool, left) = Context::retry_within(duration(args.admission.timeout), printer, || {
        let limits = &args.admission.limit;
        let pool = Context::pool_to_reserve(&tap, &args.call.pool, limits, &request)?;
        Context::check_others(&tap, &args.call.also)?;
        Ok(tap.route(pool, &request).blocking()?)
    })?;
    let limits = &args.admission.limit;
    // A route may lead to another pool, whose limits these are not.
    let own = limits.iter().filter(|_| *pool.name() == args.call.pool).cloned();
    let request = request.timeout(left).limits(own);
    report_route(&pool, &args.call, printer);
    let before = Context::note_new_pool(&tap, &pool, limits, printer)?;
    Context::note_agent(tap.settings(), agent.as_str(), printer);
    let signals = listen()?;
    let lease = admit((&tap, &pool), request, left, printer, &signals);
    Context::note_changed_limits(&pool, &before, limits, lease.as_ref().ok(), printer);
    let lease = lease.map_err(|failure| with_busy_exit(failure, args.busy_exit, printer))?;
    Context::note_kept_limits(&tap, &pool, limits, lease.limits_in_force(), printer)?;
    let described = tap.settings().pools.get(pool.name());
    units::note_uncounted(&args.call, &args.admission, lease.cost(), described, printer);
    units::note_cut_estimate(&args.call, lease.cost(), &pool, printer);
    let look_for = args.throttled_match.as_ref();
    let keep = keep_alive(&tap, &lease, printer);
    let ran = run::run(&file, &args.command, look_for, &signals, FIRST_ROUND, keep);
    match ran {
        Ok(ended) => {
            match throttled(args, &ended, &pool, printer) {
                Some(report) => report_throttle(lease, report, printer),
                None => settle(lease, printer),
            }
            if let Some(signal) = ended.interrupted.filter(|signal| child_received_too(*signal)) {
                return Err(end_by_signal(signal));
            }
            Ok(Exit::Code(ended.code))
        }
        Err(error) => {
            // It never ran, so it used nothing.
            let _reclaimed_anyway = lease.cancel().blocking();
            Err(cannot_run(command, &error))
        }
    }
}

/// Returns what keeps the lease while the command runs, without a thread: maintenance, and reports
/// of progress, so that the lease does not expire. It returns how long until the next time.
fn keep_alive(tap: &Standpipe, lease: &Lease, printer: &Printer) -> impl FnMut() -> Duration {
    let interval = progress_interval(lease);
    let mut next_progress = Instant::now() + interval;
    move || {
        if Instant::now() >= next_progress {
            next_progress = Instant::now() + interval;
            if let Err(error) = lease.progress([]).blocking() {
                printer.note(&format!("{error}; the command continues"));
            }
        }
        let left = next_progress.saturating_duration_since(Instant::now());
        tap.maintain().map_or(left, |round| round.min(left))
    }
}

/// Commits the lease at its estimate. A failure is only noted, because the command has run.
fn settle(lease: Lease, printer: &Printer) {
    if let Err(error) = lease.commit([]).blocking() {
        printer.note(&format!("the command ran, but {error}"));
    }
}

/// Returns how the command was throttled, if it was: by its exit code, or by a line it printed.
fn throttled(args: &Hold, ended: &Completed, pool: &Pool, printer: &Printer) -> Option<Throttle> {
    let report = Throttle::new(ThrottleKind::Quota);
    let Some(line) = &ended.found.line else {
        return args.throttled_exit.contains(&ended.code).then_some(report);
    };
    let printed = ended.found.wait.as_deref().map(str::trim);
    let wait = printed.and_then(|wait| parse::length(wait).ok()).map(duration);
    if let (Some(printed), None) = (printed, wait) {
        printer.note(&format!("`{printed}` is not a valid time (30, 30s, 5min) and is ignored"));
    }
    let stated = stated_reset(line).filter(|_| wait.is_none());
    let outdated = match stated {
        Some((Reset::Passed, _)) => Some("the reset it states has passed".to_owned()),
        // An instant in the future cannot come from an old, cached message.
        Some((Reset::In(_), ResetForm::Instant)) => None,
        // An unreadable pool proves nothing.
        _ => pool.check_refusal().blocking().ok().flatten(),
    };
    if let Some(why) = outdated {
        let pool_name = pool.name();
        pool.note_anomaly("a throttled command's message", &why);
        printer.note(&format!(
            "the command's message about a limit is not believed: {why}; the pool does not pause \
             (`standpipe throttle {pool_name}` pauses it by hand)"
        ));
        return None;
    }
    let reset = stated.and_then(|(reset, _)| match reset {
        Reset::In(wait) => Some(wait),
        Reset::Passed => None,
    });
    Some(match wait.or(reset) {
        Some(wait) => report.retry_after(wait),
        None => report,
    })
}

/// The form of a stated reset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ResetForm {
    /// An instant, which shows how old the message is.
    Instant,
    /// A length, which does not.
    Length,
}

/// Returns the reset that a message states.
fn stated_reset(line: &str) -> Option<(Reset, ResetForm)> {
    let known = printed_limit(line);
    let window = known.as_ref().and_then(|known| known.window);
    let printed = known.and_then(|known| known.reset).or_else(|| printed_reset(line))?;
    let stated = match printed {
        PrintedReset::After(_) => ResetForm::Length,
        _ => ResetForm::Instant,
    };
    let reset = resolve(&printed, window, jiff::Timestamp::now(), &jiff::tz::TimeZone::system())?;
    Some((reset, stated))
}

/// Reports the refusal, which pauses the pool for every caller.
fn report_throttle(lease: Lease, report: Throttle, printer: &Printer) {
    let pool = lease.pool().clone();
    match lease.throttled(report).blocking() {
        Ok(()) => printer.note(&format!(
            "the command was throttled: `{pool}` pauses for every caller; \
             `standpipe status {pool}` shows until when"
        )),
        Err(error) => printer.note(&format!("the command was throttled, but {error}")),
    }
}

/// Returns how often to report progress, so that the lease does not expire.
fn progress_interval(lease: &Lease) -> Duration {
    let left = lease.expires_at().duration_since(SystemTime::now()).unwrap_or_default();
    (left / 4).clamp(Duration::from_secs(1), Duration::from_secs(300))
}

/// Applies `--busy-exit`. With 0 it is no failure that the command did not run.
fn with_busy_exit(failure: Failure, code: Option<u8>, printer: &Printer) -> Failure {
    match code.filter(|_| failure.exit == Exit::NotInTime) {
        Some(0) => {
            printer.note(&format!("the command did not run: {}", failure.detail()));
            Failure { messages: Vec::new(), ..failure.with_exit(Exit::Ok) }
        }
        Some(code) => failure.with_exit(Exit::Code(code)),
        None => failure,
    }
}

pub(super) fn cannot_run(command: &OsStr, error: &io::Error) -> Failure {
    let name = command.to_string_lossy();
    let code = code_of(error);
    let (what, remedy) = if code == NOT_FOUND {
        not_found(&name)
    } else {
        (
            format!("`{name}` cannot be executed: {}", standpipe::escape::plain_io(error)),
            "it must be a file with `chmod +x`".to_owned(),
        )
    };
    Failure::new(Exit::Code(code), "command", &what, &format!("{remedy}; nothing was reserved"))
}

/// What is wrong with a command that does not exist, and what to do: its words may be one, and only
/// a name without a slash is looked up in `$PATH`.
fn not_found(name: &str) -> (String, String) {
    let missing = || format!("there is no command `{name}`");
    let path = Path::new(name);
    if name.contains('/') && path.exists() {
        let what = format!("`{name}` names an interpreter that does not exist");
        return (what, "correct its first line, for example #!/bin/sh".to_owned());
    }
    if name.trim().contains(char::is_whitespace) {
        let script = if name.contains(['\'', '\n']) { "…" } else { name };
        let remedy = format!("write its words separately, or a script: sh -c '{script}'");
        return (missing(), remedy);
    }
    if !name.contains('/') {
        return (missing(), "check its name and $PATH".to_owned());
    }
    let folder = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    let remedy = match folder.filter(|above| !above.exists()).last() {
        Some(gone) => format!("check the path: `{}` does not exist", gone.display()),
        None => "check the path".to_owned(),
    };
    (format!("there is no file `{name}`"), remedy)
}
