//! What a terminal can show: how wide it is, and whether it has colours and more than ASCII.

use std::io::IsTerminal;

/// How wide a line may be when nobody says.
const USUAL_WIDTH: usize = 80;
/// No layout works with less.
const LEAST_WIDTH: usize = 40;

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

/// A colour with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// A title.
    Bold,
    /// Of less weight.
    Dim,
    /// There is plenty.
    Good,
    /// It is getting short.
    Short,
    /// There is none.
    Bad,
}

impl Style {
    /// For standard output.
    pub(crate) fn of_stdout() -> Self {
        Self::found(std::io::stdout().is_terminal(), terminal_width(), &|name| {
            std::env::var(name).ok()
        })
    }

    /// As found around us. Colour only on a terminal, and not where `NO_COLOR` says anything or
    /// the terminal is dumb.
    fn found(
        terminal: bool,
        width: Option<usize>,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let said = |name: &str| variable(name).filter(|value| !value.is_empty());
        let dumb = said("TERM").is_none_or(|kind| kind == "dumb");
        let columns = said("COLUMNS").and_then(|columns| columns.parse().ok());
        let locale = said("LC_ALL").or_else(|| said("LC_CTYPE")).or_else(|| said("LANG"));
        // A locale that nobody set says nothing about the terminal; nearly all show UTF-8.
        let unicode = locale.is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        let width = width.filter(|_| terminal).or(columns).unwrap_or(USUAL_WIDTH);
        Self {
            colour: terminal && !dumb && said("NO_COLOR").is_none(),
            unicode,
            width: width.max(LEAST_WIDTH),
        }
    }

    /// The text in that ink, where there is colour.
    pub(crate) fn ink(self, ink: Ink, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Bold => "1",
            Ink::Dim => "2",
            Ink::Good => "32",
            Ink::Short => "33",
            Ink::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// A dot between two remarks on a line.
    pub(crate) const fn dot(self) -> &'static str {
        if self.unicode { " · " } else { ", " }
    }
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// How many columns a text takes: its characters, without colours.
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
        Style::found(terminal, width, &of)
    }

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        let term = ("TERM", "xterm");
        assert!(found(true, None, &[term]).colour);
        assert!(!found(false, None, &[term]).colour);
        assert!(!found(true, None, &[term, ("NO_COLOR", "1")]).colour);
        assert!(found(true, None, &[term, ("NO_COLOR", "")]).colour, "empty says nothing");
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
        assert_eq!(columns(&style.ink(Ink::Bad, "über")), 4);
    }
}
