//! Reports the syntax errors of a file that is not TOML, each with a remedy.
//!
//! A message may repeat the name of a table or a key, and a value that is a rate or a duration, but
//! no other text of a line: it may contain a password. The parser's own words are not repeated.

use super::reader::Reader;
use crate::keys::Sectioned;
use crate::nearest::nearest;
use crate::parse::{self, TextError, quoted};
use crate::settings::{PoolSettings, Settings};

/// Reports the errors of the TOML parser, at most one for each line.
pub(super) fn report(reader: &mut Reader<'_>, text: &str, errors: &[toml::de::Error]) {
    for error in errors.iter().take(MOST) {
        let place = error.span().map_or(text.len(), |span| span.start);
        let line = reader.line(place.min(text.trim_end().len()));
        // Further errors on a line are mostly consequences of the first.
        if reader.has_problem_on(line) {
            continue;
        }
        let written = text.lines().nth(line - 1).unwrap_or_default().trim();
        let TextError { what, remedy } = describe(written, error.message());
        reader.problem(line, format!("this is not TOML: {what}"), remedy);
    }
}

/// Returns the text before the first table: the keys at the top of the file.
pub(super) fn before_tables(text: &str) -> &str {
    let mut lines = text.split_inclusive('\n');
    let length = lines.by_ref().take_while(|line| header(line).is_none()).map(str::len).sum();
    &text[..length]
}

/// Returns the first part of the name of each table.
pub(super) fn tables(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(header)
}

fn header(line: &str) -> Option<&str> {
    let name = line.trim_start().strip_prefix('[')?.trim_start_matches(['[', ' ', '"', '\'']);
    let end = name.find(|other: char| !other.is_ascii_alphanumeric() && other != '_');
    Some(&name[..end.unwrap_or(name.len())])
}

/// The maximum number of reported errors. A file with more is probably not a configuration file.
const MOST: usize = 50;

/// Quotes that word processors write.
const CURLY: [char; 4] = ['\u{201c}', '\u{201d}', '\u{2018}', '\u{2019}'];

const VALUES: &str = "a value is a \"string\", a number, true, false, a [list] or a { table }";

/// Describes a line that the parser rejects.
fn describe(written: &str, message: &str) -> TextError {
    // The only kind of error that the line alone does not show.
    let is_duplicate = message.contains("duplicate");
    if written.starts_with('[') && !written.contains('=') {
        return of_header(written, is_duplicate);
    }
    if let Some(error) = with_colon(written) {
        return error;
    }
    let Some((key, value)) = written.split_once('=') else {
        let what = "the line is neither key = value, nor a [table], nor a # comment";
        return TextError::new(what, "give the key a value, or delete the line");
    };
    let (key, value) = (key.trim(), value.trim());
    if !is_plain_key(key) {
        let remedy = "use A-Z a-z 0-9 _ and -, or put the key in quotes: \"a/b\" = …";
        return TextError::new("the part before `=` is not a key", remedy);
    }
    if is_duplicate {
        return TextError::new(format!("`{key}` is given twice"), "keep one of the two");
    }
    of_value(key, value)
}

fn of_header(written: &str, is_duplicate: bool) -> TextError {
    let header = written.trim_matches(['[', ']']);
    if header.contains(CURLY) {
        let straight = header.replace(CURLY, "\"");
        let remedy = match (1..=128).contains(&straight.len()) {
            true => format!("use straight quotes: [{straight}]"),
            false => "use straight quotes: \"".to_owned(),
        };
        return TextError::new("the name of the table is in curly quotes", remedy);
    }
    if !written.contains(['"', '\'']) && header.contains('/') {
        let (table, name) = header.split_once('.').unwrap_or(("pool", header));
        let remedy = format!("put the name in quotes: [{}.{}]", table.trim(), quoted(name.trim()));
        return TextError::new("the name of the table is not in quotes", remedy);
    }
    if is_duplicate {
        return TextError::new("the table is given twice", "keep one of the two, with all keys");
    }
    if !written.contains(']') {
        return TextError::new("the table has no closing bracket", "end the line with ]");
    }
    let remedy = "write for example [pool.\"my/api\"] or [agent.blog]";
    TextError::new("the name of the table cannot be read", remedy)
}

const COMMA: &str = "has a comma behind its value";
const NO_COMMA: &str = "remove the comma: only lists and inline tables have them";

/// Whether a text is a comma, perhaps with a comment.
fn is_comma(text: &str) -> bool {
    text.split('#').next().is_some_and(|text| text.trim() == ",")
}

fn of_value(key: &str, value: &str) -> TextError {
    if value.is_empty() || value.starts_with('#') {
        return TextError::new(format!("`{key}` has no value"), VALUES);
    }
    if let Some(quote) = value.chars().next().filter(|first| ['"', '\''].contains(first)) {
        let after = value.splitn(3, quote).nth(2).unwrap_or_default().trim_start();
        let (what, remedy) = match value.matches(quote).count() {
            _ if is_comma(after) => (COMMA, NO_COMMA.to_owned()),
            _ if after.starts_with(',') || is_assignment(after) => {
                ("has another key behind it", "write one key per line".to_owned())
            }
            1 => ("has no closing quote", format!("end the string with {quote}")),
            _ => (
                "has more after its string, or a backslash",
                "write one string, and \\\\ for a backslash".to_owned(),
            ),
        };
        return TextError::new(format!("`{key}` {what}"), remedy);
    }
    if value.starts_with(['[', '{']) {
        let remedy = "check its brackets, quotes and commas: [\"a\", \"b\"], { a = 1, b = 2 }";
        return TextError::new(format!("the value of `{key}` cannot be read"), remedy);
    }
    let what = format!("the value of `{key}` is not in quotes");
    if value.starts_with(CURLY) {
        let what = format!("the value of `{key}` is in curly quotes");
        return TextError::new(what, format!("use straight quotes: {key} = \"…\""));
    }
    let bare = value.split('#').next().unwrap_or_default().trim();
    if bare.ends_with(',') {
        return TextError::new(format!("`{key}` {COMMA}"), NO_COMMA);
    }
    // Nothing else is repeated.
    let is_known = parse::rate(bare).is_ok()
        || parse::duration(bare).is_ok()
        || parse::percent(bare).is_ok()
        || parse::amount(bare).is_ok();
    let flag = match bare.to_ascii_lowercase().as_str() {
        "yes" | "on" | "true" => Some(true),
        "no" | "off" | "false" => Some(false),
        _ => None,
    };
    if let Some(flag) = flag {
        let what = format!("the value of `{key}` is neither true nor false");
        let known = Settings::SECTION.names().into_iter().chain(PoolSettings::SECTION.names());
        return match nearest(key, known).filter(|meant| *meant != key) {
            Some(meant) => TextError::new(what, format!("did you mean {meant} = {flag}?")),
            None => TextError::new(what, format!("write {key} = {flag}")),
        };
    }
    let remedy = match bare {
        _ if is_known => format!("write {key} = \"{bare}\""),
        _ => format!("put strings in quotes: {key} = \"…\""),
    };
    TextError::new(what, remedy)
}

/// Describes a line such as `requests: "60/min"`, as YAML and JSON have it. A value that could be a
/// password is not repeated.
fn with_colon(written: &str) -> Option<TextError> {
    let (key, value) = written.split_once(':')?;
    if !value.starts_with([' ', '"']) || value.trim().is_empty() {
        return None;
    }
    let (key, value) = (key.trim().trim_matches('"'), value.trim().trim_end_matches(','));
    let is_name = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
    if !(1..=64).contains(&key.len()) || !key.bytes().all(is_name) {
        return None;
    }
    let what = format!("`{key}` has a colon instead of `=`");
    let bare = value.trim_matches('"');
    let is_number = bare.parse::<u64>().is_ok() || ["true", "false"].contains(&bare);
    let is_known = is_number
        || parse::rate(bare).is_ok()
        || parse::duration(bare).is_ok()
        || parse::percent(bare).is_ok();
    let remedy = match is_known {
        true if is_number && !value.starts_with('"') => format!("write {key} = {bare}"),
        true => format!("write {key} = \"{bare}\""),
        false => format!("write {key} = and then the value"),
    };
    Some(TextError::new(what, remedy))
}

/// Whether a text begins with another key and its value.
fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(key, _)| is_plain_key(key.trim()) && !key.contains('#'))
}

/// Whether a text can be a key and is short enough to repeat.
fn is_plain_key(key: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.\"/:@ ".contains(&b);
    let is_bare = !key.contains([' ', '/', ':', '@']) || key.contains('"');
    (1..=64).contains(&key.len()) && key.bytes().all(is_plain) && is_bare
}
