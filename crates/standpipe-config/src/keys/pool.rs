//! What is special about the table of a pool: prices, and keys that look like limits.

use std::collections::BTreeMap;

use standpipe_core::Unit;

use super::form::{Sectioned, form};
use super::limit::unit_of;
use super::names::dotted;
use super::policy::reject_headroom;
use super::shape::{AMOUNT, UNIT_NAME};
use super::{Shape, Value};
use crate::file::reader::{Item, Reader, scalar};
use crate::format;
use crate::nearest::nearest;
use crate::parse::{self, KNOWN_UNITS, TextError, quoted, synonym};
use crate::settings::{PoolSettings, dialect_of};

/// Prepares the entries of a pool: see [`super::Section::prepare`].
pub(crate) fn prepare(reader: &mut Reader<'_>, item: &Item<'_>, entries: &mut Vec<Item<'_>>) {
    let provider = item.value.get("provider").and_then(|provider| provider.get_ref().as_str());
    reader.dialect = dialect_of(item.key, provider);
    // With a dot instead of a slash in the name, the keys are those of another table.
    if dotted(item).is_some() {
        entries.clear();
    }
    // Prices may name units that are declared below them.
    entries.sort_by_key(|entry| entry.key == "price");
    let names = PoolSettings::SECTION.names();
    entries.retain(|entry| names.contains(&entry.key) || !is_reported(reader, entry, &names));
}

/// Reports an unknown key if there is more to suggest than the nearest known one.
fn is_reported(reader: &mut Reader<'_>, entry: &Item<'_>, names: &[&str]) -> bool {
    // A rate is probably the limit of a unit that was not declared.
    let is_rate = entry.value.as_str().is_some_and(|text| parse::rate(text).is_ok());
    let figure = scalar(entry.value).unwrap_or_default();
    if entry.key == "headroom" {
        reject_headroom(reader, entry);
    } else if let Some((key, value)) = synonym::meant(entry.key, &figure) {
        let value = if key == "parallel" { value } else { format!("\"{value}\"") };
        let what = format!("unknown key {} in a pool", entry.name);
        reader.problem(entry.line, what, format!("did you mean {key} = {value}?"));
    } else if ["limit", "limits", "rate"].contains(&entry.key) {
        let rate = if is_rate { &figure } else { "60/min" };
        let what = format!("unknown key {} in a pool", entry.name);
        reader.problem(entry.line, what, format!("name the unit: requests = \"{rate}\""));
    } else if is_rate && nearest(entry.key, names.iter().copied()).is_none() {
        let what = format!("unknown unit {} in a pool", entry.name);
        let remedy = "declare a unit of your own in the pool's `units` table";
        reader.problem(entry.line, what, remedy);
    } else {
        return false;
    }
    true
}

form!(
    /// Prices by unit, in dollars per million. [`read_price`] reads them.
    Price: BTreeMap<Unit, u64>, Shape::Map(vec![(UNIT_NAME, Shape::Named(&AMOUNT))]),
    |_reader, _item| None,
    |prices| (!prices.is_empty()).then(|| {
        let price = |(unit, price): (&Unit, &u64)| {
            (unit.name().to_owned(), format::amount(&Unit::Usd, *price).into())
        };
        Value::Table(prices.iter().map(price).collect())
    })
);

/// Parses a price in dollars per million.
fn price(text: &str) -> Result<u64, TextError> {
    parse::amount_of(&Unit::Usd, text).map_err(|TextError { what, remedy }| {
        match text.starts_with(|c: char| c.is_ascii_digit()) {
            true => TextError::new(what, remedy),
            false => TextError::new(
                format!("{} is not a price", quoted(text)),
                "write dollars per million units, for example 3 or 0.25",
            ),
        }
    })
}

/// Reads prices of the units that the pool knows.
pub(crate) fn read_price(reader: &mut Reader<'_>, item: &Item<'_>, pool: &mut PoolSettings) {
    for entry in reader.entries(item) {
        let Some(unit) = unit_of(reader, &entry) else { continue };
        if unit == Unit::Usd || !pool.knows(&unit) {
            let units: Vec<&str> = KNOWN_UNITS.into_iter().filter(|name| *name != "usd").collect();
            reader.unknown_key(&entry, &units, "in price");
            continue;
        }
        // The text is in dollars, the stored price in millionths.
        if let Some(price) = reader.parse(&entry, price) {
            pool.price.insert(unit, price);
        }
    }
}
