//! What is wrong with a body or a query, in the API's own words. The parser's messages name Rust
//! types and positions, which help no caller.

use standpipe::config::nearest;

/// What is wrong, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ParseError {
    pub(crate) what: String,
    pub(crate) hint: String,
}

/// Fields and parameters with a value that is valid, as JSON.
const EXAMPLES: [(&str, &str); 27] = [
    ("pool", "\"anthropic/sonnet\""),
    ("pools", "[\"shared/search\"]"),
    ("agent", "\"blog\""),
    ("priority", "\"standard\""),
    ("task", "\"classify\""),
    ("model", "\"claude-sonnet-4-5\""),
    ("cost", "{\"tokens\": 1200}"),
    ("used", "{\"tokens\": 1200}"),
    ("limits", "{\"requests\": \"60/min\"}"),
    ("timeout_ms", "30000"),
    ("ttl_ms", "600000"),
    ("for_ms", "300000"),
    ("retry_after_ms", "30000"),
    ("id", "\"order-4711\""),
    ("retry_of", "\"lease1_…\""),
    ("lease", "\"lease1_…\""),
    ("dry_run", "true"),
    ("progress", "true"),
    ("kind", "\"quota\""),
    ("status", "429"),
    ("headers", "{\"retry-after\": \"30\"}"),
    ("body", "{\"error\": {\"message\": \"slow down\"}}"),
    ("rows", "20"),
    ("limit", "100"),
    ("since", "\"1h\""),
    ("after", "\"0\""),
    ("minutes", "60"),
];

/// What to write instead, for a field of a body or a parameter of a query.
fn example(name: &str, kind: &str) -> String {
    // `cost.tokens` is a part of `cost`.
    let name = name.trim_matches('`').split('.').next().unwrap_or_default();
    match (EXAMPLES.iter().find(|(known, _)| *known == name), kind) {
        (Some((name, value)), "parameter") => {
            format!("write for example {name}={}", value.trim_matches('"'))
        }
        (Some((name, value)), _) => format!("write for example \"{name}\": {value}"),
        (None, _) => format!("see the {kind}s of this path in /openapi.json"),
    }
}

/// Describes why a JSON body was rejected.
pub(crate) fn of_body(bytes: &[u8], error: &serde_json::Error) -> ParseError {
    let (line, column) = (error.line(), error.column());
    if bytes.trim_ascii().is_empty() {
        let hint = "send one JSON object: {\"field\": value}".to_owned();
        return ParseError { what: "the body is empty".to_owned(), hint };
    }
    if !error.is_data() {
        let what = format!("the body is not valid JSON (line {line}, column {column})");
        let hint = "send one JSON object: {\"field\": value}".to_owned();
        return ParseError { what, hint };
    }
    let text = error.to_string();
    let position = format!(" at line {line} column {column}");
    let text = text.strip_suffix(&position).unwrap_or(&text);
    let field = path_at(bytes, line, column);
    describe(text, field.as_deref(), "field")
}

/// Describes why a query string was rejected.
pub(crate) fn of_query(text: &str, query: &str) -> ParseError {
    let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(text);
    // `limit: invalid digit found in string`
    let (name, text) = match text.split_once(": ") {
        Some((name, text)) if is_name(name) => (Some(name), text),
        _ => (None, text),
    };
    let ParseError { mut what, hint } = describe(text, name, "parameter");
    // The parser of numbers does not name what it rejects.
    let given = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(own, _)| *own == name).map(|(_, value)| plain(value))
    };
    let is_about_value = !what.contains(", not ") && !text.starts_with("unknown field ");
    if let Some(given) = name.and_then(given).filter(|_| is_about_value) {
        what = format!("{what}, not {}", given.chars().take(60).collect::<String>());
    }
    ParseError { what, hint }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

fn describe(text: &str, name: Option<&str>, kind: &str) -> ParseError {
    if let Some(field) = text.strip_prefix("missing field ") {
        let hint = example(field, kind);
        return ParseError { what: format!("the {kind} {field} is missing"), hint };
    }
    if let Some(rest) = text.strip_prefix("unknown field ") {
        let (field, known) = rest.split_once(", expected ").unwrap_or((rest, ""));
        let known = known.split('`').skip(1).step_by(2);
        let name = field.trim_matches('`');
        // `timeout` for `timeout_ms`
        let longer = known.clone().find(|known| known.starts_with(name));
        let near = nearest(name, known.clone()).or(longer);
        let near = near.map(|near| format!("did you mean `{near}`?"));
        let all = || format!("the {kind}s are {}", known.collect::<Vec<_>>().join(", "));
        return ParseError {
            what: format!("there is no {kind} {}", plain(field)),
            hint: near.unwrap_or_else(all),
        };
    }
    if let Some(field) = text.strip_prefix("duplicate field ") {
        let hint = "give it once".to_owned();
        return ParseError { what: format!("the {kind} {field} is given twice"), hint };
    }
    let whose = name.map_or_else(|| format!("a {kind}"), |name| format!("`{}`", plain(name)));
    let what = match text.rsplit_once(", expected ") {
        Some((given, known)) if text.starts_with("unknown variant") => {
            let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            format!("{whose} must be one of {}, not {}", known.join(", "), value_of(given))
        }
        Some((given, wanted)) if text.starts_with("invalid ") => {
            format!("{whose} must be {}, not {}", expected(wanted), value_of(given))
        }
        // The texts of numbers in a query.
        _ if text.contains(" in string") || text.starts_with("number too") => {
            format!("{whose} must be a whole number, 0 or more")
        }
        _ if text.starts_with("provided string was not") => {
            format!("{whose} must be true or false")
        }
        _ if text.starts_with("invalid ") => format!("{whose} has an invalid value"),
        // A text of this API's own.
        _ => plain(text),
    };
    ParseError { what, hint: name.map_or_else(|| example("", kind), |name| example(name, kind)) }
}

/// What a value must be, without Rust's names of types.
fn expected(wanted: &str) -> String {
    match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a map" | "an object" => "an object".to_owned(),
        "a string" | "a borrowed string" => "a string".to_owned(),
        other if other.starts_with("struct ") => "an object".to_owned(),
        other => plain(other),
    }
}

/// The rejected value: `3` in "invalid type: integer `3`", or its kind where the parser omits it.
fn value_of(given: &str) -> String {
    let value = given.split_once(": ").map_or(given, |(_, value)| value);
    let value = match value {
        "map" => "an object",
        "sequence" => "a list",
        quoted => quoted.find(['`', '"']).map_or(quoted, |from| &quoted[from..]),
    };
    plain(value.trim_matches('`')).chars().take(60).collect()
}

/// Makes a text that may quote the caller safe: bounded, and without control characters.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(300).collect()
}

/// Returns the name of the value that ends at a position, such as `cost.tokens`.
fn path_at(bytes: &[u8], line: usize, column: usize) -> Option<String> {
    let before: usize =
        bytes.split(|b| *b == b'\n').take(line.saturating_sub(1)).map(|l| l.len() + 1).sum();
    let text = bytes.get(..(before + column).min(bytes.len()))?;
    let mut path: Vec<Option<String>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => path.push(None),
            // The position is that of the end of an object that was rejected as a whole.
            b'}' | b']' if at + 1 < text.len() => {
                path.pop();
            }
            b'"' => {
                let end = string_end(text, at)?;
                let rest = bytes.get(end + 1..).unwrap_or_default().trim_ascii_start();
                if rest.first() == Some(&b':') {
                    let key = String::from_utf8_lossy(text.get(at + 1..end)?).into_owned();
                    *path.last_mut()? = Some(key);
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    let names: Vec<String> = path.into_iter().flatten().collect();
    (!names.is_empty()).then(|| names.join("."))
}

/// The index of the quote that ends a string.
fn string_end(text: &[u8], begin: usize) -> Option<usize> {
    let mut at = begin + 1;
    while *text.get(at)? != b'"' {
        at += if text.get(at) == Some(&b'\\') { 2 } else { 1 };
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code)]
    struct Body {
        pool: String,
        #[serde(default)]
        cost: BTreeMap<String, u64>,
        #[serde(default)]
        pools: Vec<String>,
        timeout_ms: Option<u32>,
        dry_run: Option<bool>,
        priority: Option<Priority>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Priority {
        Critical,
        Standard,
    }

    fn of(body: &str) -> (String, String) {
        let error = serde_json::from_str::<Body>(body).unwrap_err();
        let ParseError { what, hint } = of_body(body.as_bytes(), &error);
        (what, hint)
    }

    #[test]
    fn a_body_is_described_without_the_words_of_the_parser() {
        let cases = [
            ("{\"pool\": \"a/b\"", "the body is not valid JSON (line 1, column 14)"),
            ("{\"pool\": a}", "the body is not valid JSON (line 1, column 10)"),
            ("{}", "the field `pool` is missing"),
            (r#"{"pool": 7}"#, "`pool` must be a string, not 7"),
            (
                r#"{"pool": "a", "timeout_ms": "5s"}"#,
                "`timeout_ms` must be a whole number, 0 or more, not \"5s\"",
            ),
            (
                r#"{"pool": "a", "timeout_ms": -1}"#,
                "`timeout_ms` must be a whole number, 0 or more, not -1",
            ),
            (
                r#"{"pool": "a", "timeout_ms": 1.5}"#,
                "`timeout_ms` must be a whole number, 0 or more, not 1.5",
            ),
            (
                r#"{"pool": "a", "cost": {"tokens": "x"}}"#,
                "`cost.tokens` must be a whole number, 0 or more, not \"x\"",
            ),
            (r#"{"pool": "a", "cost": 3}"#, "`cost` must be an object, not 3"),
            (r#"{"pool": "a", "pools": "b"}"#, "`pools` must be a list, not \"b\""),
            (r#"{"pool": "a", "pools": ["b", 3]}"#, "`pools` must be a string, not 3"),
            ("{\"pool\": \"a\",\n \"dry_run\": 1}", "`dry_run` must be true or false, not 1"),
            (
                r#"{"pool": "a", "priority": "high"}"#,
                "`priority` must be one of critical, standard, not high",
            ),
            (r#"{"pool": "a", "cost": [1]}"#, "`cost` must be an object, not a list"),
            (r#"{"pool": "a", "pool": "b"}"#, "the field `pool` is given twice"),
        ];
        for (body, what) in cases {
            assert_eq!(of(body).0, what, "{body}");
        }
        let (what, hint) = of(r#"{"pool": "a", "timeout": 3}"#);
        assert_eq!(what, "there is no field `timeout`");
        assert_eq!(hint, "did you mean `timeout_ms`?");
    }

    #[test]
    fn a_hint_has_an_example_of_the_field() {
        for (body, hint) in [
            ("{}", "write for example \"pool\": \"anthropic/sonnet\""),
            (
                r#"{"pool": "a", "cost": {"a": "x"}}"#,
                "write for example \"cost\": {\"tokens\": 1200}",
            ),
            (r#"{"pool": "a", "dry_run": 1}"#, "write for example \"dry_run\": true"),
            (r#"{"pool": "a", "xyzzy": 1}"#, "the fields are pool, cost, pools, timeout_ms, "),
            (r#"{"pool": "a", "pool": "b"}"#, "give it once"),
        ] {
            assert!(of(body).1.starts_with(hint), "{body}: {}", of(body).1);
        }
        let text = "limit: invalid digit found in string";
        assert_eq!(of_query(text, "limit=x").hint, "write for example limit=100");
    }

    #[test]
    fn a_query_is_described_without_the_words_of_the_parser() {
        let cases = [
            (
                "limit: invalid digit found in string",
                "`limit` must be a whole number, 0 or more, not many",
            ),
            (
                "limit: number too large to fit in target type",
                "`limit` must be a whole number, 0 or more, not many",
            ),
            ("missing field `pool`", "the parameter `pool` is missing"),
            ("unknown field `pol`, expected `pool` or `rows`", "there is no parameter `pol`"),
            (
                "dry: provided string was not `true` or `false`",
                "`dry` must be true or false, not 7",
            ),
        ];
        for (text, what) in cases {
            let prefixed = format!("Failed to deserialize query string: {text}");
            assert_eq!(of_query(&prefixed, "limit=many&dry=7").what, what, "{text}");
        }
    }
}
