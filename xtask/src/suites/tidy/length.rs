//! No source file is longer than 500 lines, its tests not counted.

use crate::source;
use crate::tree::{TextFile, Tree};

const LONGEST: usize = 500;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let files = tree.sources().filter(|file| file.is_capped() && !file.is_tests());
    files.filter_map(long).collect()
}

fn long(file: &TextFile) -> Option<String> {
    let lines = source::without_tests(&source::mask(&file.text)).lines().count();
    let path = &file.path;
    (lines > LONGEST)
        .then(|| format!("{path}: {lines} lines without tests; at most {LONGEST}: split it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_long_file_is_found() {
        let long = "x;\n".repeat(LONGEST + 1);
        assert_eq!(check(&tree(&[("crates/a/src/b.rs", &long)])).len(), 1);
    }

    #[test]
    fn one_that_is_long_by_its_tests_is_not() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "x;\n".repeat(LONGEST));
        let both = "x;\n".repeat(LONGEST) + &tests;
        let files = [("crates/a/src/b.rs", both.as_str()), ("crates/a/src/b/tests.rs", &both)];
        assert!(check(&tree(&files)).is_empty());
    }
}
