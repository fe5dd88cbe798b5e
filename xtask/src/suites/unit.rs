//! Every test of the workspace, doctests too, as cargo runs and counts them.

use crate::context::Context;
use crate::process::BUILD;
use crate::report::Report;

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let mut cargo = context.cargo(["test", "--workspace", "--all-features", "--no-fail-fast"]);
    if context.long {
        cargo.env("STANDPIPE_LONG", "1");
    }
    let finished = context.run(&mut cargo, BUILD)?;
    Ok(report(finished.ok, finished.output))
}

fn report(ok: bool, output: String) -> Report {
    let (passed, mut failed) = counts(&output);
    if !ok && failed == 0 {
        // It did not even compile, or a test program ended before it could count.
        failed = 1;
    }
    Report { passed, failed, notes: Vec::new(), output }
}

/// The sums over all lines `test result: ok. 3 passed; 0 failed; …`.
fn counts(output: &str) -> (u64, u64) {
    let results = output.lines().filter_map(|line| line.trim().strip_prefix("test result: "));
    results.fold((0, 0), |(passed, failed), line| {
        (passed + number_before(line, " passed"), failed + number_before(line, " failed"))
    })
}

fn number_before(line: &str, word: &str) -> u64 {
    let before = line.split_once(word).map_or("", |(before, _)| before);
    before.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "running 2 tests\n\
        test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
        test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";

    #[test]
    fn results_are_summed() {
        assert_eq!(counts(OUTPUT), (15, 2));
        assert_eq!(counts("nothing"), (0, 0));
    }

    #[test]
    fn a_failure_without_a_count_is_one() {
        let report = report(false, "error: could not compile".into());
        assert_eq!((report.passed, report.failed), (0, 1));
    }
}
