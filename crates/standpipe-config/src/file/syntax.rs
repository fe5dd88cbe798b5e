//! Reports the syntax errors of a file that is not TOML, each with a remedy.
//!
//! A message may repeat the name of a table but never the text of a line, which may contain a
//! password.

use super::reader::Reader;
use crate::parse::quoted;

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
        let remedy = remedy(written, error.message());
        reader.problem(line, format!("this is not TOML: {}", error.message()), remedy);
    }
}

/// The maximum number of reported errors. A file with more is probably not a settings file.
const MOST: usize = 50;

fn remedy(written: &str, message: &str) -> String {
    let header = written.trim_matches(['[', ']']);
    if written.starts_with('[') && !written.contains(['"', '\'', '=']) && header.contains('/') {
        let (table, name) = header.split_once('.').unwrap_or(("pool", header));
        return format!("put the name in quotes: [{}.{}]", table.trim(), quoted(name.trim()));
    }
    if message.contains("duplicate") {
        return "it is a duplicate: keep one of the two".to_owned();
    }
    if message.contains("quote") || message.contains("string") {
        return "put strings in quotes: key = \"text\"".to_owned();
    }
    "fix this line; a line is key = value, [table] or # comment".to_owned()
}
