//! Clippy and the compiler have no warnings.

use crate::context::Context;
use crate::process::BUILD;
use crate::report::Report;

pub(crate) fn run(context: &Context) -> Result<Report, String> {
    let mut cargo = context.cargo(["clippy", "--workspace", "--all-targets", "--all-features"]);
    let finished = context.run(cargo.args(["--", "-D", "warnings"]), BUILD)?;
    Ok(Report::one("clippy", finished.ok, finished.output))
}
