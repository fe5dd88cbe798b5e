//! `hold`: a command runs while a lease is held, the shell's semaphore.

use std::ffi::OsStr;
use std::io;
use std::time::{Duration, SystemTime};

use standpipe::{Lease, Pool, PrintedReset, Throttle, ThrottleKind, printed_limit, printed_reset};

use super::admission::{admit, end_by, listen, request, tell_route};
use super::{Ended, units};
use crate::args::{Hold, parse};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::process::child::{NOT_FOUND, code_of};
use crate::process::find;
use crate::process::reset::{Reset, resolve};
use crate::process::run::{self, Ran};
use crate::process::signals::child_has_it_too;
use crate::settings::{Settings, duration};

pub(super) fn run(args: Hold, settings: &Settings, printer: &Printer) -> Ended {
    let command = args.command.first().map(|word| word.as_os_str()).unwrap_or_default();
    find::check(command, std::env::var_os("PATH").as_deref())
        .map_err(|error| cannot_run(command, &error))?;
    let request = request(&args.call, Some(&args.work), settings)?;
    units::check_limits(&args.call, &args.admission)?;
    let tap = settings.open()?;
    let (pool, left) = Settings::in_time(duration(args.admission.timeout), || {
        let limits = &args.admission.limit;
        let pool = settings.limited(&tap, &args.call.pool, limits, &request, printer)?;
        Ok(tap.route(pool, &request)?)
    })?;
    let request = request.timeout(left);
    tell_route(&pool, &args.call, printer);
    let signals = listen()?;
    let lease = admit(&pool, request, printer, &signals)
        .map_err(|failure| busy(failure, args.busy_exit))?;
    let every = between_signs_of_life(&lease);
    let look_for = args.throttled_match.as_ref();
    let ran = run::run(&args.command, look_for, &signals, every, || {
        if let Err(error) = lease.progress([]) {
            printer.talk(&format!("{error}; the command goes on"));
        }
    });
    match ran {
        Ok(ended) => {
            match throttled(&args, &ended, &pool, printer) {
                Some(report) => refuse(lease, report, printer),
                None => settle(lease, printer),
            }
            if let Some(signal) = ended.interrupted.filter(|signal| child_has_it_too(*signal)) {
                return Err(end_by(signal));
            }
            Ok(Exit::Code(ended.code))
        }
        Err(error) => {
            // It never ran, so nothing was used.
            let _reclaimed_anyway = lease.cancel();
            Err(cannot_run(command, &error))
        }
    }
}

/// The command ran, whatever becomes of its lease: its code counts, and a word is said.
fn settle(lease: Lease, printer: &Printer) {
    if let Err(error) = lease.commit([]) {
        printer.talk(&format!("the command ran, but {error}"));
    }
}

/// How the command was throttled, if it was: by its code, or by what it printed.
fn throttled(args: &Hold, ended: &Ran, pool: &Pool, printer: &Printer) -> Option<Throttle> {
    let report = Throttle::new(ThrottleKind::Quota);
    let Some(line) = &ended.found.line else {
        return args.throttled_exit.contains(&ended.code).then_some(report);
    };
    let said = ended.found.wait.as_deref().map(str::trim);
    let wait = said.and_then(|wait| parse::length(wait).ok()).map(duration);
    if let (Some(said), None) = (said, wait) {
        printer.talk(&format!(
            "`{said}` is not a time that can be read (30, 30s, 5min), so it counts as none"
        ));
    }
    let stated = stated_reset(line).filter(|_| wait.is_none());
    let doubt = match stated {
        Some((Reset::Passed, _)) => Some("the reset it states has passed".to_owned()),
        // An instant that lies ahead is no message from a cache.
        Some((Reset::In(_), Stated::Instant)) => None,
        // A pool that cannot be read now is not known to be healthy.
        _ => pool.doubt_refusal().ok().flatten(),
    };
    if let Some(why) = doubt {
        let pool_name = pool.name();
        pool.note_doubt("a throttled command's message", &why);
        printer.talk(&format!(
            "the command's message about a limit is not believed: {why}; nobody pauses \
             (`standpipe throttle {pool_name}` does it by hand)"
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

/// How a message states its reset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stated {
    /// As an instant, which shows how old the message is.
    Instant,
    /// As a length, which does not.
    Length,
}

/// The reset that a message states.
fn stated_reset(line: &str) -> Option<(Reset, Stated)> {
    let known = printed_limit(line);
    let window = known.as_ref().and_then(|known| known.window);
    let printed = known.and_then(|known| known.reset).or_else(|| printed_reset(line))?;
    let stated = match printed {
        PrintedReset::After(_) => Stated::Length,
        _ => Stated::Instant,
    };
    let reset = resolve(&printed, window, jiff::Timestamp::now(), &jiff::tz::TimeZone::system())?;
    Some((reset, stated))
}

/// The command was throttled: everybody on the pool learns of it.
fn refuse(lease: Lease, report: Throttle, printer: &Printer) {
    let pool = lease.pool().clone();
    match lease.throttled(report) {
        Ok(()) => printer.talk(&format!(
            "the command was throttled: everybody on `{pool}` pauses; `standpipe status {pool}` \
             shows until when"
        )),
        Err(error) => printer.talk(&format!("the command was throttled, but {error}")),
    }
}

/// Often enough that the lease does not end for want of progress.
fn between_signs_of_life(lease: &Lease) -> Duration {
    let left = lease.expires_at().duration_since(SystemTime::now()).unwrap_or_default();
    (left / 4).clamp(Duration::from_secs(1), Duration::from_secs(300))
}

fn busy(failure: Failure, code: Option<u8>) -> Failure {
    match code {
        Some(code) if failure.exit == Exit::NotInTime => failure.ending_with(Exit::Code(code)),
        _ => failure,
    }
}

fn cannot_run(command: &OsStr, error: &io::Error) -> Failure {
    let name = command.to_string_lossy();
    let code = code_of(error);
    let (what, remedy) = if code == NOT_FOUND {
        (format!("there is no command `{name}`"), "check its name and $PATH; nothing was taken")
    } else {
        (
            format!("`{name}` cannot be executed: {error}"),
            "it must be a file with `chmod +x`; nothing was taken",
        )
    };
    Failure::new(Exit::Code(code), "command", &what, remedy)
}
