//! Value parsers for clap. The syntax of rates, durations and amounts is the library's.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use standpipe::config::{TextError, text as written};
use standpipe::observe::Timestamp;
use standpipe::{AgentName, Amounts, Limit, PoolName, Priority, Span, StoreUrl, Unit};

use crate::failure::Failure;
use crate::process::tee::LinePattern;

/// The value of `--cost` or `--used`: amounts per unit.
#[derive(Clone, Debug)]
pub(crate) struct Cost(Vec<(Unit, u64)>);

/// Joins the values of a repeated flag.
///
/// # Errors
/// When a unit is given twice.
pub(crate) fn total(given: &[Cost]) -> Result<Vec<(Unit, u64)>, Failure> {
    let all: Vec<_> = given.iter().flat_map(|cost| cost.0.iter().cloned()).collect();
    match Amounts::cost(all.iter().cloned()) {
        Ok(_) => Ok(all),
        Err(wrong) => Err(Failure::usage(&wrong.to_string(), "name each unit once")),
    }
}

pub(super) fn cost(text: &str) -> Result<Cost, TextError> {
    written::costs(text).map(Cost)
}

pub(super) fn count(text: &str) -> Result<u64, TextError> {
    written::amount(text)
}

pub(super) fn limit(text: &str) -> Result<Limit, TextError> {
    written::limit(text).map_err(|TextError { what, remedy }| {
        let remedy = remedy.replace("as a limit of its own", "with a --limit of its own");
        TextError { what, remedy }
    })
}

pub(crate) fn length(text: &str) -> Result<Span, TextError> {
    written::duration(text)
}

/// The start of a time that ends now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Since {
    /// So long ago.
    Ago(Span),
    /// An instant.
    At(Timestamp),
}

/// Parses a length, or an instant in UTC.
pub(super) fn since(text: &str) -> Result<Since, TextError> {
    if let Ok(instant) = text.parse() {
        return Ok(Since::At(instant));
    }
    length(text).map(Since::Ago).map_err(|error| match text.get(..5) {
        Some(year) if year.ends_with('-') && !year.starts_with('-') => TextError {
            what: "not an instant".to_owned(),
            remedy: "write it in UTC, for example 2026-01-31T12:00:00Z, or a length: 1h".to_owned(),
        },
        _ => error,
    })
}

/// Parses the name of a priority, or its number: `critical` or `p0`.
pub(super) fn priority() -> impl TypedValueParser<Value = Priority> {
    let named = |priority: Priority, [short, capital]: [&'static str; 2]| {
        PossibleValue::new(priority.as_str()).aliases([short, capital])
    };
    let values = Priority::ALL.into_iter().zip(SHORT_PRIORITIES);
    PossibleValuesParser::new(values.map(|(priority, short)| named(priority, short)))
        .map(|given| priority_named(&given).unwrap_or_default())
}

/// Returns the priority of a name or number.
pub(crate) fn priority_named(given: &str) -> Option<Priority> {
    let mut named = Priority::ALL.into_iter().zip(SHORT_PRIORITIES);
    let found =
        named.find(|(priority, short)| priority.as_str() == given || short.contains(&given));
    found.map(|(priority, _)| priority)
}

/// Parses the id of a process.
pub(super) fn pid(text: &str) -> Result<u32, String> {
    let wrong = || "not the id of a process; give a number, for example --owner $$".to_owned();
    text.parse().ok().filter(|pid| *pid > 0).ok_or_else(wrong)
}

/// The short names of the priorities, in their order.
const SHORT_PRIORITIES: [[&str; 2]; 3] = [["p0", "P0"], ["p1", "P1"], ["p2", "P2"]];

/// Parses a pattern for a program's output. Its compiled size is bounded.
pub(super) fn pattern(text: &str) -> Result<LinePattern, String> {
    if text == "auto" {
        return Ok(LinePattern::Known);
    }
    let compiled = regex::bytes::RegexBuilder::new(text).size_limit(1 << 20).build();
    compiled.map(LinePattern::Regex).map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => {
            "too large a regular expression; write a shorter one".to_owned()
        }
        _ => "not a valid regular expression; check brackets and backslashes: '(?i)rate limit' \
              matches in any case, '\\(' is a bracket"
            .to_owned(),
    })
}

/// Parses the exit code of a program.
pub(super) fn exit_code(text: &str) -> Result<u8, &'static str> {
    text.parse().map_err(|_| "not an exit code; write a whole number from 0 to 255")
}

/// Parses the status of an HTTP response.
pub(super) fn status(text: &str) -> Result<u16, &'static str> {
    let status = text.parse().ok().filter(|status| (100..600).contains(status));
    status.ok_or("not an HTTP status; write a whole number from 100 to 599, for example 429")
}

pub(super) fn store(text: &str) -> Result<StoreUrl, String> {
    text.parse().map_err(|error: TextError| error.to_string())
}

/// Parses the name of a pool. The path of a program in its place would create a pool.
pub(super) fn pool(text: &str) -> Result<PoolName, String> {
    let is_path = ["./", "../", "/"].iter().any(|start| text.starts_with(start));
    if is_path || text.split('/').any(|part| part == "." || part == "..") {
        return Err("it is a path, not the name of a pool".to_owned());
    }
    any_pool(text)
}

/// Parses the name of a pool that exists, whatever it is called.
pub(super) fn any_pool(text: &str) -> Result<PoolName, String> {
    let invalid = |error: standpipe::InvalidPoolName| format!("not a valid pool name; {error}");
    text.parse().map_err(invalid)
}

pub(super) fn agent(text: &str) -> Result<AgentName, String> {
    AgentName::new(text).ok_or_else(|| {
        "not a valid agent name; use 1 to 64 of the characters A-Z a-z 0-9 . _ @ -, for example \
         blog-writer"
            .to_owned()
    })
}

/// Parses a label, which the ledger stores without interpreting it.
pub(super) fn word(text: &str) -> Result<String, String> {
    let fits = (1..=128).contains(&text.len()) && !text.chars().any(char::is_control);
    let wrong =
        "not a valid label; use 1 to 128 bytes without line breaks or other control characters";
    if fits { Ok(text.to_owned()) } else { Err(wrong.to_owned()) }
}
