//! `Cargo.lock` is kept, so that a build of a commit is the same build a year later.

use crate::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    if tree.file("Cargo.lock").is_some() {
        return Vec::new();
    }
    vec!["Cargo.lock: it is missing or ignored; commit it".into()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_missing_lock_file_is_found() {
        assert_eq!(check(&tree(&[("crates/a/Cargo.lock", "")])).len(), 1);
    }

    #[test]
    fn one_that_is_there_is_not() {
        assert!(check(&tree(&[("Cargo.lock", "")])).is_empty());
    }
}
