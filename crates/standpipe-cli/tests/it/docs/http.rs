//! `docs/reference/http.md`: every path with its fields and responses, and every object that a
//! response contains, from the OpenAPI document.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::generated::{page, thousands};

const ABOUT: &str = "\
Every path of the daemon, from its OpenAPI document (`GET /openapi.json`). \
[The daemon](../daemon.md) explains it. [Errors](../daemon.md#errors) are the same on every path. \
[The proxy](../proxy.md) serves the other paths.

Every response also has `schema`, the version of its form: `1`. A field that does not apply is \
`null` or absent. Instants are in UTC, such as `2026-01-31T12:00:00.000Z`; `_ms` is milliseconds.";

/// The whole page.
pub(super) fn reference(openapi: &Value) -> String {
    let schemas = openapi["components"]["schemas"].as_object().unwrap();
    let mut reference =
        Reference { schemas, text: page("HTTP API: all paths", ABOUT), linked: vec![] };
    for (path, methods) in openapi["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            reference.heading(&format!("`{} {path}`", method.to_uppercase()), operation);
            reference.operation(operation);
        }
    }
    reference.link("Problem");
    reference.text += "\n## Objects\n";
    let mut done = 0;
    while let Some(name) = reference.linked.get(done).copied() {
        reference.object(name, &schemas[name]);
        done += 1;
    }
    reference.text
}

struct Reference<'a> {
    schemas: &'a Map<String, Value>,
    text: String,
    /// The objects that the page links to so far.
    linked: Vec<&'a str>,
}

/// A field of an object.
struct Field<'a> {
    name: &'a str,
    schema: &'a Value,
    required: bool,
}

impl<'a> Reference<'a> {
    fn heading(&mut self, title: &str, operation: &Value) {
        let _ = write!(self.text, "\n## {title}\n\n");
        for text in [&operation["summary"], &operation["description"]] {
            if text.is_string() {
                let _ = writeln!(self.text, "{}\n", one_line(text));
            }
        }
    }

    fn operation(&mut self, operation: &'a Value) {
        let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
        let rows = parameters.iter().map(|parameter| {
            let of = |key: &str| one_line(&parameter[key]);
            let meaning =
                format!("{}{}", sentence(&of("description")), bounds(&parameter["schema"]));
            format!("| `{}` | {} | {meaning} |\n", of("name"), of("in"))
        });
        let rows = rows.collect();
        self.table("| parameter | in | meaning |", rows);
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        let mut rows = String::new();
        for field in self.fields(body) {
            let needed = if field.required { "yes" } else { "" };
            let _ = writeln!(rows, "| `{}` | {needed} | {} |", field.name, meaning(field.schema));
        }
        self.table("| field | required | meaning |", rows);
        for (status, response) in operation["responses"].as_object().unwrap() {
            if status.starts_with('2') {
                let about = one_line(&response["description"]);
                let schema = &response["content"]["application/json"]["schema"];
                let kind = self.kind(schema);
                let form = if kind.contains("](#") { format!(": {kind}") } else { String::new() };
                let _ = writeln!(self.text, "- `{status}` {about}{form}");
            }
        }
    }

    fn table(&mut self, head: &str, rows: String) {
        if !rows.is_empty() {
            let line = "|---".repeat(head.matches('|').count() - 1);
            let _ = writeln!(self.text, "{head}\n{line}|\n{rows}");
        }
    }

    fn object(&mut self, name: &'a str, schema: &'a Value) {
        let _ = write!(self.text, "\n### {name}\n\n{}\n\n", one_line(&schema["description"]));
        let mut rows = String::new();
        for field in self.fields(schema).into_iter().filter(|field| field.name != "schema") {
            let kind = self.kind(field.schema);
            let _ = writeln!(rows, "| `{}` | {kind} | {} |", field.name, meaning(field.schema));
        }
        self.table("| field | type | meaning |", rows);
        let rows = self.variants(schema).map(|(tag, variant)| {
            let fields: Vec<_> = self.fields(variant).into_iter().map(|field| field.name).collect();
            let fields =
                fields.into_iter().filter(|name| *name != tag.0).map(|name| format!("`{name}`"));
            let fields = fields.collect::<Vec<_>>().join(", ");
            format!("| `{}` | {} | {fields} |\n", tag.1, one_line(&variant["description"]))
        });
        let rows = rows.collect();
        let tag = self.variants(schema).next().map_or("", |(tag, _)| tag.0);
        self.table(&format!("| `{tag}` | meaning | fields |"), rows);
        self.text.truncate(self.text.trim_end().len());
        self.text.push('\n');
    }

    /// The fields of an object and of those that it contains as a part, but not those of its
    /// variants.
    fn fields(&self, schema: &'a Value) -> Vec<Field<'a>> {
        let schema = self.resolved(schema);
        let parts = schema["allOf"].as_array().into_iter().flatten();
        let mut fields: Vec<Field<'a>> = Vec::new();
        // The fields of the object itself come last in `allOf`.
        for part in parts.rev() {
            fields.extend(self.fields(part));
        }
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            fields.push(Field { name, schema, required: required.iter().any(|one| one == name) });
        }
        fields
    }

    /// The variants of an object, or of one that it contains as a part, each with the name and the
    /// value of the field that selects it.
    fn variants(&self, schema: &'a Value) -> impl Iterator<Item = ((&'a str, &'a str), &'a Value)> {
        let part = schema["allOf"].as_array().and_then(|parts| parts.first()).unwrap_or(schema);
        let variants = self.resolved(part)["oneOf"].as_array().into_iter().flatten();
        variants.filter_map(|variant| {
            let properties = variant["properties"].as_object()?;
            let (name, tag) = properties.iter().find(|(_, schema)| schema["enum"].is_array())?;
            Some(((name.as_str(), tag["enum"][0].as_str()?), variant))
        })
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        name_of(schema).map_or(schema, |name| &self.schemas[name])
    }

    /// The type of a value, with a link if it is an object.
    fn kind(&mut self, schema: &'a Value) -> String {
        if let Some(name) = name_of(schema) {
            let schema = &self.schemas[name];
            let is_object = schema["properties"].is_object() || schema["allOf"].is_array();
            return match is_object || self.variants(schema).next().is_some() {
                true => self.link(name),
                false => self.kind(schema),
            };
        }
        if let Some(words) = schema["enum"].as_array() {
            let words = words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`"));
            return words.collect::<Vec<_>>().join(", ");
        }
        if let Some(some) = schema["oneOf"].as_array() {
            let some = some.iter().filter(|one| one["type"] != "null");
            return some.map(|one| self.kind(one)).collect::<Vec<_>>().join(" or ");
        }
        let kinds =
            schema["type"].as_array().and_then(|kinds| kinds.iter().find(|one| *one != "null"));
        match kinds.unwrap_or(&schema["type"]).as_str() {
            Some("array") if schema["items"].is_object() => {
                format!("list of {}", self.kind(&schema["items"]))
            }
            Some("array") => "list".to_owned(),
            Some("object") if schema["additionalProperties"].is_object() => {
                format!("{} by name", self.kind(&schema["additionalProperties"]))
            }
            kind => kind.unwrap_or_default().to_owned(),
        }
    }

    fn link(&mut self, name: &'a str) -> String {
        if !self.linked.contains(&name) {
            self.linked.push(name);
        }
        format!("[{name}](#{})", name.to_lowercase())
    }
}

/// The name of the schema that this one refers to.
fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// The description of a field, with its default and bounds. An optional reference has its
/// description inside.
fn meaning(schema: &Value) -> String {
    let inner = schema["oneOf"].as_array().into_iter().flatten();
    let mut texts = std::iter::once(schema).chain(inner).map(|one| one_line(&one["description"]));
    let text = texts.find(|text| !text.is_empty()).unwrap_or_default();
    format!("{}{}", sentence(&text), bounds(schema))
}

fn bounds(schema: &Value) -> String {
    let figure = |key: &str| schema[key].as_u64().map(thousands);
    let mut text =
        figure("default").map_or(String::new(), |default| format!(" Default: {default}."));
    let least = figure("minimum").filter(|least| least != "0");
    text += &match (least, figure("maximum")) {
        (Some(least), Some(most)) => format!(" From {least} to {most}."),
        (Some(least), None) => format!(" At least {least}."),
        (None, Some(most)) => format!(" At most {most}."),
        (None, None) => String::new(),
    };
    for (key, of) in [("maxItems", "items"), ("maxLength", "bytes")] {
        if let Some(most) = figure(key) {
            let _ = write!(text, " At most {most} {of}.");
        }
    }
    text
}

fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', '…']) {
        text.to_owned()
    } else {
        format!("{text}.")
    }
}

/// A text in one line of a table. Links of the source, such as [`Type::field`], become code.
fn one_line(value: &Value) -> String {
    let text = value.as_str().unwrap_or("").split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.replace("[`LimitStatus::", "`").replace("[`Usage::", "`").replace("`]", "`");
    text.replace('|', "\\|")
}
