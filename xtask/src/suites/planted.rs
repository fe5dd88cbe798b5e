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
use crate::planted::{self, Planted};
use crate::programs::{self, TestProgram};
use crate::report::Report;

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let mut report = Report::default();
    let table = planted::table();
    if table.is_empty() {
        report.note("no bug is planted yet");
        return Ok(report);
    }
    let there = Context { root: context.target.join("planted"), ..context.clone() };
    let read = |path: &str| {
        std::fs::read_to_string(context.root.join(path)).map_err(|error| format!("{path}: {error}"))
    };
    let mut sources = inject::all(&table, read)?;
    // Cargo tells crates of two workspaces apart by name and version only, and both are built in
    // one directory. With the same version the project would be tested with the bugs in it.
    let manifest = read("Cargo.toml")?.replace(VERSION, VERSION_OF_COPY);
    sources.insert("Cargo.toml".to_owned(), manifest);
    copy::all(context, &there.root, &sources)?;
    let selected = |bug: &Planted| context.only.as_ref().is_none_or(|only| only == bug.name);
    let bugs: Vec<(usize, &Planted)> =
        table.iter().enumerate().filter(|(_, bug)| selected(bug)).collect();
    let programs = build(&there, &table)?;
    catch::all(&there, &bugs, &programs, &mut report);
    Ok(report)
}

/// Builds the tests of the packages that catch something, and no others. What the project was built
/// with is used again: only the copy's own crates are compiled.
fn build(there: &Context, table: &[Planted]) -> Result<Vec<TestProgram>, String> {
    let named = table.iter().flat_map(|bug| bug.caught_by);
    let packages: BTreeSet<&str> =
        named.filter_map(|test| Some(test.split_once("::")?.0)).collect();
    let mut cargo = there.cargo(["test", "--all-features", "--lib", "--test", "it"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    cargo.env("CARGO_BUILD_BUILD_DIR", &there.target);
    cargo.env("CARGO_TARGET_DIR", there.root.join("target"));
    programs::build(there, &mut cargo)
        .map_err(|output| format!("the project with its planted bugs does not build:\n{output}"))
}

const VERSION: &str = concat!("version = \"", env!("CARGO_PKG_VERSION"), "\"");
const VERSION_OF_COPY: &str = concat!("version = \"", env!("CARGO_PKG_VERSION"), "+planted\"");
