//! A small table for people: without Standpipe on the left, through Standpipe on the right.

use std::fmt;

use standpipe_sim::Report;

use crate::stories::scene::SECOND;

/// What a story comes to, before and after.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Two stories of the same work.
    pub(crate) fn of(name: &'static str, before: &Report, after: &Report) -> Self {
        Self::empty(name, "without Standpipe", "through Standpipe")
            .row("calls wanted", before.wanted, after.wanted)
            .row("done", before.done, after.done)
            .row("given up", before.given_up + before.lost, after.given_up + after.lost)
            .row("calls the provider saw", before.made, after.made)
            .row("of these, refused", before.refused, after.refused)
            .row("most calls in one second", before.peak, after.peak)
            .row("finished after", seconds(before.ended), seconds(after.ended))
    }

    pub(crate) fn empty(name: &'static str, left: &str, right: &str) -> Self {
        Self::wide(name, &[left, right])
    }

    pub(crate) fn wide(name: &'static str, heads: &[&str]) -> Self {
        let heads = heads.iter().map(|head| (*head).to_owned()).collect();
        Self { name, heads, rows: Vec::new() }
    }

    pub(crate) fn row(
        self,
        what: &str,
        before: impl fmt::Display,
        after: impl fmt::Display,
    ) -> Self {
        self.cells(what, &[&before, &after])
    }

    pub(crate) fn cells(mut self, what: &str, cells: &[&dyn fmt::Display]) -> Self {
        let cells = cells.iter().map(|cell| cell.to_string());
        self.rows.push([what.to_owned()].into_iter().chain(cells).collect());
        self
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| | {} |", self.heads.join(" | "))?;
        writeln!(f, "|---|{}", "---|".repeat(self.heads.len()))?;
        self.rows.iter().try_for_each(|cells| writeln!(f, "| {} |", cells.join(" | ")))
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
