//! The tables of `docs/concepts/saying-no.md` are as they come out here.

use super::table::Table;
use super::{cascade, foreign, herd, learn, odd, overload, pools, quota, stacking, terminal};

fn tables() -> Vec<Table> {
    vec![
        herd::declared_table(),
        herd::table(),
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
    ]
}

#[test]
fn the_page_has_the_numbers_as_they_come_out() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/concepts/saying-no.md");
    let page = std::fs::read_to_string(path).unwrap();
    let block = |table: &Table| format!("<!-- table: {} -->\n\n{table}\n<!-- end -->", table.name);
    let tables = tables();
    let wrong: Vec<_> = tables.iter().filter(|table| !page.contains(&block(table))).collect();
    let names: Vec<_> = wrong.iter().map(|table| table.name).collect();
    let now: Vec<_> = tables.iter().map(block).collect();
    assert!(wrong.is_empty(), "not so in the page: {names:?}\n\n{}", now.join("\n\n"));
    assert_eq!(page.matches("<!-- table: ").count(), tables.len(), "a table is nobody's");
}
