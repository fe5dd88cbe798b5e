//! Comments that have grown too wide, filled again to the width of the code.
//!
//! `rustfmt` leaves comments as they are. Only paragraphs with a line that is too wide are touched;
//! tables, headings, code and whatever else is not plain prose stay as they are.

/// The widest a line may be; the same as in `rustfmt.toml`.
const WIDTH: usize = 100;

/// The text with its wide comments filled again.
pub(crate) fn wrap(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    let mut fenced = false;
    let mut at = 0;
    while at < lines.len() {
        let paragraph = Paragraph::starting(&lines[at..], &mut fenced);
        match paragraph.filter(Paragraph::is_wide) {
            Some(paragraph) => {
                at += paragraph.lines;
                paragraph.fill(&mut out);
            }
            None => {
                out.push_str(lines[at]);
                out.push('\n');
                at += 1;
            }
        }
    }
    out
}

/// Lines of a comment that belong together.
struct Paragraph<'a> {
    /// What every line begins with, up to and with the comment's mark.
    mark: &'a str,
    /// What comes before the text of the first line: blanks, or the mark of a list item.
    first: &'a str,
    text: Vec<&'a str>,
    lines: usize,
}

impl<'a> Paragraph<'a> {
    /// The paragraph that begins with the first of these lines, if that is prose in a comment.
    fn starting(lines: &[&'a str], fenced: &mut bool) -> Option<Self> {
        let (mark, text) = comment(lines[0])?;
        if text.trim_start().starts_with("```") {
            *fenced = !*fenced;
            return None;
        }
        let first = lead(text);
        let text = &text[first.len()..];
        let link = text.starts_with('[') && text.contains("]: ");
        if *fenced || text.is_empty() || link || text.starts_with(['#', '|', '<']) {
            return None;
        }
        let mut paragraph = Self { mark, first, text: vec![text], lines: 1 };
        for line in &lines[1..] {
            let Some((mark, text)) = comment(line) else { break };
            let prose = text.trim_start();
            let indent = text.len() - prose.len();
            let another = prose.is_empty() || lead(text).len() > indent;
            let special = prose.starts_with("```") || prose.starts_with(['#', '|']);
            if mark != paragraph.mark || indent != paragraph.first.len() || another || special {
                break;
            }
            paragraph.text.push(prose);
            paragraph.lines += 1;
        }
        Some(paragraph)
    }

    fn is_wide(&self) -> bool {
        let before = self.mark.chars().count() + self.first.chars().count();
        self.text.iter().any(|line| before + line.chars().count() > WIDTH)
    }

    fn fill(&self, out: &mut String) {
        let mut line = format!("{}{}", self.mark, self.first);
        let next = format!("{}{}", self.mark, " ".repeat(self.first.chars().count()));
        let mut empty = true;
        for word in self.text.iter().flat_map(|line| line.split_whitespace()) {
            let width = line.chars().count() + usize::from(!empty) + word.chars().count();
            if !empty && width > WIDTH && !changes_meaning(word) {
                out.push_str(&line);
                out.push('\n');
                line.clone_from(&next);
                empty = true;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        out.push_str(&line);
        out.push('\n');
    }
}

/// A line that is only a comment: its mark with what is before it, and the rest.
fn comment(line: &str) -> Option<(&str, &str)> {
    let indent = line.len() - line.trim_start().len();
    let mark = ["//!", "///", "//"].into_iter().find(|mark| line[indent..].starts_with(mark))?;
    Some(line.split_at(indent + mark.len()))
}

/// The blanks, and the mark of a list item if there is one, before a text.
fn lead(text: &str) -> &str {
    let rest = text.trim_start();
    let item = if rest.starts_with("- ") || rest.starts_with("* ") {
        2
    } else {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && rest[digits..].starts_with(". ") { digits + 2 } else { 0 }
    };
    &text[..text.len() - rest.len() + item]
}

/// Whether a line that begins with this word would no longer be prose.
fn changes_meaning(word: &str) -> bool {
    let number = word.strip_suffix('.').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    number || matches!(word, "-" | "*" | "+") || word.starts_with(['#', '|', '>'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(count: usize) -> String {
        vec!["word"; count].join(" ")
    }

    #[test]
    fn a_wide_paragraph_is_filled_and_the_next_is_left() {
        let text =
            format!("    /// {}\n    /// end.\n    ///\n    /// Next\n    /// one.\n", words(20));
        let wrapped = wrap(&text);
        let lines: Vec<&str> = wrapped.lines().collect();
        assert_eq!(lines[0], format!("    /// {}", words(18)));
        assert_eq!(
            lines[1..],
            ["    /// word word end.", "    ///", "    /// Next", "    /// one."]
        );
    }

    #[test]
    fn items_of_a_list_hang() {
        let text = format!("//! - {}\n//!   more\n//! - two\n", words(20));
        let wrapped = wrap(&text);
        assert!(wrapped.ends_with("//!   word more\n//! - two\n"), "{wrapped}");
    }

    #[test]
    fn code_tables_and_what_fits_stay() {
        let wide = words(30);
        let text = format!(
            "//! Short\n//! lines.\n//!\n//! ```text\n//! {wide}\n//! ```\n//! | {wide} |\n\
             //! # {wide}\nlet code = 1; // {wide}\nlet {wide};\n"
        );
        assert_eq!(wrap(&text), text);
    }

    #[test]
    fn no_line_begins_with_what_would_be_a_list() {
        let text = format!("// {} - tail\n", words(19) + " ww");
        assert!(wrap(&text).starts_with(&format!("// {} ww -\n", words(19))), "{}", wrap(&text));
    }
}
