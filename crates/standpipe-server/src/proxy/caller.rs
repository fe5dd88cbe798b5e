//! Who calls: an agent, and the session or user on whose behalf it does.
//!
//! The ledger knows only the agent. Sessions are for the totals and for estimates. Claude Code
//! states its session and sub-agent in headers; `split_by` of a provider names other fields.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use standpipe::config::SplitField;

use crate::http::names::{CLAUDE_AGENT, CLAUDE_PARENT, CLAUDE_SESSION};

/// The longest part of a session's name, in characters.
const MAX_PART: usize = 64;

/// Who makes a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) agent: String,
    pub(crate) session: Option<Session>,
}

/// The session, sub-agent or user of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Session {
    /// Below the agent's name: `coder/SESSION`, `coder/SESSION/SUB-AGENT`.
    pub(crate) name: String,
    /// The sub-agent that started this one.
    pub(crate) parent: Option<String>,
}

impl Caller {
    /// Reads the session from headers and from the `user` in the body.
    pub(crate) fn new<'a>(
        agent: &str,
        headers: &'a HeaderMap,
        user: Option<&'a str>,
        split_by: &[SplitField],
    ) -> Self {
        let text = |value: &'a HeaderValue| value.to_str().ok();
        let header = |name: &HeaderName| headers.get(name).and_then(text);
        let of_field = |field: &SplitField| match field {
            SplitField::User => user,
            SplitField::Organization => headers.get("openai-organization").and_then(text),
            SplitField::Project => headers.get("openai-project").and_then(text),
        };
        let claude = [header(&CLAUDE_SESSION), header(&CLAUDE_AGENT)];
        let fields = claude.into_iter().chain(split_by.iter().map(of_field));
        let parts: Vec<String> = fields.flatten().filter_map(part).collect();
        let session = (!parts.is_empty()).then(|| Session {
            name: format!("{agent}/{}", parts.join("/")),
            parent: header(&CLAUDE_PARENT).and_then(part),
        });
        Self { agent: agent.to_owned(), session }
    }
}

/// A value of a client as a part of a name: printable, short, without slashes.
fn part(value: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._@-".contains(c);
    let plain = |c: char| if is_plain(c) { c } else { '-' };
    let name: String = value.trim().chars().take(MAX_PART).map(plain).collect();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(all: &[(&str, &str)], user: Option<&str>, by: &[SplitField]) -> Caller {
        let headers =
            all.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        Caller::new("coder", &headers.collect(), user, by)
    }

    #[test]
    fn claude_code_names_its_session_and_sub_agent() {
        let session = (CLAUDE_SESSION.as_str(), "3f2a91bc-77");
        let main = named(&[session], None, &[]).session.unwrap();
        assert_eq!((main.name.as_str(), main.parent), ("coder/3f2a91bc-77", None));
        let all = [session, (CLAUDE_AGENT.as_str(), "explore"), (CLAUDE_PARENT.as_str(), "main")];
        let sub = named(&all, None, &[]).session.unwrap();
        assert_eq!((sub.name.as_str(), sub.parent.as_deref()), (SUB, Some("main")));
        assert_eq!(named(&[], None, &[]).session, None);
    }

    const SUB: &str = "coder/3f2a91bc-77/explore";

    #[test]
    fn other_fields_count_only_where_configured() {
        let headers = [("openai-organization", "org-1"), ("openai-project", "p/2\u{9}")];
        assert_eq!(named(&headers, Some("ann"), &[]).session, None);
        let all = [SplitField::Organization, SplitField::Project, SplitField::User];
        let found = named(&headers, Some("ann"), &all).session.unwrap();
        assert_eq!(found.name, "coder/org-1/p-2/ann");
        let long = "x".repeat(1_000);
        let found = named(&[], Some(&long), &[SplitField::User]).session.unwrap();
        assert_eq!(found.name.len(), "coder/".len() + MAX_PART);
    }
}
