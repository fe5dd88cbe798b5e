//! A daemon, over HTTP.

use serde_json::{Value, json};
use standpipe::PoolName;

use super::{Act, ROWS, Source};
use crate::daemon::Daemon;

/// How many events are asked for at once.
const PAGE: usize = 500;
/// How many pages at most from one look to the next; the rest comes with the next.
const PAGES: usize = 10;

/// A daemon that looks and acts for us.
pub(crate) struct OverHttp {
    daemon: Daemon,
    wanted: Option<PoolName>,
    /// Where the next events begin.
    cursor: Option<String>,
}

impl OverHttp {
    pub(crate) const fn new(daemon: Daemon, wanted: Option<PoolName>) -> Self {
        Self { daemon, wanted, cursor: None }
    }

    /// The next events, at most a page of them.
    fn page(&mut self) -> Result<Vec<Value>, String> {
        let from = match &self.cursor {
            Some(cursor) => format!("after={}", escaped(cursor)),
            None => "since=1h".to_owned(),
        };
        let path = format!("/v1/events?{from}&limit={PAGE}{}", self.only());
        let mut page = match self.daemon.get(&path) {
            Ok(page) => page,
            Err(error) => {
                // A cursor of a daemon before this one may mean nothing to it.
                self.cursor = None;
                return Err(error);
            }
        };
        if let Some(next) = page.get("next").and_then(Value::as_str) {
            self.cursor = Some(next.to_owned());
        }
        match page.get_mut("events").map(Value::take) {
            Some(Value::Array(events)) => Ok(events),
            _ => Err("what came is no page of events".to_owned()),
        }
    }

    /// `&pool=…`, when only one is wanted.
    fn only(&self) -> String {
        let wanted = self.wanted.as_ref();
        wanted.map_or_else(String::new, |pool| format!("&pool={}", escaped(pool.as_str())))
    }
}

impl Source for OverHttp {
    fn place(&self) -> String {
        format!("daemon {}", self.daemon.address())
    }

    fn look(&mut self) -> Result<Value, String> {
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

    fn act(&mut self, act: &Act) -> Result<(), String> {
        match act {
            Act::Pause { pool, ms } => {
                self.daemon.post("/v1/pause", &json!({ "pool": pool, "for_ms": ms }))
            }
            Act::Resume { pool } => self.daemon.post("/v1/resume", &json!({ "pool": pool })),
            Act::Settle { lease, .. } => {
                self.daemon.delete(&format!("/v1/leases/{}", escaped(&lease.to_string())))
            }
        }
        .map(drop)
    }
}

/// A text as it may stand in a query or a path.
fn escaped(text: &str) -> String {
    let mut safe = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                safe.push(char::from(byte));
            }
            other => safe.push_str(&format!("%{other:02X}")),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(escaped("a/b:c@d é"), "a%2Fb%3Ac%40d%20%C3%A9");
    }
}
