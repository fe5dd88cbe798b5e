//! What is not TOML: every place where the parser stumbled, with a remedy.
//!
//! The text of a line is never repeated, since it may hold a password; a table's name is.

use super::reader::Reader;
use super::text::quoted;

/// Notes the parser's complaints, one for each line.
pub(super) fn note(reader: &mut Reader<'_>, text: &str, errors: &[toml::de::Error]) {
    for error in errors.iter().take(MOST) {
        let place = error.span().map_or(text.len(), |span| span.start);
        let line = reader.line(place.min(text.trim_end().len()));
        // What follows on the same line is mostly the same slip again.
        if reader.is_told(line) {
            continue;
        }
        let written = text.lines().nth(line - 1).unwrap_or_default().trim();
        let remedy = remedy(written, error.message());
        reader.wrong(line, format!("this is not TOML: {}", error.message()), remedy);
    }
}

/// A file with more slips than this is something else altogether.
const MOST: usize = 50;

fn remedy(written: &str, message: &str) -> String {
    let header = written.trim_matches(['[', ']']);
    if written.starts_with('[') && !written.contains(['"', '\'', '=']) && header.contains('/') {
        let (table, name) = header.split_once('.').unwrap_or(("pool", header));
        return format!("put the name in quotes: [{}.{}]", table.trim(), quoted(name.trim()));
    }
    if message.contains("duplicate") {
        return "it is there already: keep one of the two".to_owned();
    }
    if message.contains("quote") || message.contains("string") {
        return "put texts in quotes: key = \"text\"".to_owned();
    }
    "mend this line; a line is key = value, [table] or # comment".to_owned()
}
