//! Runs the golden traces and compares their digests with those written down.
//!
//! `--write` writes them down anew. It refuses to change the digest of a story that was there
//! before unless the semantics number grew: that change is what the digests are there to show.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use standpipe_core::SEMANTICS;
use standpipe_store::trace::{self, Bare, Digests, Mistake};

fn main() -> ExitCode {
    let write = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--write") => true,
        Some(other) => {
            let _ = writeln!(io::stderr(), "unknown argument {other}; there is only --write");
            return ExitCode::from(2);
        }
    };
    match digests().and_then(|now| if write { write_down(now) } else { compare(&now) }) {
        Ok(told) => {
            let _ = writeln!(io::stdout(), "{told}");
            ExitCode::SUCCESS
        }
        Err(wrong) => {
            let _ = writeln!(io::stderr(), "{wrong}");
            ExitCode::FAILURE
        }
    }
}

fn digests() -> Result<Digests, String> {
    let stories = trace::stories().map_err(|mistake| mistake.to_string())?;
    let digest = |story: trace::Story| -> Result<(String, String), Mistake> {
        let digest = trace::run(&story, &mut Bare::default())?;
        Ok((story.name, digest))
    };
    let traces: Result<BTreeMap<_, _>, _> = stories.into_iter().map(digest).collect();
    Ok(Digests { semantics: SEMANTICS, traces: traces.map_err(|mistake| mistake.to_string())? })
}

fn kept() -> Result<Digests, String> {
    match fs::read_to_string(trace::directory().join("digests.json")) {
        Ok(text) => Digests::read(&text).map_err(|wrong| format!("digests.json: {wrong}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Digests::default()),
        Err(error) => Err(format!("digests.json cannot be read: {error}")),
    }
}

fn compare(now: &Digests) -> Result<String, String> {
    let differences = kept()?.differences(now);
    if differences.is_empty() {
        return Ok(format!("{} stories, as they were written down", now.traces.len()));
    }
    Err(differences.join("\n"))
}

fn write_down(now: Digests) -> Result<String, String> {
    let count = now.traces.len();
    let updated = kept()?.updated(now).map_err(|changed| {
        format!(
            "these come out otherwise than before: {}\nbump SEMANTICS in standpipe-core, then \
             write them down; if a story itself was changed, give it a new name",
            changed.join(", ")
        )
    })?;
    let path = trace::directory().join("digests.json");
    fs::write(path, updated.show()).map_err(|error| format!("digests.json: {error}"))?;
    Ok(format!("{count} digests written for semantics {SEMANTICS}"))
}
