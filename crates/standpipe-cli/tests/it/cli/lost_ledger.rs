//! A ledger that is deleted is lost, not new: the views say so, and what to do.

use crate::support::{Home, Ran};

const RESET: &str = "if no call is running: standpipe store reset my/slots --yes";

/// A pool that was used, and whose file is gone.
fn lost() -> Home {
    let home = Home::new();
    let limits = ["--limit", "parallel=1", "--limit", "requests=10/10min"];
    let hold = ["hold", "my/slots", "--as", "blog", "-q"];
    let all = hold.into_iter().chain(limits).chain(["--", "true"]);
    home.run(all).printed();
    std::fs::remove_file(home.path.join("state/pools/my+slots.pool")).unwrap();
    home
}

fn flat(ran: &Ran) -> String {
    format!("{} {}", ran.out, ran.err).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(text: &str, all: &[&str]) {
    for words in all {
        assert!(text.contains(words), "`{words}` is missing in {text}");
    }
}

#[test]
fn b4_a_ledger_that_is_gone_is_named_before_a_call_makes_a_new_one() {
    let home = lost();
    for status in [&["status"][..], &["status", "my/slots"]] {
        let text = flat(&home.run(status.iter().copied()));
        says(&text, &["my/slots LEDGER LOST", "pools/my+slots.pool is gone", "10 min", RESET]);
    }
    let json = home.run(["status", "--json"]).json();
    assert_eq!(json["lost"][0]["pool"], "my/slots", "{json}");
    let check = home.run(["status", "--check"]);
    assert_eq!(check.code, Some(75), "{check:?}");
    says(&check.err, &["standpipe: `my/slots`: its ledger", RESET]);
    let doctor = home.run(["doctor"]);
    assert_eq!(doctor.code, Some(69), "{doctor:?}");
    says(&flat(&doctor), &["ledgers failure `my/slots`: its ledger", RESET]);
    let file = home.path.join("state/pools/my+slots.pool");
    assert!(!file.exists(), "the views make no ledger");
    home.run(["store", "reset", "my/slots", "--yes"]).printed();
    assert!(home.run(["status"]).printed().contains("No pools yet"));
}

#[test]
fn b5_a_call_that_times_out_after_a_loss_names_what_counts_as_full_and_the_way_out() {
    let home = lost();
    let limit = ["--limit", "parallel=1", "--", "true"];
    let hold = ["hold", "my/slots", "--as", "blog", "--timeout", "0"];
    let late = home.run(hold.into_iter().chain(limit));
    assert_eq!(late.code, Some(75), "{late:?}");
    let hint = format!("hint: {RESET}; else ask again in 10 min");
    says(&late.err, &["(slots count as full until ", &hint]);
    let status = flat(&home.run(["status", "my/slots"]));
    says(&status, &["the store lost the ledger: its slots count as full until", RESET]);
    says(&flat(&home.run(["doctor"])), &["slots count as full for another", RESET]);
}
