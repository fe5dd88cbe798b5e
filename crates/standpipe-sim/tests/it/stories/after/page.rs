//! The tables of the pages about refusals, policies and the simulator are as they come out here.

use super::table::Table;
use super::{
    cascade, day, foreign, herd, hour, inversion, learn, odd, overload, picture, pools, quota,
    saturated, stacking, terminal, without,
};

fn results() -> Vec<Table> {
    vec![
        picture::table(),
        herd::declared_table(),
        cascade::table(),
        cascade::single_file_table(),
        stacking::table(),
        stacking::shaky_table(),
        pools::table(),
        learn::table(),
        learn::parallel_table(),
        overload::table(),
        overload::slow_down_table(),
        terminal::table(),
        foreign::table(),
        odd::table(),
        quota::table(),
        without::table(),
        without::long_table(),
        without::beside_table(),
        without::defaults_table(),
        day::table(),
        day::idle_table(),
        foreign::shared_table(),
        hour::table(),
    ]
}

fn path(name: &str) -> String {
    format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"))
}

pub(super) fn document(name: &str) -> String {
    std::fs::read_to_string(path(name)).unwrap()
}

/// The mark in front of a table.
fn mark(table: &Table) -> String {
    format!("<!-- table: {} -->\n\n", table.name)
}

const END: &str = "\n<!-- end -->";

/// A page with these tables as they come out now.
fn with_tables(page: &str, tables: &[Table]) -> String {
    let put = |page: String, table: &Table| {
        let mark = mark(table);
        let parts = page.split_once(&mark);
        let (before, rest) = parts.unwrap_or_else(|| panic!("no table {}", table.name));
        let (old, after) = rest.split_once(END).unwrap();
        assert!(!old.contains("<!--"), "table {} has no end", table.name);
        format!("{before}{mark}{table}{END}{after}")
    };
    tables.iter().fold(page.to_owned(), put)
}

/// Compares each table of a page with what comes out, and checks that no other is marked. With
/// `STANDPIPE_BLESS` the page is written first.
pub(super) fn holds(name: &str, tables: &[Table]) {
    let page = document(name);
    let now = with_tables(&page, tables);
    assert_eq!(page.matches("<!-- table: ").count(), tables.len(), "a table that no test makes");
    if std::env::var_os("STANDPIPE_BLESS").is_some() {
        std::fs::write(path(name), now).unwrap();
        return;
    }
    let block = |table: &Table| format!("{}{table}{END}", mark(table));
    let wrong: Vec<_> = tables.iter().map(block).filter(|block| !page.contains(block)).collect();
    assert!(wrong.is_empty(), "{name} is stale; run `cargo xtask reference`\n\n{wrong:#?}");
}

#[test]
fn the_page_has_the_numbers_as_they_come_out() {
    holds("docs/concepts/refusals.md", &[herd::table()]);
}

#[test]
fn the_page_of_policies_has_the_numbers_as_they_come_out() {
    holds("docs/concepts/policies.md", &[inversion::table(), saturated::table()]);
}

#[test]
fn the_page_of_results_has_the_numbers_as_they_come_out() {
    holds("docs/concepts/simulator.md", &results());
}
