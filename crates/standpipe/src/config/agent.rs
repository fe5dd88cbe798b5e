//! One `[agent.NAME]` of the file: its tier, what is kept for it, and the most it may use.

use std::collections::BTreeMap;

use standpipe_core::{LimitSelector, Portion, Priority, Share, Unit};
use standpipe_store::PoolName;

use super::policy::PRIORITIES;
use super::pool::reader_unit;
use super::reader::{Item, Reader};
use super::text::{self, TextError, quoted};

/// What the file says about an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSettings {
    /// Its tier; `None` is standard.
    pub priority: Option<Priority>,
    /// What is kept for it while it is active.
    pub floor: Shares,
    /// The most it may use.
    pub cap: Shares,
}

/// Shares of the limits of one pool, several, or all. Each pool counts by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Of every pool that is not named.
    pub everywhere: Vec<Share>,
    /// Of these.
    pub by_pool: BTreeMap<PoolName, Vec<Share>>,
}

/// The keys of an agent.
pub(super) const KEYS: [&str; 3] = ["priority", "floor", "cap"];

impl Shares {
    /// Those that concern a pool.
    #[must_use]
    pub fn on(&self, pool: &PoolName) -> &[Share] {
        self.by_pool.get(pool).unwrap_or(&self.everywhere)
    }
}

/// One agent's table.
pub(super) fn read(reader: &mut Reader<'_>, item: &Item<'_>) -> AgentSettings {
    let mut agent = AgentSettings::default();
    for entry in reader.entries(item) {
        match entry.key {
            "priority" => agent.priority = reader.one_of(&entry, &PRIORITIES),
            "floor" => agent.floor = shares(reader, &entry),
            "cap" => agent.cap = shares(reader, &entry),
            _ => reader.unknown(&entry, &KEYS, "in an agent"),
        }
    }
    agent
}

/// A percentage, a table unit → rate, or a table pool → either.
fn shares(reader: &mut Reader<'_>, item: &Item<'_>) -> Shares {
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
        let Ok(pool) = entry.key.parse::<PoolName>().map_err(|invalid| {
            let what = format!("{} is not the name of a pool", quoted(entry.key));
            reader.wrong(entry.line, what, invalid.to_string());
        }) else {
            continue;
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

/// A percentage of every limit.
fn of_all(reader: &mut Reader<'_>, item: &Item<'_>) -> Vec<Share> {
    let read = |text: &str| {
        text::percent(text).map_err(|TextError { what, remedy }| match text::rate(text) {
            Ok(_) => TextError::new(what, format!("name the unit: {{ requests = \"{text}\" }}")),
            Err(_) => TextError::new(what, remedy),
        })
    };
    let Some(share) = reader.take(item, read) else { return Vec::new() };
    let portion = not_zero(reader, item, share);
    portion.map(|portion| Share { of: LimitSelector::All, portion }).into_iter().collect()
}

/// A rate of one unit, or a percentage of what counts it; slots, for calls in flight.
fn of_unit(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Share> {
    let is_percent = item.value.as_str().is_some_and(|text| text.trim().ends_with('%'));
    let of = match item.key {
        "parallel" => LimitSelector::Parallel,
        _ => LimitSelector::Unit(reader_unit(reader, item)?),
    };
    let portion = if is_percent {
        let share = reader.take(item, text::percent)?;
        not_zero(reader, item, share)?
    } else {
        match &of {
            LimitSelector::Unit(unit) => rate(reader, item, unit)?,
            _ => Portion::Slots(reader.take(item, text::slots)?),
        }
    };
    Some(Share { of, portion })
}

fn rate(reader: &mut Reader<'_>, item: &Item<'_>, unit: &Unit) -> Option<Portion> {
    let (amount, period) = reader.take(item, |text| text::rate_of(unit, text))?;
    Some(Portion::Rate { amount, period })
}

fn not_zero(reader: &mut Reader<'_>, item: &Item<'_>, share: u16) -> Option<Portion> {
    if share == 0 {
        let remedy = "write at least \"0.1%\", or leave it out for no floor or cap";
        reader.wrong_at(item, "is nothing", remedy);
        return None;
    }
    Some(Portion::PerMille(share))
}
