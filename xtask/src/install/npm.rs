//! Packages of npm, exactly those of a lock file, and only when that has changed.

use std::fs;
use std::path::PathBuf;

use crate::context::Context;
use crate::process::BUILD;

fn paths(context: &Context, folder: &str) -> (PathBuf, PathBuf) {
    let folder = context.root.join(folder);
    (folder.join("package-lock.json"), folder.join("node_modules/.installed"))
}

/// Whether exactly the packages of the folder's lock file are here.
pub(crate) fn is_here(context: &Context, folder: &str) -> bool {
    let (wanted, had) = paths(context, folder);
    fs::read(wanted).is_ok_and(|wanted| fs::read(had).is_ok_and(|had| had == wanted))
}

/// Installs the packages of the folder's lock file.
///
/// # Errors
/// What npm printed.
pub(crate) fn install(context: &Context, folder: &str) -> Result<(), String> {
    let mut npm = context.user_program("npm");
    let npm = npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(context.root.join(folder));
    let finished = context.run(npm, BUILD)?;
    if !finished.ok {
        return Err(format!("`npm ci` failed in {folder}:\n{}", finished.output));
    }
    let (wanted, had) = paths(context, folder);
    fs::copy(wanted, &had).map(drop).map_err(|error| format!("{}: {error}", had.display()))
}
