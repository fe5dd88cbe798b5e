//! Running a program to its end: signals go on to it, and now and then something else is done.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::process::child::{NOT_EXECUTABLE, command_line};
use crate::process::signals::{Signals, child_has_it_too};
use crate::process::tee::{Found, LinePattern, Tee};

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ran {
    /// The code a shell would answer.
    pub(crate) code: u8,
    /// The signal that ended it, if it came to us too: whoever sent it meant us both.
    pub(crate) interrupted: Option<i32>,
    /// What was looked for in its standard error.
    pub(crate) found: Found,
}

/// Runs the command with our own input and output, and answers how it ended. `chore` is done every
/// `every`, while it lives. Its standard error passes through our hands only if something is looked
/// for in it.
///
/// It must be called on the main thread: the kernel ties the child's life to the thread that
/// starts it.
///
/// # Errors
/// When the program could not be started.
pub(crate) fn run(
    command: &[OsString],
    look_for: Option<&LinePattern>,
    signals: &Signals,
    every: Duration,
    mut chore: impl FnMut(),
) -> std::io::Result<Ran> {
    let mut came = BTreeSet::new();
    let early = signals.take();
    let mut program = command_line(command);
    if look_for.is_some() {
        program.stderr(Stdio::piped());
    }
    let mut child = program.spawn()?;
    let tee = look_for.zip(child.stderr.take()).map(|(lines, from)| Tee::new(from, lines.clone()));
    for signal in early {
        // It came before there was a child that a terminal could have sent it to.
        pass_on(&child, signal);
    }
    let mut next = Instant::now() + every;
    loop {
        for signal in signals.take() {
            came.insert(signal);
            if !child_has_it_too(signal) {
                pass_on(&child, signal);
            }
        }
        if let Some(status) = child.try_wait()? {
            came.extend(signals.take());
            let interrupted = status.signal().filter(|signal| came.contains(signal));
            let found = tee.map(Tee::found).unwrap_or_default();
            return Ok(Ran { code: code(status), interrupted, found });
        }
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() {
            next = Instant::now() + every;
            chore();
        } else {
            signals.wait(Some(left));
        }
    }
}

/// The child is ours and not yet waited for, so its number is still its own.
fn pass_on(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(named)) = (pid, Signal::from_named_raw(signal)) {
        // It may have ended meanwhile; then there is nobody to tell.
        let _gone = kill_process(pid, named);
    }
}

/// As shells do: the program's own code, or 128 and the signal that killed it.
fn code(status: ExitStatus) -> u8 {
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(NOT_EXECUTABLE)
}
