//! Nothing unfinished is kept: no notes to self, no placeholders, no test that is switched off.
//!
//! The words themselves are put together from halves here, so that this file obeys its own rule.

use crate::source;
use crate::tree::Tree;

/// Notes to self; banned in every file.
const NOTES: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Code that is not meant to stay; banned in Rust.
const CODE: [&str; 4] = [
    concat!("db", "g!"),
    concat!("to", "do!"),
    concat!("unimp", "lemented!"),
    concat!("#[ig", "nore"),
];

pub(super) fn check(tree: &Tree) -> Vec<String> {
    let mut found = Vec::new();
    for file in &tree.files {
        for note in NOTES {
            let places = source::word_positions(&file.text, note);
            found.extend(places.map(|at| tell(&file.path, &file.text, at, note)));
        }
        if !file.is("rs") {
            continue;
        }
        let code = source::mask(&file.text);
        for word in CODE {
            let places = source::word_positions(&code, word);
            found.extend(places.map(|at| tell(&file.path, &code, at, word)));
        }
    }
    found
}

fn tell(path: &str, text: &str, at: usize, word: &str) -> String {
    format!("{path}:{}: `{word}`: finish it, or make it an issue", source::line_of(text, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn each_word_is_found() {
        for note in NOTES {
            let text = format!("one\n// {note}(me): two\n");
            assert_eq!(check(&tree(&[("a.md", &text)])).len(), 1, "{note}");
        }
        for word in CODE {
            let text = format!("fn a() {{ {word} }}\n");
            assert_eq!(check(&tree(&[("a.rs", &text)])).len(), 1, "{word}");
        }
    }

    #[test]
    fn longer_words_and_literals_are_not() {
        let text = "let mastodon = \"a TODOlist\";\nlet message = \"dbg!(x)\"; // todo! later\n";
        assert!(check(&tree(&[("a.rs", text)])).is_empty());
    }
}
