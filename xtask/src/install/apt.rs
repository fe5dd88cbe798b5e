//! Debian's package manager: root installs, everybody else is told the command.

use std::process::Command;
use std::time::Duration;

use crate::context::Context;
use crate::process::BUILD;

/// Installs a package.
///
/// # Errors
/// Names the command that installs it, and why it could not be run or what it said.
pub(crate) fn install(context: &Context, package: &str) -> Result<(), String> {
    let command = format!("apt-get install --yes {package}");
    if !is_root(context) {
        return Err(format!("install it as root: {command}"));
    }
    let first = run(context, apt_get(context, &INSTALL).arg(package));
    if first.is_ok() {
        return Ok(());
    }
    // A clean machine has no list of packages, and one that stood around has an old one.
    run(context, &mut apt_get(context, &["update"]))
        .and_then(|()| run(context, apt_get(context, &INSTALL).arg(package)))
        .map_err(|error| format!("`{command}` failed: {error}"))
}

const INSTALL: [&str; 3] = ["install", "--yes", "--no-install-recommends"];

/// `apt-get`, which asks nothing, and waits for another that is at work.
pub(crate) fn apt_get(context: &Context, arguments: &[&str]) -> Command {
    let mut command = context.program("apt-get");
    command.args(arguments).args(["-o", "DPkg::Lock::Timeout=300"]);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// Runs a program that installs something.
///
/// # Errors
/// The last lines it wrote.
pub(crate) fn run(context: &Context, command: &mut Command) -> Result<(), String> {
    // Far above what a slow network needs.
    let finished = context.run(command, Duration::from_secs(900))?;
    if finished.ok { Ok(()) } else { Err(last_lines(&finished.output)) }
}

fn last_lines(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

pub(super) fn is_root(context: &Context) -> bool {
    let asked = context.run_apart(context.program("id").arg("-u"), BUILD);
    asked.is_ok_and(|id| id.data.trim() == "0")
}

/// Whether a program can be run so and is content.
pub(crate) fn works(context: &Context, program: &str, arguments: &[&str]) -> bool {
    context.run(context.program(program).args(arguments), BUILD).is_ok_and(|finished| finished.ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_output_the_end_is_told() {
        assert_eq!(last_lines("one\ntwo\n\nthree\nfour\n"), "two; three; four");
        assert_eq!(last_lines(""), "");
    }
}
