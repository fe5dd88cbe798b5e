//! The values in force, by table, and where each comes from.

use crate::keys::{Scope, Sectioned, Value};
use crate::settings::Settings;

/// A table: its dotted path, empty for the top of the file, and its values by dotted key.
#[derive(Default)]
pub(super) struct Table {
    pub(super) path: String,
    pub(super) values: Vec<(String, Value)>,
}

/// Returns all values in force, in the order of the output.
pub(super) fn tables(settings: &Settings) -> Vec<Table> {
    let (mut top, mut tables) = (Table::default(), Vec::new());
    let scope = Scope { settings, name: "" };
    for (key, value) in Settings::SECTION.values(settings, Some(&scope)) {
        let Value::Table(entries) = value else {
            top.values.push((key, value));
            continue;
        };
        // Tables by name are tables of the file; other entries are values of this one.
        let mut table = Table { path: key.clone(), values: Vec::new() };
        for (inner, value) in entries {
            if let Value::Table(values) = value {
                let mut named = Table { path: format!("{key}.{inner}"), values: Vec::new() };
                values.into_iter().for_each(|(key, value)| named.add(key, value));
                tables.push(named);
            } else {
                table.add(inner, value);
            }
        }
        tables.push(table);
    }
    tables.insert(0, top);
    tables.retain(|table| !table.values.is_empty());
    tables
}

impl Table {
    /// Adds a value. A table becomes one value for each entry, with a dotted key.
    fn add(&mut self, key: String, value: Value) {
        match value {
            Value::Table(entries) => {
                entries.into_iter().for_each(|(inner, v)| self.add(format!("{key}.{inner}"), v));
            }
            value => self.values.push((key, value)),
        }
    }

    /// Returns the full path of a key.
    pub(super) fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// Returns where a value comes from: `FILE:LINE` or `default`.
pub(super) fn origin(settings: &Settings, key: &str) -> String {
    let lines = &settings.lines;
    // One value may stand for a whole table: `store = "memory"`, `return_windows = "30s"`.
    let short_form = || {
        let (parent, _) = key.rsplit_once('.')?;
        let has_short_form = parent == "store" || parent.ends_with(".return_windows");
        let inside = format!("{parent}.");
        let first = lines.range(inside.clone()..).next();
        let is_table = first.is_some_and(|(path, _)| path.starts_with(&inside));
        if has_short_form && !is_table { lines.get(parent) } else { None }
    };
    // A pool without a slack of its own has that of the store.
    let of_store = || lines.get("store.slack").filter(|_| key.ends_with(".slack"));
    let line = lines.get(key).or_else(short_form).or_else(of_store);
    match (line, &settings.origin) {
        (None, _) => "default".to_owned(),
        (Some(line), None) => format!("line {line}"),
        (Some(line), Some(file)) => format!("{}:{line}", file.display()),
    }
}
