//! The reference of all metrics as Markdown, for `docs/reference/metrics.md`.
//!
//! The tables are made of the declarations that also write `/metrics`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use super::daemon::PoolCounts;
use super::exposition::{Exposition, FamilyInfo};
use super::labels::Label;
use super::{JournalCounters, ProcessInfo, StoreLatency, page, proxied};

/// Returns a table of all metrics, and one of the labels whose values are fixed.
#[must_use]
pub fn reference() -> String {
    let page = empty_page();
    let mut text = "| metric | type | labels | meaning |\n|---|---|---|---|\n".to_owned();
    for FamilyInfo { name, kind, labels, help } in page.families() {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{}`", label.name)).collect();
        let labels = labels.join(", ");
        // Writing to a string does not fail.
        let _ = writeln!(text, "| `standpipe_{name}` | {kind} | {labels} | {help} |");
    }
    text += "\nThese labels have fixed values:\n\n| label | of | values |\n|---|---|---|\n";
    for label in fixed_labels(&page) {
        let with_it = page.families().iter().filter(|family| family.labels.contains(&label));
        let names: Vec<String> =
            with_it.map(|family| format!("`standpipe_{}`", family.name)).collect();
        let names =
            if names.len() > 3 { "all metrics with it".to_owned() } else { names.join(", ") };
        let values: Vec<String> = label.values.iter().map(|word| format!("`{word}`")).collect();
        let _ = writeln!(text, "| `{}` | {names} | {} |", label.name, values.join(", "));
    }
    text
}

/// Each label with fixed values, once.
fn fixed_labels(page: &Exposition) -> Vec<Label> {
    let mut labels: Vec<Label> = Vec::new();
    for label in page.families().iter().flat_map(|family| family.labels) {
        if !label.values.is_empty() && !labels.contains(label) {
            labels.push(*label);
        }
    }
    labels
}

/// All families, without samples of pools.
fn empty_page() -> Exposition {
    let process = ProcessInfo {
        version: "",
        started: UNIX_EPOCH,
        connections: 0,
        streams: 0,
        waiting_http: 0,
        store_up: true,
        snapshot_age: Duration::ZERO,
    };
    let (counters, store) = (JournalCounters::new(), StoreLatency::new());
    let mut page = page(&BTreeMap::new(), PoolCounts::default(), &counters, &store, &process);
    proxied::write(&mut page, &BTreeMap::new());
    page
}
