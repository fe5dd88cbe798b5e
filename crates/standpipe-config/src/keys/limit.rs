//! Limits: `requests = "60/min"`, the long form, a list of either, and `parallel = 5`.

use standpipe_core::{Charged, Limit, Resets, Rule, Span, Unit, bounds};
use standpipe_dialect::Dialect;

use super::form::{Form, OneOf, Sectioned};
use super::shape::{AMOUNT, DURATION, RATE, UNIT_NAME};
use super::{Definition, Key, Scope, Section, Shape, Value};
use crate::calendar;
use crate::file::reader::{Item, Reader};
use crate::format;
use crate::parse::limit::{Kind, LimitForm};
use crate::parse::word::Word;
use crate::parse::{self, TextError, charged_by_default};
use crate::path::join;
use crate::settings::{PoolSettings, dialect_of};

/// A row of the long form: name, shape, default, description. [`LimitForm::set`] parses the value.
macro_rules! option {
    ($name:literal: $shape:expr, $default:expr, $about:literal) => {
        Key::<LimitForm> {
            name: $name,
            about: $about,
            shape: || $shape,
            read: |reader, item, form| {
                reader.parse(item, |text| form.set($name, text));
            },
            value: |_, _| $default.map(|default: &str| default.into()),
        }
    };
}

/// The long form of a limit.
impl Sectioned for LimitForm {
    const SECTION: &'static Section<Self> = &Section {
        check: |reader, item, form| {
            if item.value.get("rate").is_none() {
                let remedy = "add for example rate = \"60/min\"";
                reader.problem_at(item, "the limit has no rate", remedy);
            }
            for TextError { what, remedy } in form.contradictions() {
                reader.problem_at(item, what, remedy);
            }
        },
        ..Section::new(
            "in a limit",
            || Self::new(Unit::Requests),
            &[
                option!("rate": Shape::Named(&RATE), None, "Amount per time; required."),
                option!("kind": OneOf::<Kind>::shape(), Some("window"),
                "`window` is rolling; `bucket` refills continuously. `bucket` is the default with \
                 `burst`, and for periods of up to a minute at Anthropic."),
                option!("burst": Shape::Named(&AMOUNT), None, "Capacity of the bucket."),
                option!("pace": Shape::Named(&DURATION), None, "Minimum time between two calls."),
                option!("charged": OneOf::<Charged>::shape(), None,
                "When the unit is charged; `end` for `output_tokens` and `usd`, else `start`."),
                option!("resets": Shape::Named(&RESETS), Some("rolling"),
                "`provider` if it announces its resets; `00:00 UTC` for days, if it does not."),
            ],
        )
    };
}

static RESETS: Definition = Definition {
    name: "resets",
    about: "rolling, provider, or a time of day and a zone: 00:00 America/Los_Angeles.",
    shape: || {
        let pattern = r"^[0-9]{2}:[0-9]{2} +[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$";
        let time = Shape::Text { what: "time of day and zone", pattern };
        Shape::any_of([Shape::Words(vec!["rolling", "provider"]), time])
    },
};

static ONE_LIMIT: Definition = Definition {
    name: "limit",
    about: "A rate, or a table with a rate and options.",
    shape: || Shape::any_of([Shape::Named(&RATE), Shape::Table(LimitForm::SECTION, &["rate"])]),
};

/// A limit or a list of them.
static LIMITS: Definition = Definition {
    name: "limits",
    about: "A limit or a list of limits.",
    shape: || {
        let list = Shape::list(Shape::Named(&ONE_LIMIT), 1);
        Shape::any_of([Shape::Named(&ONE_LIMIT), list])
    },
};

/// A row for the limits of a built-in unit. All limits are stored in one field; [`arrange`] shows
/// them.
pub(crate) const fn unit(name: &'static str, about: &'static str) -> Key<PoolSettings> {
    Key { name, about, shape: || Shape::Named(&LIMITS), read: read_unit, value: |_, _| None }
}

/// The row for the limits of custom units.
pub(crate) const fn units(about: &'static str) -> Key<PoolSettings> {
    let shape = || Shape::Map(vec![(UNIT_NAME, Shape::Named(&LIMITS))]);
    Key { shape, read: read_units, ..unit("units", about) }
}

/// The row for the number of calls in flight.
pub(crate) const fn parallel(about: &'static str) -> Key<PoolSettings> {
    Key { shape: || Shape::Named(&AMOUNT), read: read_parallel, ..unit("parallel", about) }
}

/// Reads the limits of a built-in unit, whose name is the key.
fn read_unit(reader: &mut Reader<'_>, item: &Item<'_>, pool: &mut PoolSettings) {
    if let Some(unit) = Unit::named(item.key) {
        read_limits(reader, item, &unit, &mut pool.limits);
    }
}

/// Reads the limits of custom units.
fn read_units(reader: &mut Reader<'_>, item: &Item<'_>, pool: &mut PoolSettings) {
    for entry in reader.entries(item) {
        match unit_of(reader, &entry) {
            Some(unit @ Unit::Other(_)) => read_limits(reader, &entry, &unit, &mut pool.limits),
            Some(known) => {
                let remedy = format!("move `{known}` up into the pool's own table");
                reader.problem(entry.line, format!("`{known}` needs no declaration"), remedy);
            }
            None => {}
        }
    }
}

/// Reads the number of calls in flight.
fn read_parallel(reader: &mut Reader<'_>, item: &Item<'_>, pool: &mut PoolSettings) {
    let amount = reader.parse(item, parse::slots);
    let limit = amount.map(|amount| Limit::new(Rule::Parallel { amount }));
    add(reader, item, limit, &mut pool.limits);
}

/// Returns the unit that a key names.
pub(super) fn unit_of(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Unit> {
    let report = |TextError { what, remedy }| reader.problem(item.line, what, remedy);
    parse::unit(item.key).map_err(report).ok()
}

fn read_limits(reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit, limits: &mut Vec<Limit>) {
    if !item.value.is_array() {
        let limit = read_limit(reader, item, unit);
        return add(reader, item, limit, limits);
    }
    let elements = reader.list(item);
    if elements.is_empty() {
        reader.problem_at(item, "is an empty list", "write a rate, or leave the key out");
    }
    for element in &elements {
        let limit = read_limit(reader, element, unit);
        add(reader, element, limit, limits);
    }
}

fn read_limit(reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit) -> Option<Limit> {
    let mut form = LimitForm::new(unit.clone());
    if item.value.is_table() {
        LimitForm::SECTION.read_into(reader, item, &mut form);
    } else {
        reader.parse(item, |text| form.set("rate", text))?;
    }
    let (_, period) = form.rate?;
    let states_kind = form.kind.is_some() || form.resets.is_some();
    if !states_kind && refills(reader.dialect, unit, period) {
        form.kind = Some(Kind::Bucket);
    }
    form.limit()
}

/// Returns whether a limit without a kind is a bucket: the provider refills its limits
/// continuously. Providers state those per minute; a longer limit, or one of money, is the user's
/// own budget.
fn refills(dialect: Dialect, unit: &Unit, period: Span) -> bool {
    let counted = [Unit::Requests, Unit::InputTokens, Unit::OutputTokens, Unit::Tokens];
    dialect.refills_continuously() && counted.contains(unit) && period <= Span::secs(60)
}

fn add(reader: &mut Reader<'_>, item: &Item<'_>, limit: Option<Limit>, limits: &mut Vec<Limit>) {
    let Some(limit) = limit else { return };
    if limits.iter().any(|known| known.id() == limit.id()) {
        let what = "two limits of the same unit, kind and period";
        reader.problem_at(item, what, "keep the stricter one");
    } else if limits.len() == bounds::LIMITS {
        let what = format!("a pool has at most {} limits", bounds::LIMITS);
        reader.problem_at(item, what, "remove limits that others imply");
    } else {
        limits.push(limit);
    }
}

/// Inserts all limits of a pool in the order of the file, one value or a list for each key.
pub(crate) fn arrange(pool: &PoolSettings, scope: &Scope<'_>, values: &mut Vec<(String, Value)>) {
    let dialect = dialect_of(scope.name, pool.provider.as_deref());
    let limits = values_of(&pool.limits, dialect);
    let before_margin = values.iter().position(|(key, _)| key == "margin").unwrap_or_default();
    values.splice(before_margin..before_margin, limits);
}

/// Returns the keys and values of limits, several limits of a unit as a list.
pub(crate) fn values_of(all: &[Limit], dialect: Dialect) -> Vec<(String, Value)> {
    let mut limits: Vec<(String, Value)> = Vec::new();
    for limit in all {
        let key = match limit.id().unit() {
            None => "parallel".to_owned(),
            Some(unit @ Unit::Other(_)) => join("units", unit.name()),
            Some(unit) => unit.name().to_owned(),
        };
        let value = one_limit(limit, dialect);
        match limits.iter_mut().find(|(known, _)| *known == key) {
            None => limits.push((key, value)),
            Some((_, Value::List(values))) => values.push(value),
            Some((_, first)) => *first = Value::List(vec![first.clone(), value]),
        }
    }
    limits
}

/// Returns the rate if it describes the limit completely, else the long form.
fn one_limit(limit: &Limit, dialect: Dialect) -> Value {
    let (unit, amount, period, burst) = match &limit.rule {
        Rule::Parallel { amount } => return Value::Number(*amount),
        Rule::Window { unit, amount, period } => (unit, *amount, *period, None),
        Rule::Bucket { unit, amount, period, burst } => (unit, *amount, *period, Some(*burst)),
    };
    let mut options: Vec<(String, Value)> = Vec::new();
    let mut option = |key: &str, value: Value| options.push((key.to_owned(), value));
    if let Some(burst) = burst {
        option("kind", Kind::Bucket.word().into());
        option("burst", format::amount(unit, burst).into());
    } else if refills(dialect, unit, period) && limit.resets == Resets::Rolling {
        option("kind", Kind::Window.word().into());
    }
    if let Some(pace) = limit.pace {
        option("pace", format::span(pace).into());
    }
    if limit.charged != charged_by_default(unit) {
        option("charged", limit.charged.word().into());
    }
    if limit.resets != Resets::Rolling {
        option("resets", calendar::word(&limit.resets).into());
    }
    let rate = Value::from(format::rate(unit, amount, period));
    if options.is_empty() {
        return rate;
    }
    options.insert(0, ("rate".to_owned(), rate));
    Value::Inline(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_and_the_command_line_have_the_same_options() {
        assert_eq!(LimitForm::SECTION.names(), LimitForm::KEYS);
    }
}
