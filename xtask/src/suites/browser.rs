//! The dashboard in a real browser: the daemon is built and served to Chromium, and Node's own test
//! runner counts.

use super::node;
use crate::context::Context;
use crate::install::npm;
use crate::report::Report;

/// Where the tests are.
const TESTS: &str = "tests/browser";

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let mut runner = node::runner(context, TESTS);
    // One file after the other: two browsers at once are slow on two cores.
    runner.args(["--test-concurrency=1", "dashboard.test.mjs", "states.test.mjs"]);
    runner.env("STANDPIPE_BIN", context.standpipe());
    runner.env("SCREENSHOTS", context.target.join("screenshots"));
    if let Some(sandbox) = &context.sandbox {
        runner.env("CHROMIUM", sandbox.program("chromium"));
        runner.env("REDIS_SERVER", sandbox.program("redis-server"));
    }
    node::run(context, &mut runner, "browser")
}

/// Whether the packages that the tests need are here.
pub(crate) fn is_here(context: &Context) -> bool {
    npm::is_here(context, TESTS)
}

/// Installs the packages that the tests need.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    npm::install(context, TESTS)
}
