//! The response of a provider.

use serde_json::Value;

/// A reply, as plain as it gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// Names in lower case, in the order they are sent.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Reply {
    /// The first header of this name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as text, with what is no text replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The same with these headers in place of its own of these names.
    pub(super) fn forged(mut self, forged: &[(String, String)]) -> Self {
        self.headers.retain(|(name, _)| !forged.iter().any(|(new, _)| new == name));
        self.headers.extend_from_slice(forged);
        self
    }

    pub(super) fn json(status: u16, headers: Headers, body: &Value) -> Self {
        Self { status, headers: headers.0, body: body.to_string().into_bytes() }
    }
}

/// Headers on their way into a reply.
#[derive(Debug, Default)]
pub(super) struct Headers(Vec<(String, String)>);

impl Headers {
    pub(super) fn push(&mut self, name: impl Into<String>, value: impl ToString) {
        self.0.push((name.into(), value.to_string()));
    }

    /// One that is only there if it has a value.
    pub(super) fn push_some(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }
}
