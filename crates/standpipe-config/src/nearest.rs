//! Suggestions for misspelled words.

/// Returns the known word nearest to `word`, if it is near enough to suggest: about one typing
/// error in three letters, where an error is a missing, extra, wrong or swapped letter.
///
/// ```
/// use standpipe_config::nearest;
///
/// let keys = ["requests", "margin", "parallel"];
/// assert_eq!(nearest("margni", keys.into_iter()), Some("margin"));
/// assert_eq!(nearest("zzz", keys.into_iter()), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().take(LONGEST + 1).count();
    if length == 0 || length > LONGEST {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    // Of one letter nothing would be left.
    let allowed = (length / 3).clamp(usize::from(length > 1), 4);
    let distances = known
        .filter(|known| known.len() <= 4 * LONGEST)
        .map(|known| (strsim::osa_distance(&lower, &known.to_ascii_lowercase()), known));
    let near = distances.filter(|(errors, _)| *errors <= allowed);
    // Of two that differ in case only, the one written like the word.
    near.min_by_key(|(errors, known)| (*errors, strsim::osa_distance(word, known)))
        .map(|(_, known)| known)
}

/// Returns the known name that a new name with slashes may be a misspelling of: every segment must
/// be near. So `my/slot` may mean `my/slots`, but `team/one` does not mean `team/two`.
pub fn nearest_path<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_near = |one: &str, other: &str| {
        one == other || one.len() >= 3 && nearest(one, std::iter::once(other)).is_some()
    };
    let near = known.filter(|known| {
        name.split('/').count() == known.split('/').count()
            && name.split('/').zip(known.split('/')).all(|(one, other)| is_near(one, other))
    });
    nearest(name, near)
}

/// The maximum length of a word. Comparing longer ones would take too long.
const LONGEST: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["requests", "input_tokens", "output_tokens", "margin", "enforce"];

    fn meant(word: &str) -> Option<&'static str> {
        nearest(word, KEYS.into_iter())
    }

    #[test]
    fn slips_of_all_kinds_are_seen_through() {
        assert_eq!(meant("request"), Some("requests"));
        assert_eq!(meant("reqeusts"), Some("requests"));
        assert_eq!(meant("input_token"), Some("input_tokens"));
        assert_eq!(meant("Margin"), Some("margin"));
        assert_eq!(meant("enforced"), Some("enforce"));
        assert_eq!(meant("inputtokens"), Some("input_tokens"));
    }

    #[test]
    fn far_empty_and_enormous_words_suggest_nothing() {
        for word in ["", "x", "colour", "🚰🚰🚰", &"requests".repeat(2_000)] {
            assert_eq!(meant(word), None, "{word:.20}");
        }
        assert_eq!(nearest("a", std::iter::empty()), None);
    }

    #[test]
    fn of_two_that_are_equally_near_the_first_is_taken() {
        assert_eq!(nearest("cat", ["bat", "hat"].into_iter()), Some("bat"));
        assert_eq!(nearest("my/xx", ["MY/X", "my/x"].into_iter()), Some("my/x"));
    }

    #[test]
    fn a_new_path_is_suspected_only_if_every_segment_is_near() {
        let known = ["my/slots", "anthropic/sonnet", "c/api", "team/one"];
        let meant = |name: &str| nearest_path(name, known.into_iter());
        assert_eq!(meant("my/slot"), Some("my/slots"));
        assert_eq!(meant("antropic/sonet"), Some("anthropic/sonnet"));
        for new in ["d/api", "team/two", "my/slots/eu", "anthropic/opus"] {
            assert_eq!(meant(new), None, "{new}");
        }
    }
}
