//! The step between `hold` and its command: a process that asks the kernel to be killed when
//! `hold` dies, and then becomes the command.
//!
//! A process can ask this only for itself, so `hold` starts itself again for it. Replacing a
//! program keeps the wish, so the command has it too. Its own children do not.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use crate::failure::one_line;

/// The hidden command. It is no part of the command line that people use.
const WORD: &str = "__child";

/// What a shell answers when a command is not found, or cannot be executed.
pub(crate) const NOT_FOUND: u8 = 127;
pub(crate) const NOT_EXECUTABLE: u8 = 126;

/// A command line that runs `command` so that it dies with this process.
pub(crate) fn command_line(command: &[OsString]) -> Command {
    let mut bound = if cfg!(target_os = "linux") {
        // The running program itself, even if its file was replaced meanwhile.
        let mut again = Command::new("/proc/self/exe");
        again.arg0("standpipe").arg(WORD).arg(std::process::id().to_string());
        again
    } else {
        Command::new(command.first().map(OsString::as_os_str).unwrap_or_default())
    };
    bound.args(if cfg!(target_os = "linux") { command } else { command.get(1..).unwrap_or(&[]) });
    bound
}

/// When this process was started by [`command_line`]: becomes the command. Comes back only when
/// that fails.
pub(crate) fn become_the_command() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != WORD {
        return None;
    }
    let parent: i32 = arguments.next()?.to_str()?.parse().ok()?;
    let program = arguments.next()?;
    if !bind_to(parent) {
        // It died before the kernel heard the wish.
        return Some(ExitCode::from(137));
    }
    let error = Command::new(&program).args(arguments).exec();
    let code = code_of(&error);
    let line = one_line(&format!("cannot run `{}`: {error}", program.to_string_lossy()));
    let said = writeln!(std::io::stderr(), "standpipe: {line}");
    Some(ExitCode::from(if said.is_ok() { code } else { NOT_EXECUTABLE }))
}

/// The code that goes with a program that could not be started.
pub(crate) fn code_of(error: &std::io::Error) -> u8 {
    if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE }
}

#[cfg(target_os = "linux")]
fn bind_to(parent: i32) -> bool {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    let wished = set_parent_process_death_signal(Some(Signal::KILL)).is_ok();
    wished && getppid().is_some_and(|pid| pid.as_raw_nonzero().get() == parent)
}

#[cfg(not(target_os = "linux"))]
fn bind_to(_parent: i32) -> bool {
    true
}
