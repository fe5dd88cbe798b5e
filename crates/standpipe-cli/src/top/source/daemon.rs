//! A daemon as the source, over HTTP.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde_json::{Value, json};
use standpipe::PoolName;

use super::{Action, ROWS, Source};
use crate::caller;
use crate::daemon::DaemonClient;

/// The size of a page of events.
const PAGE: usize = 500;
/// The most pages per fetch; the rest follows with the next.
const PAGES: usize = 10;

/// Fetches from a daemon.
pub(crate) struct DaemonSource {
    daemon: DaemonClient,
    wanted: Option<PoolName>,
    /// The cursor behind the last event.
    cursor: Option<String>,
}

impl DaemonSource {
    pub(crate) const fn new(daemon: DaemonClient, wanted: Option<PoolName>) -> Self {
        Self { daemon, wanted, cursor: None }
    }

    /// Fetches the next page of events.
    fn page(&mut self) -> Result<Vec<Value>, String> {
        let from = match &self.cursor {
            Some(cursor) => format!("after={}", encoded(cursor)),
            None => "since=1h".to_owned(),
        };
        let path = format!("/v1/events?{from}&limit={PAGE}{}", self.only());
        let mut page = match self.daemon.get(&path) {
            Ok(page) => page,
            Err(error) => {
                // A restarted daemon may not know the cursor.
                self.cursor = None;
                return Err(error);
            }
        };
        if let Some(next) = page.get("next").and_then(Value::as_str) {
            self.cursor = Some(next.to_owned());
        }
        match page.get_mut("events").map(Value::take) {
            Some(Value::Array(events)) => Ok(events),
            _ => Err("the reply is no page of events".to_owned()),
        }
    }

    /// Returns `&pool=…` when one pool is wanted.
    fn only(&self) -> String {
        let wanted = self.wanted.as_ref();
        wanted.map_or_else(String::new, |pool| format!("&pool={}", encoded(pool.as_str())))
    }
}

impl Source for DaemonSource {
    fn location(&self) -> String {
        format!("daemon {}", self.daemon.address())
    }

    fn wanted(&self) -> Option<&PoolName> {
        self.wanted.as_ref()
    }

    fn snapshot(&mut self) -> Result<Value, String> {
        self.daemon.get(&format!("/v1/pools?rows={ROWS}{}", self.only()))
    }

    fn events(&mut self) -> Result<Vec<Value>, String> {
        let mut all = Vec::new();
        for _ in 0..PAGES {
            let mut page = self.page()?;
            let is_last = page.len() < PAGE;
            all.append(&mut page);
            if is_last {
                break;
            }
        }
        Ok(all)
    }

    fn proxied(&mut self) -> Option<Value> {
        self.daemon.get("/v1/proxied").ok()
    }

    fn perform(&mut self, action: &Action) -> Result<(), String> {
        match action {
            Action::Pause { pool, ms } => self
                .daemon
                .post("/v1/pause", &json!({ "pool": pool, "for_ms": ms, "agent": caller::user() })),
            Action::Resume { pool } => {
                self.daemon.post("/v1/resume", &json!({ "pool": pool, "agent": caller::user() }))
            }
            Action::Settle { lease, .. } => {
                self.daemon.delete(&format!("/v1/leases/{}", encoded(&lease.to_string())))
            }
        }
        .map(drop)
    }
}

/// What a value in a query or a path may hold as it is: the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn encoded(text: &str) -> PercentEncode<'_> {
    utf8_percent_encode(text, ENCODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_encoded() {
        assert_eq!(encoded("a/b:c@d é-._~").to_string(), "a%2Fb%3Ac%40d%20%C3%A9-._~");
    }
}
