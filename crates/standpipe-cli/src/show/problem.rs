//! What the library could not do, as a failure of a command: its code, its line, its object.

use serde_json::json;
use standpipe::config::{ConfigError, Problem};
use standpipe::{Error, Reason, Refused};

use crate::exit::Exit;
use crate::failure::{Failure, one_line};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Refused(refused) => refusal(&refused),
            Error::LeaseGone { ref lease } => {
                let pool = json!(lease.pool().as_str());
                said(Exit::NoLease, "lease_gone", &text).with("pool", pool)
            }
            Error::NoLimits { ref pool } => {
                said(Exit::Config, "no_limits", &text).with("pool", json!(pool.as_str()))
            }
            Error::Config(error) => Self::from(error),
            Error::Invalid { what, remedy } => Self::usage(&what, &remedy),
            Error::Store(_) => said(Exit::Store, "store", &text).with("reason", json!("store")),
            _ => said(Exit::Internal, "internal", &text),
        }
    }
}

impl From<ConfigError> for Failure {
    /// All problems at once, a line for each.
    fn from(error: ConfigError) -> Self {
        let lines = error.problems.iter().map(|problem| one_line(&problem.to_string()));
        let all: Vec<_> = error.problems.iter().map(object).collect();
        let mut failure = said(Exit::Config, "config", &error.to_string());
        failure.lines = lines.collect();
        failure.with("problems", json!(all))
    }
}

fn object(problem: &Problem) -> serde_json::Value {
    json!({
        "file": problem.file.as_ref().map(|file| file.display().to_string()),
        "line": problem.line,
        "detail": problem.what,
        "hint": problem.remedy,
    })
}

/// A sentence of the library's, whose part after the semicolon says what to do.
fn said(exit: Exit, kind: &str, text: &str) -> Failure {
    let (what, remedy) = text.split_once("; ").unwrap_or((text, ""));
    Failure::new(exit, kind, what, remedy)
}

/// A call that may not be made.
pub(crate) fn refusal(refused: &Refused) -> Failure {
    let (exit, kind) = match refused.reason {
        Reason::Never => (Exit::NeverFits, "never"),
        Reason::Terminal => (Exit::Stopped, "terminal"),
        Reason::QueueFull => (Exit::NotInTime, "queue_full"),
        _ => (Exit::NotInTime, "not_in_time"),
    };
    let when = refused.when();
    let after = when.until_ms.or(when.not_before_ms);
    let failure = said(exit, kind, &refused.to_string())
        .with("pool", json!(refused.pool.as_str()))
        .with("reason", json!(refused.reason.as_str()))
        .with("waited_for", json!(refused.waited_for.map(Reason::as_str)))
        .with("limit", json!(refused.limit))
        .with("short_by", json!(refused.short_by))
        .with("until", json!(when.until))
        .with("not_before", json!(when.not_before))
        .with("waiting_for", json!(when.waiting_for))
        .with("retry_after_ms", json!(after))
        .with("position", json!(refused.position));
    match &refused.backpressure {
        Some(told) => failure.with("backpressure", json!(told)),
        None => failure,
    }
}
