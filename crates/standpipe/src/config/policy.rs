//! How a pool behaves when a provider says no or a store is away: values that later parts of
//! Standpipe act on. Here they are only read and checked.

use standpipe_core::{Priority, Span};

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

/// How long a pool pauses after a refusal of the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first.
    pub base: Span,
    /// What each further one multiplies it by, in thousandths.
    pub factor_per_mille: u32,
    /// The most; `None` is one period of the limit that was hit.
    pub cap: Option<Span>,
    /// Whether the length is drawn at random between base and the whole.
    pub jitter: bool,
}

/// When each tier comes back after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnWindows {
    /// P0.
    pub critical: Stretch,
    /// P1.
    pub standard: Stretch,
    /// P2.
    pub background: Stretch,
}

/// A stretch of time after a pause ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Its beginning.
    pub from: Span,
    /// Its end.
    pub to: Span,
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

impl Default for Backoff {
    fn default() -> Self {
        Self { base: Span::secs(10), factor_per_mille: 2_000, cap: None, jitter: false }
    }
}

impl Default for ReturnWindows {
    fn default() -> Self {
        let stretch = |from, to| Stretch { from: Span::millis(from), to: Span::millis(to) };
        Self {
            critical: stretch(0, 500),
            standard: stretch(500, 3_500),
            background: stretch(3_500, 9_500),
        }
    }
}

impl ReturnWindows {
    /// Everybody within the same stretch.
    const fn smear(length: Span) -> Self {
        let stretch = Stretch { from: Span::ZERO, to: length };
        Self { critical: stretch, standard: stretch, background: stretch }
    }
}

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

pub(super) fn backoff(reader: &mut Reader<'_>, item: &Item<'_>) -> Backoff {
    let mut backoff = Backoff::default();
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
    backoff
}

/// One length for everybody, `false` for no spread at all, or a stretch per tier.
pub(super) fn return_windows(reader: &mut Reader<'_>, item: &Item<'_>) -> ReturnWindows {
    let mut windows = ReturnWindows::default();
    if item.value.as_bool() == Some(false) {
        return ReturnWindows::smear(Span::ZERO);
    }
    if !item.value.is_table() {
        return reader.span(item).map_or(windows, ReturnWindows::smear);
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
    windows
}

fn stretch(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Stretch> {
    let elements = reader.list(item);
    let [from, to] = elements.as_slice() else {
        if item.value.is_array() {
            let remedy = format!("write when it begins and ends: {} = [\"0s\", \"5s\"]", item.key);
            reader.wrong_at(item, "is not a beginning and an end", remedy);
        }
        return None;
    };
    let (from, to) = (reader.span(from), reader.span(to));
    let stretch = Stretch { from: from?, to: to? };
    if stretch.from > stretch.to {
        reader.wrong_at(item, "ends before it begins", "write the earlier time first");
        return None;
    }
    Some(stretch)
}
