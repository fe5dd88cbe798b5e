//! Forms of an agent: its priority, its weight, and shares of the limits of pools.

use standpipe_core::{LimitSelector, Portion, Priority, Share, Unit, bounds};

use super::form::{OneOf, Optional, form};
use super::limit::unit_of;
use super::names;
use super::shape::{AMOUNT, PERCENT, POOL_NAME, RATE};
use super::{Definition, Shape, Value};
use crate::file::reader::{Item, Reader, shown_value};
use crate::format;
use crate::parse::{self, TextError};
use crate::path::join;
use crate::settings::Shares;

static SHARES: Definition = Definition {
    name: "share",
    about: "A percentage, a table unit = rate, or a table pool = either.",
    shape: || {
        let of_pool = Shape::any_of([Shape::Named(&PERCENT), Shape::Named(&UNIT_SHARES)]);
        let mut entries = unit_entries();
        entries.push((POOL_NAME, of_pool));
        Shape::any_of([Shape::Named(&PERCENT), Shape::Map(entries)])
    },
};

static UNIT_SHARES: Definition = Definition {
    name: "unit_shares",
    about: "A table unit = rate.",
    shape: || Shape::Map(unit_entries()),
};

fn unit_entries() -> Vec<(&'static str, Shape)> {
    let of_unit = Shape::any_of([Shape::Named(&RATE), Shape::Named(&PERCENT)]);
    let of_slots = Shape::any_of([Shape::Named(&AMOUNT), Shape::Named(&PERCENT)]);
    vec![("parallel", of_slots), ("^(?!parallel$)[a-z][a-z0-9_]{0,31}$", of_unit)]
}

form!(
    /// A priority; `None` is standard.
    PriorityForm: Option<Priority>, OneOf::<Priority>::shape(),
    |reader, item| Optional::<OneOf<_>>::read(reader, item),
    |priority, scope| OneOf::value(&priority.unwrap_or_default(), scope)
);

form!(
    /// The weight of an agent in fair order.
    WeightForm: u16, Shape::integer(1, Some(bounds::WEIGHT.into())),
    |reader, item| {
        let weight = item.value.as_integer().and_then(|number| number.as_str().parse().ok());
        let weight = weight.filter(|weight| (1..=bounds::WEIGHT).contains(weight));
        if weight.is_none() {
            let remedy = format!("write a whole number from 1 to {}", bounds::WEIGHT);
            reader.problem_at(item, format!("is {}, not a weight", shown_value(item)), remedy);
        }
        weight
    },
    |weight| Value::Number(u64::from(*weight))
);

form!(
    /// A percentage, a table unit = rate, or a table pool = either.
    SharesForm: Shares, Shape::Named(&SHARES),
    |reader, item| Some(read(reader, item)),
    |shares| {
        let by_pool = shares.by_pool.iter();
        let by_pool =
            by_pool.filter_map(|(pool, on)| Some((join("", pool.as_str()), value_of(on)?)));
        let mut entries = match value_of(&shares.everywhere) {
            Some(Value::Table(units)) => units,
            Some(percentage) => return Some(percentage),
            None => Vec::new(),
        };
        entries.extend(by_pool);
        (!entries.is_empty()).then_some(Value::Table(entries))
    }
);

fn read(reader: &mut Reader<'_>, item: &Item<'_>) -> Shares {
    let mut shares = Shares::default();
    if !item.value.is_table() {
        shares.everywhere = of_all(reader, item);
        return shares;
    }
    for entry in reader.entries(item) {
        if !entry.key.contains('/') {
            shares.everywhere.extend(of_unit(reader, &entry));
            continue;
        }
        let pool = match names::pool(&entry) {
            Ok(pool) => pool,
            Err(error) => {
                reader.problem(entry.line, error.what, error.remedy);
                continue;
            }
        };
        reader.references.push((pool.clone(), entry.line));
        let on_pool = if entry.value.is_table() {
            let units = reader.entries(&entry);
            units.iter().filter_map(|unit| of_unit(reader, unit)).collect()
        } else {
            of_all(reader, &entry)
        };
        shares.by_pool.insert(pool, on_pool);
    }
    shares
}

/// Reads a percentage of every limit.
fn of_all(reader: &mut Reader<'_>, item: &Item<'_>) -> Vec<Share> {
    let percent = |text: &str| {
        parse::percent(text).map_err(|TextError { what, remedy }| match parse::rate(text) {
            Ok(_) => TextError::new(what, format!("name the unit: {{ requests = \"{text}\" }}")),
            Err(_) if !text.contains('%') => TextError::new(
                what,
                format!("{remedy}, or name the unit: {{ requests = \"{}/min\" }}", rate_of(text)),
            ),
            Err(_) => TextError::new(what, remedy),
        })
    };
    let portion = reader.parse(item, |text| not_zero(percent(text)?));
    portion.map(|portion| Share { of: LimitSelector::All, portion }).into_iter().collect()
}

/// The number of a share without a unit, for the example in its error.
fn rate_of(text: &str) -> u64 {
    text.trim().parse().ok().filter(|amount| *amount > 0).unwrap_or(10)
}

/// Reads a rate or a percentage of one unit, or a number of calls in flight.
fn of_unit(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Share> {
    let is_percent = item.value.as_str().is_some_and(|text| text.trim().ends_with('%'));
    let of = match item.key {
        "parallel" => LimitSelector::Parallel,
        _ => LimitSelector::Unit(unit_of(reader, item)?),
    };
    let portion = reader.parse(item, |text| match &of {
        _ if is_percent => not_zero(parse::percent(text)?),
        LimitSelector::Unit(unit) => {
            let (amount, period) = parse::rate_of(unit, text)?;
            Ok(Portion::Rate { amount, period })
        }
        _ => parse::slots(text).map(Portion::Slots),
    })?;
    Some(Share { of, portion })
}

fn not_zero(share: u16) -> Result<Portion, TextError> {
    if share == 0 {
        let remedy = "write at least \"0.1%\", or leave it out for no floor or cap";
        return Err(TextError::new("the share is zero", remedy));
    }
    Ok(Portion::PerMille(share))
}

/// Returns a percentage of all limits, or a table by unit; `None` if there are no shares.
fn value_of(shares: &[Share]) -> Option<Value> {
    let mut units = Vec::new();
    for share in shares {
        let unit = match &share.of {
            LimitSelector::Unit(unit) => unit,
            _ => &Unit::Requests,
        };
        let portion: Value = match share.portion {
            Portion::PerMille(share) => format::percent(share).into(),
            Portion::Rate { amount, period } => format::rate(unit, amount, period).into(),
            Portion::Slots(slots) => Value::Number(slots),
        };
        match &share.of {
            LimitSelector::All => return Some(portion),
            LimitSelector::Unit(unit) => units.push((unit.name().to_owned(), portion)),
            LimitSelector::Parallel => units.push(("parallel".to_owned(), portion)),
        }
    }
    (!units.is_empty()).then_some(Value::Table(units))
}
