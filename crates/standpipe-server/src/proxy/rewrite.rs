//! Changes the model or the maximum output of a call, where its pool allows that.
//!
//! Only the value changes: every other byte of the body stays as the client wrote it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use axum::body::Bytes;
use serde_json::value::RawValue;

use super::format::Format;

/// The members that bound the output, in the formats of all providers.
pub(crate) const MAX_OUTPUT: [&str; 3] =
    ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/// A call to another model: its body and its path. `None` if the call does not name its model where
/// its format has it.
pub(crate) fn with_model(
    format: Format,
    body: &Bytes,
    path: &str,
    model: &str,
) -> Option<(Bytes, String)> {
    if let Some(old) = format.model_in_path(path) {
        let at = old.as_ptr().addr() - path.as_ptr().addr();
        let mut changed = path.to_owned();
        changed.replace_range(at..at + old.len(), model);
        return Some((body.clone(), changed));
    }
    let value = serde_json::to_string(model).ok()?;
    let at = value_of(body, "model")?;
    Some((replaced(body, at, &value), path.to_owned()))
}

/// A call with a smaller maximum output. `None` if it states none, or a smaller one.
pub(crate) fn with_max_output(body: &Bytes, tokens: u64) -> Option<Bytes> {
    let mut stated = MAX_OUTPUT.iter().filter_map(|name| value_of(body, name));
    let at = stated.next()?;
    let now: u64 = std::str::from_utf8(&body[at.clone()]).ok()?.parse().ok()?;
    (tokens < now).then(|| replaced(body, at, &tokens.to_string()))
}

/// Where the value of a member of the body is.
fn value_of(body: &[u8], name: &str) -> Option<Range<usize>> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(body).ok()?;
    let value = members.get(name)?.get();
    let at = value.as_ptr().addr() - body.as_ptr().addr();
    Some(at..at + value.len())
}

fn replaced(body: &[u8], at: Range<usize>, value: &str) -> Bytes {
    let mut changed = Vec::with_capacity(body.len() + value.len());
    changed.extend_from_slice(&body[..at.start]);
    changed.extend_from_slice(value.as_bytes());
    changed.extend_from_slice(&body[at.end..]);
    changed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_model_changes() {
        let body = r#"{ "messages":[{"model":"x"}],"mod\u0065l" : "claude-sonnet-4-5" ,"n":1.0}"#;
        let bytes = Bytes::from_static(body.as_bytes());
        let (changed, path) =
            with_model(Format::Anthropic, &bytes, "/v1/messages?beta=true", "haiku\"").unwrap();
        let wanted = r#"{ "messages":[{"model":"x"}],"mod\u0065l" : "haiku\"" ,"n":1.0}"#;
        assert_eq!((&changed[..], path.as_str()), (wanted.as_bytes(), "/v1/messages?beta=true"));
        for odd in ["", "[]", "{}", "{\"messages\":[]}", "not json"] {
            let body = Bytes::from_static(odd.as_bytes());
            assert_eq!(with_model(Format::Anthropic, &body, "/v1/messages", "m"), None, "{odd}");
        }
    }

    #[test]
    fn a_model_in_the_path_changes_there() {
        let path = "/v1beta/models/gemini-2.5-pro:generateContent?alt=sse";
        let body = Bytes::from_static(b"{}");
        let (same, changed) = with_model(Format::Gemini, &body, path, "gemini-2.5-flash").unwrap();
        assert_eq!(changed, "/v1beta/models/gemini-2.5-flash:generateContent?alt=sse");
        assert_eq!(same, body);
    }

    #[test]
    fn the_maximum_output_only_becomes_smaller() {
        let body = Bytes::from_static(br#"{"max_tokens": 800,"x":"max_tokens"}"#);
        assert_eq!(
            &with_max_output(&body, 80).unwrap()[..],
            br#"{"max_tokens": 80,"x":"max_tokens"}"#
        );
        assert_eq!(with_max_output(&body, 800), None);
        assert_eq!(with_max_output(&Bytes::from_static(b"{\"max_tokens\":\"8\"}"), 1), None);
        assert_eq!(with_max_output(&Bytes::from_static(b"{}"), 1), None);
    }
}
