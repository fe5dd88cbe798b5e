//! Calls of tools that a request offers.

use serde_json::{Map, Value, json};

/// A tool that is called.
#[derive(Debug, PartialEq)]
pub(super) struct ToolCall {
    pub(super) name: String,
    pub(super) input: Value,
}

/// Calls the tool of this name, or the first one. `schema` is where a tool has its parameters.
pub(super) fn call(tools: &[Value], name: Option<&str>, schema: &[&str]) -> Option<ToolCall> {
    let is_it = |tool: &&Value| name.is_none_or(|name| tool["name"] == name);
    let tool = tools.iter().find(is_it)?;
    let parameters = schema.iter().find_map(|key| tool.get(*key)).unwrap_or(&Value::Null);
    let name = tool["name"].as_str()?.to_owned();
    Some(ToolCall { name, input: example(parameters) })
}

/// A value that fits a JSON schema.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match schema["type"].as_str().unwrap_or_default().to_ascii_lowercase().as_str() {
        "array" => json!([example(&schema["items"])]),
        "boolean" => json!(true),
        "integer" | "number" => json!(7),
        "string" => json!("seven"),
        _ => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let members = properties.map(|(name, of)| (name.clone(), example(of)));
            Value::Object(members.collect::<Map<_, _>>())
        }
    }
}

/// Text in two pieces, as a stream has it.
pub(super) fn halves(text: &str) -> [&str; 2] {
    let middle = (0..=text.len() / 2).rfind(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let (first, second) = text.split_at(middle);
    [first, second]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_fits_the_schema_of_its_tool() {
        let tools = [
            json!({"name": "a"}),
            json!({"name": "b", "input_schema": {"type": "object", "properties": {
                "city": {"type": "string"}, "days": {"type": "INTEGER"},
                "unit": {"enum": ["c", "f"]},
                "all": {"type": "array", "items": {"type": "boolean"}},
            }}}),
        ];
        let called = call(&tools, Some("b"), &["input_schema"]).unwrap();
        assert_eq!(called.input, json!({"city": "seven", "days": 7, "unit": "c", "all": [true]}));
        assert_eq!(call(&tools, None, &[]).unwrap().name, "a");
        assert_eq!(call(&tools, Some("c"), &[]), None);
        assert_eq!(halves("{é}").concat(), "{é}");
    }
}
