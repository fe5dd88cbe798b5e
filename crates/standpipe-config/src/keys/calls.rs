//! What is special about calls that are described by path and method.

use std::collections::BTreeMap;

use standpipe_core::{Unit, bounds};

use super::form::form;
use super::limit::unit_of;
use super::shape::{AMOUNT, UNIT_NAME};
use super::{Shape, Value};
use crate::format;
use crate::nearest::nearest;
use crate::parse::{self, TextError, quoted};

form!(
    /// A path in which `*` stands for any text.
    PathPattern: String, Shape::Text { what: "paths", pattern: r"^[/*][!-~]{0,511}$" },
    |reader, item| reader.parse_text(item, path),
    |path| Value::from(path.as_str())
);

fn path(text: &str) -> Result<String, TextError> {
    let is_plain = text.bytes().all(|b| b.is_ascii_graphic()) && text.len() <= 512;
    if !is_plain || !text.starts_with(['/', '*']) || text.contains(['?', '#']) {
        let what = format!("{} is not the pattern of a path", quoted(text));
        return Err(TextError::new(
            what,
            "begin with a slash and omit the query: \"/v2/orders/*\"",
        ));
    }
    Ok(text.to_owned())
}

form!(
    /// A method of HTTP.
    MethodName: String, Shape::Words(METHODS.to_vec()),
    |reader, item| reader.parse_text(item, method),
    |method| Value::from(method.as_str())
);

fn method(text: &str) -> Result<String, TextError> {
    if METHODS.contains(&text) {
        return Ok(text.to_owned());
    }
    let upper = text.to_ascii_uppercase();
    let remedy = match nearest(&upper, METHODS.into_iter()) {
        Some(meant) => format!("write \"{meant}\""),
        None => "use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS".to_owned(),
    };
    Err(TextError::new(format!("{} is not a method of HTTP", quoted(text)), remedy))
}

/// The methods of HTTP and of WebDAV. Calls of any other would never match, most likely because it
/// is misspelled.
const METHODS: [&str; 19] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
    "CONNECT",
    "TRACE",
    "QUERY",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "REPORT",
    "SEARCH",
];

form!(
    /// What a call takes of each unit.
    Cost: BTreeMap<Unit, u64>, Shape::Map(vec![(UNIT_NAME, Shape::Named(&AMOUNT))]),
    |reader, item| {
        let mut cost = BTreeMap::new();
        for entry in reader.entries(item) {
            // Slots are no unit of a rate, but a call can take several.
            let unit = match entry.key {
                "parallel" => Some(Unit::Parallel),
                _ => unit_of(reader, &entry),
            };
            let Some(unit) = unit else { continue };
            if let Some(amount) = reader.parse(&entry, |text| parse::amount_of(&unit, text)) {
                cost.insert(unit, amount);
            }
        }
        if cost.len() > bounds::UNITS {
            let remedy = format!("at most {} are counted", bounds::UNITS);
            reader.problem_at(item, format!("has {} units", cost.len()), remedy);
        }
        Some(cost)
    },
    |cost| (!cost.is_empty()).then(|| {
        let amount = |(unit, amount): (&Unit, &u64)| {
            (unit.name().to_owned(), format::amount(unit, *amount).into())
        };
        Value::Inline(cost.iter().map(amount).collect())
    })
);
