//! Dotted paths of keys, quoted as TOML requires: `pool."anthropic/sonnet".requests`.

use std::borrow::Cow;
use std::fmt::Write;

/// Appends a key to a path.
pub(crate) fn join(path: &str, key: &str) -> String {
    let is_bare = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    let key = if !key.is_empty() && key.bytes().all(is_bare) {
        Cow::Borrowed(key)
    } else {
        Cow::Owned(quote(key))
    };
    if path.is_empty() { key.into_owned() } else { format!("{path}.{key}") }
}

/// Writes a TOML string. Control characters are escaped.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if c.is_control() => {
                let _infallible = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            _ => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
