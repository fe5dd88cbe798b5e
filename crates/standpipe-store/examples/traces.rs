//! Runs the golden traces and compares their digests with the stored ones.
//!
//! `--write` stores the present digests. It rejects a changed digest of an existing trace unless
//! the semantics number grew, because the digests exist to expose exactly that change.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use standpipe_core::SEMANTICS;
use standpipe_store::trace::{self, CoreLedger, Digests, TraceError};

fn main() -> ExitCode {
    let write = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--write") => true,
        Some(other) => {
            let _ = writeln!(io::stderr(), "unknown argument {other}; the only one is --write");
            return ExitCode::from(2);
        }
    };
    match digests().and_then(|now| if write { store(now) } else { compare(&now) }) {
        Ok(message) => {
            let _ = writeln!(io::stdout(), "{message}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

fn digests() -> Result<Digests, String> {
    let loaded = trace::load_all().map_err(|error| error.to_string())?;
    let digest = |golden: trace::Trace| -> Result<(String, String), TraceError> {
        let digest = trace::run(&golden, &mut CoreLedger::default())?;
        Ok((golden.name, digest))
    };
    let (passed, failed): (Vec<_>, Vec<_>) =
        loaded.into_iter().map(digest).partition(Result::is_ok);
    let failed: Vec<String> =
        failed.into_iter().filter_map(Result::err).map(|m| m.to_string()).collect();
    if !failed.is_empty() {
        return Err(failed.join("\n"));
    }
    let traces: BTreeMap<_, _> = passed.into_iter().filter_map(Result::ok).collect();
    Ok(Digests { semantics: SEMANTICS, traces })
}

fn stored() -> Result<Digests, String> {
    match fs::read_to_string(trace::directory().join("digests.json")) {
        Ok(text) => Digests::read(&text).map_err(|wrong| format!("digests.json: {wrong}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Digests::default()),
        Err(error) => Err(format!("digests.json cannot be read: {error}")),
    }
}

fn compare(now: &Digests) -> Result<String, String> {
    let differences = stored()?.differences(now);
    if differences.is_empty() {
        return Ok(format!("{} traces match the stored digests", now.traces.len()));
    }
    Err(differences.join("\n"))
}

fn store(now: Digests) -> Result<String, String> {
    let count = now.traces.len();
    let updated = stored()?.updated(now).map_err(|changed| {
        format!(
            "these traces have another digest than before: {}\nbump SEMANTICS in \
             standpipe-core, then store the digests; if a trace itself was changed, give it a new \
             name",
            changed.join(", ")
        )
    })?;
    let path = trace::directory().join("digests.json");
    fs::write(path, updated.show()).map_err(|error| format!("digests.json: {error}"))?;
    Ok(format!("{count} digests written for semantics {SEMANTICS}"))
}
