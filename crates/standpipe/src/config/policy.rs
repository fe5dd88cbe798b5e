//! How a pool behaves when a provider says no or a store is away: what the file says of it. What it
//! means is the core's business.

use standpipe_core::{
    Backoff, CascadeThreshold, Priority, RetryBudget, ReturnWindows, Span, TimeRange,
};

use super::reader::{Item, Reader};
use super::text;

/// On, off, or as the pool's limits suggest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toggle {
    /// As the limits suggest.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// How long any lease lives without a commit of progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongestLease {
    /// One hour, or for ever where only `parallel` is limited.
    #[default]
    Auto,
    /// For ever.
    Unlimited,
    /// So long.
    At(Span),
}

/// What happens to calls while the store is away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreFailure {
    /// They wait, then get a clear error.
    #[default]
    Closed,
    /// They are admitted, and journaled.
    Open,
    /// Each process admits its share of the limit.
    Share,
}

/// The keys of `backoff`.
pub(super) const BACKOFF_KEYS: [&str; 4] = ["base", "factor", "cap", "jitter"];

/// The names of the tiers.
pub(super) const PRIORITIES: [(&str, Priority); 3] = [
    ("critical", Priority::Critical),
    ("standard", Priority::Standard),
    ("background", Priority::Background),
];

/// The words of `on_store_failure`.
pub(super) const STORE_FAILURES: [(&str, StoreFailure); 3] = [
    ("closed", StoreFailure::Closed),
    ("open", StoreFailure::Open),
    ("share", StoreFailure::Share),
];

pub(super) fn toggle(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Toggle> {
    match (item.value.as_bool(), item.value.as_str()) {
        (Some(true), _) => Some(Toggle::On),
        (Some(false), _) => Some(Toggle::Off),
        (None, Some("auto")) => Some(Toggle::Auto),
        _ => {
            reader.wrong_at(item, "is none of the three", "write \"auto\", true or false");
            None
        }
    }
}

pub(super) fn longest_lease(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<LongestLease> {
    match item.value.as_str() {
        Some("auto") => Some(LongestLease::Auto),
        Some("none") => Some(LongestLease::Unlimited),
        _ => reader.positive_span(item).map(LongestLease::At),
    }
}

/// A duration, or `false` for none.
pub(super) fn span_or_off(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Span> {
    if item.value.as_bool() == Some(false) {
        return None;
    }
    reader.positive_span(item)
}

/// A table, or `false` for no pause but the provider's own.
pub(super) fn backoff(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Backoff> {
    if item.value.as_bool() == Some(false) {
        return None;
    }
    let mut backoff = Backoff::USUAL;
    for entry in reader.entries(item) {
        match entry.key {
            "base" => backoff.base = reader.positive_span(&entry).unwrap_or(backoff.base),
            "factor" => {
                let factor = reader.take(&entry, text::factor);
                backoff.factor_per_mille = factor.unwrap_or(backoff.factor_per_mille);
            }
            "cap" if entry.value.as_str() == Some("auto") => backoff.cap = None,
            "cap" => backoff.cap = reader.positive_span(&entry),
            "jitter" => backoff.jitter = reader.flag(&entry).unwrap_or_default(),
            _ => reader.unknown(&entry, &BACKOFF_KEYS, "in backoff"),
        }
    }
    if backoff.cap.is_some_and(|cap| cap < backoff.base) {
        reader.wrong_at(item, "the cap is shorter than the base", "write a cap of at least base");
    }
    Some(backoff)
}

/// The keys of `cascade`.
pub(super) const CASCADE_KEYS: [&str; 2] = ["agents", "within"];

/// A table, or `true` for the default and `false` for none.
pub(super) fn cascade(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<CascadeThreshold> {
    let mut threshold = CascadeThreshold::USUAL;
    match item.value.as_bool() {
        Some(on) => return on.then_some(threshold),
        None if !item.value.is_table() => {
            let remedy = "write true, false or { agents = 3, within = \"30s\" }";
            reader.wrong_at(item, "is not a cascade", remedy);
            return Some(threshold);
        }
        None => {}
    }
    for entry in reader.entries(item) {
        match entry.key {
            "agents" => {
                let most = CascadeThreshold::MAX_AGENTS;
                let agents = entry.value.as_integer().and_then(|n| n.as_str().parse().ok());
                match agents.filter(|agents| (1..=most).contains(agents)) {
                    Some(agents) => threshold.agents = agents,
                    None => {
                        let remedy = format!("write a whole number from 1 to {most}");
                        reader.wrong_at(&entry, "is not a number of agents", remedy);
                    }
                }
            }
            "within" => threshold.within = reader.positive_span(&entry).unwrap_or(threshold.within),
            _ => reader.unknown(&entry, &CASCADE_KEYS, "in cascade"),
        }
    }
    Some(threshold)
}

/// A share of the minute's calls, or `false` for an unlimited number.
pub(super) fn retry_budget(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<RetryBudget> {
    if item.value.as_bool() == Some(false) {
        return None;
    }
    let per_mille = reader.take(item, text::share).unwrap_or_default();
    Some(RetryBudget { per_mille, ..RetryBudget::USUAL })
}

/// One length for everybody, `false` for all at once, or a stretch per tier.
pub(super) fn return_windows(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<ReturnWindows> {
    let mut windows = ReturnWindows::USUAL;
    if item.value.as_bool() == Some(false) {
        return None;
    }
    if !item.value.is_table() {
        return reader.span(item).map(ReturnWindows::smear);
    }
    for entry in reader.entries(item) {
        let tier = match entry.key {
            "critical" => &mut windows.critical,
            "standard" => &mut windows.standard,
            "background" => &mut windows.background,
            _ => {
                reader.unknown(&entry, &PRIORITIES.map(|(name, _)| name), "in return_windows");
                continue;
            }
        };
        *tier = stretch(reader, &entry).unwrap_or(*tier);
    }
    Some(windows)
}

fn stretch(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<TimeRange> {
    let elements = reader.list(item);
    let [from, to] = elements.as_slice() else {
        if item.value.is_array() {
            let remedy = format!("write when it begins and ends: {} = [\"0s\", \"5s\"]", item.key);
            reader.wrong_at(item, "is not a beginning and an end", remedy);
        }
        return None;
    };
    let (from, to) = (reader.span(from), reader.span(to));
    let stretch = TimeRange { from: from?, to: to? };
    if stretch.from > stretch.to {
        reader.wrong_at(item, "ends before it begins", "write the earlier time first");
        return None;
    }
    Some(stretch)
}
