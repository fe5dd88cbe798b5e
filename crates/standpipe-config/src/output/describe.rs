//! The settings in JSON: `standpipe config show --json`.

use serde_json::{Value as Json, json};

use super::tables::{origin, tables};
use crate::keys::Value;
use crate::settings::Settings;

/// See [`Settings::describe`].
pub(super) fn describe(settings: &Settings) -> Json {
    let mut described = Vec::new();
    for table in tables(settings) {
        for (key, value) in &table.values {
            let key = table.full(key);
            let origin = origin(settings, &key);
            described.push(json!({ "key": key, "value": to_json(value), "origin": origin }));
        }
    }
    json!({
        "file": settings.origin.as_ref().map(|path| path.display().to_string()),
        "settings": described,
    })
}

/// Returns a value in JSON.
pub(super) fn to_json(value: &Value) -> Json {
    match value {
        Value::Text(text) => text.as_str().into(),
        Value::Number(number) => (*number).into(),
        Value::Flag(flag) => (*flag).into(),
        Value::List(values) => values.iter().map(to_json).collect(),
        Value::Inline(entries) | Value::Table(entries) => {
            entries.iter().map(|(key, value)| (key.as_str(), to_json(value))).collect()
        }
    }
}
