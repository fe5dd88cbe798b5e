//! Debian's package manager: root installs, everybody else gets the command to run.

use std::process::Command;
use std::time::Duration;

use crate::context::Context;
use crate::process::BUILD;
use crate::report::last_lines;

/// Installs packages, all in one run.
///
/// # Errors
/// The command that installs them, and why it could not be run or what it printed.
pub(crate) fn install(context: &Context, packages: &[&str]) -> Result<(), String> {
    let command = format!("apt-get install --yes {}", packages.join(" "));
    if !is_root(context) {
        return Err(format!("run as root: {command}"));
    }
    let run_once = || run(context, apt_get(context, &INSTALL).args(packages));
    // A clean machine has no list of packages, and an old machine an outdated one.
    run_once()
        .or_else(|_| update(context).and_then(|()| run_once()))
        .map_err(|error| format!("`{command}` failed: {error}"))
}

/// Brings the machine's list of packages up to date.
pub(crate) fn update(context: &Context) -> Result<(), String> {
    run(context, &mut apt_get(context, &["update"]))
}

const INSTALL: [&str; 3] = ["install", "--yes", "--no-install-recommends"];

/// `apt-get`, which asks no questions and waits for another one that is running.
pub(crate) fn apt_get(context: &Context, arguments: &[&str]) -> Command {
    let mut command = context.user_program("apt-get");
    command.args(arguments).args(["-o", "DPkg::Lock::Timeout=300"]);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Runs a program that installs something.
///
/// # Errors
/// The last lines it printed.
pub(crate) fn run(context: &Context, command: &mut Command) -> Result<(), String> {
    // Far above what a slow network needs.
    let finished = context.run(command, Duration::from_secs(900))?;
    if finished.ok { Ok(()) } else { Err(last_lines(&finished.output, 3).replace('\n', "; ")) }
}

pub(super) fn is_root(context: &Context) -> bool {
    let asked = context.run_apart(context.user_program("id").arg("-u"), BUILD);
    asked.is_ok_and(|id| id.data.trim() == "0")
}
