//! Runs the tests without and with each bug, and judges.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::context::Context;
use crate::planted::Planted;
use crate::process::Finished;
use crate::programs::TestProgram;
use crate::report::Report;

use super::inject::VARIABLE;

/// How long one test may take with a bug in it; a bug may well make it run for ever.
const BOUND: Duration = Duration::from_secs(120);
/// How many tests run at a time.
const WORKERS: usize = 2;
/// Property tests draw the same cases every time, so that catching a bug is not a matter of luck,
/// and do not look for the smallest example, which nobody reads here.
const PROPERTIES: [(&str, &str); 5] = [
    ("RUST_BACKTRACE", "0"),
    ("PROPTEST_CASES", "256"),
    ("PROPTEST_RNG_SEED", "1"),
    ("PROPTEST_MAX_SHRINK_ITERS", "0"),
    ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1"),
];

/// Judges these bugs, each with its number in the table.
pub(super) fn all(
    context: &Context,
    bugs: &[(usize, &Planted)],
    programs: &[TestProgram],
    report: &mut Report,
) {
    let named: BTreeSet<&str> = bugs.iter().flat_map(|(_, bug)| bug.caught_by).copied().collect();
    let mut runs: Vec<Run> = named.iter().map(|test| Run { test, bug: None }).collect();
    for (number, bug) in bugs {
        runs.extend(bug.caught_by.iter().map(|test| Run { test, bug: Some(*number) }));
    }
    let results = run_all(context, &runs, programs);
    for (number, bug) in bugs {
        let judged = bug.caught_by.iter().map(|test| judge(test, *number, &results));
        let (right, wrong): (Vec<_>, Vec<_>) = judged.partition(Result::is_ok);
        let notes = right.into_iter().flatten().flatten();
        report.notes.extend(notes.map(|note| format!("{}: {note}", bug.name)));
        let wrong: Vec<String> = wrong.into_iter().filter_map(Result::err).collect();
        let found = if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) };
        report.count("planted", bug.name, found);
    }
}

/// Whether the test passes without the bug and fails with it; perhaps with a remark.
fn judge(test: &str, number: usize, results: &Results<'_>) -> Result<Option<String>, String> {
    let result = |bug| results.get(&Run { test, bug }).ok_or(format!("`{test}` was not run"));
    passed(test, result(None)?)?;
    failed(test, result(Some(number))?)
}

/// One run of one test, with a bug or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Run<'a> {
    test: &'a str,
    bug: Option<usize>,
}

type Results<'a> = BTreeMap<Run<'a>, Result<Finished, String>>;

fn run_all<'a>(context: &Context, runs: &[Run<'a>], programs: &[TestProgram]) -> Results<'a> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Results::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = run_one(context, *run, programs);
                    if let Ok(mut results) = results.lock() {
                        results.insert(*run, result);
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_default()
}

fn run_one(context: &Context, run: Run<'_>, programs: &[TestProgram]) -> Result<Finished, String> {
    let mut found = programs.iter().filter_map(|one| Some((one, one.path_of(run.test)?)));
    let (program, path) = found.next().ok_or("its package has no such test program")?;
    let mut variables: Vec<(&str, String)> =
        PROPERTIES.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    variables.extend(run.bug.map(|number| (VARIABLE, number.to_string())));
    program.run(context, &["--exact", path], &variables, BOUND)
}

/// Without a bug the test must have run and passed.
fn passed(test: &str, result: &Result<Finished, String>) -> Result<(), String> {
    let finished = ran(test, result)?;
    if finished.timed_out {
        return Err(format!("`{test}` does not end even without the bug"));
    }
    if finished.ok {
        Ok(())
    } else {
        Err(format!("`{test}` fails without it:\n{}", finished.output))
    }
}

/// With its bug the test must have run and not passed; a remark if it did not end.
fn failed(test: &str, result: &Result<Finished, String>) -> Result<Option<String>, String> {
    let finished = ran(test, result)?;
    if finished.ok {
        return Err(format!("`{test}` does not notice it"));
    }
    Ok(finished.timed_out.then(|| format!("caught, but `{test}` never ended")))
}

fn ran<'a>(test: &str, result: &'a Result<Finished, String>) -> Result<&'a Finished, String> {
    let finished = result.as_ref().map_err(|error| format!("`{test}`: {error}"))?;
    if finished.output.contains("running 1 test\n") {
        return Ok(finished);
    }
    Err(format!("there is no test `{test}`:\n{}", finished.output))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(ok: bool, timed_out: bool, output: &str) -> Result<Finished, String> {
        Ok(Finished { ok, timed_out, output: output.into(), data: String::new() })
    }

    const RAN: &str = "\nrunning 1 test\ntest a ... \n";

    #[test]
    fn a_bug_is_caught_when_its_test_runs_and_fails() {
        assert_eq!(failed("a", &result(false, false, RAN)), Ok(None));
        assert!(failed("a", &result(true, false, RAN)).unwrap_err().contains("not notice"));
    }

    #[test]
    fn a_test_that_never_ends_has_caught_it_and_is_reported() {
        let note = failed("a", &result(false, true, RAN)).unwrap();
        assert!(note.unwrap().contains("never ended"));
        assert!(passed("a", &result(false, true, RAN)).is_err());
    }

    #[test]
    fn a_test_that_did_not_run_proves_nothing() {
        let none = "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed;";
        assert!(failed("a", &result(false, false, none)).unwrap_err().contains("no test `a`"));
        assert!(passed("a", &result(true, false, none)).is_err());
    }

    #[test]
    fn a_test_must_pass_without_the_bug() {
        assert_eq!(passed("a", &result(true, false, RAN)), Ok(()));
        assert!(passed("a", &result(false, false, RAN)).unwrap_err().contains("without it"));
    }
}
