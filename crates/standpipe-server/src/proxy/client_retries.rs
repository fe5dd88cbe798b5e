//! Notices clients that retry on their own, on top of the proxy's retries.
//!
//! SDKs count their retries in a header. Other clients may retry if they repeat a call within
//! seconds of its refusal; a program that makes equal calls now and then does not. The journal gets
//! one line per agent and client now and then, for `doctor`.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use axum::http::{HeaderMap, StatusCode, header};

use super::hold::Call;
use crate::http::names::RETRY_COUNT;
use crate::state::lock;

/// How long after a refusal the same call may be a retry of it.
const MEMORY: Duration = Duration::from_secs(30);
/// The most refused calls that are remembered.
const MAX_REFUSED: usize = 256;
/// The most agents and clients whose last line is remembered.
const MAX_NOTED: usize = 256;
/// The least time between two lines about the same agent and client.
const INTERVAL: Duration = Duration::from_secs(600);
/// The longest name of a client, in characters.
const MAX_CLIENT: usize = 40;

/// What is known of clients that may retry.
#[derive(Debug, Default)]
pub(crate) struct ClientRetries(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// Hashes of calls that were refused, oldest first.
    refused: VecDeque<(Instant, u64)>,
    /// When a line was written about an agent and client, and whether it was a guess.
    noted: BTreeMap<(String, String, bool), Instant>,
}

impl ClientRetries {
    /// Notes in the journal if the call is a client's own retry.
    pub(crate) fn check(&self, call: &Call) {
        let stated = call.parts.headers.get(&RETRY_COUNT).and_then(|value| value.to_str().ok());
        let count: u64 = stated.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        let now = Instant::now();
        if count == 0 && !self.was_refused(call, now) {
            return;
        }
        let (agent, client) = (call.caller.agent.as_str(), client(&call.parts.headers));
        let guessed = count == 0;
        if self.is_due(agent, &client, guessed, now) {
            call.pool.note_client_retry(agent, &client, guessed);
        }
    }

    /// Remembers a call that is answered with a refusal, if clients retry such a one.
    pub(crate) fn answered(&self, call: &Call, status: StatusCode) {
        if status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() {
            let refused = &mut lock(&self.0).refused;
            if refused.len() == MAX_REFUSED {
                refused.pop_front();
            }
            refused.push_back((Instant::now(), hash(call)));
        }
    }

    fn was_refused(&self, call: &Call, now: Instant) -> bool {
        let mut known = lock(&self.0);
        let is_old = |at: Instant| now.saturating_duration_since(at) >= MEMORY;
        while known.refused.front().is_some_and(|(at, _)| is_old(*at)) {
            known.refused.pop_front();
        }
        if known.refused.is_empty() {
            return false;
        }
        let own = hash(call);
        known.refused.iter().any(|(_, refused)| *refused == own)
    }

    fn is_due(&self, agent: &str, client: &str, guessed: bool, now: Instant) -> bool {
        let noted = &mut lock(&self.0).noted;
        noted.retain(|_, at| now.saturating_duration_since(*at) < INTERVAL);
        let key = (agent.to_owned(), client.to_owned(), guessed);
        let is_due = !noted.contains_key(&key) && noted.len() < MAX_NOTED;
        if is_due {
            noted.insert(key, now);
        }
        is_due
    }
}

/// The same for the same call of the same agent.
fn hash(call: &Call) -> u64 {
    let mut hasher = DefaultHasher::new();
    let original = call.original.as_ref().map_or(&call.body, |original| &original.body);
    (&call.caller.agent, &call.parts.method, call.parts.uri.path(), original).hash(&mut hasher);
    hasher.finish()
}

/// The name of a program or SDK, without its version: `Anthropic/Python`, `claude-cli`.
fn client(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let first = agent.and_then(|text| text.split_whitespace().next()).unwrap_or("unknown");
    let name = match first.split_once('/') {
        Some((name, version)) if version.starts_with(|c: char| c.is_ascii_digit()) => name,
        _ => first,
    };
    name.chars().filter(char::is_ascii_graphic).take(MAX_CLIENT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_without_its_version() {
        let of = |text: &str| {
            client(&[(header::USER_AGENT, text.parse().unwrap())].into_iter().collect())
        };
        assert_eq!(of("Anthropic/Python 0.75.0"), "Anthropic/Python");
        assert_eq!(of("claude-cli/2.1.3 (external, cli)"), "claude-cli");
        assert_eq!(of(&"x".repeat(500)).len(), MAX_CLIENT);
        assert_eq!(client(&HeaderMap::new()), "unknown");
    }

    #[test]
    fn lines_are_few_and_bounded() {
        let retries = ClientRetries::default();
        let now = Instant::now();
        assert!(
            retries.is_due("blog", "sdk", true, now) && !retries.is_due("blog", "sdk", true, now)
        );
        assert!(retries.is_due("blog", "sdk", false, now), "a guess hides no stated count");
        assert!(retries.is_due("blog", "sdk", true, now + INTERVAL));
        for number in 0..MAX_NOTED * 2 {
            retries.is_due(&number.to_string(), "sdk", true, now + INTERVAL);
        }
        assert_eq!(lock(&retries.0).noted.len(), MAX_NOTED);
    }
}
