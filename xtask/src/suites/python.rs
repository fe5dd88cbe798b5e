//! The Python package as a wheel in an environment of its own: `bindings/python/tests`, by pytest.
//!
//! The extension module is the one that the build of the workspace's tests left, so nothing is
//! compiled here. The tests include the examples, the documentation and the type checks.

use std::path::PathBuf;

use super::pytest;
use crate::context::Context;
use crate::install::python;
use crate::process::BUILD;
use crate::report::Report;

/// Where the tests are.
const TESTS: &str = "bindings/python/tests";
/// Packs the wheel.
const PACK: &str = "bindings/python/tools/pack_wheel.py";
/// One version of each, so that a new release does not break an old commit.
const PACKAGES: [&str; 15] = [
    "aiohttp==3.14.5",
    "anthropic==2.9.0",
    "celery==5.7.0",
    "httpx==0.28.1",
    "langchain-core==1.7.2",
    "mypy==2.4.1",
    "openai==3.51.0",
    "opentelemetry-sdk==1.45.2",
    "pyright==1.1.414",
    "pytest==9.2.0",
    "redis==8.1.0",
    "requests==2.34.2",
    "temporalio==1.35.0",
    "types-requests==2.33.0.20261030",
    "uvloop==0.23.0",
];

fn environment(context: &Context) -> PathBuf {
    context.target.join("python-tools/python")
}

/// Whether the packages are here.
pub(crate) fn is_here(context: &Context) -> bool {
    python::is_here(&environment(context), &PACKAGES)
}

/// Installs the packages, and what pyright fetches when it is first called.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    let programs = python::environment(context, &environment(context), &PACKAGES)?;
    let mut pyright = context.user_program(programs.join("pyright"));
    let finished = context.run(pyright.arg("--version"), BUILD)?;
    if finished.ok { Ok(()) } else { Err(format!("pyright: {}", finished.output)) }
}

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let environment = environment(context);
    // A library that tests depend on stays beside them.
    let library = context.target.join("debug/deps/lib_native.so");
    let wheels = context.target.join("python-tools/wheels");
    let mut pack = context.program(environment.join("bin/python"));
    let packed = context.run(pack.arg(PACK).arg(&library).arg(&wheels), BUILD)?;
    if !packed.ok {
        return Err(format!("the wheel cannot be packed: {}", packed.output));
    }
    let wheel = packed.output.lines().last().unwrap_or_default().to_owned();
    let mut pip = context.program(environment.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]);
    let installed = context.run(pip.args(["--force-reinstall", &wheel]), BUILD)?;
    if !installed.ok {
        return Err(format!("pip cannot install {wheel}: {}", installed.output));
    }
    pytest::run(context, "python", &environment, TESTS, &[])
}
