//! Clippy and the compiler have nothing to say.

use crate::context::Context;
use crate::process::BUILD;
use crate::report::Report;

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let mut cargo = context.cargo(["clippy", "--workspace", "--all-targets", "--all-features"]);
    let finished = context.run(cargo.args(["--", "-D", "warnings"]), BUILD)?;
    Ok(Report::one(finished.ok, finished.output))
}
