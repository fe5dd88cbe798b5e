//! README.md as a newcomer plays it: from top to bottom, in one home, with the built programs. What
//! a command leaves is there for the next one.
//!
//! `cargo install` is replaced by the program that was built. `bindings/python/tests` runs the
//! Python.

use std::collections::BTreeSet;

use super::commands::{Reader, steps};
use super::page::text;

/// For a command of README.md, in their order: what it prints, and what `standpipe status` shows
/// afterwards.
const STEPS: &[(&str, &str, &[&str])] = &[
    (
        "for i in 1 2 3; do standpipe hold my/slots",
        ":",
        &["my/slots", "active", "0 of 1 in flight"],
    ),
    ("for i in 1 2 3 4 5 6; do standpipe hold web/api", ":", &["web/api", "usable 4"]),
    ("standpipe hold my/jobs", "waiting · 1 in flight · 1 waiting", &["my/jobs", "active"]),
    ("standpipe run --as blog", "done", &["my/slots"]),
    ("lease=$(standpipe reserve my/api", "", &["my/slots", "my/api", "900 of"]),
];

#[test]
fn the_readme_works_from_top_to_bottom_in_one_home() {
    let steps = steps("README.md");
    let home = Reader::new(&steps);
    let version = text(&home.runs("standpipe --version").stdout);
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
    assert!(version.contains(", semantics "), "docs/upgrade.md compares it: {version}");
    let begins: Vec<&str> = STEPS.iter().map(|(begins, ..)| *begins).collect();
    assert_eq!(steps.len(), STEPS.len(), "README.md has other commands than {begins:?}");
    for (step, (begins, prints, shows)) in steps.iter().zip(STEPS) {
        assert!(step.starts_with(begins), "{step} is not {begins}");
        let ran = home.runs(step);
        assert!(ran.status.success(), "{step}: {ran:?}");
        let printed = text(&ran.stdout);
        assert!(printed.contains(prints), "{step}: {ran:?}");
        if step.contains("sleep 1' &") {
            // One copy runs at a time, each for a second, so no two start in the same one.
            let starts: BTreeSet<&str> = printed.lines().collect();
            assert_eq!(starts.len(), 3, "{step}: {printed}");
        }
        let status = text(&home.runs("standpipe status").stdout);
        for word in *shows {
            assert!(status.contains(word), "after {step}: no {word} in\n{status}");
        }
    }
    let all = text(&home.runs("standpipe status --json").stdout);
    assert!(!all.contains("\"in_flight\":1"), "nothing is left in flight: {all}");
    let doctor = home.runs("standpipe doctor");
    assert!(doctor.status.success(), "{doctor:?}");
}
