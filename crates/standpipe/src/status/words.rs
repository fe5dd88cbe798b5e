//! The words of a snapshot, read again: each is one of those that are written, and a newer
//! program's word that this one does not know is `unknown`.

use serde::{Deserialize, Deserializer};
use standpipe_core::Reason;

/// All that the fields of a snapshot may say, beside why a call waits.
const WORDS: [&str; 27] = [
    // Where a configuration came from.
    "file",
    "code",
    "none",
    // Zones.
    "green",
    "amber",
    "red",
    // The breaker.
    "closed",
    "pre_emptive",
    "open",
    "half_open",
    // What a pool does while its store is away; `closed` and `open` are above.
    "share",
    // Refusals of a provider; `terminal` is among the reasons.
    "quota",
    "concurrency",
    "slow_down",
    "overload",
    // The first call after a pause.
    "wanted",
    "sent",
    // Limits; `parallel` is what it counts, too.
    "window",
    "bucket",
    "parallel",
    // Who holds a lease.
    "session",
    "ttl",
    // Tiers.
    "critical",
    "standard",
    "background",
    "store",
    // Whatever comes later.
    "unknown",
];

pub(super) fn known<'de, D: Deserializer<'de>>(from: D) -> Result<&'static str, D::Error> {
    String::deserialize(from).map(|word| find(&word))
}

pub(super) fn some<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'static str>, D::Error> {
    let word = Option::<String>::deserialize(from)?;
    Ok(word.map(|word| find(&word)))
}

fn find(word: &str) -> &'static str {
    let reasons = Reason::ALL.map(Reason::as_str);
    WORDS.into_iter().chain(reasons).find(|known| *known == word).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use standpipe_core::ThrottleKind;

    use super::*;

    #[test]
    fn words_are_read_as_they_are_written() {
        assert_eq!(find("return_window"), "return_window");
        assert_eq!(find(ThrottleKind::SlowDown.as_str()), "slow_down");
        assert_eq!(find(Reason::RetryBudget.as_str()), "retry_budget");
        assert_eq!(find("a word of next year"), "unknown");
    }
}
