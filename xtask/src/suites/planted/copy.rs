//! A copy of the project for the planted bugs, kept between runs so that little is built again.

use std::collections::BTreeMap;
use std::path::Path;

use crate::context::Context;
use crate::tree;

/// Makes the copy equal to the project, except for the given files, whose text is given. A file
/// that is right already is not written, so cargo sees only what changed.
pub(super) fn all(
    context: &Context,
    copy: &Path,
    changed: &BTreeMap<String, String>,
) -> Result<(), String> {
    let paths = tree::paths(context)?;
    for path in &paths {
        let text = match changed.get(path) {
            Some(text) => text.clone().into_bytes(),
            None => read(&context.root.join(path))?,
        };
        let there = copy.join(path);
        if std::fs::read(&there).is_ok_and(|old| old == text) {
            continue;
        }
        let directory = there.parent().unwrap_or(copy);
        std::fs::create_dir_all(directory)
            .and_then(|()| std::fs::write(&there, text))
            .map_err(|error| format!("cannot write {}: {error}", there.display()))?;
    }
    remove_others(copy, copy, &paths)
}

/// Removes what an earlier run copied or a failing test wrote, but not what cargo built.
fn remove_others(copy: &Path, directory: &Path, paths: &[String]) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let Ok(inside) = path.strip_prefix(copy) else { continue };
        let inside = inside.to_string_lossy().replace('\\', "/");
        if inside == "target" || inside == "Cargo.lock" {
            continue;
        }
        if path.is_dir() {
            remove_others(copy, &path, paths)?;
        } else if paths.binary_search(&inside).is_err() {
            std::fs::remove_file(&path).map_err(fail)?;
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}
