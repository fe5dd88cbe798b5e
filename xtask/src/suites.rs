//! The suites of `cargo xtask test`.

pub(crate) mod api;
pub(crate) mod browser;
pub(crate) mod clippy;
pub(crate) mod deploy;
mod docs;
mod faults;
pub(crate) mod fmt;
mod fuzz;
mod node;
mod planted;
mod purity;
mod pytest;
pub(crate) mod python;
pub(crate) mod sdks;
pub(crate) mod tidy;
pub(crate) mod unit;

use crate::schedule::Step;

/// When and beside what a suite runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Before everything else: it takes seconds.
    First,
    /// With the tests that were built. Nothing here calls cargo, which would wait for the other
    /// lane.
    Run,
    /// Beside the first lane, with less right to the processor: it compiles.
    Compile,
}

/// A suite.
#[derive(Debug)]
pub(crate) struct Suite {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it checks, in one line.
    pub(crate) about: &'static str,
    /// When it runs.
    pub(crate) lane: Lane,
    /// Whether it uses what the workspace's tests build.
    pub(crate) needs_build: bool,
    /// Runs it. `Err` means that it could not be run, which counts as one failure.
    pub(crate) run: Step,
}

const fn first(name: &'static str, about: &'static str, run: Step) -> Suite {
    Suite { name, about, lane: Lane::First, needs_build: false, run }
}

const fn runs(name: &'static str, about: &'static str, run: Step) -> Suite {
    Suite { name, about, lane: Lane::Run, needs_build: true, run }
}

const fn compiles(name: &'static str, about: &'static str, run: Step) -> Suite {
    Suite { name, about, lane: Lane::Compile, needs_build: false, run }
}

/// All of them; those of one lane run in this order.
pub(crate) const ALL: &[Suite] = &[
    first("fmt", "the code is formatted", fmt::run),
    first("tidy", "rules on files, functions and words", tidy::run),
    compiles("clippy", "the compiler and clippy have no warnings", clippy::run),
    runs("unit", "every test of the workspace", unit::run),
    runs("api", "the HTTP API does what its OpenAPI document says", api::run),
    runs("sdks", "providers' own SDKs, through the proxy", sdks::run),
    runs("python", "the Python package, its examples and types", python::run),
    runs("browser", "the dashboard, in a real browser", browser::run),
    runs("deploy", "the programs that read the files in deploy/ accept them", deploy::run),
    runs("faults", "every known fault names a test that exists", faults::run),
    compiles("docs", "the documentation builds, and its examples pass", docs::run),
    compiles("purity", "the core uses no clock, randomness or system call", purity::run),
    compiles("planted", "every planted bug is caught by its tests", planted::run),
    compiles("fuzz", "random events and bytes for a minute", fuzz::run),
];
