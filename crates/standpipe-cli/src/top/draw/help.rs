//! All keys, and what the marks mean.

use ratatui::text::{Line, Text};

use crate::show::style::Style;

const KEYS: [(&str, &str); 14] = [
    ("up down j k", "choose a row; PgUp PgDn Home End go further"),
    ("Tab 1 2 3 4 5", "pools, leases, queue, agents, events"),
    ("s", "sort the pane otherwise; its title says how"),
    ("/", "only what has a text in pool, agent, model or task; Esc: all"),
    ("space", "freeze the picture; again to go on"),
    ("p", "pause the pool of the row: nobody is admitted for a while"),
    ("r", "resume it: lifts a pause, and the provider's stop"),
    ("x", "settle the chosen lease at its estimate, after a question"),
    ("Ctrl-L Ctrl-Z", "draw anew; stop until `fg`"),
    ("q Ctrl-C", "quit"),
    ("", ""),
    ("bars", ""),
    ("zones", "green plenty, amber under 40 % left, red under 15 %"),
    ("away", "what is grey was seen before the store or daemon went away"),
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
