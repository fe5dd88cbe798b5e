//! The help page: all keys, bars and zones.

use ratatui::text::{Line, Text};

use crate::show::style::Style;

const KEYS: [(&str, &str); 14] = [
    ("up down j k", "select a row; also PgUp PgDn Home End"),
    ("Tab 1 to 6", "pools, leases, queue, agents, events, proxied calls"),
    ("s", "change the sort order, shown in the pane's title"),
    ("/", "filter by pool, agent, model or task; Esc shows all"),
    ("space", "freeze the view; again to unfreeze"),
    ("p", "pause the pool of the row: no call is admitted for a while"),
    ("r", "resume it: lifts a pause, and the provider's stop"),
    ("x", "settle the selected lease at its estimate, after a question"),
    ("Ctrl-L Ctrl-Z", "redraw; stop until `fg`"),
    ("q Ctrl-C", "quit"),
    ("", ""),
    ("bars", ""),
    ("zones", "green plenty, amber under 40 % left, red under 15 %"),
    ("grey", "older data: the store or daemon is unavailable"),
];

pub(super) fn text(style: Style) -> Text<'static> {
    let bars = match style.unicode {
        true => "█ used, ▒ held by calls in flight, ░ left",
        false => "# used, = held by calls in flight, . left",
    };
    let lines = KEYS.iter().map(|(key, does)| {
        let does = if *key == "bars" { bars } else { does };
        Line::from(format!("  {key:<15}{does}"))
    });
    Text::from(lines.collect::<Vec<_>>())
}
