//! The reply of a daemon: its JSON, or the problem that it reports.

use hyper::body::Bytes;
use serde_json::Value;

/// A complete HTTP reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Bytes,
}

impl Reply {
    /// Returns the JSON of a successful reply; an empty body is `null`.
    ///
    /// # Errors
    /// One line with the problem and its hint.
    pub(super) fn into_json(self) -> Result<Value, String> {
        let read = serde_json::from_slice::<Value>(&self.body);
        if (200..300).contains(&self.status) {
            return match read {
                Ok(value) => Ok(value),
                Err(_) if self.body.is_empty() => Ok(Value::Null),
                Err(_) => Err("the daemon's answer is not JSON; is something else there?".into()),
            };
        }
        let problem = read.unwrap_or_default();
        let field = |key: &str| problem.get(key).and_then(Value::as_str).filter(|w| !w.is_empty());
        let status = self.status;
        let hint = match (field("hint"), status) {
            (Some(hint), _) => format!("; {hint}"),
            (None, 401) => "; pass the daemon's token with --token-file".to_owned(),
            (None, _) => String::new(),
        };
        match field("detail").or(field("title")) {
            Some(detail) => Err(format!("{detail}{hint}")),
            None => Err(format!("the daemon answered {status}{hint}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(status: u16, body: &'static str) -> String {
        Reply { status, body: Bytes::from_static(body.as_bytes()) }.into_json().unwrap_err()
    }

    #[test]
    fn a_problem_is_reported_with_its_hint() {
        let gone = r#"{"type":"gone","title":"Gone","detail":"it has ended","hint":"look again"}"#;
        assert_eq!(problem(410, gone), "it has ended; look again");
        assert_eq!(problem(404, r#"{"title":"Not found"}"#), "Not found");
        assert!(problem(401, "").contains("--token-file"));
        assert_eq!(problem(502, "<html>"), "the daemon answered 502");
        assert!(problem(200, "<html>").contains("not JSON"));
        let fine = Reply { status: 200, body: Bytes::from_static(b"{\"a\":1}") };
        assert_eq!(fine.into_json().unwrap()["a"], 1);
    }
}
