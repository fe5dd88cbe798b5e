//! The dashboard in a real browser: the daemon is built and served to Chromium, and Node's own test
//! runner counts.
//!
//! What the tests need of npm comes from their lock file, and only when that has changed.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::context::Context;
use crate::process::BUILD;
use crate::report::{Report, last_lines};

/// Where the tests are.
const TESTS: &str = "tests/browser";
/// The runner has a bound for everything it waits for; this one ends a runner that hangs itself.
const BOUND: Duration = Duration::from_secs(600);

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let mut node = context.program("node");
    node.current_dir(context.root.join(TESTS));
    node.args(["--test", "--test-reporter=tap"]);
    if let Some(name) = &context.only {
        node.arg(format!("--test-name-pattern={name}"));
    }
    node.arg("dashboard.test.mjs").env("STANDPIPE_BIN", context.standpipe());
    node.env("SCREENSHOTS", context.target.join("screenshots"));
    if let Some(sandbox) = &context.sandbox {
        node.env("CHROMIUM", sandbox.program("chromium"));
    }
    let finished = context.run(&mut node, BOUND)?;
    // A test that is switched off has not passed.
    let skipped = context.only.is_none() && number(&finished.output, "# skipped ") > 0;
    Ok(report(finished.ok && !skipped, &finished.output))
}

fn paths(context: &Context) -> (PathBuf, PathBuf) {
    let tests = context.root.join(TESTS);
    (tests.join("package-lock.json"), tests.join("node_modules/.installed"))
}

/// Whether exactly the packages of the lock file are here.
pub(crate) fn is_here(context: &Context) -> bool {
    let (wanted, had) = paths(context);
    fs::read(wanted).is_ok_and(|wanted| fs::read(had).is_ok_and(|had| had == wanted))
}

/// Installs the packages of the lock file.
pub(crate) fn install(context: &Context) -> Result<(), String> {
    let mut npm = context.user_program("npm");
    let finished =
        context.run(npm.args(["ci", "--no-audit"]).current_dir(context.root.join(TESTS)), BUILD)?;
    if !finished.ok {
        return Err(format!("`npm ci` failed in {TESTS}:\n{}", finished.output));
    }
    let (wanted, had) = paths(context);
    fs::copy(wanted, &had).map(drop).map_err(|error| format!("{}: {error}", had.display()))
}

fn report(ok: bool, output: &str) -> Report {
    let mut report = Report { passed: number(output, "# pass "), ..Report::default() };
    let lines: Vec<&str> = output.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let Some((_, test)) = line.strip_prefix("not ok ").and_then(|line| line.split_once(" - "))
        else {
            continue;
        };
        // What went wrong is a block of YAML behind the line.
        let why = lines[at + 1..].iter().take_while(|line| line.trim() != "...");
        let why: Vec<&str> = why.copied().collect();
        report.count("browser", test, Err(why.join("\n")));
    }
    if report.failures.is_empty() && (!ok || report.passed == 0) {
        report.fail("browser", last_lines(output, 40), "cargo xtask test browser");
    }
    report
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
    fn a_failed_test_comes_with_what_went_wrong() {
        let output = "ok 1 - one\nnot ok 2 - the light is red\n  ---\n  error: 'no light'\n  ...\n\
                      # tests 2\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 0\n";
        let found = report(false, output);
        assert_eq!((found.passed, found.failed()), (1, 1));
        assert!(found.failures[0].output.contains("no light"));
        assert_eq!(found.failures[0].repeat, "cargo xtask test 'browser::the light is red'");
    }

    #[test]
    fn a_run_without_a_test_is_a_failure() {
        assert_eq!(report(true, "# tests 0\n# pass 0\n").failed(), 1);
        assert_eq!(report(false, "").failed(), 1);
        assert_eq!(report(true, "# pass 2\n# fail 0\n# skipped 0\n").failed(), 0);
    }
}
