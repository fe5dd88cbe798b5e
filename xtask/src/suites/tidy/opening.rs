//! Every Rust file opens with `//!`: what it is for.

use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let without = tree.rust().filter(|file| !file.text.starts_with("//! "));
    without.map(|file| format!("{}: open it with `//!` and its purpose", file.path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_file_without_a_purpose_is_found() {
        let files = [("a.rs", "use b;\n"), ("c.rs", "// Purpose.\n"), ("d.rs", "")];
        assert_eq!(check(&tree(&files)).len(), 3);
    }

    #[test]
    fn one_with_a_purpose_is_not() {
        let files = [("a.rs", "//! Purpose.\n#![no_std]\n"), ("b.md", "text")];
        assert!(check(&tree(&files)).is_empty());
    }
}
