//! Programs written in Python, in environments of their own in the build directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::apt;
use crate::context::Context;
use crate::process::BUILD;
use crate::sandbox;

/// Whether Python can make an environment with a package manager in it. Debian's Python cannot
/// without the package `python3-venv`.
pub(super) fn has_venv() -> bool {
    let mut command = Command::new(interpreter());
    let asked = command.args(["-c", "import ensurepip, venv"]).output();
    asked.is_ok_and(|output| output.status.success())
}

/// Whether an environment has exactly these packages.
pub(crate) fn is_here(environment: &Path, packages: &[&str]) -> bool {
    fs::read_to_string(environment.join("installed")).is_ok_and(|had| had == packages.join("\n"))
}

/// Makes an environment with exactly these packages. Returns where its programs are.
///
/// # Errors
/// What could not be installed, and how to install it.
pub(crate) fn environment(
    context: &Context,
    environment: &Path,
    packages: &[&str],
) -> Result<PathBuf, String> {
    let make = || {
        let mut venv = context.user_program(interpreter());
        venv.args(["-m", "venv", "--clear"]).arg(environment);
        context.run(&mut venv, BUILD).is_ok_and(|finished| finished.ok)
    };
    if !make() {
        apt::install(context, &["python3-venv"])?;
        if !make() {
            return Err("`python3 -m venv` fails".to_owned());
        }
    }
    let programs = environment.join("bin");
    if !packages.is_empty() {
        let mut pip = context.user_program(programs.join("pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages);
        let finished = context.run(&mut pip, Duration::from_secs(900))?;
        if !finished.ok {
            return Err(format!("pip cannot install {}: {}", packages.join(" "), finished.output));
        }
    }
    fs::write(environment.join("installed"), packages.join("\n"))
        .map_err(|error| format!("cannot write: {error}"))?;
    Ok(programs)
}

fn interpreter() -> PathBuf {
    sandbox::find("python3").unwrap_or_else(|| "python3".into())
}
