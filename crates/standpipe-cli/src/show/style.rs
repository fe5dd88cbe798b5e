//! What the output can show: its width, colours, and characters beyond ASCII.

use std::io::IsTerminal;

/// The width of a line where neither a terminal nor `COLUMNS` gives one.
const DEFAULT_WIDTH: usize = 80;
/// The layouts need at least this width.
const MIN_WIDTH: usize = 40;

/// What can be shown where the output goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// Colours and bold letters.
    pub(crate) colour: bool,
    /// Characters beyond ASCII.
    pub(crate) unicode: bool,
    /// Characters in a line.
    pub(crate) width: usize,
}

/// What a text means, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextRole {
    /// A title: bold.
    Title,
    /// Less important: dim.
    Muted,
    /// Plenty is left: green.
    Good,
    /// Little is left: yellow.
    Warning,
    /// Nothing is left: red.
    Error,
}

impl Style {
    /// Detects the style of standard output.
    pub(crate) fn of_stdout() -> Self {
        Self::detect(std::io::stdout().is_terminal(), terminal_width(), &|name| {
            std::env::var(name).ok()
        })
    }

    /// Detects the style of standard error.
    pub(crate) fn of_stderr() -> Self {
        Self::detect(std::io::stderr().is_terminal(), None, &|name| std::env::var(name).ok())
    }

    /// Derives the style from the environment. Colour needs a terminal that is not dumb, and no
    /// `NO_COLOR`.
    fn detect(
        terminal: bool,
        width: Option<usize>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let dumb = set("TERM").is_none_or(|kind| kind == "dumb");
        let columns = set("COLUMNS").and_then(|columns| columns.parse().ok());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        // Without a locale UTF-8 is assumed: nearly every terminal shows it.
        let unicode = locale.is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        let width = width.filter(|_| terminal).or(columns).unwrap_or(DEFAULT_WIDTH);
        Self {
            colour: terminal && !dumb && set("NO_COLOR").is_none(),
            unicode,
            width: width.max(MIN_WIDTH),
        }
    }

    /// Colours a text, where there is colour.
    pub(crate) fn paint(self, role: TextRole, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match role {
            TextRole::Title => "1",
            TextRole::Muted => "2",
            TextRole::Good => "32",
            TextRole::Warning => "33",
            TextRole::Error => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Returns the separator between two remarks on a line.
    pub(crate) const fn dot(self) -> &'static str {
        if self.unicode { " · " } else { ", " }
    }
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// Counts the columns of a text: its characters, without colour sequences.
pub(crate) fn columns(text: &str) -> usize {
    let mut count = 0;
    let mut inside = false;
    for c in text.chars() {
        match c {
            '\x1b' => inside = true,
            'm' if inside => inside = false,
            _ if inside => {}
            _ => count += 1,
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(terminal: bool, width: Option<usize>, variables: &[(&str, &str)]) -> Style {
        let of = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned())
        };
        Style::detect(terminal, width, &of)
    }

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        let term = ("TERM", "xterm");
        assert!(found(true, None, &[term]).colour);
        assert!(!found(false, None, &[term]).colour);
        assert!(!found(true, None, &[term, ("NO_COLOR", "1")]).colour);
        assert!(found(true, None, &[term, ("NO_COLOR", "")]).colour, "empty counts as unset");
        assert!(!found(true, None, &[("TERM", "dumb")]).colour);
    }

    #[test]
    fn a_pipe_is_as_wide_as_columns_says() {
        assert_eq!(found(false, Some(200), &[]).width, 80);
        assert_eq!(found(false, None, &[("COLUMNS", "120")]).width, 120);
        assert_eq!(found(true, Some(50), &[("COLUMNS", "120")]).width, 50);
        assert_eq!(found(true, Some(3), &[]).width, 40);
    }

    #[test]
    fn a_locale_without_utf8_gets_ascii() {
        assert!(!found(true, None, &[("LC_ALL", "C")]).unicode);
        assert!(found(true, None, &[("LANG", "de_DE.UTF-8")]).unicode);
    }

    #[test]
    fn colours_take_no_columns() {
        let style = Style { colour: true, unicode: true, width: 80 };
        assert_eq!(columns(&style.paint(TextRole::Error, "über")), 4);
    }
}
