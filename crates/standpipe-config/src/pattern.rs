//! Patterns in which `*` stands for any text: of models and of paths.

/// Returns whether a pattern matches the whole text.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(matches("claude-sonnet-*", "claude-sonnet-4-5"));
        assert!(matches("*", "") && matches("a*c*e", "abcde") && matches("gpt", "gpt"));
        assert!(!matches("gpt", "gpt-4") && !matches("a*a", "a") && !matches("*x", "y"));
    }
}
