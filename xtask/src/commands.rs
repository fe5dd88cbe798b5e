//! The commands that only call others: bench, fix, reference and traces.

use crate::context::Context;
use crate::tree::Tree;
use crate::wrap::wrap;

/// Runs the benches and passes the arguments on.
pub(crate) fn bench(context: &Context, arguments: &[String]) -> Result<bool, String> {
    if !context.root.join("bench/Cargo.toml").is_file() {
        return Err("there is no `bench/Cargo.toml`, so there is nothing to measure".into());
    }
    let mut cargo = context.cargo(["run", "--release", "--package", "standpipe-bench", "--"]);
    context.show(cargo.args(arguments))
}

/// Applies what clippy suggests, then formats everything, comments too.
pub(crate) fn fix(context: &Context) -> Result<bool, String> {
    const FUZZ: &str = "fuzz/Cargo.toml";
    let clippy = ["clippy", "--fix", "--allow-dirty", "--allow-staged", "--workspace"];
    let mut clippy = context.cargo(clippy);
    let fixed = context.show(clippy.args(["--all-targets", "--all-features"]))?;
    let mut formatted = context.show(&mut context.cargo(["fmt", "--all"]))?;
    if context.root.join(FUZZ).is_file() {
        formatted &= context.show(&mut context.cargo(["fmt", "--manifest-path", FUZZ]))?;
    }
    fill_comments(context)?;
    Ok(fixed && formatted)
}

fn fill_comments(context: &Context) -> Result<(), String> {
    for file in Tree::read(context)?.rust() {
        let filled = wrap(&file.text);
        if filled != file.text {
            let path = context.root.join(&file.path);
            std::fs::write(&path, filled)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
    }
    Ok(())
}

/// Writes the digests of the golden traces again, from what the core does now.
pub(crate) fn traces(context: &Context) -> Result<bool, String> {
    let mut cargo = context.cargo(["run", "--quiet", "--package", "standpipe-store"]);
    cargo.args(["--features", "conformance", "--example", "traces", "--", "--write"]);
    context.show(&mut cargo)
}

/// Writes the generated parts of the documentation again: the tests that compare them write them
/// when `STANDPIPE_BLESS` is set.
pub(crate) fn reference(context: &Context) -> Result<bool, String> {
    // The package, its kind of test, and the tests. One thread, since several write one page.
    let writers: [(&str, &[&str], &[&str]); 3] = [
        ("standpipe-config", &["--lib"], &["the_reference_page"]),
        ("standpipe-sim", &["--test", "it"], &["after::page::", "after::picture::"]),
        ("standpipe-cli", &["--test", "it"], &["docs::generated::"]),
    ];
    let mut all = true;
    for (package, target, tests) in writers {
        let mut cargo = context.cargo(["test", "--quiet", "--all-features", "--package", package]);
        cargo.args(target).args(["--", "--test-threads=1"]).args(tests);
        all &= context.show(cargo.env("STANDPIPE_BLESS", "1"))?;
    }
    Ok(all)
}
