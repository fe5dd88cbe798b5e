//! Conversion of the library's errors to failures: exit code, messages, problem object.

use serde_json::json;
use standpipe::config::{ConfigError, Problem};
use standpipe::{Error, Reason, Refused};

use crate::exit::Exit;
use crate::failure::{Failure, Message, split_hint};
use crate::show::when;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Refused(refused) => refusal(&refused),
            Error::LeaseGone { ref lease } => {
                let pool = json!(lease.pool().as_str());
                from_text(Exit::NoLease, "lease_gone", &text).with("pool", pool)
            }
            Error::NoLimits { ref pool } => {
                from_text(Exit::Config, "no_limits", &text).with("pool", json!(pool.as_str()))
            }
            Error::Config(error) => Self::from(error),
            Error::Invalid { what, remedy } => Self::usage(&what, &remedy),
            Error::Store(_) => {
                from_text(Exit::Store, "store", &text).with("reason", json!("store"))
            }
            _ => from_text(Exit::Internal, "internal", &text),
        }
    }
}

impl From<ConfigError> for Failure {
    /// All problems of a file at once.
    fn from(error: ConfigError) -> Self {
        let messages = error.problems.iter().map(message).collect();
        let all: Vec<_> = error.problems.iter().map(object).collect();
        let mut failure = from_text(Exit::Config, "config", &error.to_string());
        failure.messages = messages;
        failure.with("problems", json!(all))
    }
}

/// Formats a problem as `FILE:LINE: what`, and its remedy as the hint.
fn message(problem: &Problem) -> Message {
    let whole = problem.to_string();
    let what = whole.strip_suffix(&format!("; {}", problem.remedy)).unwrap_or(&whole);
    Message::new(what, &problem.remedy)
}

fn object(problem: &Problem) -> serde_json::Value {
    json!({
        "file": problem.file.as_ref().map(|file| file.display().to_string()),
        "line": problem.line,
        "detail": problem.what,
        "hint": problem.remedy,
    })
}

/// Converts an error text of the library, whose part after the first semicolon is the hint.
fn from_text(exit: Exit, kind: &str, text: &str) -> Failure {
    let (what, remedy) = split_hint(text);
    Failure::new(exit, kind, what, remedy)
}

/// What is wrong and, for a caller that waits no longer, what to do. `text` describes the refusal.
fn not_admitted(refused: &Refused, holders: Option<&str>, text: &str) -> Message {
    let Some(remedy) = refused.loss_remedy() else { return without_loss(refused, holders, text) };
    let rest = without_loss(refused, holders, &text.replace(&format!("; {remedy}"), ""));
    Message::new(rest.what(), &format!("{remedy}; else {}", rest.hint()))
}

/// The same without what to do about a lost ledger.
fn without_loss(refused: &Refused, holders: Option<&str>, text: &str) -> Message {
    let (what, hint) = split_hint(text);
    let at = refused.when();
    if refused.is_terminal() {
        // The hint names `standpipe resume` already.
        let wait = format!("; {}", when::when(&at));
        let is_named = at.waiting_for.is_some();
        let shorter = hint.strip_suffix(wait.as_str()).filter(|_| is_named);
        return Message::new(what, shorter.unwrap_or(hint));
    }
    if at.not_before.is_some() {
        return Message::new(what, &format!("ask again {hint}{}", sooner(refused)));
    }
    if at.until.is_some() {
        return Message::new(what, &format!("{hint}{}", sooner(refused)));
    }
    let Some(event) = at.waiting_for else { return Message::new(what, hint) };
    let holders = match holders {
        Some(holders) => holders.to_owned(),
        None => format!("it has to wait for {event}"),
    };
    let (_, more) = split_hint(hint);
    let more = if more.is_empty() { String::new() } else { format!("{more}; ") };
    let to_do = format!("give a longer --timeout, or see: standpipe status {}", refused.pool);
    Message::new(what, &format!("{holders}; {more}{to_do}"))
}

/// What else a caller can do that is admitted at a known instant.
fn sooner(refused: &Refused) -> String {
    // The budget refills with other calls; a call that waits longer is refused all the same.
    if refused.waited_for.unwrap_or(refused.reason) == Reason::RetryBudget {
        return String::new();
    }
    let is_paused = refused.waited_for.unwrap_or(refused.reason) == Reason::Pause;
    if !is_paused {
        return ", or give a longer --timeout".to_owned();
    }
    let by_provider = refused.paused.as_ref().is_some_and(|cause| cause.refusal.is_some());
    let risk = if by_provider { ", but the provider may refuse again" } else { "" };
    let pool = &refused.pool;
    format!(", or give a longer --timeout; `standpipe resume {pool}` ends the pause{risk}")
}

/// Converts a refusal.
pub(crate) fn refusal(refused: &Refused) -> Failure {
    refusal_beside(refused, None)
}

/// Converts a refusal of a call that waits for others to end; `holders` are whose they are.
pub(crate) fn refusal_beside(refused: &Refused, holders: Option<&str>) -> Failure {
    let (exit, kind) = match refused.reason {
        Reason::Never => (Exit::NeverFits, "never"),
        Reason::Terminal => (Exit::Stopped, "terminal"),
        Reason::QueueFull => (Exit::NotInTime, "queue_full"),
        _ => (Exit::NotInTime, "not_in_time"),
    };
    let at = refused.when();
    let after = at.until_ms.or(at.not_before_ms);
    let utc = refused.to_string();
    let mut failure = from_text(exit, kind, &utc);
    // People read the time of this machine; the problem object has UTC, and the same action.
    failure.messages = vec![not_admitted(refused, holders, &when::refused(refused))];
    let failure = failure.with("hint", json!(not_admitted(refused, holders, &utc).hint()));
    let failure = failure
        .with("pool", json!(refused.pool.as_str()))
        .with("reason", json!(refused.reason.as_str()))
        .with("waited_for", json!(refused.waited_for.map(Reason::as_str)))
        .with("limit", json!(refused.limit))
        .with("short_by", json!(refused.short_by))
        .with("by_cap", json!(refused.by_cap))
        .with("until", json!(at.until))
        .with("not_before", json!(at.not_before))
        .with("waiting_for", json!(at.waiting_for))
        .with("retry_after_ms", json!(after))
        .with("position", json!(refused.position));
    let failure = match &refused.behind {
        Some(agent) => failure.with("behind", json!(agent)),
        None => failure,
    };
    match &refused.backpressure {
        Some(throttled) => failure.with("backpressure", json!(throttled)),
        None => failure,
    }
}
