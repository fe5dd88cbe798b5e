//! No file names a directory that exists only on the machine where it was written.

use crate::tree::Tree;

/// The roots of such directories, put together from halves so that this file obeys its own rule.
const ROOTS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in &tree.files {
        for (number, line) in file.text.lines().enumerate() {
            for root in ROOTS.iter().filter(|root| names(line, root)) {
                let path = &file.path;
                found.push(format!("{path}:{}: `{root}` is a place on one machine", number + 1));
            }
        }
    }
    found
}

/// Whether the line has a path that begins there, rather than one that goes through such a name.
fn names(line: &str, root: &str) -> bool {
    line.match_indices(root).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "_-.~*}>".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_path_of_a_machine_is_found() {
        for root in ROOTS {
            let text = format!("fine\nsee {root}me/notes or file://{root}x\n");
            assert_eq!(check(&tree(&[("a.md", &text)])).len(), 1, "{root}");
        }
    }

    #[test]
    fn a_path_that_only_passes_such_a_name_is_not() {
        let text = format!("docs{}page and ~{}x and /etc/standpipe/\n", ROOTS[0], ROOTS[2]);
        assert!(check(&tree(&[("a.md", &text)])).is_empty());
    }
}
