//! [`Headers`]: lookup by name in any letter case, over at most [`bounds::HEADERS`] headers.

use crate::bounds;

/// The headers of a response that have a usable value.
#[derive(Debug)]
pub(crate) struct Headers<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Headers<'a> {
    /// Drops headers with a blank value and those over [`bounds::VALUE`].
    pub(crate) fn new(raw: &[(&'a str, &'a str)]) -> Self {
        let read = raw.iter().take(bounds::HEADERS).map(|(name, value)| (*name, value.trim()));
        Self(read.filter(|(_, value)| (1..=bounds::VALUE).contains(&value.len())).collect())
    }

    /// Every value of a header, in order.
    pub(crate) fn all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'a str> + 'h {
        self.all_joined([name, "", ""])
    }

    /// Every value of the header whose name is these three parts joined, in order.
    pub(crate) fn all_joined<'h>(
        &'h self,
        parts: [&'h str; 3],
    ) -> impl Iterator<Item = &'a str> + 'h {
        let found = self.0.iter().filter(move |(name, _)| is_joined(name, parts));
        found.map(|(_, value)| *value)
    }

    /// The first value of a header.
    pub(crate) fn first(&self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Whether a header has this value, in any letter case.
    pub(crate) fn has(&self, name: &str, value: &str) -> bool {
        self.all(name).any(|found| found.eq_ignore_ascii_case(value))
    }

    /// For every header named `prefix`…`suffix`: the middle of its name in lower case, and its
    /// value.
    pub(crate) fn between(&self, prefix: &str, suffix: &str) -> Vec<(String, &'a str)> {
        let middle = |name: &str| {
            let (start, rest) = name.split_at_checked(prefix.len())?;
            let (middle, end) = rest.split_at_checked(rest.len().checked_sub(suffix.len())?)?;
            let matches = start.eq_ignore_ascii_case(prefix) && end.eq_ignore_ascii_case(suffix);
            matches.then(|| middle.to_ascii_lowercase())
        };
        self.0.iter().filter_map(|(name, value)| Some((middle(name)?, *value))).collect()
    }
}

/// Compares without joining: this runs for every header and every row of a table.
fn is_joined(name: &str, parts: [&str; 3]) -> bool {
    let mut rest = name.as_bytes();
    for part in parts {
        let Some((start, after)) = rest.split_at_checked(part.len()) else { return false };
        if !start.eq_ignore_ascii_case(part.as_bytes()) {
            return false;
        }
        rest = after;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_case_and_in_parts() {
        let raw = [("X-RateLimit-Limit-Tokens", " 5 "), ("x-ratelimit-limit-tokens", "6")];
        let headers = Headers::new(&raw);
        let found: Vec<_> = headers.all_joined(["x-ratelimit-", "limit", "-tokens"]).collect();
        assert_eq!(found, ["5", "6"]);
        assert_eq!(headers.first("x-ratelimit-limit"), None);
        assert_eq!(headers.first("x-ratelimit-limit-tokens-day"), None);
        assert_eq!(headers.between("x-ratelimit-", "-tokens")[0], ("limit".to_owned(), "5"));
    }

    #[test]
    fn blank_long_and_too_many_are_left_out() {
        let long = "x".repeat(bounds::VALUE + 1);
        let mut raw = vec![("a", " "), ("b", long.as_str())];
        raw.extend([("c", "1"); bounds::HEADERS]);
        raw.push(("d", "1"));
        let headers = Headers::new(&raw);
        assert_eq!(
            (headers.first("a"), headers.first("b"), headers.first("d")),
            (None, None, None)
        );
        assert_eq!(headers.all("c").count(), bounds::HEADERS - 2);
    }
}
