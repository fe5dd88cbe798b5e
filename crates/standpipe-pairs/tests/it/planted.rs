//! Bugs that are planted in the processes: a referee that finds nothing would pass every pair.

use std::path::Path;

use standpipe_pairs::drive::{self, Verdict};

fn run(words: &[&str], until: Option<&str>) -> Result<Verdict, String> {
    drive::without_faults(Path::new(env!("CARGO_BIN_EXE_pairs")), 7, words, until)
}

const OVER: &str = "the provider saw: over on pairs/window";

fn has(verdict: &Verdict, text: &str) -> bool {
    verdict.broken.iter().any(|broken| broken.contains(text))
}

#[test]
fn without_a_bug_nothing_is_found() {
    let verdict = run(&[], None).unwrap();
    assert_eq!(verdict.broken, Vec::<String>::new());
    assert!(verdict.granted > 0 && verdict.seen > 0, "{verdict:?}");
}

#[test]
fn a_call_without_a_lease_is_found() {
    let verdict = run(&["bug=no-lease"], Some("without a grant")).unwrap();
    assert!(has(&verdict, "without a grant"), "{verdict:?}");
}

#[test]
fn a_call_after_the_commit_is_found() {
    let verdict = run(&["bug=after-commit"], Some("a second time")).unwrap();
    assert!(has(&verdict, "a second time"), "{verdict:?}");
}

/// Each process has a ledger of its own, so each of them uses the whole limit.
#[test]
fn a_ledger_that_is_not_shared_is_found() {
    let verdict = run(&["bug=own-ledger"], Some(OVER)).unwrap();
    let by_callers = |text: &String| text.starts_with("over on pairs/window");
    assert!(verdict.broken.iter().any(by_callers), "{verdict:?}");
    assert!(has(&verdict, OVER), "{verdict:?}");
    assert!(verdict.over > 0, "the provider counted nothing over its limits: {verdict:?}");
}
