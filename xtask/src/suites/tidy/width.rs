//! Lines of code and of manifests are at most 100 columns wide.

use crate::tree::Tree;

const WIDEST: usize = 100;

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in tree.files.iter().filter(|file| file.is("rs") || file.is("toml")) {
        for (number, line) in file.text.lines().enumerate() {
            let width = line.chars().count();
            if width > WIDEST {
                let path = &file.path;
                found.push(format!("{path}:{}: {width} columns; at most {WIDEST}", number + 1));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_wide_line_is_found() {
        let wide = format!("short\n{}\n", "x".repeat(WIDEST + 1));
        let found = check(&tree(&[("a.rs", &wide), ("b.toml", &wide)]));
        assert_eq!(found[0], "a.rs:2: 101 columns; at most 100");
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn one_that_just_fits_and_prose_are_not() {
        let just = "é".repeat(WIDEST);
        let prose = "word ".repeat(WIDEST);
        assert!(check(&tree(&[("a.rs", &just), ("a.md", &prose)])).is_empty());
    }
}
