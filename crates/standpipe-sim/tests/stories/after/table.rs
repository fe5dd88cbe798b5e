//! A small table for people: each for itself on the left, through the tap on the right.

use std::fmt;

use standpipe_sim::Story;

use crate::scene::SECOND;

/// What a story comes to, before and after.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    heads: [String; 2],
    rows: Vec<[String; 3]>,
}

impl Table {
    /// Two stories of the same work.
    pub(crate) fn of(name: &'static str, before: &Story, after: &Story) -> Self {
        Self::empty(name, "each for itself", "through the tap")
            .row("calls wanted", before.wanted, after.wanted)
            .row("done", before.done, after.done)
            .row("given up", before.given_up + before.lost, after.given_up + after.lost)
            .row("calls the provider saw", before.made, after.made)
            .row("of these, refused", before.refused, after.refused)
            .row("most in one second", before.peak, after.peak)
            .row("over after", seconds(before.ended), seconds(after.ended))
    }

    pub(crate) fn empty(name: &'static str, left: &str, right: &str) -> Self {
        Self { name, heads: [left.to_owned(), right.to_owned()], rows: Vec::new() }
    }

    pub(crate) fn row(
        mut self,
        what: &str,
        before: impl fmt::Display,
        after: impl fmt::Display,
    ) -> Self {
        self.rows.push([what.to_owned(), before.to_string(), after.to_string()]);
        self
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [left, right] = &self.heads;
        writeln!(f, "| | {left} | {right} |\n|---|---|---|")?;
        self.rows
            .iter()
            .try_for_each(|[what, before, after]| writeln!(f, "| {what} | {before} | {after} |"))
    }
}

/// To a tenth, rounded up.
pub(crate) fn seconds(micros: u64) -> String {
    let tenths = micros.div_ceil(SECOND / 10);
    format!("{}.{} s", tenths / 10, tenths % 10)
}

/// Thousandths as a share.
pub(crate) fn percent(per_mille: u64) -> String {
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}
