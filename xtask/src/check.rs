//! `cargo xtask check`: what a developer runs after every change. Format, lints, rules, the tests
//! inside `src` and the golden traces, without the tests that start processes and servers.

use std::time::Instant;

use crate::context::Context;
use crate::install;
use crate::process::BUILD;
use crate::programs;
use crate::report::Report;
use crate::sandbox::Sandbox;
use crate::schedule;
use crate::suites::{clippy, fmt, tidy, unit};

/// Runs it; `false` when something failed.
pub(crate) fn run() -> Result<bool, String> {
    let mut context = Context::find()?;
    context.sandbox = Some(Sandbox::create(&context.target)?);
    install::fetch(&context)?;
    let began = Instant::now();
    let mut sum = Report::default();
    let steps: [(&str, schedule::Step); 5] = [
        ("fmt", fmt::run),
        ("tidy", tidy::run),
        ("clippy", clippy::run),
        ("unit", unit_tests),
        ("traces", golden_traces),
    ];
    for (name, step) in steps {
        sum.add(schedule::run(name, step, &context));
    }
    schedule::finish(&context, &sum, began.elapsed());
    Ok(sum.failures.is_empty())
}

fn unit_tests(context: &Context) -> Result<Report, String> {
    let mut cargo = context.cargo(["test", "--workspace", "--all-features", "--lib", "--bins"]);
    unit::run_programs(context, &programs::build(context, &mut cargo)?)
}

fn golden_traces(context: &Context) -> Result<Report, String> {
    // The whole workspace, so that cargo chooses the features that the tests were built with.
    let cargo = ["build", "--workspace", "--all-features", "--example", "traces"];
    let built = context.run(&mut context.cargo(cargo), BUILD)?;
    if !built.ok {
        return Err(built.output);
    }
    let mut traces = context.program(context.target.join("debug/examples/traces"));
    let finished = context.run(&mut traces, BUILD)?;
    Ok(Report::one("unit", finished.ok, finished.output))
}
