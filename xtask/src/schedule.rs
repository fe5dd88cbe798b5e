//! Runs the suites side by side where they do not disturb each other, prints what came of each, and
//! adds up.
//!
//! First what takes seconds. Then programs are installed while the tests build. Then two lanes: the
//! tests run, many of them waiting for servers and clocks, while the suites that compile use the
//! processor time that is left. A failing suite does not stop the others. The last line is
//! `N passed, N failed`, alone.

use std::time::{Duration, Instant};

use crate::context::Context;
use crate::install;
use crate::programs;
use crate::report::{Failure, Report, last_lines};
use crate::sandbox::Sandbox;
use crate::say;
use crate::selection::Selection;
use crate::suites::{Lane, Suite};

/// How much of a failed test's output is printed.
const LINES: usize = 40;

/// The command `test`; `false` when a test failed.
pub(crate) fn test(arguments: &[String]) -> Result<bool, String> {
    let selection = Selection::parse(arguments)?;
    if selection.list {
        for suite in crate::suites::ALL {
            say::line(&format!("{:8} {}", suite.name, suite.about));
        }
        return Ok(true);
    }
    let mut context = Context::find()?;
    context.long = selection.long;
    context.only = selection.only;
    context.sandbox = Some(Sandbox::create(&context.target)?);
    let began = Instant::now();
    let report = run_all(&context, &selection.suites)?;
    finish(&context, &report, began.elapsed());
    Ok(report.failures.is_empty())
}

fn run_all(context: &Context, suites: &[&'static Suite]) -> Result<Report, String> {
    let of = |lane| suites.iter().copied().filter(move |suite| suite.lane == lane);
    let needs_build = suites.iter().any(|suite| suite.needs_build);
    let mut sum = Report::default();
    for suite in of(Lane::First) {
        sum.add(run(suite.name, suite.run, context));
    }
    if of(Lane::Run).chain(of(Lane::Compile)).next().is_none() {
        return Ok(sum);
    }
    install::fetch(context)?;
    std::thread::scope(|scope| {
        let installs = scope.spawn(|| install::missing(context));
        if needs_build {
            sum.add(build(context));
        }
        let installed = installs.join();
        installed.map_err(|_| "the thread that installs programs panicked")??;
        let compiling = Context { gives_way: true, ..context.clone() };
        let compile = scope.spawn(move || lane(of(Lane::Compile), &compiling));
        sum.add(lane(of(Lane::Run), context));
        sum.add(compile.join().map_err(|_| "the lane that compiles panicked")?);
        Ok(sum)
    })
}

fn lane(suites: impl Iterator<Item = &'static Suite>, context: &Context) -> Report {
    let mut sum = Report::default();
    for suite in suites {
        sum.add(run(suite.name, suite.run, context));
    }
    sum
}

/// Builds every test program of the workspace. It is no test: it counts only when it fails.
fn build(context: &Context) -> Report {
    let began = Instant::now();
    let mut cargo = context.cargo(["test", "--workspace", "--all-features"]);
    let mut report = Report::default();
    match programs::build(context, &mut cargo) {
        Ok(programs) => drop(context.programs.set(programs)),
        Err(output) => {
            report.fail("build", output, "cargo test --workspace --all-features --no-run")
        }
    }
    say::line(&summary("build", &report, began.elapsed()));
    report
}

/// What runs a suite.
pub(crate) type Step = fn(&Context) -> Result<Report, String>;

/// Runs a suite and prints what came of it.
pub(crate) fn run(name: &str, step: Step, context: &Context) -> Report {
    let began = Instant::now();
    let report = step(context).unwrap_or_else(|message| Report::one(name, false, message));
    let mut lines = summary(name, &report, began.elapsed());
    for note in &report.notes {
        lines.push_str(&format!("\n         {note}"));
    }
    say::line(&lines);
    report
}

fn summary(name: &str, report: &Report, took: Duration) -> String {
    let tests = report.passed + report.failed();
    let noun = if tests == 1 { "test" } else { "tests" };
    let result = match report.failed() {
        0 => "ok".to_owned(),
        failed => format!("FAILED {failed}"),
    };
    format!("{name:8} {result:10} {tests:5} {noun:5} {:>8}", say::seconds(took))
}

/// Prints what failed, how to repeat it, and the sum.
pub(crate) fn finish(context: &Context, report: &Report, took: Duration) {
    for (number, failure) in report.failures.iter().enumerate() {
        say::line(&describe(context, number, failure));
    }
    say::line(&format!("\n{} in all\n", say::seconds(took)));
    say::line(&format!("{} passed, {} failed", report.passed, report.failed()));
}

fn describe(context: &Context, number: usize, failure: &Failure) -> String {
    let Failure { test, output, repeat } = failure;
    let shown = last_lines(output, LINES);
    let mut text = format!("\n---- {test}\n{shown}\n");
    if shown.lines().count() < output.lines().count() {
        let place = context.target.join("xtask/failures").join(format!("{number}.txt"));
        let made = place.parent().map(std::fs::create_dir_all);
        if matches!(made, Some(Ok(()))) && std::fs::write(&place, output).is_ok() {
            text.push_str(&format!("     all of it: {}\n", place.display()));
        }
    }
    text.push_str(&format!("     repeat it: {repeat}"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_result_number_and_time() {
        let mut report = Report::one("unit", true, String::new());
        let line = summary("unit", &report, Duration::from_millis(1_290));
        assert_eq!(line, "unit     ok             1 test     1.2 s");
        report.fail("a", "why", "cargo xtask test a");
        let line = summary("unit", &report, Duration::from_secs(61));
        assert_eq!(line, "unit     FAILED 1       2 tests   61.0 s");
    }

    #[test]
    fn a_failure_shows_its_last_lines_and_how_to_repeat_it() {
        let target =
            std::env::temp_dir().join(format!("standpipe-failures-{}", std::process::id()));
        let context = Context::new(target.clone(), target.clone());
        let output: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let repeat = "cargo xtask test a::b".to_owned();
        let text = describe(&context, 0, &Failure { test: "a::b".into(), output, repeat });
        assert!(text.contains("line 99\n") && !text.contains("line 59\n"), "{text}");
        assert!(text.ends_with("repeat it: cargo xtask test a::b"), "{text}");
        assert!(target.join("xtask/failures/0.txt").is_file());
        std::fs::remove_dir_all(target).unwrap();
    }
}
