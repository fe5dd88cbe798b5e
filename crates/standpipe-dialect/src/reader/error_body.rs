//! [`ErrorBody`]: code, type and message of an error body, wherever a provider puts them.

use serde_json::Value;

use crate::bounds;
use crate::parse::json;

/// The parts of an error body. A part that the body does not state is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct ErrorBody {
    /// The most specific name of the error.
    pub(crate) code: String,
    /// The broader class of the error, if the body has both.
    pub(crate) kind: String,
    /// The provider's error message.
    pub(crate) message: String,
    /// The message in lower case, to search for phrases.
    pub(crate) lower: String,
    /// The JSON object that holds these members.
    pub(crate) value: Value,
}

const CODES: &[&str] = &["code", "errorCode", "error_code", "__type"];
const MESSAGES: &[&str] = &["message", "Message", "error_description", "detail", "title"];

/// How deep errors wrapped in the message of another error are followed.
const MAX_NESTING: usize = 3;

impl ErrorBody {
    /// Parses a body. A body that is not JSON becomes the message.
    pub(crate) fn parse(body: &[u8]) -> Self {
        match json::parse(body) {
            Some(value) => Self::from_json(&value),
            None => {
                let text = &body[..body.len().min(bounds::ERROR_BODY)];
                Self::default().with_message(String::from_utf8_lossy(text).into_owned())
            }
        }
    }

    pub(crate) fn from_json(value: &Value) -> Self {
        Self::from_nested(value, MAX_NESTING)
    }

    fn from_nested(value: &Value, levels: usize) -> Self {
        let value = first_of_array(value);
        let error = match value.get("error") {
            Some(error @ Value::Object(_)) => Self::from_object(error),
            Some(Value::String(code)) => {
                let mut error = Self::from_object(value);
                error.code.clone_from(code);
                if error.message.is_empty() { error.with_message(code.clone()) } else { error }
            }
            _ => Self::from_object(value),
        };
        error.error_in_message(levels).unwrap_or(error)
    }

    fn from_object(object: &Value) -> Self {
        let text = |names| json::first_text(object, names).unwrap_or_default();
        let error = Self {
            code: text(CODES),
            kind: text(&["type"]),
            value: object.clone(),
            ..Self::default()
        };
        error.with_message(text(MESSAGES))
    }

    fn with_message(self, message: String) -> Self {
        Self { lower: message.to_lowercase(), message, ..self }
    }

    /// The error inside the message: some gateways wrap a whole JSON error as text.
    fn error_in_message(&self, levels: usize) -> Option<Self> {
        let start = self.message.find(['{', '[']).filter(|_| levels > 0)?;
        let value = json::parse(&self.message.as_bytes()[start..])?;
        let inner = Self::from_nested(&value, levels - 1);
        // A sentence can contain JSON that is not an error.
        let is_error = !inner.code.is_empty() || !inner.kind.is_empty();
        (is_error && !inner.message.is_empty()).then_some(inner)
    }

    /// Whether the message contains one of these phrases, given in lower case.
    pub(crate) fn contains(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.lower.contains(phrase))
    }

    /// Whether the message is about calls in flight rather than a rate.
    pub(crate) fn is_about_concurrency(&self) -> bool {
        self.contains(&["concurrent request", "concurrent connection", "concurrency limit"])
    }

    /// The HTTP status that the body itself states.
    pub(crate) fn status(&self) -> Option<u16> {
        let code = self.value.get("code").or_else(|| self.value.get("statusCode"))?;
        let status = json::amount(code).ok().and_then(|code| u16::try_from(code).ok());
        status.filter(|status| (400..600).contains(status))
    }
}

/// The element of an array that is an error, else its first; any other value as it is.
fn first_of_array(value: &Value) -> &Value {
    match value {
        Value::Array(list) => {
            let with_error = list.iter().find(|item| item.get("error").is_some());
            with_error.or(list.first()).unwrap_or(value)
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> (String, String, String) {
        let error = ErrorBody::parse(body.as_bytes());
        (error.code, error.kind, error.message)
    }

    #[test]
    fn every_shape_is_read() {
        for (body, code, kind, message) in [
            (r#"{"error":{"code":"c","type":"t","message":"m"}}"#, "c", "t", "m"),
            (r#"[{"error":{"code":429,"message":"m"}}]"#, "429", "", "m"),
            (r#"{"type":"error","error":{"type":"t","message":"m"}}"#, "", "t", "m"),
            (r#"{"ok":false,"error":"ratelimited"}"#, "ratelimited", "", "ratelimited"),
            (r#"{"message":"m","__type":"c"}"#, "c", "", "m"),
            (r#"{"code":"c","message":"m","param":null}"#, "c", "", "m"),
            (
                r#"{"error":{"code":1,"message":"{\"error\":{\"code\":2,\"message\":\"m\"}}"}}"#,
                "2",
                "",
                "m",
            ),
            ("no JSON", "", "", "no JSON"),
            ("", "", "", ""),
        ] {
            assert_eq!(read(body), (code.into(), kind.into(), message.into()), "{body}");
        }
    }

    #[test]
    fn braces_in_a_sentence_are_a_sentence() {
        assert_eq!(read(r#"{"message":"use {name} or [1]"}"#).2, "use {name} or [1]");
        let body = r#"{"error":{"code":"c","message":"got {\"message\":\"x\"}"}}"#;
        assert_eq!(read(body).0, "c");
    }
}
