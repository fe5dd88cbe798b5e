//! The limits of a pool as the file states them: `requests = "60/min"`, the long form, a list of
//! either, and `parallel = 5`.

use standpipe_core::{Limit, Rule, Unit, bounds};
use standpipe_dialect::Dialect;

use super::limit_form::{CHARGED, KEYS, KINDS, LimitForm, RESETS, burst};
use super::reader::{Item, Reader};
use super::text;

/// Adds the limits of a unit to those of a pool of that provider.
pub(super) fn read(
    reader: &mut Reader<'_>,
    item: &Item<'_>,
    unit: &Unit,
    dialect: Dialect,
    into: &mut Vec<Limit>,
) {
    if !item.value.is_array() {
        let limit = one(reader, item, unit, dialect);
        add(reader, item, limit, into);
        return;
    }
    let elements = reader.list(item);
    if elements.is_empty() {
        reader.wrong_at(item, "is an empty list", "write a rate, or leave the key out");
    }
    for element in &elements {
        let limit = one(reader, element, unit, dialect);
        add(reader, element, limit, into);
    }
}

/// Adds how many calls may be in flight.
pub(super) fn read_parallel(reader: &mut Reader<'_>, item: &Item<'_>, into: &mut Vec<Limit>) {
    let amount = reader.take(item, text::slots);
    add(reader, item, amount.map(|amount| Limit::new(Rule::Parallel { amount })), into);
}

fn add(reader: &mut Reader<'_>, item: &Item<'_>, limit: Option<Limit>, into: &mut Vec<Limit>) {
    let Some(limit) = limit else { return };
    if into.iter().any(|known| known.id() == limit.id()) {
        let what = "two limits of the same unit, kind and period";
        reader.wrong_at(item, what, "keep the stricter one");
    } else if into.len() == bounds::LIMITS {
        let what = format!("is one limit more than the {} that are kept", bounds::LIMITS);
        reader.wrong_at(item, what, "leave out those that others imply");
    } else {
        into.push(limit);
    }
}

/// A rate, or the long form.
fn one(reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit, dialect: Dialect) -> Option<Limit> {
    let mut form = if item.value.is_table() {
        long(reader, item, unit)
    } else {
        let rate = reader.take(item, |text| text::rate_of(unit, text))?;
        LimitForm { rate: Some(rate), ..LimitForm::default() }
    };
    form.follow(dialect, unit);
    form.limit(unit)
}

fn long(reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit) -> LimitForm {
    let mut form = LimitForm::default();
    let mut stated_rate = false;
    for entry in reader.entries(item) {
        match entry.key {
            "rate" => {
                stated_rate = true;
                form.rate = reader.take(&entry, |text| text::rate_of(unit, text));
            }
            "kind" => form.kind = reader.one_of(&entry, &KINDS),
            "burst" => form.burst = reader.take(&entry, |text| burst(unit, text)),
            "pace" => form.pace = reader.positive_span(&entry),
            "charged" => form.charged = reader.one_of(&entry, &CHARGED),
            "resets" => form.resets = reader.one_of(&entry, &RESETS),
            _ => reader.unknown(&entry, &KEYS, "in a limit"),
        }
    }
    if !stated_rate {
        reader.wrong_at(item, "the limit has no rate", "add for example rate = \"60/min\"");
    }
    for text::TextError { what, remedy } in form.contradictions() {
        reader.wrong_at(item, what, remedy);
    }
    form
}
