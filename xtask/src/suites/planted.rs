//! Every planted bug is caught by the tests that are said to catch it.
//!
//! The project is copied, all bugs are put into the copy behind a switch, and the copy is built
//! once. Then each named test runs without a bug, where it must pass, and with each of its bugs,
//! where it must fail. The project itself is never touched.

mod catch;
mod copy;
mod inject;

use std::collections::BTreeSet;

use crate::context::Context;
use crate::planted::{Planted, TABLE};
use crate::references;
use crate::report::Report;
use crate::testbins::{self, TestBinary};

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let mut report = Report::default();
    if TABLE.is_empty() {
        report.note("no bug is planted yet");
        return Ok(report);
    }
    let there = Context { root: context.target.join("planted"), ..context.clone() };
    let there = Context { target: there.root.join("target"), ..there };
    let sources = inject::all(TABLE, |path| {
        std::fs::read_to_string(context.root.join(path)).map_err(|error| format!("{path}: {error}"))
    })?;
    copy::all(context, &there.root, &sources)?;
    let binaries = build(&there, TABLE)?;
    catch::all(&there, TABLE, &binaries, &mut report);
    Ok(report)
}

/// Builds the tests of the packages that catch something, and no others.
fn build(there: &Context, table: &[Planted]) -> Result<Vec<TestBinary>, String> {
    let named = table.iter().flat_map(|bug| bug.caught_by);
    let packages: BTreeSet<&str> =
        named.filter_map(|test| references::parts(test)).map(|(package, ..)| package).collect();
    let mut cargo = there.cargo(["test", "--all-features"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    // A wrong expression may leave a variable unused; that is not what is tested here.
    cargo.env("CARGO_TARGET_DIR", &there.target).env("RUSTFLAGS", "--cap-lints=allow");
    testbins::build(there, &mut cargo)
        .map_err(|output| format!("the project with its planted bugs does not build:\n{output}"))
}
