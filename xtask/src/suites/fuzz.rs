//! Fuzzing on stable Rust: odd events for the core, long loops in it, odd bytes for the layout, odd
//! answers for the dialects; nothing may panic.
//!
//! The targets are in `fuzz/`, a workspace of its own. Coverage comes from compiler passes that the
//! stable compiler has; the program that drives them, libFuzzer, is built from C++.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::context::Context;
use crate::process::{BUILD, Finished};
use crate::report::Report;

/// Each target with the number of inputs it tries: about half a minute of work on one core. Count
/// and seed are fixed, so that the same binary tries the same inputs. A binary also depends on the
/// path it was built at, so another checkout tries others; `--long` searches for ten minutes.
const TARGETS: [(&str, u32); 4] =
    [("dialect", 225_000), ("events", 35_000), ("fuel", 20_000), ("layout", 300_000)];

/// How long each looks for something new with `--long`.
const LONG: Duration = Duration::from_secs(600);

/// What makes the compiler count which code ran, and check its arithmetic. The library's own
/// `cargo fuzz` sets the same passes.
const FLAGS: &str = "--cfg fuzzing -Cdebug-assertions -Ccodegen-units=1 \
    -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let directory = build(context)?;
    // All at the same time: there are few, and two cores are what a small machine has.
    let selected =
        |(target, _): &&(&str, u32)| context.only.as_ref().is_none_or(|only| only == target);
    let targets: Vec<_> = TARGETS.iter().filter(selected).copied().collect();
    let finished: Vec<_> = std::thread::scope(|scope| {
        let start = |(target, inputs): (&'static str, u32)| {
            let program = directory.join(target);
            scope.spawn(move || fuzz(context, &program, target, inputs))
        };
        let running: Vec<_> = targets.iter().copied().map(start).collect();
        running.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut report = Report::default();
    for ((target, _), finished) in targets.into_iter().zip(finished) {
        let finished = finished.map_err(|_| "a thread of this suite panicked")??;
        judge(context, target, &directory.join(target), &finished, &mut report);
    }
    Ok(report)
}

/// Builds all targets and says where they are.
fn build(context: &Context) -> Result<PathBuf, String> {
    let triple = host(context)?;
    let mut cargo = context.cargo(["build", "--release", "--manifest-path", "fuzz/Cargo.toml"]);
    // With a target named, even the own one, build scripts are built without the flags.
    cargo.args(["--target", &triple, "--target-dir", "fuzz/target"]).env("RUSTFLAGS", FLAGS);
    let built = context.run(&mut cargo, BUILD)?;
    if !built.ok {
        return Err(format!("the fuzz targets do not build:\n{}", built.output));
    }
    Ok(context.root.join("fuzz/target").join(triple).join("release"))
}

fn host(context: &Context) -> Result<String, String> {
    let said = context.run_apart(context.program("rustc").arg("-vV"), BUILD)?;
    let host = said.data.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| "`rustc -vV` does not name its host".to_owned())
}

fn fuzz(context: &Context, program: &Path, target: &str, inputs: u32) -> Result<Finished, String> {
    let corpus = context.target.join("fuzz-corpus").join(target);
    let artifacts = context.root.join("fuzz/artifacts").join(target);
    if !context.long {
        // What an earlier run found would change what this one tries.
        let _absent = std::fs::remove_dir_all(&corpus);
    }
    for directory in [&corpus, &artifacts] {
        std::fs::create_dir_all(directory)
            .map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
    }
    // What failed before, kept by this machine or with the project, is tried first.
    let seeds = context.root.join("fuzz/seeds").join(target);
    let known = [artifacts, seeds].into_iter().filter(|directory| directory.is_dir());
    let mut command = context.program(program);
    command.args(["-rss_limit_mb=512", "-max_len=4096", "-timeout=10", "-print_final_stats=1"]);
    if context.long {
        command.arg(format!("-max_total_time={}", LONG.as_secs()));
    } else {
        command.args(["-seed=1", &format!("-runs={inputs}")]);
    }
    command.arg(format!("-artifact_prefix=fuzz/artifacts/{target}/")).arg(corpus).args(known);
    // It ends by itself; if it does not, a minute later it is ended and has failed.
    context.run(&mut command, LONG + Duration::from_secs(60))
}

fn judge(
    context: &Context,
    target: &str,
    program: &Path,
    finished: &Finished,
    report: &mut Report,
) {
    let runs = figure(&finished.output, "stat::number_of_executed_units:");
    let memory = figure(&finished.output, "stat::peak_rss_mb:");
    if finished.ok {
        report.pass();
        report.note(format!("{target}: {runs} inputs, at most {memory} MB"));
        return;
    }
    let program = program.strip_prefix(&context.root).unwrap_or(program).display();
    let repeat = match artifact(&finished.output) {
        Some(input) => format!("{program} {input}"),
        // It ran out of time or memory without an input to blame.
        None => format!("cargo xtask test fuzz::{target}"),
    };
    let progress = |line: &&str| line.starts_with('#') || line.contains("NEW_FUNC[");
    let talk: Vec<&str> = finished.output.lines().filter(|line| !progress(line)).collect();
    report.fail(target, talk.join("\n"), &repeat);
}

fn figure<'a>(output: &'a str, name: &str) -> &'a str {
    let line = output.lines().find_map(|line| line.trim().strip_prefix(name));
    line.map_or("?", str::trim)
}

/// The path of the input that libFuzzer kept when something went wrong.
fn artifact(output: &str) -> Option<&str> {
    output.lines().find_map(|line| Some(line.split_once("Test unit written to ")?.1.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(ok: bool, output: &str) -> Report {
        let context = Context::new("/p".into(), "/p/target".into());
        let finished =
            Finished { ok, timed_out: false, output: output.into(), data: String::new() };
        let mut report = Report::default();
        judge(&context, "events", Path::new("/p/fuzz/target/events"), &finished, &mut report);
        report
    }

    #[test]
    fn a_crash_is_told_with_the_command_that_replays_it() {
        let report = judged(false, "panicked\nx; Test unit written to fuzz/artifacts/crash-1\n");
        assert_eq!((report.passed, report.failed()), (0, 1));
        assert_eq!(report.failures[0].repeat, "fuzz/target/events fuzz/artifacts/crash-1");
    }

    #[test]
    fn a_run_without_a_crash_says_how_much_it_tried() {
        let output = "stat::number_of_executed_units: 1234\nstat::peak_rss_mb:              55\n";
        let report = judged(true, output);
        assert_eq!(report.notes, ["events: 1234 inputs, at most 55 MB"]);
        assert_eq!((report.passed, report.failed()), (1, 0));
    }
}
