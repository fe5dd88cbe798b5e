//! Running a program to its end, forwarding signals to it.
//!
//! Guarantee: on Linux the program dies with this process. Its exit code is returned as a shell
//! does.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use standpipe_sys::die_with_parent;

use crate::process::signals::{Signals, child_received_too};
use crate::process::tee::{LinePattern, StderrMatch, Tee};

/// The exit codes of shells for a command that does not exist, or may not be executed.
pub(crate) const NOT_FOUND: u8 = 127;
pub(crate) const NOT_EXECUTABLE: u8 = 126;

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    /// The exit code as a shell reports it.
    pub(crate) code: u8,
    /// The signal that ended it, if it was sent to us too.
    pub(crate) interrupted: Option<i32>,
    /// What was found in its standard error.
    pub(crate) found: StderrMatch,
}

/// Runs the command, whose file is `file`, with our own input and output. Calls `periodic` after
/// `first`, and then whenever the time that it returned has passed. Its standard error is a pipe
/// only if `look_for` is given.
///
/// Call it on the main thread: the kernel ties the child's life to the thread that starts it.
///
/// # Errors
/// When the program could not be started.
pub(crate) fn run(
    file: &Path,
    command: &[OsString],
    look_for: Option<&LinePattern>,
    signals: &Signals,
    first: Duration,
    periodic: impl FnMut() -> Duration,
) -> std::io::Result<Completed> {
    run_with(file, command, &[], look_for, signals, first, periodic)
}

/// Does the same with more variables in the program's environment.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_with(
    file: &Path,
    command: &[OsString],
    variables: &[(String, String)],
    look_for: Option<&LinePattern>,
    signals: &Signals,
    first: Duration,
    mut periodic: impl FnMut() -> Duration,
) -> std::io::Result<Completed> {
    let mut arrived = BTreeSet::new();
    let mut words = command.iter();
    let mut program = Command::new(file);
    program.arg0(words.next().map(OsString::as_os_str).unwrap_or_default()).args(words);
    program.envs(variables.iter().map(|(name, value)| (name, value)));
    die_with_parent(&mut program);
    if look_for.is_some() {
        program.stderr(Stdio::piped());
    }
    let mut child = program.spawn()?;
    let tee = look_for.zip(child.stderr.take()).map(|(lines, from)| Tee::new(from, lines.clone()));
    // These came before the program ran. Even if the terminal sent them to the child too, our
    // handlers took them there, which the child had until it executed its program.
    for signal in signals.take() {
        forward(&child, signal);
    }
    let mut next = Instant::now() + first;
    loop {
        for signal in signals.take() {
            arrived.insert(signal);
            if !child_received_too(signal) {
                forward(&child, signal);
            }
        }
        if let Some(status) = child.try_wait()? {
            arrived.extend(signals.take());
            let interrupted = status.signal().filter(|signal| arrived.contains(signal));
            let found = tee.map(Tee::found).unwrap_or_default();
            return Ok(Completed { code: code(status), interrupted, found });
        }
        let left = next.saturating_duration_since(Instant::now());
        if left.is_zero() {
            next = Instant::now() + periodic();
        } else {
            signals.wait(Some(left));
        }
    }
}

/// Returns the exit code for a program that could not be started.
pub(crate) fn code_of(error: &std::io::Error) -> u8 {
    if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}

/// The child has not been waited for, so its pid cannot belong to another process.
fn forward(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(named)) = (pid, Signal::from_named_raw(signal)) {
        // It may have ended meanwhile.
        let _gone = kill_process(pid, named);
    }
}

/// Returns the program's own code, or 128 + n for signal n, as shells do.
fn code(status: ExitStatus) -> u8 {
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(NOT_EXECUTABLE)
}
