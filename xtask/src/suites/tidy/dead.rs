//! Every source file is part of its crate: its parent has a `mod` line for it.

use crate::source;
use crate::tree::{TextFile, Tree};

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let files = tree.sources().filter(|file| !is_root(file) && !is_declared(tree, file));
    files.map(|file| format!("{}: no `mod` line leads to it", file.path)).collect()
}

/// Whether the compiler begins with this file.
fn is_root(file: &TextFile) -> bool {
    let inside = file.path.split_once("/src/").map_or("", |(_, inside)| inside);
    matches!(inside, "lib.rs" | "main.rs") || inside.starts_with("bin/")
}

fn is_declared(tree: &Tree, file: &TextFile) -> bool {
    let path =
        file.path.strip_suffix("/mod.rs").unwrap_or_else(|| file.path.trim_end_matches(".rs"));
    let Some((directory, stem)) = path.rsplit_once('/') else { return false };
    let parents = if directory.ends_with("/src") {
        [format!("{directory}/lib.rs"), format!("{directory}/main.rs")]
    } else {
        [format!("{directory}.rs"), format!("{directory}/mod.rs")]
    };
    parents.iter().filter_map(|parent| tree.file(parent)).any(|parent| declares(&parent.text, stem))
}

fn declares(text: &str, stem: &str) -> bool {
    let code = source::mask(text);
    let line = format!("mod {stem};");
    source::word_positions(&code, line.trim_end_matches(';'))
        .any(|at| code[at..].starts_with(&line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_file_without_a_mod_line_is_found() {
        let files = [
            ("crates/a/src/lib.rs", "// mod b;\nmod c;\n"),
            ("crates/a/src/b.rs", ""),
            ("crates/a/src/c.rs", "mod other;"),
            ("crates/a/src/c/d.rs", ""),
        ];
        let found = check(&tree(&files));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/b.rs"));
    }

    #[test]
    fn those_with_one_are_not() {
        let files = [
            ("crates/a/src/lib.rs", "pub mod b;\n#[cfg(test)]\nmod e;\n"),
            ("crates/a/src/b.rs", "pub(crate) mod c;\n"),
            ("crates/a/src/b/c.rs", ""),
            ("crates/a/src/e/mod.rs", "mod f;\n"),
            ("crates/a/src/e/f.rs", ""),
            ("crates/a/src/bin/tool.rs", ""),
            ("crates/a/tests/it.rs", ""),
        ];
        assert_eq!(check(&tree(&files)), [""; 0]);
    }
}
