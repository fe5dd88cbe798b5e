//! Runs pytest and counts its tests.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::context::Context;
use crate::report::{Report, last_lines};

/// It ends by itself long before; this one ends a run that hangs.
const BOUND: Duration = Duration::from_secs(900);
/// The same for `--long`, which builds the package from source and calls for ten minutes.
const LONG_BOUND: Duration = Duration::from_secs(7_200);

/// Runs the tests in a directory with this Python environment. `name` is the suite's, `options` are
/// more of pytest's.
pub(super) fn run(
    context: &Context,
    name: &str,
    environment: &Path,
    tests: &str,
    options: &[&str],
) -> Result<Report, String> {
    let results = environment.with_file_name(format!("{name}.xml"));
    let _old = fs::remove_file(&results);
    let standpipe = context.standpipe();
    let mut command = context.program(environment.join("bin/python"));
    command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", tests]).args(options);
    command.arg("--junit-xml").arg(&results);
    command.env("PROVIDER", standpipe.with_file_name("provider")).env("STANDPIPE", &standpipe);
    command.env("PYTHONDONTWRITEBYTECODE", "1").current_dir(&context.root);
    let bound = if context.long { LONG_BOUND } else { BOUND };
    let finished = context.run(&mut command, bound)?;
    let found = fs::read_to_string(&results).unwrap_or_default();
    Ok(report(name, finished.ok, &found, &finished.output))
}

fn report(name: &str, ok: bool, junit: &str, output: &str) -> Report {
    let count = |tag: &str| junit.matches(tag).count() as u64;
    let (all, mut failed) = (count("<testcase "), count("<failure ") + count("<error "));
    if failed == 0 && (!ok || all == 0) {
        failed = 1;
    }
    let mut report = Report { passed: all.saturating_sub(failed), ..Report::default() };
    let repeat = format!("cargo xtask test {name}");
    for number in 1..=failed {
        // One output has all of them.
        let output = if number == 1 { last_lines(output, 120) } else { String::new() };
        report.fail(&format!("{name}, failure {number} of {failed}"), output, &repeat);
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_and_a_run_without_any_is_a_failure() {
        let junit = "<testsuites><testcase a/><testcase b><failure c/></testcase></testsuites>";
        let found = report("sdks", false, junit, "");
        assert_eq!((found.passed, found.failed()), (1, 1));
        assert_eq!(report("sdks", true, "", "").failed(), 1);
    }
}
