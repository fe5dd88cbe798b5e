//! The known word that somebody probably meant.

/// The known word nearest to `word`, if one is near enough to be worth suggesting: about one slip
/// in three letters, where a slip is a letter too many, too few, wrong, or swapped with the next.
///
/// ```
/// use standpipe::config::nearest;
///
/// let keys = ["requests", "margin", "parallel"];
/// assert_eq!(nearest("margni", keys.into_iter()), Some("margin"));
/// assert_eq!(nearest("zzz", keys.into_iter()), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(LONGEST + 1).collect();
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let allowed = (word.len() / 3).clamp(1, 4);
    let distances = known.map(|candidate| (slips(&word, candidate, allowed), candidate));
    let best = distances.filter(|(slips, _)| *slips <= allowed).min_by_key(|(slips, _)| *slips);
    best.map(|(_, candidate)| candidate)
}

/// Longer words are not worth comparing letter by letter.
const LONGEST: usize = 200;

/// How many slips lie between two words, in the optimal alignment; beyond `allowed` only that it is
/// more.
fn slips(word: &[char], candidate: &str, allowed: usize) -> usize {
    let other: Vec<char> = candidate.chars().collect();
    if word.len().abs_diff(other.len()) > allowed {
        return allowed + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in word.iter().enumerate() {
        let mut line = vec![row + 1];
        for (column, with) in other.iter().enumerate() {
            let changed = above[column] + usize::from(!letter.eq_ignore_ascii_case(with));
            let mut least = changed.min(above[column + 1] + 1).min(line[column] + 1);
            let swapped = row > 0
                && column > 0
                && word[row - 1] == other[column]
                && other[column - 1] == word[row];
            if swapped {
                least = least.min(before[column - 1] + 1);
            }
            line.push(least);
        }
        before = std::mem::replace(&mut above, line);
    }
    above[other.len()]
}

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
    }
}
