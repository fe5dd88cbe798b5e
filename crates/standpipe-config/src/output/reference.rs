//! The reference of all keys as Markdown, for `docs/reference/config.md`.
//!
//! A test compares the page with this output; `cargo xtask reference` writes it again.

use crate::keys::{Definition, KeyInfo, Keys, Sectioned, Shape, Value};
use crate::settings::Settings;

/// See [`crate::Settings::reference`].
pub(super) fn reference() -> String {
    let mut page = Page { text: String::new(), shared: Vec::new() };
    page.heading("Top of the file");
    let top = Settings::SECTION.keys();
    top.iter().for_each(|key| page.row("", key));
    for key in &top {
        if let Some(inner) = inner_table(&key.shape) {
            let name = if inner.by_name { ".NAME" } else { "" };
            page.section(&format!("`[{}{name}]`", key.name), inner.keys);
        }
    }
    while let Some((definition, keys)) = page.shared.pop() {
        page.section(&format!("A {} as a table", definition.name.trim_end_matches('s')), keys);
    }
    format!("{}\n", page.text.trim())
}

struct Page {
    text: String,
    /// Tables that several keys accept. They get a section of their own.
    shared: Vec<(&'static Definition, &'static dyn Keys)>,
}

impl Page {
    fn heading(&mut self, title: &str) {
        self.text.push_str(&format!("\n## {title}\n\n"));
        self.text.push_str("| key | value | default | meaning |\n|---|---|---|---|\n");
    }

    fn section(&mut self, title: &str, keys: &dyn Keys) {
        self.heading(title);
        for key in keys.keys() {
            self.row("", &key);
            let Some(inner) = inner_table(&key.shape) else { continue };
            match inner.definition {
                None => inner.keys.keys().iter().for_each(|own| self.row(key.name, own)),
                Some(known) if self.shared.iter().any(|(shared, _)| shared.name == known.name) => {}
                Some(definition) => self.shared.push((definition, inner.keys)),
            }
        }
    }

    fn row(&mut self, parent: &str, key: &KeyInfo) {
        let dot = if parent.is_empty() { "" } else { "." };
        let default = match &key.default {
            // The default of a table is that of its keys, which follow.
            None | Some(Value::Table(_)) => String::new(),
            Some(value) => format!("`{value}`"),
        };
        let (name, values, about) = (key.name, values(&key.shape), key.about);
        self.text
            .push_str(&format!("| `{parent}{dot}{name}` | {values} | {default} | {about} |\n"));
    }
}

/// A table among the values of a key.
struct InnerTable {
    keys: &'static dyn Keys,
    /// Whether there are several, by name.
    by_name: bool,
    /// The definition that it belongs to.
    definition: Option<&'static Definition>,
}

fn inner_table(shape: &Shape) -> Option<InnerTable> {
    match shape {
        Shape::Table(keys, _) => Some(InnerTable { keys: *keys, by_name: false, definition: None }),
        Shape::AnyOf(shapes) => shapes.iter().find_map(inner_table),
        Shape::List { of, .. } => inner_table(of),
        Shape::Map(entries) => {
            let inner = entries.iter().find_map(|(_, shape)| inner_table(shape))?;
            Some(InnerTable { by_name: true, ..inner })
        }
        Shape::Named(definition) => {
            let inner = inner_table(&(definition.shape)())?;
            Some(InnerTable { definition: Some(definition), ..inner })
        }
        _ => None,
    }
}

/// Returns the accepted values in words.
fn values(shape: &Shape) -> String {
    match shape {
        Shape::Flag => "`true`, `false`".to_owned(),
        Shape::False => "`false`".to_owned(),
        Shape::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
            words.join(", ")
        }
        Shape::Number { .. } => "number".to_owned(),
        Shape::Text { what, .. } => (*what).to_owned(),
        Shape::List { of, most: Some(2), .. } => format!("[{0}, {0}]", values(of)),
        Shape::List { of, .. } => format!("list of {}", values(of)),
        Shape::Table(..) | Shape::Map(_) => "table".to_owned(),
        Shape::Named(definition) => definition.name.replace('_', " ").replace("url", "URL"),
        Shape::AnyOf(shapes) => {
            let mut all: Vec<String> = Vec::new();
            for values in shapes.iter().map(values) {
                if !all.contains(&values) {
                    all.push(values);
                }
            }
            all.join(", ")
        }
    }
}
