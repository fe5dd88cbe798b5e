//! Words that may not stand in the core's code, each with the reason and what to use instead.
//!
//! Comments, strings and test modules may say them.

use crate::source;
use crate::tree::Tree;

/// A word, why it is banned, and what to use instead.
const BANNED: &[(&str, &str, &str)] = &[
    ("std", "the core knows no operating system", "`core` or `alloc`"),
    ("HashMap", "its order is chance", "a `BTreeMap` or a sorted `Vec`"),
    ("HashSet", "its order is chance", "a `BTreeSet` or a sorted `Vec`"),
    ("SystemTime", "the core reads no clock", "the `now` that is passed in"),
    ("Instant::now", "the core reads no clock", "the `now` that is passed in"),
    ("f32", "rounding differs", "integers, with the rounding written out"),
    ("f64", "rounding differs", "integers, with the rounding written out"),
    ("thread", "the core is one function of its input", "nothing: the caller has the threads"),
    ("rand", "every replica must decide alike", "a figure that comes with the event"),
    ("unsafe", "nothing here touches the system", "safe code"),
    ("println", "the core does not talk", "a notice in the outcome"),
    ("eprintln", "the core does not talk", "a notice in the outcome"),
];

/// Whether the sources of that crate are free of them.
pub(super) fn check(tree: &Tree, directory: &str) -> Result<(), String> {
    let mut found = Vec::new();
    for file in tree.sources().filter(|file| file.crate_directory() == Some(directory)) {
        if file.is_tests() {
            continue;
        }
        let masked = source::mask(&file.text);
        let code = source::without_tests(&masked);
        for (word, why, instead) in BANNED {
            if source::word_positions(&code, word).next().is_some() {
                let path = &file.path;
                found.push(format!("{path}: `{word}` is banned: {why}; use {instead}"));
            }
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    fn check_text(text: &str) -> Result<(), String> {
        check(&tree(&[("crates/core/src/a.rs", text)]), "crates/core")
    }

    #[test]
    fn each_banned_word_is_found_with_reason_and_replacement() {
        for (word, why, instead) in BANNED {
            let error = check_text(&format!("//! Doc.\nuse a::{word};\n")).unwrap_err();
            assert!(error.contains(word) && error.contains(why) && error.contains(instead));
        }
    }

    #[test]
    fn comments_strings_tests_and_longer_words_are_free() {
        let text = "//! No thread, no std.\n#![no_std]\nlet operand = \"HashMap\";\n\
                    #[cfg(test)]\nmod tests {\n    use std::collections::HashMap;\n}\n";
        assert_eq!(check_text(text), Ok(()));
        let elsewhere = tree(&[("crates/other/src/a.rs", "use std::fs;")]);
        assert_eq!(check(&elsewhere, "crates/core"), Ok(()));
    }
}
