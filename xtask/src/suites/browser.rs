//! The dashboard in a real browser: the daemon is built and served to Chromium, and Node's own test
//! runner counts.
//!
//! What the tests need of npm comes from their lock file, and only when that has changed.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::context::Context;
use crate::process::BUILD;
use crate::report::Report;

/// Where the tests are.
const TESTS: &str = "tests/browser";
/// The runner has a bound for everything it waits for; this one ends a runner that hangs itself.
const BOUND: Duration = Duration::from_secs(600);

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let built = context.run(&mut context.cargo(["build", "--package", "standpipe-cli"]), BUILD)?;
    if !built.ok {
        return Ok(Report::one(false, built.output));
    }
    packages(context)?;
    let mut node = program(context, "node");
    node.args(["--test", "--test-reporter=tap", "dashboard.test.mjs"]);
    node.env("STANDPIPE_BIN", context.target.join("debug/standpipe"));
    node.env("SCREENSHOTS", context.target.join("screenshots"));
    let finished = context.run(&mut node, BOUND)?;
    Ok(report(finished.ok, finished.output))
}

/// A program, run where the tests are.
fn program(context: &Context, name: &str) -> Command {
    let mut command = context.program(name);
    command.current_dir(context.root.join(TESTS));
    command
}

/// Installs the packages of the lock file, unless exactly those are there.
fn packages(context: &Context) -> Result<(), String> {
    let tests = context.root.join(TESTS);
    let (wanted, mark) = (tests.join("package-lock.json"), tests.join("node_modules/.installed"));
    let read = |path: &Path| std::fs::read(path).ok();
    if read(&wanted).is_some() && read(&wanted) == read(&mark) {
        return Ok(());
    }
    let finished = context.run(program(context, "npm").args(["ci", "--no-audit"]), BUILD)?;
    if !finished.ok {
        return Err(format!("`npm ci` failed in {TESTS}:\n{}", finished.output));
    }
    std::fs::copy(&wanted, &mark)
        .map(|_| ())
        .map_err(|error| format!("cannot write {}: {error}", mark.display()))
}

fn report(ok: bool, output: String) -> Report {
    let (passed, mut failed) = (number(&output, "# pass "), number(&output, "# fail "));
    // A test that was cut short or switched off is not one that passed.
    failed += number(&output, "# cancelled ") + number(&output, "# skipped ");
    if failed == 0 && (!ok || passed == 0) {
        failed = 1;
    }
    Report { passed, failed, notes: Vec::new(), output }
}

/// The number behind a word at the beginning of a line.
fn number(output: &str, word: &str) -> u64 {
    let found = output.lines().find_map(|line| line.strip_prefix(word));
    found.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runner_counts() {
        let output = "ok 1 - one\n# tests 4\n# pass 2\n# fail 1\n# cancelled 1\n# skipped 0\n";
        let report = report(false, output.into());
        assert_eq!((report.passed, report.failed), (2, 2));
    }

    #[test]
    fn a_runner_that_did_not_run_is_a_failure() {
        for (ok, output) in [(false, "cannot find module"), (true, ""), (false, "# pass 3\n")] {
            assert_eq!(report(ok, output.into()).failed, 1, "{output}");
        }
    }
}
