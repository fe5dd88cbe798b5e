//! The table of characters that do not show: they move the cursor, start a new line, change the
//! direction of text, or have no width.
//!
//! It holds the Unicode categories Cc (control), Cf (format), Zl and Zp (line and paragraph
//! separators) and all of the property `Default_Ignorable_Code_Point`, including code points
//! reserved for it. A test of the command line compares it with all of Unicode.

/// First and last character of each range, in ascending order.
const INVISIBLE: [(char, char); 27] = [
    ('\u{0}', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a character does not show in text.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let after = INVISIBLE.partition_point(|(_, last)| *last < c);
    INVISIBLE.get(after).is_some_and(|(first, _)| *first <= c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(INVISIBLE.iter().all(|(first, last)| first <= last));
        assert!(INVISIBLE.is_sorted_by(|a, b| a.1 < b.0));
    }

    #[test]
    fn what_people_read_is_visible() {
        for c in "aZ09 ~é߀你כا🚰“”…·".chars() {
            assert!(!is_invisible(c), "{c:?}");
        }
        for c in ['\0', '\n', '\x1b', '\x7f', '\u{9b}', '\u{200b}', '\u{202e}', '\u{e0041}'] {
            assert!(is_invisible(c), "{c:?}");
        }
    }
}
