//! Forms of the policies of a pool.

use standpipe_core::{
    Backoff, CascadeThreshold, Margin, RetryBudget, ReturnWindows, Span, TimeRange,
};

use super::form::{Duration, Flag, Optional, OrFalse, PositiveDuration, Sectioned, Table, form};
use super::shape::{DURATION, PERCENT};
use super::{Section, Shape, Value, key};
use crate::file::reader::{Item, Reader, scalar, shown_value};
use crate::settings::{LongestLease, Toggle};
use crate::{format, parse};

form!(
    /// `"auto"`, `true` or `false`.
    ToggleForm: Toggle, Shape::any_of([Shape::Words(vec!["auto"]), Shape::Flag]),
    |reader, item| match (item.value.as_bool(), item.value.as_str()) {
        (Some(true), _) => Some(Toggle::On),
        (Some(false), _) => Some(Toggle::Off),
        (None, Some("auto")) => Some(Toggle::Auto),
        _ => {
            let what = format!("is {}", shown_value(item));
            reader.problem_at(item, what, "write \"auto\", true or false");
            None
        }
    },
    |toggle| match toggle {
        Toggle::Auto => Value::from("auto"),
        Toggle::On => Value::Flag(true),
        Toggle::Off => Value::Flag(false),
    }
);

form!(
    /// `"auto"`, a percentage, or a number from 0 to below 1.
    MarginForm: Margin,
    Shape::any_of([
        Shape::Words(vec!["auto"]),
        Shape::Named(&PERCENT),
        Shape::number([("minimum", 0), ("exclusiveMaximum", 1)]),
    ]),
    |reader, item| match item.value.as_str() {
        Some("auto") => Some(Margin::Auto),
        _ => reader.parse(item, parse::margin).map(Margin::Fixed),
    },
    |margin| Value::from(format::margin(*margin))
);

/// Rejects the former key `headroom`, which meant the share that is used. The same number under the
/// new key would mean the opposite, so the remedy has the converted figure.
pub(super) fn reject_headroom(reader: &mut Reader<'_>, item: &Item<'_>) {
    let used = scalar(item.value).and_then(|text| parse::share(&text).ok());
    let remedy = match used {
        _ if item.value.as_str() == Some("auto") => "write margin = \"auto\"".to_owned(),
        Some(1_000) => "write margin = 0".to_owned(),
        Some(used @ 1..1_000) => format!("write margin = \"{}\"", format::percent(1_000 - used)),
        _ => "write for example margin = \"20%\"".to_owned(),
    };
    let what = "`headroom` is now `margin`, the share that is left unused";
    reader.problem(item.line, what, remedy);
}

form!(
    /// `"auto"`, `"none"` or a duration.
    LongestLeaseForm: LongestLease,
    Shape::any_of([Shape::Words(vec!["auto", "none"]), Shape::Named(&DURATION)]),
    |reader, item| match item.value.as_str() {
        Some("auto") => Some(LongestLease::Auto),
        Some("none") => Some(LongestLease::Unlimited),
        _ => PositiveDuration::read(reader, item).map(LongestLease::At),
    },
    |longest| Value::from(match longest {
        LongestLease::Auto => "auto".to_owned(),
        LongestLease::Unlimited => "none".to_owned(),
        LongestLease::At(span) => format::span(*span),
    })
);

form!(
    /// A share of the minute's calls.
    RetryShare: RetryBudget,
    Shape::any_of([
        Shape::Named(&PERCENT),
        Shape::number([("minimum", 0), ("maximum", 1)]),
    ]),
    |reader, item| {
        let per_mille = reader.parse(item, parse::share)?;
        Some(RetryBudget { per_mille, ..RetryBudget::USUAL })
    },
    |budget| Value::from(format::percent(budget.per_mille))
);

impl Sectioned for Backoff {
    const SECTION: &'static Section<Self> = &Section {
        check: |reader, item, backoff| {
            if backoff.cap.is_some_and(|cap| cap < backoff.base) {
                let what = "the cap is shorter than the base";
                reader.problem_at(item, what, "write a cap of at least base");
            }
        },
        ..Section::new(
            "in backoff",
            || Self::USUAL,
            &[
                key!("base": PositiveDuration => Backoff.base, "Pause after the first refusal."),
                key!("factor": Factor => Backoff.factor_per_mille, "Factor of each further pause."),
                key!("cap": OrAuto => Backoff.cap, "Maximum; `auto` is one period of the limit."),
                key!("jitter": Flag => Backoff.jitter, "Whether the length is random."),
            ],
        )
    };
}

form!(
    /// A multiplier from 1 to 100, in thousandths.
    Factor: u32,
    Shape::any_of([
        Shape::number([("minimum", 1), ("maximum", 100)]),
        Shape::Text { what: "number", pattern: r"^\s*[0-9][0-9_]*(\.[0-9][0-9_]*)?\s*$" },
    ]),
    |reader, item| reader.parse(item, parse::factor),
    |factor| Value::from(format::decimal(u64::from(*factor), 1_000))
);

form!(
    /// `"auto"` for `None`, or a duration.
    OrAuto: Option<Span>,
    Shape::any_of([Shape::Words(vec!["auto"]), Shape::Named(&DURATION)]),
    |reader, item| match item.value.as_str() {
        Some("auto") => Some(None),
        _ => Optional::<PositiveDuration>::read(reader, item),
    },
    |cap| Value::from(cap.map_or_else(|| "auto".to_owned(), format::span))
);

impl Sectioned for CascadeThreshold {
    const SECTION: &'static Section<Self> = &Section::new(
        "in cascade",
        || Self::USUAL,
        &[
            key!("agents": AgentCount => CascadeThreshold.agents, "Number of different agents."),
            key!("within": PositiveDuration => CascadeThreshold.within,
            "Time within which they are throttled."),
        ],
    );
}

form!(
    /// A number of agents.
    AgentCount: u8, Shape::integer(1, Some(CascadeThreshold::MAX_AGENTS.into())),
    |reader, item| {
        let most = CascadeThreshold::MAX_AGENTS;
        let agents = item.value.as_integer().and_then(|number| number.as_str().parse().ok());
        let agents = agents.filter(|agents| (1..=most).contains(agents));
        if agents.is_none() {
            let remedy = format!("write a whole number from 1 to {most}");
            let what = format!("is {}, not a number of agents", shown_value(item));
            reader.problem_at(item, what, remedy);
        }
        agents
    },
    |agents| Value::Number(u64::from(*agents))
);

form!(
    /// A table, `true` for the default, or `false` for none.
    Cascade: Option<CascadeThreshold>,
    Shape::any_of([Shape::Flag, Table::<CascadeThreshold>::shape()]),
    |reader, item| match item.value.as_bool() {
        Some(on) => Some(on.then_some(CascadeThreshold::USUAL)),
        None if item.value.is_table() => Table::read(reader, item).map(Some),
        None => {
            let remedy = "write true, false or { agents = 3, within = \"30s\" }";
            reader.problem_at(item, "is neither a boolean nor a table", remedy);
            None
        }
    },
    |value, scope| OrFalse::<Table<_>>::value(value, scope)
);

impl Sectioned for ReturnWindows {
    const SECTION: &'static Section<Self> = &Section::new(
        "in return_windows",
        || Self::USUAL,
        &[
            key!("critical": Range => ReturnWindows.critical, "Window of critical calls."),
            key!("standard": Range => ReturnWindows.standard, "Window of standard calls."),
            key!("background": Range => ReturnWindows.background, "Window of background calls."),
        ],
    );
}

form!(
    /// The windows of all priorities, or one length for all of them.
    Windows: ReturnWindows,
    Shape::any_of([Shape::Named(&DURATION), Table::<ReturnWindows>::shape()]),
    |reader, item| match item.value.is_table() {
        true => Table::read(reader, item),
        false => Duration::read(reader, item).map(ReturnWindows::smear),
    },
    |windows, scope| Table::value(windows, scope)
);

form!(
    /// A start and an end.
    Range: TimeRange,
    Shape::List { of: Box::new(Duration::shape()), least: 2, most: Some(2), unique: false },
    |reader, item| {
        let elements = reader.list(item);
        let [from, to] = elements.as_slice() else {
            if item.value.is_array() {
                let remedy = format!("write two durations: {} = [\"0s\", \"5s\"]", item.key);
                reader.problem_at(item, "is not a start and an end", remedy);
            }
            return None;
        };
        let (from, to) = (Duration::read(reader, from), Duration::read(reader, to));
        let range = TimeRange { from: from?, to: to? };
        if range.from > range.to {
            reader.problem_at(item, "ends before it starts", "write the earlier time first");
            return None;
        }
        Some(range)
    },
    |range| Value::texts([range.from, range.to].map(format::span))
);
