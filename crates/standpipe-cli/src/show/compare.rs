//! `audit --compare` for people: before and after, side by side.

use standpipe::observe::{Comparison, Traffic, share};
use standpipe::{PoolName, escape};

use crate::show::amount::amount;
use crate::show::duration::length;
use crate::show::local_time::day_and_clock;
use crate::show::style::{Style, TextRole};
use crate::show::table::{sentence, table};

/// `is_shared`: other machines use the pools too, and their calls are in their own journals.
pub(crate) fn text(
    style: Style,
    all: &[Comparison],
    wanted: Option<&PoolName>,
    is_shared: bool,
) -> String {
    let recorded = |each: &&Comparison| each.before.is_some() || each.after.is_some();
    let all: Vec<&Comparison> = all.iter().filter(recorded).collect();
    if all.is_empty() {
        return nothing(wanted.map_or("my/api", PoolName::as_str));
    }
    let mut parts: Vec<String> = all.iter().map(|each| one(style, each)).collect();
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
    if is_shared {
        parts.push(missing(style, "Both sides are calls on this machine only."));
    }
    parts.join("\n")
}

fn nothing(pool: &str) -> String {
    format!(
        "Nothing was recorded yet. To compare, let the same work run twice:

  1. with `enforce = false` in [pool.\"{pool}\"] of standpipe.toml:
     everything is recorded, no call waits;
  2. without that line.
"
    )
}

/// What is missing, and how to record it.
fn missing(style: Style, text: &str) -> String {
    sentence(0, style.width, &escape::text(text)).join("\n") + "\n"
}

fn one(style: Style, comparison: &Comparison) -> String {
    let sides = (comparison.before.as_ref(), comparison.after.as_ref());
    let dim = |title: &str| style.paint(TextRole::Muted, title);
    let mut rows = vec![
        vec![String::new(), dim("before"), dim("after")],
        vec![String::new(), dim("in shadow mode"), dim("held back")],
    ];
    rows.extend(ROWS.iter().map(|(name, figure)| {
        let cell = |side: Option<&Traffic>| side.map_or_else(|| "-".to_owned(), figure);
        vec![(*name).to_owned(), cell(sides.0), cell(sides.1)]
    }));
    let mut lines = vec![style.paint(TextRole::Title, &escape::text(&comparison.pool))];
    lines.extend(table(2, style.width, &rows));
    if comparison.earlier_calls > 0 {
        let left_out = format!(
            "{} calls of earlier runs are left out: each side is the last run in its mode.",
            amount("calls", comparison.earlier_calls)
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
    ("429s (wasted calls)", |side| part(side.refused, side.calls)),
    ("retries", |side| part(side.retries, side.calls)),
    ("began", |side| side.first.map_or_else(|| "-".to_owned(), day_and_clock)),
    ("wall clock", |side| length(side.wall_clock_ms)),
    (
        "time waited",
        |side| if side.waited_ms == 0 { "none".to_owned() } else { length(side.waited_ms) },
    ),
    ("agents", |side| side.agents.to_string()),
];

fn part(count: u64, calls: u64) -> String {
    format!("{} ({})", amount("calls", count), share(count.into(), calls.into()))
}
