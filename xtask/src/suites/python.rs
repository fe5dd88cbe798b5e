//! The Python package as a wheel in an environment of its own: `bindings/python/tests`, by pytest.
//!
//! The extension module is the one that the build of the workspace's tests left, so nothing is
//! compiled here. The tests include the examples, the documentation and the type checks. `--long`
//! adds ten minutes of calls, installations from source and with each Python, and LiteLLM.

use std::path::{Path, PathBuf};

use super::pytest;
use crate::context::Context;
use crate::install::python;
use crate::process::BUILD;
use crate::report::Report;

/// Where the tests are.
const TESTS: &str = "bindings/python/tests";
/// Those of them that only `--long` runs.
const LONG_TESTS: &str = "bindings/python/tests/long";
/// Those that run in an environment of their own, because LiteLLM needs other versions of the SDKs.
const LITELLM_TESTS: &str = "bindings/python/tests/with_litellm";
/// What that environment has: 300 MB.
const LITELLM: [&str; 2] = ["litellm==1.106.0", "pytest==9.2.0"];
/// Packs the wheel.
const PACK: &str = "bindings/python/tools/pack_wheel.py";
/// One version of each, so that a new release does not break an old commit.
const PACKAGES: [&str; 20] = [
    "aiohttp==3.14.5",
    "anthropic==2.9.0",
    "celery==5.7.0",
    "google-genai==3.3.0",
    "httpx==0.28.1",
    "ipykernel==7.4.0",
    "jupyter_client==8.10.0",
    "langchain-core==1.7.2",
    "maturin==1.16.0",
    "mistralai==3.7.0",
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

fn litellm(context: &Context) -> PathBuf {
    context.target.join("python-tools/litellm")
}

/// Whether the packages are here.
pub(crate) fn is_here(context: &Context) -> bool {
    python::is_here(&environment(context), &PACKAGES)
        && (!context.long || python::is_here(&litellm(context), &LITELLM))
}

/// Installs the packages, and what pyright fetches when it is first called.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    if context.long && !python::is_here(&litellm(context), &LITELLM) {
        python::environment(context, &litellm(context), &LITELLM)?;
    }
    if python::is_here(&environment(context), &PACKAGES) {
        return Ok(());
    }
    let programs = python::environment(context, &environment(context), &PACKAGES)?;
    let mut pyright = context.user_program(programs.join("pyright"));
    let finished = context.run(pyright.arg("--version"), BUILD)?;
    if finished.ok { Ok(()) } else { Err(format!("pyright: {}", finished.output)) }
}

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let environment = environment(context);
    let wheel = packed(context, &environment)?;
    put_in(context, &environment, &wheel)?;
    let mut options = vec!["--ignore", LITELLM_TESTS];
    if !context.long {
        options.extend(["--ignore", LONG_TESTS]);
    }
    let mut report = pytest::run(context, "python", &environment, TESTS, &options)?;
    if context.long {
        let litellm = litellm(context);
        put_in(context, &litellm, &wheel)?;
        report.add(pytest::run(context, "python-litellm", &litellm, LITELLM_TESTS, &[])?);
    }
    Ok(report)
}

/// Packs the wheel and returns where it is.
fn packed(context: &Context, environment: &Path) -> Result<String, String> {
    // A library that tests depend on stays beside them.
    let library = context.target.join("debug/deps/lib_native.so");
    let wheels = context.target.join("python-tools/wheels");
    let mut pack = context.program(environment.join("bin/python"));
    let packed = context.run(pack.arg(PACK).arg(&library).arg(&wheels), BUILD)?;
    if !packed.ok {
        return Err(format!("the wheel cannot be packed: {}", packed.output));
    }
    Ok(packed.output.lines().last().unwrap_or_default().to_owned())
}

/// Installs the wheel in an environment.
fn put_in(context: &Context, environment: &Path, wheel: &str) -> Result<(), String> {
    let mut pip = context.program(environment.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]);
    let installed = context.run(pip.args(["--force-reinstall", wheel]), BUILD)?;
    if installed.ok {
        return Ok(());
    }
    Err(format!("pip cannot install {wheel}: {}", installed.output))
}
