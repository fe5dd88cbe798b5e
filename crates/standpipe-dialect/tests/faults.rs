//! Faults that other limiters have had, by name: for each, the test that shows ours has not.
//!
//! Which fault is which is told in `docs/faults.md`.

#![cfg(test)]

#[expect(dead_code, reason = "each test binary uses its own part of what they share")]
mod support;

use standpipe_dialect::{Answer, Dialect};

use support::{NEVER, read, refused};

/// A refusal of Standpipe's own, seen again by a Standpipe further out, must not pause or shrink
/// anything there: it would answer itself for ever.
#[test]
fn b42_our_own_answers_feed_nothing() {
    let headers = [
        ("X-Standpipe-Origin", "Ledger"),
        ("retry-after", "60"),
        ("anthropic-ratelimit-requests-limit", "10"),
        ("x-ratelimit-limit", "10"),
        ("x-ratelimit-remaining", "0"),
        ("ratelimit", "\"a\";r=0;t=5"),
        ("x-should-retry", "true"),
        ("date", "nonsense"),
    ];
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","code":"insufficient_quota"},
        "usage":{"input_tokens":5},"errors":[{"type":"RATE_LIMITED"}]}"#;
    let nothing = Answer { verdict: NEVER, limits: vec![], usage: None, doubts: vec![] };
    for dialect in Dialect::ALL {
        for status in [200, 403, 429, 503, 529] {
            assert_eq!(read(dialect, status, &headers, body), nothing, "{}", dialect.name());
        }
        // What only passed through is read like any other.
        let passed = [("x-standpipe-origin", "provider"), ("retry-after", "60")];
        let wait = refused(&read(dialect, 429, &passed, "")).wait;
        assert_eq!(wait, support::secs(60));
    }
}
