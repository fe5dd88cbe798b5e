//! The tables of `docs/concepts/saying-no.md` and `docs/concepts/policies.md` are as they come out
//! here.

use super::table::Table;
use super::{
    cascade, day, foreign, herd, hour, inversion, learn, odd, overload, pools, quota, saturated,
    stacking, terminal, without,
};

fn saying_no() -> Vec<Table> {
    vec![
        herd::declared_table(),
        herd::table(),
        cascade::table(),
        cascade::single_file_table(),
        cascade::recovery_table(),
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
    ]
}

fn policies() -> Vec<Table> {
    vec![
        without::table(),
        without::long_table(),
        without::beside_table(),
        without::defaults_table(),
        day::table(),
        day::idle_table(),
        inversion::table(),
        saturated::table(),
        foreign::shared_table(),
        hour::table(),
    ]
}

/// Whether each table stands in a page of the concepts, and no other does.
fn holds(page: &str, tables: &[Table]) {
    let path = format!("{}/../../docs/concepts/{page}", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(path).unwrap();
    let block = |table: &Table| format!("<!-- table: {} -->\n\n{table}\n<!-- end -->", table.name);
    let wrong: Vec<_> = tables.iter().filter(|table| !page.contains(&block(table))).collect();
    let names: Vec<_> = wrong.iter().map(|table| table.name).collect();
    let now: Vec<_> = tables.iter().map(block).collect();
    assert!(wrong.is_empty(), "not so in the page: {names:?}\n\n{}", now.join("\n\n"));
    assert_eq!(page.matches("<!-- table: ").count(), tables.len(), "a table is nobody's");
}

#[test]
fn the_page_has_the_numbers_as_they_come_out() {
    holds("saying-no.md", &saying_no());
}

#[test]
fn the_page_of_policies_has_the_numbers_as_they_come_out() {
    holds("policies.md", &policies());
}
