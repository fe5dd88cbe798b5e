//! The code is formatted as `rustfmt.toml` says, that of the fuzz targets too.

use crate::context::Context;
use crate::process::BUILD;
use crate::report::Report;

pub(crate) fn run(context: &Context) -> Result<Report, String> {
    const CHECK: [&str; 4] = ["--", "--check", "--color", "never"];
    let main = context.run(context.cargo(["fmt", "--all"]).args(CHECK), BUILD)?;
    // The fuzz targets are a workspace of their own.
    let mut fuzz = context.cargo(["fmt", "--manifest-path", "fuzz/Cargo.toml"]);
    let fuzz = context.run(fuzz.args(CHECK), BUILD)?;
    Ok(Report::one("fmt", main.ok && fuzz.ok, main.output + &fuzz.output))
}
