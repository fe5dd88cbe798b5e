//! What is wrong with a command line, from the kind of clap's error and what it is about.
//!
//! Guarantee: none of clap's sentences is printed, and no password of a store URL is repeated.

use std::error::Error;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use standpipe::config::nearest;
use standpipe::config::text::quoted;

use super::{cut, redacted};
use crate::failure::split_hint;

/// Describes what is wrong, and what to do if the error contains a remedy.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Described {
    pub(super) what: String,
    pub(super) hint: Option<String>,
}

/// Describes an error about arguments.
pub(super) fn of(error: &clap::Error) -> Described {
    let argument = text(error, ContextKind::InvalidArg).unwrap_or_default();
    let name = name_of(&argument);
    match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let missing = texts(error, ContextKind::InvalidArg);
            let mut missing: Vec<String> = missing.iter().map(|name| name_of(name)).collect();
            missing.sort_by_key(|name| name.starts_with('-'));
            let verb = if missing.len() == 1 { "is" } else { "are" };
            described(&format!("{} {verb} missing", joined(&missing)), None)
        }
        ErrorKind::UnknownArgument => {
            let kind = if argument.starts_with('-') { "unknown option" } else { UNEXPECTED };
            described(&format!("{kind} `{}`", cut(&argument)), None)
        }
        ErrorKind::ArgumentConflict => {
            let others = texts(error, ContextKind::PriorArg);
            if others.iter().all(|other| *other == argument) {
                return described(&format!("{name} is given twice"), Some("give it once"));
            }
            let others: Vec<String> = others.iter().map(|other| name_of(other)).collect();
            let what = format!("{name} cannot be combined with {}", joined(&others));
            described(&what, Some("leave one of them out"))
        }
        ErrorKind::TooManyValues => {
            let hint = format!("write {name} alone");
            described(&format!("{name} takes no value"), Some(&hint))
        }
        ErrorKind::InvalidValue => invalid_value(error, &argument, &name),
        ErrorKind::ValueValidation => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            let (why, hint) = split_hint(&why);
            let value = value(error, &name);
            let why = without_value(why, &value);
            let what = format!("invalid value `{value}` for {name}: {why}");
            let hint = redacted(hint);
            described(&redacted(&what), Some(hint.as_str()).filter(|hint| !hint.is_empty()))
        }
        ErrorKind::InvalidUtf8 => {
            described("an argument is not valid UTF-8", Some("check its encoding"))
        }
        _ => described("the command line cannot be read", None),
    }
}

const UNEXPECTED: &str = "unexpected argument";

/// Removes the value from the reason, and quotes a part of it as all messages of this program do.
fn without_value(why: &str, value: &str) -> String {
    let whole = format!("{} ", quoted(value));
    let why = match why.strip_prefix(&whole) {
        Some(rest) => format!("it {rest}"),
        None => why.to_owned(),
    };
    let (start, end) = why.split_once(" in \"").unwrap_or((&why, ""));
    let repeats = end.strip_suffix('"').is_some_and(|within| value.ends_with(within));
    let why = if repeats { start } else { &why };
    // A quote of the value itself is escaped.
    let parts: Vec<String> = why.split("\\\"").map(|part| part.replace('"', "`")).collect();
    parts.join("\"")
}

/// A value that is none of those that are possible.
fn invalid_value(error: &clap::Error, argument: &str, name: &str) -> Described {
    let possible = texts(error, ContextKind::ValidValue);
    let given = value(error, name);
    let list = || format!("use one of: {}", possible.join(", "));
    if given.is_empty() {
        let example = argument.replace(['<', '>'], "");
        let hint = if possible.is_empty() { format!("write {example}") } else { list() };
        return described(&format!("{name} needs a value"), Some(&hint));
    }
    if possible == ["-"] {
        let hint = "write `-` to read the response from standard input";
        return match argument.starts_with('-') {
            true => described(&format!("invalid value `{given}` for {name}"), Some(hint)),
            false => described(&format!("{UNEXPECTED} `{given}`"), Some(hint)),
        };
    }
    // clap suggests words that are not near.
    let near = nearest(&given, possible.iter().map(String::as_str));
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let what = format!("invalid value `{given}` for {name}");
    described(&what, Some(&format!("{near}{}", list())))
}

/// The value that is wrong. One of `--store` may contain a password, however malformed.
fn value(error: &clap::Error, name: &str) -> String {
    let value = text(error, ContextKind::InvalidValue).unwrap_or_default();
    let is_store = name == "--store" || name == "--to";
    if is_store && value.contains(['@', '?']) { "***".to_owned() } else { cut(&value) }
}

fn described(what: &str, hint: Option<&str>) -> Described {
    Described { what: what.to_owned(), hint: hint.map(ToOwned::to_owned) }
}

/// Returns `--for` of `--for <TIME>`, and `COMMAND` of `<COMMAND>...`.
fn name_of(argument: &str) -> String {
    if argument.starts_with('-') {
        return argument.split([' ', '=', '[']).next().unwrap_or_default().to_owned();
    }
    argument.trim_end_matches('.').trim_matches(['<', '>', '[', ']']).to_owned()
}

/// Returns `a`, `a and b`, or `a, b and c`.
fn joined(names: &[String]) -> String {
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    texts(error, kind).into_iter().next()
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}
