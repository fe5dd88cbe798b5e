//! The golden traces, told to the bare core; and their digests, as they were written down.

use std::collections::BTreeMap;
use std::fs;

use standpipe_core::SEMANTICS;
use standpipe_store::trace::{self, Bare, Digests};

#[test]
fn every_story_comes_out_as_it_says() {
    let stories = trace::stories().unwrap_or_else(|mistake| panic!("{mistake}"));
    let runs = stories.iter().map(|story| trace::run(story, &mut Bare::default()));
    let mistakes: Vec<String> =
        runs.filter_map(|run| run.err().map(|mistake| mistake.to_string())).collect();
    assert!(mistakes.is_empty(), "\n{}\n", mistakes.join("\n"));
    assert!(stories.len() > 40, "only {} stories were found", stories.len());
}

#[test]
fn every_story_has_the_digest_that_was_written_down() {
    let stories = trace::stories().unwrap_or_else(|mistake| panic!("{mistake}"));
    let mut traces = BTreeMap::new();
    for story in stories {
        if let Ok(digest) = trace::run(&story, &mut Bare::default()) {
            traces.insert(story.name, digest);
        }
    }
    let path = trace::directory().join("digests.json");
    let text = fs::read_to_string(&path).expect("spec/traces/digests.json can be read");
    let kept = Digests::read(&text).expect("spec/traces/digests.json");
    let differences = kept.differences(&Digests { semantics: SEMANTICS, traces });
    assert!(differences.is_empty(), "\n{}\n", differences.join("\n"));
}
