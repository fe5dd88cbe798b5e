//! No function is longer than 70 lines, from its signature to its closing brace.

use crate::source;
use crate::tree::{TextFile, Tree};

const LONGEST: usize = 70;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    tree.sources().filter(|file| file.is_capped()).flat_map(long).collect()
}

fn long(file: &TextFile) -> Vec<String> {
    let functions = source::functions(&source::mask(&file.text));
    let long = functions.into_iter().filter(|function| function.lines > LONGEST);
    let tell = |function: source::Function| {
        let source::Function { name, line, lines } = function;
        format!("{}:{line}: `{name}` has {lines} lines; at most {LONGEST}", file.path)
    };
    long.map(tell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn function(lines: usize) -> String {
        format!("//! Doc.\nfn long() {{\n{}}}\n", "    x(\"}\");\n".repeat(lines - 2))
    }

    #[test]
    fn a_long_function_is_found() {
        let found = check(&tree(&[("xtask/src/a.rs", &function(LONGEST + 1))]));
        assert_eq!(found, ["xtask/src/a.rs:2: `long` has 71 lines; at most 70"]);
    }

    #[test]
    fn one_that_just_fits_and_those_of_tests_are_not() {
        let just = function(LONGEST);
        let long = function(LONGEST + 1);
        let files = [("crates/a/src/b.rs", just.as_str()), ("crates/a/tests/c.rs", long.as_str())];
        assert!(check(&tree(&files)).is_empty());
    }
}
