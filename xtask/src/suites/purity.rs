//! The core is pure: no standard library, no dependency, no clock, no chance, no system.
//!
//! Four looks at the same thing, because each sees what another may miss: the manifest, the words
//! of the source, the symbols of the built library, and a build for a machine without a system.

mod symbols;
mod words;

use std::path::PathBuf;

use crate::context::Context;
use crate::process::BUILD;
use crate::report::Report;
use crate::tree::Tree;

const CORE: &str = "crates/standpipe-core";
const WASM: &str = "wasm32-unknown-unknown";

pub(super) fn run(context: &Context) -> Result<Report, String> {
    let tree = Tree::read(context)?;
    let mut report = Report::default();
    report.count("purity", "no_std", no_std(&tree));
    report.count("purity", "no dependencies", no_dependencies(&tree));
    report.count("purity", "words", words::check(&tree, CORE));
    report.count("purity", "symbols", symbols::check(context)?);
    wasm(context, &mut report)?;
    Ok(report)
}

fn no_std(tree: &Tree) -> Result<(), String> {
    let path = format!("{CORE}/src/lib.rs");
    let root = tree.file(&path).ok_or_else(|| format!("there is no {path}"))?;
    if root.text.lines().any(|line| line.trim() == "#![no_std]") {
        return Ok(());
    }
    Err(format!("{path}: `#![no_std]` is missing, so a clock could slip in"))
}

fn no_dependencies(tree: &Tree) -> Result<(), String> {
    let path = format!("{CORE}/Cargo.toml");
    let manifest = tree.file(&path).ok_or_else(|| format!("there is no {path}"))?;
    let mut section = "";
    for (number, line) in manifest.text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
        }
        let entry = !line.is_empty() && !line.starts_with(['#', '[']);
        // `[dev-dependencies]` is for tests; everything else would be part of the core.
        let part_of_core = section.contains("dependencies") && !section.contains("dev-");
        let named_section = section.contains("dependencies.") && line == section;
        if part_of_core && (entry || named_section) {
            return Err(format!("{path}:{}: the core depends on nothing: {line}", number + 1));
        }
    }
    Ok(())
}

/// Builds the core for a machine without an operating system, where the toolchain can.
fn wasm(context: &Context, report: &mut Report) -> Result<(), String> {
    let mut rustc = context.program("rustc");
    rustc.args(["--print", "target-libdir", "--target", WASM]);
    let directory = PathBuf::from(context.run_apart(&mut rustc, BUILD)?.data.trim());
    if directory.as_os_str().is_empty() || !directory.is_dir() {
        report.note(format!("skipped: the build for {WASM}, which this toolchain lacks"));
        return Ok(());
    }
    let mut cargo = context.cargo(["build", "--package", "standpipe-core", "--target", WASM]);
    let built = context.run(&mut cargo, BUILD)?;
    report.count("purity", "wasm", if built.ok { Ok(()) } else { Err(built.output) });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn the_attribute_must_be_there() {
        assert!(
            no_std(&tree(&[("crates/standpipe-core/src/lib.rs", "//! Doc\n#![no_std]\n")])).is_ok()
        );
        assert!(no_std(&tree(&[("crates/standpipe-core/src/lib.rs", "// #![no_std]\n")])).is_err());
        assert!(no_std(&tree(&[])).is_err());
    }

    #[test]
    fn only_tests_may_depend_on_something() {
        let with =
            |text: &str| no_dependencies(&tree(&[("crates/standpipe-core/Cargo.toml", text)]));
        assert!(with("[dependencies]\n# none\n\n[dev-dependencies]\nproptest = \"1\"\n").is_ok());
        assert!(with("[dependencies]\nlibm = \"1\"\n").is_err());
        assert!(with("[dependencies.libm]\n").is_err());
        assert!(with("[target.'cfg(unix)'.dependencies]\nlibc = \"1\"\n").is_err());
        assert!(with("[build-dependencies]\ncc = \"1\"\n").is_err());
    }
}
