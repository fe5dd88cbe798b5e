//! The limits of a pool as the file states them: `requests = "60/min"`, the long form, a list of
//! either, and `parallel = 5`.

use standpipe_core::{Charged, Limit, Resets, Rule, Span, Unit, bounds};

use super::reader::{Item, Reader};
use super::text;

/// The keys of a limit's long form.
pub(super) const KEYS: [&str; 6] = ["rate", "kind", "burst", "pace", "charged", "resets"];

/// The kinds of the long form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Window,
    Bucket,
}

/// The long form as it is written.
struct Long {
    rate: Option<(u64, Span)>,
    kind: Kind,
    burst: Option<u64>,
    pace: Option<Span>,
    charged: Charged,
    resets: Resets,
}

/// Adds what is said about a unit to the pool's limits.
pub(super) fn read(reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit, into: &mut Vec<Limit>) {
    if !item.value.is_array() {
        let limit = one(reader, item, unit);
        add(reader, item, limit, into);
        return;
    }
    let elements = reader.list(item);
    if elements.is_empty() {
        reader.wrong_at(item, "is an empty list", "write a rate, or leave the key out");
    }
    for element in &elements {
        let limit = one(reader, element, unit);
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
fn one(reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit) -> Option<Limit> {
    if item.value.is_table() {
        return long(reader, item, unit);
    }
    let (amount, period) = reader.take(item, |text| text::rate_of(unit, text))?;
    let charged = text::charged_by_default(unit);
    Some(Limit { charged, ..Limit::new(Rule::Window { unit: unit.clone(), amount, period }) })
}

fn long(reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit) -> Option<Limit> {
    let mut long = Long {
        rate: None,
        kind: Kind::Window,
        burst: None,
        pace: None,
        charged: text::charged_by_default(unit),
        resets: Resets::Rolling,
    };
    let mut stated_rate = false;
    for entry in reader.entries(item) {
        match entry.key {
            "rate" => {
                stated_rate = true;
                long.rate = reader.take(&entry, |text| text::rate_of(unit, text));
            }
            "kind" => long.kind = reader.one_of(&entry, &KINDS).unwrap_or(long.kind),
            "burst" => long.burst = burst(reader, &entry, unit),
            "pace" => long.pace = reader.positive_span(&entry),
            "charged" => long.charged = reader.one_of(&entry, &CHARGED).unwrap_or(long.charged),
            "resets" => long.resets = reader.one_of(&entry, &RESETS).unwrap_or(long.resets),
            _ => reader.unknown(&entry, &KEYS, "in a limit"),
        }
    }
    if !stated_rate {
        reader.wrong_at(item, "the limit has no rate", "add for example rate = \"60/min\"");
    }
    long.limit(reader, item, unit)
}

impl Long {
    fn limit(self, reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit) -> Option<Limit> {
        if self.kind == Kind::Window && self.burst.is_some() {
            let remedy = "add kind = \"bucket\", or leave burst out";
            reader.wrong_at(item, "burst means nothing for a window", remedy);
        }
        if self.kind == Kind::Bucket && self.resets == Resets::Provider {
            let remedy = "leave kind out: a limit that resets is a window";
            reader.wrong_at(item, "a bucket refills and does not reset", remedy);
        }
        let (amount, period) = self.rate?;
        let unit = unit.clone();
        let rule = match self.kind {
            Kind::Window => Rule::Window { unit, amount, period },
            // What a provider that says "bucket" and no more has: as deep as one period's refill.
            Kind::Bucket => {
                Rule::Bucket { unit, amount, period, burst: self.burst.unwrap_or(amount) }
            }
        };
        Some(Limit { rule, pace: self.pace, charged: self.charged, resets: self.resets })
    }
}

fn burst(reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit) -> Option<u64> {
    let burst = reader.take(item, |text| text::amount_of(unit, text))?;
    if burst == 0 {
        reader.wrong_at(item, "a bucket that holds nothing admits nothing", "write at least 1");
        return None;
    }
    Some(burst)
}

const KINDS: [(&str, Kind); 2] = [("window", Kind::Window), ("bucket", Kind::Bucket)];
const CHARGED: [(&str, Charged); 2] = [("start", Charged::Start), ("end", Charged::End)];
const RESETS: [(&str, Resets); 2] = [("rolling", Resets::Rolling), ("provider", Resets::Provider)];
