//! Texts with colours, as `show` makes them, as lines on a screen.

use ratatui::style::{Color, Modifier, Style as Look};
use ratatui::text::{Line, Span};

use crate::show::style::{Ink, Style};

/// How an ink looks where it can be shown.
pub(super) fn look(style: Style, ink: Ink) -> Look {
    if style.colour { of_code(code(ink)) } else { Look::new() }
}

/// A text in that ink.
pub(super) fn span(style: Style, ink: Ink, text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), look(style, ink))
}

/// A line of `show`, with its colours. Nothing else in it begins with an escape: what comes from
/// others was cleaned.
pub(super) fn line(text: &str) -> Line<'static> {
    let mut spans = Vec::new();
    for (at, part) in text.split('\x1b').enumerate() {
        let sequence = part.strip_prefix('[').filter(|_| at > 0).and_then(|p| p.split_once('m'));
        let (look, text) = match sequence {
            Some((code, text)) => (of_code(code), text),
            None => (Look::new(), part),
        };
        if !text.is_empty() {
            spans.push(Span::styled(text.to_owned(), look));
        }
    }
    Line::from(spans)
}

const fn code(ink: Ink) -> &'static str {
    match ink {
        Ink::Bold => "1",
        Ink::Dim => "2",
        Ink::Good => "32",
        Ink::Short => "33",
        Ink::Bad => "31",
    }
}

fn of_code(code: &str) -> Look {
    match code {
        "1" => Look::new().add_modifier(Modifier::BOLD),
        "2" => Look::new().add_modifier(Modifier::DIM),
        "32" => Look::new().fg(Color::Green),
        "33" => Look::new().fg(Color::Yellow),
        "31" => Look::new().fg(Color::Red),
        _ => Look::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_show_are_colours_here() {
        let style = Style { colour: true, unicode: true, width: 80 };
        let inks = [Ink::Bold, Ink::Dim, Ink::Good, Ink::Short, Ink::Bad];
        for ink in inks {
            let text = format!("a {} c", style.ink(ink, "b"));
            let line = line(&text);
            let parts: Vec<_> = line.spans.iter().map(|span| span.content.as_ref()).collect();
            assert_eq!(parts, ["a ", "b", " c"]);
            assert_eq!(line.spans[1].style, look(style, ink), "{ink:?}");
            assert_ne!(line.spans[1].style, Look::new());
            assert_eq!(line.spans[2].style, Look::new());
        }
        let plain = Style { colour: false, ..style };
        assert_eq!(look(plain, Ink::Bad), Look::new());
    }
}
