//! The settings as a file: `standpipe config show`.

use super::tables::{origin, tables};
use crate::escape;
use crate::keys::Value;
use crate::settings::Settings;

/// See [`Settings::to_toml`].
pub(super) fn to_toml(settings: &Settings, origins: bool) -> String {
    let mut toml = String::new();
    for table in tables(settings) {
        if !table.path.is_empty() {
            toml.push_str(&format!("\n[{}]\n", table.path));
        }
        let line = |(key, value): &(String, Value)| format!("{key} = {value}");
        let lines: Vec<String> = table.values.iter().map(line).collect();
        let widths = lines.iter().map(|line| line.chars().count()).filter(|width| *width <= 60);
        let width = widths.max().unwrap_or_default();
        for (line, (key, _)) in lines.iter().zip(&table.values) {
            if origins {
                let origin = origin(settings, &table.full(key));
                let comment = escape::text(&origin);
                toml.push_str(&format!("{line:width$}  # {comment}\n"));
            } else {
                toml.push_str(&format!("{line}\n"));
            }
        }
    }
    toml
}
