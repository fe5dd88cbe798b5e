//! Regression tests for known faults of other rate limiters, named as in `docs/faults.md`.

use standpipe_dialect::{Answer, Dialect};

use crate::support::{NEVER, read, refused};

/// A refusal by an inner Standpipe must not pause or shrink anything at an outer one: the outer
/// would react to its own kind of refusal for ever.
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
    let nothing = Answer { verdict: NEVER, limits: vec![], usage: None, anomalies: vec![] };
    for dialect in Dialect::ALL {
        for status in [200, 403, 429, 503, 529] {
            assert_eq!(read(dialect, status, &headers, body), nothing, "{}", dialect.name());
        }
        // A provider's response that passed through an inner Standpipe is read like any other.
        let passed = [("x-standpipe-origin", "provider"), ("retry-after", "60")];
        let wait = refused(&read(dialect, 429, &passed, "")).wait;
        assert_eq!(wait, crate::support::secs(60));
    }
}
