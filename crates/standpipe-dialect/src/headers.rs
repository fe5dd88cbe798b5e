//! The headers of an answer: found in any case, and no more of them than a bound.

use crate::bounds;

/// The headers that say something.
#[derive(Debug)]
pub(crate) struct Headers<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Headers<'a> {
    /// Blank values say nothing, and overlong ones are about something else: both are left out.
    pub(crate) fn of(raw: &[(&'a str, &'a str)]) -> Self {
        let looked = raw.iter().take(bounds::HEADERS).map(|(name, value)| (*name, value.trim()));
        Self(looked.filter(|(_, value)| (1..=bounds::VALUE).contains(&value.len())).collect())
    }

    /// Every value of a header, in order.
    pub(crate) fn all<'h>(&'h self, name: &'h str) -> impl Iterator<Item = &'a str> + 'h {
        self.parts(name, "", "")
    }

    /// Every value of the header whose name these three make up, in order.
    pub(crate) fn parts<'h>(
        &'h self,
        before: &'h str,
        part: &'h str,
        after: &'h str,
    ) -> impl Iterator<Item = &'a str> + 'h {
        let found = self.0.iter().filter(move |(name, _)| is(name, [before, part, after]));
        found.map(|(_, value)| *value)
    }

    /// The first value of a header.
    pub(crate) fn first(&self, name: &str) -> Option<&'a str> {
        self.all(name).next()
    }

    /// Whether a header has this value, in any case.
    pub(crate) fn has(&self, name: &str, value: &str) -> bool {
        self.all(name).any(|is| is.eq_ignore_ascii_case(value))
    }

    /// What stands between `before` and `after` in the names that have both, in lower case, and the
    /// values.
    pub(crate) fn between(&self, before: &str, after: &str) -> Vec<(String, &'a str)> {
        let inside = |name: &str| {
            let (start, rest) = name.split_at_checked(before.len())?;
            let (inside, end) = rest.split_at_checked(rest.len().checked_sub(after.len())?)?;
            let is = start.eq_ignore_ascii_case(before) && end.eq_ignore_ascii_case(after);
            is.then(|| inside.to_ascii_lowercase())
        };
        self.0.iter().filter_map(|(name, value)| Some((inside(name)?, *value))).collect()
    }
}

fn is(name: &str, parts: [&str; 3]) -> bool {
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
        let headers = Headers::of(&raw);
        let found: Vec<_> = headers.parts("x-ratelimit-", "limit", "-tokens").collect();
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
        let headers = Headers::of(&raw);
        assert_eq!(
            (headers.first("a"), headers.first("b"), headers.first("d")),
            (None, None, None)
        );
        assert_eq!(headers.all("c").count(), bounds::HEADERS - 2);
    }
}
