//! House rules that a machine can check: one file per rule, each a function of the files' text.
//!
//! What a rule finds is a list of lines for people: where it is, what is wrong, what to do.

mod dead;
mod edges;
mod functions;
mod length;
mod lock;
mod machine;
mod opening;
mod titles;
mod width;
mod words;

use crate::context::Context;
use crate::report::Report;
use crate::tree::Tree;

/// A rule and its name.
type Rule = (&'static str, fn(&Tree) -> Vec<String>);

const RULES: &[Rule] = &[
    ("lines are short", width::check),
    ("files open with what they are for", opening::check),
    ("functions are short", functions::check),
    ("files are short", length::check),
    ("no unfinished work", words::check),
    ("no path of a machine", machine::check),
    ("pages have one title", titles::check),
    ("every file is part of its crate", dead::check),
    ("crates depend only downwards", edges::check),
    ("the lock file is kept", lock::check),
];

pub(crate) fn run(context: &Context) -> Result<Report, String> {
    Ok(check(&Tree::read(context)?))
}

fn check(tree: &Tree) -> Report {
    let mut report = Report::default();
    for (name, rule) in RULES {
        let found = rule(tree);
        let why = || format!("{} found\n  {}", found.len(), found.join("\n  "));
        report.count("tidy", name, if found.is_empty() { Ok(()) } else { Err(why()) });
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn each_rule_is_one_test() {
        let good = check(&tree(&[("Cargo.lock", ""), ("a.rs", "//! Purpose.\n")]));
        assert_eq!((good.passed, good.failed()), (RULES.len() as u64, 0), "{good:?}");
        let bad = check(&tree(&[("Cargo.lock", ""), ("a.rs", "fn a() {}\n")]));
        assert_eq!((bad.passed, bad.failed()), (RULES.len() as u64 - 1, 1));
        assert!(bad.failures[0].output.contains("a.rs"), "{bad:?}");
    }
}
