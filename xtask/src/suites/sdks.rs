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
/// Where their Python environments are, in the build directory.
const ENVIRONMENT: &str = "sdk-tools/python";
const LONG_ENVIRONMENT: &str = "sdk-tools/python-long";
/// One version of each, so that a new release does not break an old commit.
const PACKAGES: &[&str] =
    &["anthropic==2.9.0", "google-genai==3.3.0", "openai[realtime]==3.51.0", "pytest==9.2.0"];
/// What `--long` installs: 300 MB, and seconds for each import. It has an environment of its own,
/// because LiteLLM needs an older SDK of OpenAI.
const LONG_PACKAGES: &[&str] = &[
    "anthropic==2.9.0",
    "langchain-anthropic==1.7.7",
    "langchain-openai==1.7.3",
    "litellm==1.106.0",
    // LiteLLM imports it for any call with tools, but does not install it.
    "mcp==2.3.0",
    "openai==2.54.0",
    "pytest==9.2.0",
];

/// The Python environments, each with its packages.
fn environments(context: &Context) -> Vec<(PathBuf, &'static [&'static str])> {
    let mut all = vec![(context.target.join(ENVIRONMENT), PACKAGES)];
    if context.long {
        all.push((context.target.join(LONG_ENVIRONMENT), LONG_PACKAGES));
    }
    all
}

fn node_folders(context: &Context) -> &'static [&'static str] {
    if context.long { &[NODE_TESTS, LONG_TESTS] } else { &[NODE_TESTS] }
}

/// Whether the SDKs are here.
pub(crate) fn is_here(context: &Context) -> bool {
    environments(context).iter().all(|(place, packages)| python::is_here(place, packages))
        && node_folders(context).iter().all(|folder| npm::is_here(context, folder))
}

/// Installs the SDKs.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    for folder in node_folders(context) {
        if !npm::is_here(context, folder) {
            npm::install(context, folder)?;
        }
    }
    for (place, packages) in environments(context) {
        if !python::is_here(&place, packages) {
            python::environment(context, &place, packages)?;
        }
    }
    Ok(())
}

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let mut report = Report::default();
    // Only Node's tests are selected by name.
    if context.only.is_none() {
        let place = context.target.join(ENVIRONMENT);
        report.add(pytest::run(context, "sdks", &place, TESTS, &["--ignore", LONG_TESTS])?);
        if context.long {
            let (place, options) = (context.target.join(LONG_ENVIRONMENT), ["--rootdir", TESTS]);
            report.add(pytest::run(context, "sdks --long", &place, LONG_TESTS, &options)?);
        }
    }
    let standpipe = context.standpipe();
    let mut runner = node::runner(context, NODE_TESTS);
    runner.env("PROVIDER", standpipe.with_file_name("provider")).env("STANDPIPE", &standpipe);
    report.add(node::run(context, &mut runner, "sdks")?);
    Ok(report)
}
