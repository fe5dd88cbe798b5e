//! One `[pool."provider/scope"]` of the file.

use std::collections::BTreeMap;

use standpipe_core::{
    Amounts, Backoff, CascadeThreshold, Limit, Margin, Policy, RetryBudget, ReturnWindows, Rule,
    Span, Unit, Zones,
};
use standpipe_dialect::Dialect;

use crate::reply::dialect_of;
use standpipe_store::PoolName;

use super::limits;
use super::margin;
use super::policy::{self, LongestLease, StoreFailure, Toggle};
use super::provider;
use super::reader::{Item, Reader};
use super::text::{self, KNOWN_UNITS};

/// What the file says about a pool, with the defaults for what it does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolSettings {
    /// Whose quota it is: what its headers and errors look like.
    pub provider: Option<String>,
    /// Which models draw on it, as patterns with `*`.
    pub models: Vec<String>,
    /// Which of several accounts at the provider.
    pub account: Option<String>,
    /// Its limits, in the order of the file. None: they are learned from the provider.
    pub limits: Vec<Limit>,
    /// The share of every stated rate that is left unused.
    pub margin: Margin,
    /// What widens every period; `None` is what the store suggests.
    pub slack: Option<Span>,
    /// `false` is shadow mode: decide, record, admit anyway.
    pub enforce: bool,
    /// The traffic light.
    pub zones: Toggle,
    /// Whether background agents yield when little is left.
    pub yields: bool,
    /// Whether a background agent that is denied for long is served as a standard one, once.
    pub promotion: bool,
    /// Whether the provider's own count lowers the ledger's view.
    pub reconcile: bool,
    /// Whether what a cost omits is estimated from earlier calls.
    pub estimates: bool,
    /// Whether calls are advised before the quota runs out.
    pub breaker: bool,
    /// Whether several throttled agents make everybody go one at a time.
    pub cascade: Option<CascadeThreshold>,
    /// Whether the provider's own word about its limits is believed.
    pub learn: bool,
    /// How long the pool pauses after a refusal; `None` is as long as the provider says.
    pub backoff: Option<Backoff>,
    /// When each tier comes back after a pause; `None` is all at once.
    pub return_windows: Option<ReturnWindows>,
    /// The share of a minute's admissions that may be retries; `None` is as many as like.
    pub retry_budget: Option<RetryBudget>,
    /// The longest any call waits; `None` is as long as it likes.
    pub longest_wait: Option<Span>,
    /// How long any lease lives without a commit of progress.
    pub longest_lease: LongestLease,
    /// How long a lease without a session lives.
    pub lease_ttl: Span,
    /// Where calls go when this pool has no room, in this order.
    pub fallback: Vec<PoolName>,
    /// Whether the proxy may change a request so that it asks for less.
    pub rewrite: bool,
    /// How often the proxy tells a waiting client that it is still there; `None` is never.
    pub keepalive: Option<Span>,
    /// What a million of a unit costs, in millionths of a dollar.
    pub price: BTreeMap<Unit, u64>,
    /// What happens to calls while the store is away.
    pub on_store_failure: StoreFailure,
}

/// The keys of a pool besides its units.
pub(super) const KEYS: [&str; 27] = [
    "provider",
    "models",
    "account",
    "parallel",
    "units",
    "margin",
    "slack",
    "enforce",
    "zones",
    "yield",
    "promotion",
    "reconcile",
    "estimates",
    "breaker",
    "cascade",
    "learn",
    "backoff",
    "return_windows",
    "retry_budget",
    "longest_wait",
    "longest_lease",
    "lease_ttl",
    "fallback",
    "rewrite",
    "keepalive",
    "price",
    "on_store_failure",
];

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            provider: None,
            models: Vec::new(),
            account: None,
            limits: Vec::new(),
            margin: Margin::Auto,
            slack: None,
            enforce: true,
            zones: Toggle::Auto,
            yields: true,
            promotion: true,
            reconcile: true,
            estimates: true,
            breaker: true,
            cascade: Some(CascadeThreshold::USUAL),
            learn: true,
            backoff: Some(Backoff::USUAL),
            return_windows: Some(ReturnWindows::USUAL),
            retry_budget: Some(RetryBudget::USUAL),
            longest_wait: None,
            longest_lease: LongestLease::Auto,
            lease_ttl: Span::secs(600),
            fallback: Vec::new(),
            rewrite: false,
            keepalive: Some(Span::secs(10)),
            price: BTreeMap::new(),
            on_store_failure: StoreFailure::Closed,
        }
    }
}

impl PoolSettings {
    /// How long any lease lives without a commit of progress, the default worked out.
    #[must_use]
    pub fn longest_lease(&self) -> Option<Span> {
        let is_slots = |limit: &Limit| matches!(limit.rule, Rule::Parallel { .. });
        let only_slots = !self.limits.is_empty() && self.limits.iter().all(is_slots);
        match self.longest_lease {
            LongestLease::At(span) => Some(span),
            LongestLease::Unlimited => None,
            LongestLease::Auto => (!only_slots).then_some(Span::secs(3_600)),
        }
    }

    /// What it does when its provider says no.
    #[must_use]
    pub const fn policy(&self) -> Policy {
        Policy {
            backoff: self.backoff,
            comeback: self.return_windows,
            cascade: self.cascade,
            retries: self.retry_budget,
            learn: self.learn,
            terminal_probe: Policy::usual().terminal_probe,
            zones: match self.zones {
                Toggle::Auto => Zones::Long,
                Toggle::On => Zones::All,
                Toggle::Off => Zones::Off,
            },
            yields: self.yields,
            promotes: self.promotion,
            reconciles: self.reconcile,
            estimates: self.estimates,
            breaker: self.breaker,
        }
    }

    /// What a million of each unit costs, as the ledger takes it.
    #[must_use]
    pub fn prices(&self) -> Amounts {
        let prices = self.price.iter().map(|(unit, price)| (unit.clone(), *price));
        Amounts::new(prices).unwrap_or_default()
    }

    /// Whether calls on this pool may name that unit: it is one everybody knows, or one of its own.
    #[must_use]
    pub fn knows(&self, unit: &Unit) -> bool {
        let of_its_own = || self.limits.iter().any(|limit| limit.id().unit() == Some(unit));
        !matches!(unit, Unit::Other(_)) || of_its_own()
    }
}

/// One pool's table.
pub(super) fn read(reader: &mut Reader<'_>, item: &Item<'_>) -> PoolSettings {
    let mut pool = PoolSettings::default();
    let mut price = None;
    // First, because it decides how limits are counted that do not say so.
    let provider = item.value.get("provider").and_then(|provider| provider.get_ref().as_str());
    let dialect = dialect_of(item.key, provider);
    for entry in reader.entries(item) {
        match entry.key {
            "price" => price = Some(entry),
            key if KNOWN_UNITS.contains(&key) => {
                if let Some(unit) = Unit::named(key) {
                    limits::read(reader, &entry, &unit, dialect, &mut pool.limits);
                }
            }
            "parallel" => limits::read_parallel(reader, &entry, &mut pool.limits),
            "units" => read_units(reader, &entry, &mut pool.limits),
            "provider" => pool.provider = provider::name(reader, &entry),
            "models" => pool.models = words(reader, &entry),
            "account" => pool.account = reader.word(&entry),
            key if KEYS.contains(&key) => read_policy(reader, &entry, &mut pool),
            "headroom" => margin::reject_headroom(reader, &entry),
            _ => unknown(reader, &entry),
        }
    }
    // Last, because it may name units that are declared below it.
    if let Some(entry) = price {
        pool.price = read_price(reader, &entry, &pool);
    }
    pool
}

/// What a pool's table says besides its limits and whose it is.
fn read_policy(reader: &mut Reader<'_>, entry: &Item<'_>, pool: &mut PoolSettings) {
    match entry.key {
        "margin" => pool.margin = margin::read(reader, entry).unwrap_or(pool.margin),
        "slack" => pool.slack = reader.span(entry),
        "enforce" => pool.enforce = reader.flag(entry).unwrap_or_default(),
        "zones" => pool.zones = policy::toggle(reader, entry).unwrap_or_default(),
        "yield" => pool.yields = reader.flag(entry).unwrap_or_default(),
        "promotion" => pool.promotion = reader.flag(entry).unwrap_or_default(),
        "reconcile" => pool.reconcile = reader.flag(entry).unwrap_or_default(),
        "estimates" => pool.estimates = reader.flag(entry).unwrap_or_default(),
        "breaker" => pool.breaker = reader.flag(entry).unwrap_or_default(),
        "cascade" => pool.cascade = policy::cascade(reader, entry),
        "learn" => pool.learn = reader.flag(entry).unwrap_or_default(),
        "backoff" => pool.backoff = policy::backoff(reader, entry),
        "return_windows" => pool.return_windows = policy::return_windows(reader, entry),
        "retry_budget" => pool.retry_budget = policy::retry_budget(reader, entry),
        "longest_wait" => pool.longest_wait = reader.positive_span(entry),
        "longest_lease" => {
            pool.longest_lease = policy::longest_lease(reader, entry).unwrap_or_default();
        }
        "lease_ttl" => pool.lease_ttl = reader.positive_span(entry).unwrap_or_default(),
        "fallback" => pool.fallback = reader.pools(entry),
        "rewrite" => pool.rewrite = reader.flag(entry).unwrap_or_default(),
        "keepalive" => pool.keepalive = policy::span_or_off(reader, entry),
        "on_store_failure" => {
            let word = reader.one_of(entry, &policy::STORE_FAILURES);
            pool.on_store_failure = word.unwrap_or_default();
        }
        _ => unknown(reader, entry),
    }
}

/// `[pool.X.units]`: limits of units that only this pool knows.
fn read_units(reader: &mut Reader<'_>, item: &Item<'_>, into: &mut Vec<Limit>) {
    for entry in reader.entries(item) {
        match reader_unit(reader, &entry) {
            Some(unit @ Unit::Other(_)) => {
                limits::read(reader, &entry, &unit, Dialect::Generic, into);
            }
            Some(known) => {
                let remedy = format!("move `{known}` up into the pool's own table");
                reader.wrong(entry.line, format!("`{known}` needs no declaration"), remedy);
            }
            None => {}
        }
    }
}

/// The unit that a key names.
pub(super) fn reader_unit(reader: &mut Reader<'_>, item: &Item<'_>) -> Option<Unit> {
    match text::unit(item.key) {
        Ok(unit) => Some(unit),
        Err(error) => {
            reader.wrong(item.line, error.what, error.remedy);
            None
        }
    }
}

fn read_price(
    reader: &mut Reader<'_>,
    item: &Item<'_>,
    pool: &PoolSettings,
) -> BTreeMap<Unit, u64> {
    let mut prices = BTreeMap::new();
    for entry in reader.entries(item) {
        let Some(unit) = reader_unit(reader, &entry) else { continue };
        if unit == Unit::Usd || !pool.knows(&unit) {
            let units = KNOWN_UNITS.map(|name| if name == "usd" { "" } else { name });
            reader.unknown(&entry, &units[..6], "in price");
            continue;
        }
        // Dollars per million, kept in millionths of a dollar.
        if let Some(price) = reader.take(&entry, |text| text::amount_of(&Unit::Usd, text)) {
            prices.insert(unit, price);
        }
    }
    prices
}

fn words(reader: &mut Reader<'_>, item: &Item<'_>) -> Vec<String> {
    let elements = reader.list(item);
    elements.iter().filter_map(|element| reader.word(element)).collect()
}

/// A key that no pool has. If it looks like a limit it is a unit that was not declared.
fn unknown(reader: &mut Reader<'_>, entry: &Item<'_>) {
    let known: Vec<&str> = KNOWN_UNITS.into_iter().chain(KEYS).collect();
    let is_meant = super::nearest(entry.key, known.iter().copied()).is_some();
    let is_rate = entry.value.as_str().is_some_and(|text| text::rate(text).is_ok());
    if is_rate && !is_meant {
        let what = format!("unknown unit {} in a pool", entry.name);
        let remedy = "declare a unit of your own in the pool's `units` table";
        reader.wrong(entry.line, what, remedy);
    } else {
        reader.unknown(entry, &known, "in a pool");
    }
}
