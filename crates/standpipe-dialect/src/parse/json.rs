//! Lenient JSON: bodies may be large, truncated, or not JSON at all.
//!
//! A body is never parsed as a whole. [`raw_member`] finds one member by counting brackets, and
//! only that is parsed, so finding the usage behind megabytes of text is cheap. [`parse`] reads
//! at most [`bounds::ERROR_BODY`] bytes.

use memchr::memchr2;
use serde_json::Value;

use crate::anomaly::AnomalyReason;
use crate::bounds;
use crate::parse::number;

/// The raw value of a member of the outermost object; truncated if the text is.
pub(crate) fn raw_member<'a>(json: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut rest = json.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        rest = rest.trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
        if rest.first() != Some(&b'"') {
            return None;
        }
        let (key, after) = rest.split_at(value_len(rest));
        let value = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let (value, after) = value.split_at(value_len(value));
        if key.get(1..key.len().checked_sub(1)?) == Some(name.as_bytes()) {
            return Some(value);
        }
        rest = after;
    }
}

/// [`raw_member`] along a path of members.
pub(crate) fn raw_path<'a>(json: &'a [u8], names: &[&str]) -> Option<&'a [u8]> {
    names.iter().try_fold(json, |json, name| raw_member(json, name))
}

/// The length of the value at the start of a text.
fn value_len(text: &[u8]) -> usize {
    let mut nesting = Nesting::default();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let was_inside = nesting.is_inside();
        let is_end = matches!(byte, b',' | b'}' | b']') || byte.is_ascii_whitespace();
        if !was_inside && is_end {
            return at;
        }
        nesting.step(*byte);
        at += 1;
        // This byte closes a string, an object or an array.
        if was_inside && !nesting.is_inside() {
            return at;
        }
        if nesting.is_inside() {
            at += nesting.unchanged_by(&text[at..]);
        }
    }
    text.len()
}

/// The nesting of a JSON text, tracked byte by byte.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
}

impl Nesting {
    /// Whether the position is inside an object, an array or a string.
    pub(crate) const fn is_inside(self) -> bool {
        self.depth > 0 || self.in_string
    }

    /// How many objects and arrays the position is inside of.
    pub(crate) const fn depth(self) -> usize {
        self.depth
    }

    /// How many bytes at the start of a text do not change the nesting.
    pub(crate) fn unchanged_by(self, text: &[u8]) -> usize {
        let changed = match self {
            Self { escaped: true, .. } => Some(0),
            Self { in_string: true, .. } => memchr2(b'"', b'\\', text),
            _ => text.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')),
        };
        changed.unwrap_or(text.len())
    }

    pub(crate) const fn step(&mut self, byte: u8) {
        if self.in_string {
            let escapes = !self.escaped && byte == b'\\';
            self.in_string = self.escaped || byte != b'"';
            self.escaped = escapes;
            return;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }
}

/// Parses a text, or the start of it if it is too long or truncated.
pub(crate) fn parse(text: &[u8]) -> Option<Value> {
    let text = &text[..text.len().min(bounds::ERROR_BODY)];
    if !matches!(text.trim_ascii_start().first(), Some(b'{' | b'[' | b'"' | b'0'..=b'9')) {
        return None;
    }
    match serde_json::from_slice(text) {
        Ok(value) => Some(value),
        Err(error) if error.is_eof() => parse_truncated(text),
        Err(_) => None,
    }
}

/// Parses a truncated text by closing what is open: at its end, else at the last comma.
fn parse_truncated(text: &[u8]) -> Option<Value> {
    let mut nesting = Nesting::default();
    let mut open: Vec<u8> = Vec::new();
    let mut last_comma: Option<(usize, Vec<u8>)> = None;
    for (at, byte) in text.iter().enumerate() {
        if !nesting.in_string {
            match byte {
                b'{' => open.push(b'}'),
                b'[' => open.push(b']'),
                b'}' | b']' => drop(open.pop()),
                b',' => last_comma = Some((at, open.clone())),
                _ => {}
            }
        }
        nesting.step(*byte);
    }
    let close = |start: &[u8], quote: bool, open: &[u8]| {
        let quote: &[u8] = if quote { b"\"" } else { b"" };
        let closing: Vec<u8> = open.iter().rev().copied().collect();
        serde_json::from_slice(&[start, quote, &closing].concat()).ok()
    };
    // A string may end inside a UTF-8 character or an escape; either has at most six bytes.
    let cuts = if nesting.in_string { 0..=6 } else { 0..=0 };
    let ends = cuts.filter_map(|cut| text.len().checked_sub(cut));
    let mut closed = ends.filter_map(|end| close(&text[..end], nesting.in_string, &open));
    closed.next().or_else(|| {
        let (at, open) = last_comma?;
        close(&text[..at], false, &open)
    })
}

/// The value at a path of members.
pub(crate) fn get<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// A string, or a number as it is written.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The first of these members that is a string or a number.
pub(crate) fn first_text(object: &Value, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| object.get(name).and_then(text))
}

/// An amount of units, written as a number or as a string.
pub(crate) fn amount(value: &Value) -> Result<u64, AnomalyReason> {
    text(value).ok_or(AnomalyReason::Unreadable).and_then(|text| number::amount(&text))
}

/// The elements of an array; empty for any other value.
pub(crate) fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_member_is_found_without_parsing_the_rest() {
        let text = br#" {"a" : [1,{"usage":1},"}\"]"], "b":"x,\\" ,"usage": {"n": 2} , "z":1}"#;
        assert_eq!(raw_member(text, "usage"), Some(&br#"{"n": 2}"#[..]));
        assert_eq!(raw_member(text, "b"), Some(&br#""x,\\""#[..]));
        assert_eq!(raw_member(text, "z"), Some(&b"1"[..]));
        assert_eq!(raw_member(text, "n"), None);
        assert_eq!(raw_path(text, &["usage", "n"]), Some(&b"2"[..]));
    }

    #[test]
    fn odd_texts_have_no_member() {
        for text in ["", "{", "[", "{}", "{,}", "{\"a\"", "{\"a\":", "{:1}", "null", "\"", "{\"}"] {
            assert_eq!(raw_member(text.as_bytes(), "b"), None, "{text}");
        }
        assert_eq!(raw_member(br#"{"usage":{"n":"#, "usage"), Some(&br#"{"n":"#[..]));
    }

    #[test]
    fn a_text_cut_anywhere_says_what_its_beginning_says() {
        let whole = r#"{"error":{"code":"slow","message":"é\n\u00e9","list":[1,{"a":null}]}}"#;
        let cut = |end| parse(&whole.as_bytes()[..end]);
        for end in 25..whole.len() {
            let value =
                cut(end).unwrap_or_else(|| panic!("{}", &whole.as_bytes()[..end].escape_ascii()));
            assert_eq!(value["error"]["code"], json!("slow"), "{end}");
        }
        assert_eq!(cut(whole.len()), serde_json::from_str(whole).ok());
        let message = r#"{"error":{"message":"Rate limit rea"#;
        assert_eq!(parse(message.as_bytes()).unwrap()["error"]["message"], json!("Rate limit rea"));
    }

    #[test]
    fn what_is_not_json_is_nothing() {
        for text in ["", "<html>", "null", "upstream error", "{]", "{\"a\" 1}"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse("[".repeat(100_000).as_bytes()), None);
    }
}
