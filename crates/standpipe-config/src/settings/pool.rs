//! The settings of a pool.

use std::collections::BTreeMap;

use standpipe_core::{
    Amounts, Backoff, CascadeThreshold, Limit, Margin, Order, Policy, RetryBudget, ReturnWindows,
    Rule, Span, Unit, Zones,
};
use standpipe_store::PoolName;

#[cfg(feature = "file")]
use crate::keys::{
    form::{Duration, Flag, Form, List, OneOf, Optional, OrFalse, PositiveDuration, Table},
    limit,
    names::{ParentPool, Pools, ProviderName},
    policy::{Cascade, LongestLeaseForm, MarginForm, RetryShare, ToggleForm, Windows},
    pool::{self, Price},
    text::ShortText,
};

settings! {
    /// The settings of a pool, with defaults for what the file does not state.
    pub struct PoolSettings, "in a pool", prepare pool::prepare, arrange limit::arrange => {
        /// Provider, which determines the format of headers and errors.
        pub provider: Option<String> = None, "provider" as Optional<ProviderName>;
        /// Models that use this pool; `*` matches anything.
        pub models: Vec<String> = Vec::new(), "models" as List<ShortText>;
        /// Account at the provider, if there are several.
        pub account: Option<String> = None, "account" as Optional<ShortText>;
        /// Limits, in the order of the file. If empty, they are learned from the provider.
        pub limits: Vec<Limit> = Vec::new(); keys [
            limit::unit("requests", "Limit of calls."),
            limit::unit("input_tokens", "Limit of input tokens."),
            limit::unit("output_tokens", "Limit of output tokens."),
            limit::unit("tokens", "Limit of all tokens."),
            limit::unit("points", "Limit of points, as GitHub counts them."),
            limit::unit("content", "Limit of calls that create content, as GitHub counts them."),
            limit::unit("usd", "Limit of cost in dollars."),
            limit::parallel("Maximum number of calls in flight."),
            limit::units("Limits of custom units, by name."),
        ];
        /// Share of every rate that is left unused.
        pub margin: Margin = Margin::Auto, "margin" as MarginForm;
        /// Duration added to every period, against jitter. Defaults to the store's `slack`.
        pub slack: Option<Span> = None, "slack" as Optional<Duration>,
            value |pool, scope| {
                let slack = pool.slack.or_else(|| Some(scope?.store().slack()));
                Optional::<Duration>::value(&slack, scope)
            };
        /// Whether decisions are enforced; `false` is shadow mode: decide, record, admit anyway.
        pub enforce: bool = true, "enforce" as Flag;
        /// Order within a priority: by arrival, or `fair`, which gives agents shares by weight.
        pub order: Order = Order::Arrival, "order" as OneOf<Order>;
        /// Whether zones slow callers down early; `auto` is for limits of 5 min and longer.
        pub zones: Toggle = Toggle::Auto, "zones" as ToggleForm;
        /// Whether background agents yield when little quota is left, where `spread` is off.
        pub yields: bool = true, "yield" as Flag;
        /// Whether background is paced while a higher priority is active; `auto` is `true`.
        pub spread: Toggle = Toggle::Auto, "spread" as ToggleForm;
        /// Whether callers get advice before the quota runs out.
        pub breaker: bool = true, "breaker" as Flag;
        /// Whether a background agent that was denied for 5 min is served once as a standard one.
        pub promotion: bool = true, "promotion" as Flag;
        /// Whether use outside Standpipe is computed from the quota that the provider reports.
        pub reconcile: bool = true, "reconcile" as Flag;
        /// Whether units missing from a cost are estimated from earlier calls.
        pub estimates: bool = true, "estimates" as Flag;
        /// Whether limits that the provider reports are used.
        pub learn: bool = true, "learn" as Flag;
        /// Share of a minute's calls that may be retries; `false` is unlimited.
        pub retry_budget: Option<RetryBudget> = Some(RetryBudget::USUAL),
            "retry_budget" as OrFalse<RetryShare>;
        /// Maximum time a call waits.
        pub longest_wait: Option<Span> = None, "longest_wait" as Optional<PositiveDuration>;
        /// Maximum age of a lease without progress; `auto` is 1h, or none without rates.
        pub longest_lease: LongestLease = LongestLease::Auto, "longest_lease" as LongestLeaseForm,
            value |pool, scope| {
                let resolved = || match pool.longest_lease() {
                    Some(span) => LongestLease::At(span),
                    None => LongestLease::Unlimited,
                };
                let longest = scope.map_or(pool.longest_lease, |_| resolved());
                LongestLeaseForm::value(&longest, scope)
            };
        /// Lifetime of a lease without a session.
        pub lease_ttl: Span = Span::secs(600), "lease_ttl" as PositiveDuration;
        /// Pool that every call draws on too, for a quota that several pools share.
        pub within: Option<PoolName> = None, "within" as Optional<ParentPool>;
        /// Pools that calls are advised to use when this one is full.
        pub fallback: Vec<PoolName> = Vec::new(), "fallback" as Pools;
        /// Whether the proxy may rewrite a request so that it needs less quota.
        pub rewrite: bool = false, "rewrite" as Flag;
        /// Interval of keep-alive messages to a waiting proxy client; `false` is never.
        pub keepalive: Option<Span> = Some(Span::secs(10)),
            "keepalive" as OrFalse<PositiveDuration>;
        /// What happens to calls while the store is unavailable.
        pub on_store_failure: StoreFailure = StoreFailure::Closed,
            "on_store_failure" as OneOf<StoreFailure>;
        /// Pause after a refusal; `false` is the provider's `Retry-After` alone.
        pub backoff: Option<Backoff> = Some(Backoff::USUAL), "backoff" as OrFalse<Table<Backoff>>;
        /// When several throttled agents make the pool admit one call at a time.
        pub cascade: Option<CascadeThreshold> = Some(CascadeThreshold::USUAL), "cascade" as Cascade;
        /// When each priority returns after a pause; `false` is all at once.
        pub return_windows: Option<ReturnWindows> = Some(ReturnWindows::USUAL),
            "return_windows" as OrFalse<Windows>;
        /// Price of a million of each unit, in dollars. Stored in millionths of a dollar.
        pub price: BTreeMap<Unit, u64> = BTreeMap::new(), "price" as Price, read pool::read_price;
    }
}

/// On, off, or chosen by the limits of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Toggle {
    /// Chosen by the limits.
    #[default]
    Auto,
    /// Always on.
    On,
    /// Always off.
    Off,
}

/// The maximum age of a lease without a progress commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LongestLease {
    /// One hour, or unlimited where only `parallel` is limited.
    #[default]
    Auto,
    /// Unlimited.
    Unlimited,
    /// A fixed duration.
    At(Span),
}

/// What happens to calls while the store is unavailable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoreFailure {
    /// They wait, then fail with an error.
    #[default]
    Closed,
    /// They are admitted and recorded in the journal.
    Open,
    /// Each process admits its share of the limits.
    Share,
}

impl PoolSettings {
    /// Returns the maximum age of a lease, with `auto` resolved; `None` is unlimited.
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

    /// Returns the policies of the pool.
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
            spreads: !matches!(self.spread, Toggle::Off),
            promotes: self.promotion,
            reconciles: self.reconcile,
            estimates: self.estimates,
            breaker: self.breaker,
        }
    }

    /// Returns the prices in the form that the core takes.
    #[must_use]
    pub fn prices(&self) -> Amounts {
        let prices = self.price.iter().map(|(unit, price)| (unit.clone(), *price));
        Amounts::new(prices).unwrap_or_default()
    }

    /// Returns whether calls on this pool may name a unit: a built-in one, or one of the pool's
    /// own.
    #[must_use]
    pub fn knows(&self, unit: &Unit) -> bool {
        let is_own = || self.limits.iter().any(|limit| limit.id().unit() == Some(unit));
        !matches!(unit, Unit::Other(_)) || is_own()
    }
}
