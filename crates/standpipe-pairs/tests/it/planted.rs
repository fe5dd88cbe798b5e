//! Bugs that are planted in the processes: a referee that finds nothing would pass every pair.

use std::path::Path;

use standpipe_pairs::drive::{self, Verdict};
use standpipe_pairs::fault::file::Act;
use standpipe_pairs::setup::Extra;
use standpipe_pairs::simulated::{self, Bug};

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

/// Each process has a day of its own.
#[test]
fn a_day_that_is_not_shared_is_found() {
    let verdict = run(&["bug=own-ledger"], Some("over on pairs/day")).unwrap();
    assert!(has(&verdict, "over on pairs/day"), "{verdict:?}");
}

/// Runs pairs in virtual time with a bug until the referee finds it; without the bug it finds
/// nothing in the same pairs.
fn is_found(pair: (Act, Act), extra: Extra, bug: Bug, text: &str) {
    let found = (1..=20).any(|seed| {
        let run = |bug| simulated::run_with(pair.0, pair.1, seed, extra, bug);
        assert_eq!(run(None).broken, Vec::<String>::new(), "seed {seed}");
        has(&run(Some(bug)), text)
    });
    assert!(found, "{bug:?} was not found");
}

#[test]
fn background_beyond_the_pace_is_found() {
    let pair = (Act::Kill, Act::OtherBootId);
    is_found(pair, Extra::Spread, Bug::Unpaced, "background on pairs/long");
    is_found(pair, Extra::Spread, Bug::Unpaced, "background on pairs/paced");
}

#[test]
fn an_order_without_weights_is_found() {
    is_found((Act::Kill, Act::OtherBootId), Extra::Fair, Bug::Unweighted, "differ by");
}

#[test]
fn a_call_that_does_not_draw_on_the_parent_is_found() {
    is_found((Act::Kill, Act::Kill), Extra::Within, Bug::NoParent, "over on pairs/parent");
}

#[test]
fn a_lease_left_on_the_parent_is_found() {
    is_found((Act::Kill, Act::Kill), Extra::Within, Bug::ParentUnsettled, "of 12 on pairs/parent");
}

#[test]
fn a_charge_that_is_not_dated_to_the_last_grant_is_found() {
    is_found((Act::Kill, Act::Kill), Extra::Within, Bug::Undated, "by their grants");
}

/// An older ledger does not excuse that a death is not noticed which the machine shows.
#[test]
fn a_death_that_is_not_noticed_is_found() {
    for pair in [(Act::Kill, Act::Kill), (Act::Restore, Act::Kill)] {
        is_found(pair, Extra::Fair, Bug::DeathUnnoticed, "on pairs/slots in vain");
    }
}
