//! The JSON Schema of the configuration file, so that editors complete and check it.
//!
//! The schema describes the form of values. Consistency (sums of floors, references to pools) is
//! checked only when the file is read.

use serde_json::{Map, Value as Json, json};

use super::describe::to_json;
use crate::keys::{Definition, Keys, Sectioned, Shape};
use crate::settings::Settings;

/// See [`crate::Settings::schema`].
pub(super) fn schema() -> Json {
    let mut definitions = Map::new();
    let Json::Object(top) = table(Settings::SECTION, &[], &mut definitions) else {
        return Json::Null;
    };
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".to_owned(), "standpipe.toml".into());
    schema.extend(top);
    schema.insert("$defs".to_owned(), definitions.into());
    schema.into()
}

/// Returns the schema of a table with fixed keys.
fn table(keys: &dyn Keys, required: &[&str], definitions: &mut Map<String, Json>) -> Json {
    let mut properties = Map::new();
    for key in keys.keys() {
        let mut property = of(key.shape, definitions);
        if let Json::Object(map) = &mut property {
            map.insert("description".to_owned(), key.about.replace('`', "").into());
            if let Some(default) = key.default {
                map.insert("default".to_owned(), to_json(&default));
            }
        }
        properties.insert(key.name.to_owned(), property);
    }
    let mut table =
        json!({ "type": "object", "additionalProperties": false, "properties": properties });
    if !required.is_empty() {
        table["required"] = required.into();
    }
    table
}

/// Returns the schema of a shape, and adds the definitions that it refers to.
fn of(shape: Shape, definitions: &mut Map<String, Json>) -> Json {
    match shape {
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::False => json!({ "const": false }),
        Shape::Words(words) => json!({ "enum": words }),
        Shape::Number { kind, bounds } => {
            let bounds = bounds.into_iter().map(|(bound, at)| (bound.to_owned(), Json::from(at)));
            std::iter::once(("type".to_owned(), kind.into())).chain(bounds).collect()
        }
        Shape::Text { pattern, .. } => json!({ "type": "string", "pattern": pattern }),
        Shape::List { of: element, least, most, unique } => {
            let mut list = json!({ "type": "array", "items": of(*element, definitions) });
            if least > 0 {
                list["minItems"] = least.into();
            }
            if let Some(most) = most {
                list["maxItems"] = most.into();
            }
            if unique {
                list["uniqueItems"] = true.into();
            }
            list
        }
        Shape::Table(keys, required) => table(keys, required, definitions),
        Shape::Map(entries) => {
            let mut map = json!({ "type": "object", "additionalProperties": false });
            for (name, shape) in entries {
                let by = if name.starts_with('^') { "patternProperties" } else { "properties" };
                map[by][name] = of(shape, definitions);
            }
            map
        }
        Shape::AnyOf(shapes) => {
            let shapes = shapes.into_iter().map(|shape| of(shape, definitions));
            json!({ "anyOf": shapes.collect::<Vec<Json>>() })
        }
        Shape::Named(definition) => reference(definition, definitions),
    }
}

fn reference(definition: &Definition, definitions: &mut Map<String, Json>) -> Json {
    if !definitions.contains_key(definition.name) {
        let mut schema = of((definition.shape)(), definitions);
        schema["description"] = definition.about.into();
        definitions.insert(definition.name.to_owned(), schema);
    }
    json!({ "$ref": format!("#/$defs/{}", definition.name) })
}
