//! Programs written in Python, in an environment of their own beside what cargo builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::apt;
use crate::context::Context;
use crate::process::BUILD;

/// An environment with exactly these packages, made anew when they change. Answers where its
/// programs are.
///
/// # Errors
/// What could not be had, and how to have it.
pub(crate) fn environment(
    context: &Context,
    environment: &Path,
    packages: &[&str],
) -> Result<PathBuf, String> {
    let (programs, done) = (environment.join("bin"), environment.join("installed"));
    let wanted = packages.join("\n");
    if fs::read_to_string(&done).is_ok_and(|had| had == wanted) {
        return Ok(programs);
    }
    let make = || {
        let mut venv = context.program("python3");
        venv.args(["-m", "venv", "--clear"]).arg(environment);
        context.run(&mut venv, BUILD).is_ok_and(|finished| finished.ok)
    };
    if !make() {
        apt::install(context, "python3-venv").map_err(|why| format!("no Python venv; {why}"))?;
        if !make() {
            return Err("python3 -m venv fails".to_owned());
        }
    }
    let mut pip = context.program(&programs.join("pip").display().to_string());
    pip.args(["install", "--quiet", "--disable-pip-version-check"]).args(packages);
    let finished = context.run(&mut pip, Duration::from_secs(900))?;
    if !finished.ok {
        return Err(format!("pip cannot install {}: {}", packages.join(" "), finished.output));
    }
    fs::write(&done, wanted).map_err(|error| format!("cannot write: {error}"))?;
    Ok(programs)
}
