//! Escapes text from outside before it is shown.
//!
//! Header values, error bodies, names, paths and the journal may contain anything. Output for
//! people goes through [`text`]: no character of the result moves a cursor, starts a line, changes
//! the direction of text or is invisible. Output for programs keeps the value: [`json`] only
//! chooses escapes that a terminal does not interpret.

use std::borrow::Cow;
use std::fmt::Write;

use standpipe_dialect::is_invisible;
pub use standpipe_store::plain_io;

/// Escapes every invisible character: `\n`, `\t`, `\u{202e}`. A backslash is not escaped, so
/// escaping twice changes nothing.
///
/// ```
/// use standpipe_config::escape;
///
/// assert_eq!(escape::text("größe ✓"), "größe ✓");
/// assert_eq!(escape::text("a\n\u{1b}[31mb\u{202e}"), "a\\n\\u{1b}[31mb\\u{202e}");
/// ```
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    rewritten(text, |out, c| match c {
        '\t' | '\n' | '\r' => out.extend(c.escape_default()),
        _ => out.extend(c.escape_unicode()),
    })
}

/// Escapes every invisible character of a JSON document as `\u202e`. The document must be on one
/// line, so that all such characters are inside strings.
#[must_use]
pub fn json(json: &str) -> Cow<'_, str> {
    rewritten(json, |out, c| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _always = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Escapes every invisible character of a TOML value.
pub fn toml(value: &str) -> Cow<'_, str> {
    rewritten(value, |out, c| {
        let code = u32::from(c);
        let _always = match code {
            0..=0xffff => write!(out, "\\u{code:04x}"),
            _ => write!(out, "\\U{code:08x}"),
        };
    })
}

fn rewritten(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let Some(first) = text.find(is_invisible) else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_invisible(c) {
            escape(&mut out, c);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_invisible_is_left_and_the_rest_stays() {
        let odd = "x\0\t\r\n\x7f\u{9b}2J\u{200b}\u{2066}\u{feff}\u{e0041}é";
        let shown = text(odd);
        let wanted = r"x\u{0}\t\r\n\u{7f}\u{9b}2J\u{200b}\u{2066}\u{feff}\u{e0041}é";
        assert_eq!(shown, wanted);
        assert_eq!(text(&shown), shown, "once is enough");
        assert!(matches!(text("plain \\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_keeps_its_values() {
        let odd = "a\u{1b}\u{7f}\u{9b}b\u{202e}\u{e0041}🚰";
        let plain = serde_json::to_string(odd).unwrap();
        let safe = json(&plain);
        assert!(!safe.contains(is_invisible), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), odd);
    }

    #[cfg(feature = "file")]
    #[test]
    fn toml_keeps_its_values() {
        let odd = "a\u{7f}\u{9b}b\u{202e}\u{e0041}🚰";
        let file = format!("a = {}", serde_json::to_string(odd).unwrap());
        let safe = toml(&file);
        assert!(!safe.contains(is_invisible), "{safe}");
        let read = ::toml::de::DeTable::parse(&safe).unwrap();
        assert_eq!(read.get_ref()["a"].get_ref().as_str(), Some(odd));
    }
}
