//! Conversion of the coloured text of `show` to ratatui's spans.

use ratatui::style::{Color, Modifier, Style as TuiStyle};
use ratatui::text::{Line, Span};

use crate::show::style::{Style, TextRole};

/// Returns the style of a role, or none where there is no colour.
pub(super) fn tui_style(style: Style, role: TextRole) -> TuiStyle {
    if style.colour { of_code(code(role)) } else { TuiStyle::new() }
}

/// Creates a span in the style of a role.
pub(super) fn span(style: Style, role: TextRole, text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), tui_style(style, role))
}

/// Parses a line of `show` with its colour sequences. It holds no other escapes: text from outside
/// is escaped before.
pub(super) fn line(text: &str) -> Line<'static> {
    let mut spans = Vec::new();
    for (at, part) in text.split('\x1b').enumerate() {
        let sequence = part.strip_prefix('[').filter(|_| at > 0).and_then(|p| p.split_once('m'));
        let (tui, text) = match sequence {
            Some((code, text)) => (of_code(code), text),
            None => (TuiStyle::new(), part),
        };
        if !text.is_empty() {
            spans.push(Span::styled(text.to_owned(), tui));
        }
    }
    Line::from(spans)
}

const fn code(role: TextRole) -> &'static str {
    match role {
        TextRole::Title => "1",
        TextRole::Muted => "2",
        TextRole::Good => "32",
        TextRole::Warning => "33",
        TextRole::Error => "31",
    }
}

fn of_code(code: &str) -> TuiStyle {
    match code {
        "1" => TuiStyle::new().add_modifier(Modifier::BOLD),
        "2" => TuiStyle::new().add_modifier(Modifier::DIM),
        "32" => TuiStyle::new().fg(Color::Green),
        "33" => TuiStyle::new().fg(Color::Yellow),
        "31" => TuiStyle::new().fg(Color::Red),
        _ => TuiStyle::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_show_are_converted() {
        let style = Style { colour: true, unicode: true, width: 80 };
        let roles =
            [TextRole::Title, TextRole::Muted, TextRole::Good, TextRole::Warning, TextRole::Error];
        for role in roles {
            let text = format!("a {} c", style.paint(role, "b"));
            let line = line(&text);
            let parts: Vec<_> = line.spans.iter().map(|span| span.content.as_ref()).collect();
            assert_eq!(parts, ["a ", "b", " c"]);
            assert_eq!(line.spans[1].style, tui_style(style, role), "{role:?}");
            assert_ne!(line.spans[1].style, TuiStyle::new());
            assert_eq!(line.spans[2].style, TuiStyle::new());
        }
        let plain = Style { colour: false, ..style };
        assert_eq!(tui_style(plain, TextRole::Error), TuiStyle::new());
    }
}
