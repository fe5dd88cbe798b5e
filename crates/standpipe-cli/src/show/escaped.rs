//! Escaping of text from outside, before it is laid out.
//!
//! Escaping later would be too late: a name with a line break could forge a line of the output.

use serde_json::{Value, json};
use standpipe::{Snapshot, escape};

/// Returns the snapshot with every string escaped.
///
/// # Errors
/// When its JSON form cannot be parsed again.
pub(crate) fn snapshot(snapshot: &Snapshot) -> serde_json::Result<Snapshot> {
    let mut value = json!(snapshot);
    escape_strings(&mut value);
    serde_json::from_value(value)
}

/// Escapes every string in a value, keys included.
pub(crate) fn escape_strings(value: &mut Value) {
    match value {
        Value::String(text) => *text = escape::text(text).into_owned(),
        Value::Array(all) => all.iter_mut().for_each(escape_strings),
        Value::Object(all) => {
            let entries = std::mem::take(all).into_iter().map(|(key, mut value)| {
                escape_strings(&mut value);
                (escape::text(&key).into_owned(), value)
            });
            *all = entries.collect();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_string_is_escaped() {
        let mut value = json!({ "task": ["a\u{1b}[2Jb\u{9b}c", "x\u{202e}y", "größe ✓"], "\n": 1 });
        escape_strings(&mut value);
        let wanted = [r"a\u{1b}[2Jb\u{9b}c", r"x\u{202e}y", "größe ✓"];
        assert_eq!(value, json!({ "task": wanted, r"\n": 1 }));
    }

    /// The table against the Unicode data of the regex crate, code point by code point. When a new
    /// Unicode version adds a format character, this names it.
    #[test]
    fn all_control_and_format_characters_of_unicode_are_escaped() {
        let class = r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]$";
        let invisible = regex::Regex::new(class).unwrap();
        let mut buffer = [0; 4];
        for c in '\0'..=char::MAX {
            let text: &str = c.encode_utf8(&mut buffer);
            let escaped = escape::text(text) != text;
            assert_eq!(escaped, invisible.is_match(text), "U+{:04X}", u32::from(c));
        }
    }
}
