//! Every test program of the workspace, several at a time.
//!
//! Many tests wait for real processes and servers, so two programs leave a processor idle and
//! three do not.

use std::sync::Mutex;
use std::time::Duration;

use crate::context::Context;
use crate::programs::TestProgram;
use crate::report::{Report, last_lines};

/// How many programs run at a time. Each runs as many tests at a time as there are processors.
const AT_A_TIME: usize = 3;
/// A bound at all, so that a test that hangs ends with a message.
const BOUND: Duration = Duration::from_secs(1_200);
/// The packages that take longest, which start first.
const LONGEST: [&str; 6] = [
    "standpipe-cli",
    "standpipe-server",
    "standpipe-store-redis",
    "standpipe-store-file",
    "standpipe-sim",
    "standpipe-core",
];
/// How much of a failed test's output is kept.
const LINES: usize = 60;

pub(super) fn run(context: &Context) -> Result<Report, String> {
    run_programs(context, context.programs()?)
}

/// Runs the selected tests of these programs.
pub(crate) fn run_programs(context: &Context, programs: &[TestProgram]) -> Result<Report, String> {
    let selected = |program: &&TestProgram| match &context.only {
        Some(reference) => program.path_of(reference).is_some(),
        None => true,
    };
    let mut programs: Vec<&TestProgram> = programs.iter().filter(selected).collect();
    let rank = |program: &&TestProgram| LONGEST.iter().position(|name| *name == program.package);
    // The ones that are taken from the end start first.
    programs.sort_by_key(|program| {
        std::cmp::Reverse((rank(program).unwrap_or(LONGEST.len()), program.target != "it"))
    });
    let queue = Mutex::new(programs);
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(program) = queue.lock().ok().and_then(|mut queue| queue.pop()) {
                    let report = run_program(context, program);
                    if let Ok(mut reports) = reports.lock() {
                        reports.push(report);
                    }
                }
            });
        }
    });
    let mut sum = Report::default();
    for report in reports.into_inner().unwrap_or_default() {
        sum.add(report?);
    }
    if sum.passed + sum.failed() == 0 {
        let only = context.only.as_deref().unwrap_or("the workspace");
        return Err(format!("there is no test `{only}`\nhint: name it as `package::module::test`"));
    }
    Ok(sum)
}

fn run_program(context: &Context, program: &TestProgram) -> Result<Report, String> {
    let mut arguments = Vec::new();
    if let Some(path) = context.only.as_ref().and_then(|reference| program.path_of(reference)) {
        arguments.push(path);
        if program.tests(context)?.iter().any(|test| test == path) {
            arguments.push("--exact");
        }
    }
    let long = context.long.then(|| ("STANDPIPE_LONG", "1".to_owned()));
    let variables: Vec<_> = long.into_iter().collect();
    let finished = program.run(context, &arguments, &variables, BOUND)?;
    Ok(report(program, finished.ok, &finished.output))
}

/// Reads what a test program printed.
fn report(program: &TestProgram, ok: bool, output: &str) -> Report {
    let mut report = Report::default();
    for test in failed(output) {
        let name = program.reference(test);
        report.fail(&name, said(output, test), &format!("cargo xtask test {name}"));
    }
    let lines = || output.lines().filter(|line| line.ends_with(" ... ok")).count() as u64;
    report.passed = passed(output).unwrap_or_else(lines);
    if !ok && report.failures.is_empty() {
        // It was ended by a signal or by its time bound, so the test that did it is unnamed.
        let name = format!("{} ({})", program.package, program.target);
        let command = format!("cargo xtask test {}", program.package);
        report.fail(&name, last_lines(output, LINES), &command);
    }
    report
}

/// The names in the list that a test program ends with.
fn failed(output: &str) -> impl Iterator<Item = &str> {
    let list = output.rsplit_once("\nfailures:\n").map_or("", |(_, list)| list);
    list.lines().map_while(|line| line.strip_prefix("    "))
}

/// The number in the line `test result: ok. 3 passed; 0 failed; …`.
fn passed(output: &str) -> Option<u64> {
    let line = output.lines().rev().find_map(|line| line.strip_prefix("test result: "))?;
    line.split_once(" passed")?.0.rsplit(' ').next()?.parse().ok()
}

/// What a failed test printed: the block `---- name stdout ----`.
fn said(output: &str, test: &str) -> String {
    let opening = format!("---- {test} stdout ----");
    let block = output.split_once(&opening).map_or("", |(_, rest)| rest);
    let is_end = |line: &&str| line.starts_with("---- ") || *line == "failures:";
    let lines: Vec<&str> = block.lines().take_while(|line| !is_end(line)).collect();
    // Frames of the test harness and of the standard library help nobody.
    let frames = lines.iter().position(|line| line.starts_with("stack backtrace:"));
    last_lines(&lines[..frames.unwrap_or(lines.len())].join("\n"), LINES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\nrunning 3 tests\ntest a::one ... ok\ntest a::two ... FAILED\n\
        test a::three ... ok\n\nfailures:\n\n---- a::two stdout ----\n\nthread panicked:\nleft: 1\n\
        stack backtrace:\n   0: rust_begin_unwind\n\n\nfailures:\n    a::two\n\n\
        test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out\n";

    #[test]
    fn a_failed_test_comes_with_its_own_output_and_the_command_that_repeats_it() {
        let found = report(&TestProgram::of("core", "it"), false, OUTPUT);
        assert_eq!((found.passed, found.failed()), (2, 1));
        let failure = &found.failures[0];
        assert_eq!(failure.test, "core::a::two");
        assert_eq!(failure.output, "thread panicked:\nleft: 1");
        assert_eq!(failure.repeat, "cargo xtask test core::a::two");
    }

    #[test]
    fn a_program_that_died_is_one_failure() {
        let found =
            report(&TestProgram::of("core", "lib"), false, "running 2 tests\ntest a ... ok\n");
        assert_eq!((found.passed, found.failed()), (1, 1));
        assert_eq!(found.failures[0].test, "core (lib)");
    }

    #[test]
    fn a_test_that_printed_between_its_name_and_its_result_is_counted() {
        let output = "test a ... some words\nok\ntest b ... more\nFAILED\n\nfailures:\n    b\n\n\
                      test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured\n";
        let found = report(&TestProgram::of("core", "it"), false, output);
        assert_eq!((found.passed, found.failed()), (1, 1));
    }
}
