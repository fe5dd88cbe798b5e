//! The real SDKs of providers through the proxy: `tests/sdks`, with pytest and with Node's runner.
//!
//! `--long` adds what is large to install: frameworks and the command lines of providers.

use std::path::PathBuf;

use super::{node, pytest};
use crate::context::Context;
use crate::install::{npm, python};
use crate::report::Report;

/// Where the tests are.
const TESTS: &str = "tests/sdks";
const NODE_TESTS: &str = "tests/sdks/node";
/// Where the tests are that only `--long` runs.
const LONG_TESTS: &str = "tests/sdks/long";
/// One version of each, so that a new release does not break an old commit.
const PACKAGES: &[&str] =
    &["anthropic==2.9.0", "google-genai==3.3.0", "openai==3.51.0", "pytest==9.2.0"];
/// What `--long` adds: 300 MB, and seconds for each import.
const LONG_PACKAGES: &[&str] = &[
    "langchain-anthropic==1.7.7",
    "langchain-openai==1.7.3",
    "litellm==1.106.0",
    // LiteLLM imports it for any call with tools, but does not install it.
    "mcp==2.3.0",
];

/// Where its Python environment is.
fn environment(context: &Context) -> PathBuf {
    context.target.join(if context.long { "sdk-tools/python-long" } else { "sdk-tools/python" })
}

fn packages(context: &Context) -> Vec<&'static str> {
    let more: &[&str] = if context.long { LONG_PACKAGES } else { &[] };
    PACKAGES.iter().chain(more).copied().collect()
}

fn node_folders(context: &Context) -> &'static [&'static str] {
    if context.long { &[NODE_TESTS, LONG_TESTS] } else { &[NODE_TESTS] }
}

/// Whether the SDKs are here.
pub(crate) fn is_here(context: &Context) -> bool {
    python::is_here(&environment(context), &packages(context))
        && node_folders(context).iter().all(|folder| npm::is_here(context, folder))
}

/// Installs the SDKs.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    for folder in node_folders(context) {
        if !npm::is_here(context, folder) {
            npm::install(context, folder)?;
        }
    }
    let (environment, packages) = (environment(context), packages(context));
    if python::is_here(&environment, &packages) {
        return Ok(());
    }
    python::environment(context, &environment, &packages).map(drop)
}

pub(super) fn run(context: &Context) -> Result<Report, String> {
    // Only Node's tests are selected by name.
    let mut report = match context.only {
        Some(_) => Report::default(),
        None => {
            let ignored: &[&str] = if context.long { &[] } else { &["--ignore", LONG_TESTS] };
            pytest::run(context, "sdks", &environment(context), TESTS, ignored)?
        }
    };
    let standpipe = context.standpipe();
    let mut runner = node::runner(context, NODE_TESTS);
    runner.env("PROVIDER", standpipe.with_file_name("provider")).env("STANDPIPE", &standpipe);
    report.add(node::run(context, &mut runner, "sdks")?);
    Ok(report)
}
