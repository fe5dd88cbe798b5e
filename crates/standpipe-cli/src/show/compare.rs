//! Before and after, side by side, for people.

use standpipe::{Comparison, Moment, PoolName, Traffic, escape};

use crate::show::amount::amount;
use crate::show::length::length;
use crate::show::style::{Ink, Style};
use crate::show::table::{sentence, table};

pub(crate) fn comparisons(style: Style, all: &[Comparison], wanted: Option<&PoolName>) -> String {
    let recorded = |each: &&Comparison| each.before.is_some() || each.after.is_some();
    let all: Vec<&Comparison> = all.iter().filter(recorded).collect();
    if all.is_empty() {
        return nothing(wanted.map_or("my/api", PoolName::as_str));
    }
    let mut parts: Vec<String> = all.iter().map(|each| comparison(style, each)).collect();
    let lacks = |side: fn(&Comparison) -> &Option<Traffic>| {
        let lacking = all.iter().filter(|each| side(each).is_none());
        lacking.map(|each| each.pool.as_str()).collect::<Vec<_>>().join(", ")
    };
    let (before, after) = (lacks(|each| &each.before), lacks(|each| &each.after));
    if !before.is_empty() {
        let how = "write `enforce = false` in the pool's table, let the same work run, and take it \
                   out again";
        parts.push(missing(style, &format!("No before for {before}: {how}.")));
    }
    if !after.is_empty() {
        let how = "take `enforce = false` out of the pool's table, and let the same work run";
        parts.push(missing(style, &format!("No after for {after}: {how}.")));
    }
    parts.join("\n")
}

fn nothing(pool: &str) -> String {
    format!(
        "Nothing was recorded yet. To compare, let the same work run twice:

  1. with `enforce = false` in [pool.\"{pool}\"] of standpipe.toml:
     everything is recorded, nobody is held back;
  2. without that line.
"
    )
}

/// How to record what is missing.
fn missing(style: Style, text: &str) -> String {
    sentence(0, style.width, &escape::text(text)).join("\n") + "\n"
}

fn comparison(style: Style, told: &Comparison) -> String {
    let sides = (told.before.as_ref(), told.after.as_ref());
    let dim = |title: &str| style.ink(Ink::Dim, title);
    let mut rows = vec![
        vec![String::new(), dim("before"), dim("after")],
        vec![String::new(), dim("in shadow mode"), dim("held back")],
    ];
    rows.extend(ROWS.iter().map(|(name, figure)| {
        let cell = |side: Option<&Traffic>| side.map_or_else(|| "-".to_owned(), figure);
        vec![(*name).to_owned(), cell(sides.0), cell(sides.1)]
    }));
    let mut lines = vec![style.ink(Ink::Bold, &escape::text(&told.pool))];
    lines.extend(table(2, style.width, &rows));
    if told.earlier_calls > 0 {
        let left_out = format!(
            "{} calls of earlier runs are left out: each side is the last run in its mode.",
            amount("calls", told.earlier_calls)
        );
        lines.extend(sentence(2, style.width, &left_out));
    }
    lines.join("\n") + "\n"
}

/// A row: its name, and its figure on a side.
type Row = (&'static str, fn(&Traffic) -> String);

const ROWS: &[Row] = &[
    ("peak send rate", |side| format!("{} per second", amount("calls", side.peak_per_second))),
    ("calls", |side| amount("calls", side.calls)),
    ("429s (wasted calls)", |side| part(side.refused, side.refused_percent)),
    ("retries", |side| part(side.retries, side.retries_percent)),
    ("began", |side| side.first.map_or_else(|| "-".to_owned(), began)),
    ("wall clock", |side| length(side.wall_clock_ms)),
    (
        "time waited",
        |side| if side.waited_ms == 0 { "none".to_owned() } else { length(side.waited_ms) },
    ),
    ("agents", |side| side.agents.to_string()),
];

/// `2026-01-31 12:00:00Z`
fn began(first: Moment) -> String {
    let text = first.to_string();
    let part = |range: std::ops::Range<usize>| text.get(range).unwrap_or_default().to_owned();
    format!("{} {}Z", part(0..10), part(11..19))
}

fn part(count: u64, percent: u64) -> String {
    format!("{} ({percent} %)", amount("calls", count))
}
