//! What `status` and `explain` print for each reason, as text files.
//!
//! A file `NAME.jsonl` in `tests/snapshots/reasons` is a story in the form of the golden traces.
//! Its last line is the call that `explain` is asked about, at the instant of the view. `NAME.txt`
//! is what is printed then. `STANDPIPE_BLESS=1` rewrites the texts.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant as Local, UNIX_EPOCH};

use standpipe::{PoolStatus, Reason};
use standpipe_core::{Decision, Event, Instant, Outcome, Reserve, State};
use standpipe_observe::explain::Explanation;
use standpipe_observe::time::Now;
use standpipe_store::trace::{Ledger, Trace, run};

use super::style::Style;
use super::{explain, status};

const STYLE: Style = Style { colour: false, unicode: true, width: 80 };
/// 2026-01-31 12:00:00 UTC, when every story begins.
const BEGIN: Duration = Duration::from_secs(1_769_860_800);
/// Reasons that no ledger gives: `tests/it/cli/reasons.rs` has the texts of real processes.
const OF_PROCESSES: [Reason; 1] = [Reason::Deadline];

/// A ledger that remembers the last call it was asked about.
#[derive(Default)]
struct Watched {
    state: State,
    asked: Option<(Reserve, Instant)>,
}

impl Ledger for Watched {
    fn apply(&mut self, event: &Event, now: Instant) -> Result<Outcome, String> {
        Ok(self.state.apply(event, now))
    }

    fn peek(&mut self, reserve: &Reserve, now: Instant) -> Result<Decision, String> {
        self.asked = Some((reserve.clone(), now));
        Ok(self.state.peek(reserve, now))
    }

    fn snapshot(&mut self, _: Instant) -> Result<(), String> {
        Ok(())
    }

    fn bytes(&self) -> Vec<u8> {
        Vec::new()
    }
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/reasons")
}

/// What is printed at the end of a story.
fn printed(file: &Path) -> String {
    let name = file.file_name().unwrap().to_string_lossy();
    let trace = Trace::parse(&name, &fs::read_to_string(file).unwrap());
    let trace = trace.unwrap_or_else(|error| panic!("{error}"));
    let mut ledger = Watched::default();
    run(&trace, &mut ledger).unwrap_or_else(|error| panic!("{error}"));
    let (call, at) = ledger.asked.expect("the last line peeks");
    let state = ledger.state.at(at);
    let system = UNIX_EPOCH + BEGIN + Duration::from_micros(at.0);
    let now = Now { store: at, local: Local::now(), system };
    let pool = "anthropic/sonnet".parse().unwrap();
    let shown = PoolStatus::of(&pool, &state, &now, &|_| None);
    let explanation = Explanation::of(&pool, &state, &call, &now, &|_| None).expect("limits");
    let agent = &call.agent;
    format!(
        "$ standpipe status\n{}\n$ standpipe explain anthropic/sonnet --as {agent} …\n{}",
        status::pools(STYLE, &[shown]),
        explain::text(STYLE, &explanation),
    )
}

#[test]
fn status_and_explain_read_well_for_each_reason() {
    let files = fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut stories: Vec<PathBuf> =
        files.filter(|file| file.extension().is_some_and(|end| end == "jsonl")).collect();
    stories.sort();
    let mut wrong = Vec::new();
    for story in &stories {
        let (text, file) = (printed(story), story.with_extension("txt"));
        let long = text.lines().find(|line| line.chars().count() > STYLE.width);
        assert_eq!(long, None, "{}: a line is too wide", story.display());
        if std::env::var_os("STANDPIPE_BLESS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        if fs::read_to_string(&file).unwrap_or_default() != text {
            wrong.push(format!("{}:\n{text}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for reason in Reason::ALL.into_iter().filter(|reason| !OF_PROCESSES.contains(reason)) {
        let story = directory().join(format!("{}.jsonl", reason.as_str()));
        assert!(story.exists(), "no story for {}", reason.as_str());
    }
}
