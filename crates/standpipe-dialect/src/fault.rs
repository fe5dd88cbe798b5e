//! What an error body says: its code, its type and its words, wherever a provider puts them.

use serde_json::Value;

use crate::bounds;
use crate::json;

/// What an error body says. What is not said is empty.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fault {
    /// The finest name of what went wrong.
    pub(crate) code: String,
    /// The coarser one, where there are two.
    pub(crate) kind: String,
    /// The provider's words.
    pub(crate) message: String,
    /// The same in lower case, to look for phrases.
    pub(crate) lower: String,
    /// The object that all this was found in.
    pub(crate) value: Value,
}

const CODES: &[&str] = &["code", "errorCode", "error_code", "__type"];
const MESSAGES: &[&str] = &["message", "Message", "error_description", "detail", "title"];

/// How often a message may hold a whole error again.
const NESTED: usize = 3;

impl Fault {
    pub(crate) fn of(body: &[u8]) -> Self {
        match json::parse(body) {
            Some(value) => Self::of_value(&value),
            None => {
                let text = &body[..body.len().min(bounds::ERROR_BODY)];
                Self::default().saying(String::from_utf8_lossy(text).into_owned())
            }
        }
    }

    pub(crate) fn of_value(value: &Value) -> Self {
        Self::nested(value, NESTED)
    }

    fn nested(value: &Value, levels: usize) -> Self {
        let value = first_of_list(value);
        let fault = match value.get("error") {
            Some(error @ Value::Object(_)) => Self::of_object(error),
            Some(Value::String(code)) => {
                let mut fault = Self::of_object(value);
                fault.code.clone_from(code);
                if fault.message.is_empty() { fault.saying(code.clone()) } else { fault }
            }
            _ => Self::of_object(value),
        };
        fault.inside(levels).unwrap_or(fault)
    }

    fn of_object(object: &Value) -> Self {
        let text = |names| json::first_text(object, names).unwrap_or_default();
        let fault = Self {
            code: text(CODES),
            kind: text(&["type"]),
            value: object.clone(),
            ..Self::default()
        };
        fault.saying(text(MESSAGES))
    }

    fn saying(self, message: String) -> Self {
        Self { lower: message.to_lowercase(), message, ..self }
    }

    /// Some wrap the whole error once more, as the text of a message.
    fn inside(&self, levels: usize) -> Option<Self> {
        let start = self.message.find(['{', '[']).filter(|_| levels > 0)?;
        let value = json::parse(&self.message.as_bytes()[start..])?;
        let inner = Self::nested(&value, levels - 1);
        // Braces in a sentence may be JSON without being an error.
        let is_error = !inner.code.is_empty() || !inner.kind.is_empty();
        (is_error && !inner.message.is_empty()).then_some(inner)
    }

    /// Whether the words contain one of these phrases, given in lower case.
    pub(crate) fn says(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.lower.contains(phrase))
    }

    /// Whether the words are about too many calls at once rather than too many.
    pub(crate) fn is_about_concurrency(&self) -> bool {
        self.says(&["concurrent request", "concurrent connection", "concurrency limit"])
    }

    /// The status that the body itself names.
    pub(crate) fn status(&self) -> Option<u16> {
        let named = self.value.get("code").or_else(|| self.value.get("statusCode"))?;
        let status = json::figure(named).ok().and_then(|code| u16::try_from(code).ok());
        status.filter(|status| (400..600).contains(status))
    }
}

fn first_of_list(value: &Value) -> &Value {
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
        let fault = Fault::of(body.as_bytes());
        (fault.code, fault.kind, fault.message)
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
