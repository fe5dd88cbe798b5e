//! Node's own test runner: how it is started, and what it printed as a report.

use std::process::Command;
use std::time::Duration;

use crate::context::Context;
use crate::report::{Report, last_lines};

/// The runner has a bound for everything it waits for; this one ends a runner that hangs itself.
const BOUND: Duration = Duration::from_secs(600);

/// Node's test runner in a folder, with the selected tests only. The caller adds files and
/// variables.
pub(super) fn runner(context: &Context, folder: &str) -> Command {
    let mut node = context.program("node");
    node.current_dir(context.root.join(folder));
    node.args(["--test", "--test-reporter=tap"]);
    if let Some(name) = &context.only {
        node.arg(format!("--test-name-pattern={name}"));
    }
    node
}

/// Runs the tests of a suite.
pub(super) fn run(context: &Context, node: &mut Command, suite: &str) -> Result<Report, String> {
    let finished = context.run(node, BOUND)?;
    // A test that is switched off has not passed.
    let skipped = context.only.is_none() && number(&finished.output, "# skipped ") > 0;
    Ok(report(suite, finished.ok && !skipped, &finished.output))
}

fn report(suite: &str, ok: bool, output: &str) -> Report {
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
        report.count(suite, test, Err(why.join("\n")));
    }
    if report.failures.is_empty() && (!ok || report.passed == 0) {
        let repeat = format!("cargo xtask test {suite}");
        report.fail(suite, last_lines(output, 40), &repeat);
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
        let found = report("browser", false, output);
        assert_eq!((found.passed, found.failed()), (1, 1));
        assert!(found.failures[0].output.contains("no light"));
        assert_eq!(found.failures[0].repeat, "cargo xtask test 'browser::the light is red'");
    }

    #[test]
    fn a_run_without_a_test_is_a_failure() {
        assert_eq!(report("browser", true, "# tests 0\n# pass 0\n").failed(), 1);
        assert_eq!(report("browser", false, "").failed(), 1);
        assert_eq!(report("browser", true, "# pass 2\n# fail 0\n# skipped 0\n").failed(), 0);
    }
}
