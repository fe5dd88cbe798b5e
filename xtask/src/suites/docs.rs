//! The documentation builds without a warning, that of private items too, and its examples pass.

use crate::context::Context;
use crate::process::BUILD;
use crate::report::{Report, last_lines};

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let mut cargo = context.cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    cargo.arg("--document-private-items").env("RUSTDOCFLAGS", "-D warnings");
    let finished = context.run(&mut cargo, BUILD)?;
    let mut report = Report::one("docs", finished.ok, finished.output);
    report.add(examples(context)?);
    Ok(report)
}

fn examples(context: &Context) -> Result<Report, String> {
    let mut cargo = context.cargo(["test", "--workspace", "--all-features", "--doc"]);
    let finished = context.run(cargo.arg("--no-fail-fast"), BUILD)?;
    let mut report = Report::default();
    for line in finished.output.lines() {
        match line.strip_prefix("test ").and_then(|line| line.rsplit_once(" ... ")) {
            Some((_, "ok")) => report.pass(),
            Some((test, "FAILED")) => {
                report.fail(test, last_lines(&finished.output, 60), "cargo xtask test docs");
            }
            _ => {}
        }
    }
    if !finished.ok && report.failures.is_empty() {
        report.fail("examples", last_lines(&finished.output, 60), "cargo xtask test docs");
    }
    Ok(report)
}
