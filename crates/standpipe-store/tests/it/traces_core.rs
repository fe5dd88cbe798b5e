//! The golden traces on the core alone, and their stored digests.

use std::collections::BTreeMap;
use std::fs;

use standpipe_core::SEMANTICS;
use standpipe_store::trace::{self, CoreLedger, Digests};

#[test]
fn every_story_comes_out_as_it_says() {
    let loaded = trace::load_all().unwrap_or_else(|error| panic!("{error}"));
    let runs = loaded.iter().map(|trace| trace::run(trace, &mut CoreLedger::default()));
    let errors: Vec<String> =
        runs.filter_map(|run| run.err().map(|error| error.to_string())).collect();
    assert!(errors.is_empty(), "\n{}\n", errors.join("\n"));
    assert!(loaded.len() > 40, "only {} traces were found", loaded.len());
}

#[test]
fn every_story_has_the_digest_that_was_written_down() {
    let loaded = trace::load_all().unwrap_or_else(|error| panic!("{error}"));
    let mut traces = BTreeMap::new();
    for golden in loaded {
        if let Ok(digest) = trace::run(&golden, &mut CoreLedger::default()) {
            traces.insert(golden.name, digest);
        }
    }
    let path = trace::directory().join("digests.json");
    let text = fs::read_to_string(&path).expect("spec/traces/digests.json can be read");
    let stored = Digests::read(&text).expect("spec/traces/digests.json");
    let differences = stored.differences(&Digests { semantics: SEMANTICS, traces });
    assert!(differences.is_empty(), "\n{}\n", differences.join("\n"));
}
