//! The documentation builds without a warning, that of private items too.

use crate::context::Context;
use crate::process::BUILD;
use crate::report::Report;

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let mut cargo = context.cargo(["doc", "--workspace", "--no-deps", "--all-features"]);
    cargo.arg("--document-private-items").env("RUSTDOCFLAGS", "-D warnings");
    let finished = context.run(&mut cargo, BUILD)?;
    Ok(Report::one(finished.ok, finished.output))
}
