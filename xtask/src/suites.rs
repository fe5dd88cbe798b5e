//! The suites of `cargo xtask test`, in the order in which they run: the quick ones first.

mod api;
mod browser;
mod clippy;
mod deploy;
mod docs;
mod faults;
mod fmt;
mod fuzz;
mod planted;
mod purity;
mod tidy;
mod unit;

use crate::context::Context;
use crate::report::Report;

/// A suite.
#[derive(Debug)]
pub(crate) struct Suite {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// What it checks, in one line.
    pub(crate) about: &'static str,
    /// Runs it. `Err` means that it could not be run, which counts as one failure.
    pub(crate) run: fn(&Context) -> Result<Report, String>,
}

/// All of them.
pub(crate) const ALL: &[Suite] = &[
    Suite { name: "fmt", about: "the code is formatted", run: fmt::run },
    Suite { name: "clippy", about: "no lint has anything to say", run: clippy::run },
    Suite { name: "tidy", about: "house rules on files, functions and words", run: tidy::run },
    Suite { name: "purity", about: "the core knows no clock, chance or system", run: purity::run },
    Suite { name: "unit", about: "every test of the workspace, doctests too", run: unit::run },
    Suite { name: "docs", about: "the documentation builds without a warning", run: docs::run },
    Suite {
        name: "deploy",
        about: "files for operators are what their readers take",
        run: deploy::run,
    },
    Suite { name: "api", about: "the HTTP API is what its document says", run: api::run },
    Suite { name: "browser", about: "the dashboard, in a real browser", run: browser::run },
    Suite { name: "faults", about: "every known fault has its test", run: faults::run },
    Suite { name: "planted", about: "every planted bug is caught by its tests", run: planted::run },
    Suite { name: "fuzz", about: "odd events and odd bytes for a minute", run: fuzz::run },
];
