//! Just enough reading of Rust to check rules on it, without a parser.
//!
//! [`mask`] blanks comments and literals, so that what remains of a file is code: words in it are
//! words of the language, and braces match. Everything else here works on masked text.

/// The same text with the insides of comments, strings and characters replaced by blanks. Lines and
/// columns stay where they were.
pub(crate) fn mask(text: &str) -> String {
    let mut rest = Scanner { chars: text.chars().collect(), at: 0, out: String::new() };
    while rest.at < rest.chars.len() {
        rest.step();
    }
    rest.out
}

/// Masked text without its `#[cfg(test)] mod … { … }` blocks; their lines are gone.
pub(crate) fn without_tests(masked: &str) -> String {
    let mut kept = String::new();
    let mut rest = masked;
    while let Some(at) = rest.find("#[cfg(test)]") {
        let (before, attribute) = rest.split_at(at);
        let item = attribute["#[cfg(test)]".len()..].trim_start();
        kept.push_str(before);
        match item.strip_prefix("mod ").and_then(block_length) {
            Some(length) => {
                let from = attribute.len() - item.len() + "mod ".len();
                rest = attribute[from + length..].trim_start_matches('\n');
            }
            None => {
                let (taken, after) = attribute.split_at("#[cfg(test)]".len());
                kept.push_str(taken);
                rest = after;
            }
        }
    }
    kept + rest
}

/// A function in masked text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// The line of its `fn`, from 1.
    pub(crate) line: usize,
    /// From that line to its closing brace, both counted.
    pub(crate) lines: usize,
}

/// Every function with a body.
pub(crate) fn functions(masked: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for at in word_positions(masked, "fn") {
        let signature = &masked[at + "fn".len()..];
        let name: String =
            signature.trim_start().chars().take_while(|c| is_word(*c)).collect::<String>();
        if name.is_empty() {
            // The type of a function, or one whose name a macro fills in.
            continue;
        }
        if let Some(length) = block_length(signature) {
            let lines = signature[..length].matches('\n').count() + 1;
            let line = masked[..at].matches('\n').count() + 1;
            found.push(Function { name, line, lines });
        }
    }
    found
}

/// Where a word of the language stands by itself, as byte positions.
pub(crate) fn word_positions<'a>(
    masked: &'a str,
    word: &'a str,
) -> impl Iterator<Item = usize> + 'a {
    masked.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = masked[..*at].chars().next_back();
        let after = masked[at + word.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// The line of a byte position, from 1.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// How far it is to the end of the first `{ … }`; nothing if a `;` ends the item before.
fn block_length(text: &str) -> Option<usize> {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            ';' if braces == 0 && others == 0 => return None,
            '{' if others == 0 || braces > 0 => braces += 1,
            '}' if braces > 0 => {
                braces -= 1;
                if braces == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    out: String,
}

impl Scanner {
    fn step(&mut self) {
        let inside_word = self.out.chars().next_back().is_some_and(is_word);
        match (self.peek(0), self.peek(1)) {
            ('/', '/') => self.blank_while(|rest| rest.peek(0) != '\n'),
            ('/', '*') => self.block_comment(),
            ('"', _) => self.string(),
            ('\'', _) => self.quote(),
            ('r', '"' | '#') if !inside_word => self.raw_string(),
            ('b' | 'c', 'r') if !inside_word && matches!(self.peek(2), '"' | '#') => {
                self.keep();
                self.raw_string();
            }
            _ => self.keep(),
        }
    }

    /// The character so far ahead; a zero after the end.
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn keep(&mut self) {
        self.push(self.peek(0));
    }

    fn blank(&mut self) {
        self.push(if self.peek(0) == '\n' { '\n' } else { ' ' });
    }

    /// Goes on by one character, for which this one stands; stays at the end.
    fn push(&mut self, stands: char) {
        if self.at < self.chars.len() {
            self.out.push(stands);
            self.at += 1;
        }
    }

    fn blank_while(&mut self, go_on: impl Fn(&Self) -> bool) {
        while self.at < self.chars.len() && go_on(self) {
            self.blank();
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    self.blank();
                    continue;
                }
            }
            self.blank();
            self.blank();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.keep();
        while self.at < self.chars.len() && self.peek(0) != '"' {
            if self.peek(0) == '\\' {
                self.blank();
            }
            self.blank();
        }
        self.keep();
    }

    /// A character, or a lifetime: which is kept, being a word of the language.
    fn quote(&mut self) {
        let is_char = self.peek(1) == '\\' || (self.peek(1) != '\'' && self.peek(2) == '\'');
        self.keep();
        if !is_char {
            return;
        }
        if self.peek(0) == '\\' {
            self.blank();
        }
        self.blank();
        self.blank_while(|rest| !matches!(rest.peek(0), '\'' | '\n'));
        if self.peek(0) == '\'' {
            self.keep();
        }
    }

    fn raw_string(&mut self) {
        let mut hashes = 0;
        while self.peek(1 + hashes) == '#' {
            hashes += 1;
        }
        if self.peek(1 + hashes) != '"' {
            // A raw identifier.
            self.keep();
            return;
        }
        for _ in 0..hashes + 2 {
            self.keep();
        }
        let ends =
            |rest: &Self| rest.peek(0) == '"' && (1..=hashes).all(|ahead| rest.peek(ahead) == '#');
        self.blank_while(|rest| !ends(rest));
        for _ in 0..=hashes {
            self.keep();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_become_blanks() {
        assert_eq!(mask("a // b {\nc"), "a       \nc");
        assert_eq!(mask("a /* b /* c */ } */ d"), "a                   d");
        assert_eq!(mask(r#"f("a\"b{", 'x')"#), r#"f("     ", ' ')"#);
        assert_eq!(mask("r#\"a\"b\"# + br\"{\" + c\"}\""), "r#\"   \"# + br\" \" + c\" \"");
        assert_eq!(mask("'{' '\\'' b'}' '\\u{7d}'"), "' ' '  ' b' ' '      '");
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        assert_eq!(mask("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
        assert_eq!(mask("r#type + 'outer: loop"), "r#type + 'outer: loop");
    }

    #[test]
    fn an_unfinished_literal_ends_with_the_text() {
        for text in ["\"abc", "\"abc\\", "r#\"abc\"", "/* abc", "'\\", "'"] {
            assert_eq!(mask(text).chars().count(), text.chars().count(), "{text}");
        }
    }

    #[test]
    fn a_function_reaches_from_its_signature_to_its_brace() {
        let text =
            "fn one() {\n    two(|| { 3 });\n}\n\nfn\nlong(\n    a: [u8; 2],\n) -> u8\n{\n}\n";
        let found = functions(&mask(text));
        let seen: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
        assert_eq!(seen, [("one", 1, 3), ("long", 5, 6)]);
    }

    #[test]
    fn declarations_and_types_of_functions_have_no_body() {
        let text = "trait T { fn a(&self, f: [u8; 3]); }\ntype F = fn(u8);\nstruct S { f: fn() }";
        assert_eq!(functions(&mask(text)), []);
    }

    #[test]
    fn test_modules_can_be_left_out() {
        let text = "a\n#[cfg(test)]\nmod tests {\n    b {}\n}\nc\n#[cfg(test)]\nmod more;\nd\n";
        let left = without_tests(text);
        assert_eq!(left, "a\nc\n#[cfg(test)]\nmod more;\nd\n");
    }

    #[test]
    fn words_are_whole() {
        let found: Vec<usize> = word_positions("rand brand rand_x x.rand", "rand").collect();
        assert_eq!(found, [0, 20]);
        assert_eq!(line_of("a\nb", 2), 2);
    }
}
