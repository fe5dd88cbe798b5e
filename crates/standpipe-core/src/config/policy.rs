//! The policies of a pool before and after a refusal of its provider, as plain values.
//!
//! Each policy can be switched off by itself. This file only holds their parameters; each policy is
//! implemented in a file of its own: `provider/throttle.rs`, `return_windows.rs`, `cascade.rs`,
//! `learn.rs` and `reconcile.rs`, `rules/retry_budget.rs`, `zone.rs`, `background_yield.rs`,
//! `spread.rs` and `breaker.rs`, `queue/promotion.rs` and `usage/estimate.rs`.

use crate::bounds;
use crate::config::Priority;
use crate::time::Span;

/// The policies of a pool before and after a refusal of its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The length of pauses; `None` pauses only for the provider's `Retry-After`.
    pub backoff: Option<Backoff>,
    /// The return windows after a pause; `None` lets everybody return at once.
    pub comeback: Option<ReturnWindows>,
    /// How many throttled agents switch the pool to sequential mode; `None` never does.
    pub cascade: Option<CascadeThreshold>,
    /// The retry budget; `None` is unlimited.
    pub retries: Option<RetryBudget>,
    /// Whether limits are learned from the provider's responses.
    pub learn: bool,
    /// The interval of probes in the terminal state; `None` sends none.
    pub terminal_probe: Option<Span>,
    /// The limits that determine the zone.
    pub zones: Zones,
    /// Whether background calls yield while little is left and a higher tier is active.
    pub yields: bool,
    /// Whether background draws on rates at an even pace while a higher tier is active.
    pub spreads: bool,
    /// Whether a background agent that is denied for long is promoted to standard.
    pub promotes: bool,
    /// Whether callers get advice before the quota runs out.
    pub breaker: bool,
    /// Whether the provider's own count corrects the usage counters.
    pub reconciles: bool,
    /// Whether units that a cost omits are estimated from earlier calls.
    pub estimates: bool,
}

/// The limits that determine the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zones {
    /// No limit: the zone is always green.
    Off,
    /// Rates of five minutes and longer, because shorter ones recover soon.
    Long,
    /// All rates.
    All,
}

/// The length of a pause after a refusal, unless the provider asks for a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The length after the first refusal.
    pub base: Span,
    /// The factor for each further refusal in a row, in thousandths.
    pub factor_per_mille: u32,
    /// The maximum; `None` is one period of the limit that was hit, because its bucket is full by
    /// then.
    pub cap: Option<Span>,
    /// Whether the length is drawn between `base` and the computed length.
    pub jitter: bool,
}

/// When each tier returns, counted from the end of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnWindows {
    /// The window of critical calls.
    pub critical: TimeRange,
    /// The window of standard calls.
    pub standard: TimeRange,
    /// The window of background calls.
    pub background: TimeRange,
}

/// A time range after the end of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The start of the range.
    pub from: Span,
    /// The end of the range.
    pub to: Span,
}

/// How many different agents must be throttled within how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CascadeThreshold {
    /// The number of different agents.
    pub agents: u8,
    /// The time within which they are throttled. Also how long nothing may be refused before the
    /// sequential mode ends.
    pub within: Span,
}

/// The share of admissions that may be retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// The share of the last minute's admissions, in thousandths.
    pub per_mille: u16,
    /// The number of retries per minute that are always allowed.
    pub least: u16,
}

impl Policy {
    /// No policies: the pool only obeys the provider's `Retry-After`.
    pub const NONE: Self = Self {
        backoff: None,
        comeback: None,
        cascade: None,
        retries: None,
        learn: false,
        terminal_probe: None,
        zones: Zones::Off,
        yields: false,
        spreads: false,
        promotes: false,
        breaker: false,
        reconciles: false,
        estimates: false,
    };

    /// Returns the default policies of a configured pool.
    #[must_use]
    pub const fn usual() -> Self {
        Self {
            backoff: Some(Backoff::USUAL),
            comeback: Some(ReturnWindows::USUAL),
            cascade: Some(CascadeThreshold::USUAL),
            retries: Some(RetryBudget::USUAL),
            learn: true,
            terminal_probe: Some(Span::secs(3_600)),
            zones: Zones::Long,
            yields: true,
            spreads: true,
            promotes: true,
            breaker: true,
            reconciles: true,
            estimates: true,
        }
    }

    /// Whether the pool has a gate: calls may have to wait for the answers of others.
    pub(crate) const fn gates(&self) -> bool {
        self.comeback.is_some() || self.cascade.is_some() || self.learn
    }

    /// Whether a policy depends on which tiers are active.
    pub(crate) const fn protects(&self) -> bool {
        self.zones.are_on() || self.yields || self.spreads
    }

    pub(crate) fn check(&self) -> bool {
        self.backoff.is_none_or(|backoff| backoff.check())
            && self.comeback.is_none_or(|windows| windows.check())
            && self.cascade.is_none_or(|threshold| threshold.check())
            && self.retries.is_none_or(|budget| budget.per_mille <= 1_000)
            && self.terminal_probe.is_none_or(|every| (1..=bounds::SPAN.0).contains(&every.0))
    }
}

impl Zones {
    pub(crate) const fn are_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether a rate of this period determines the zone.
    pub(crate) fn look_at(self, period: Span) -> bool {
        match self {
            Self::Off => false,
            Self::Long => period >= Span::secs(300),
            Self::All => true,
        }
    }
}

impl Backoff {
    /// The default: 10 s, doubling, capped at one period of the limit that was hit.
    pub const USUAL: Self =
        Self { base: Span::secs(10), factor_per_mille: 2_000, cap: None, jitter: false };

    fn check(&self) -> bool {
        let fits = |span: Span| (1..=bounds::SPAN.0).contains(&span.0);
        fits(self.base)
            && self.cap.is_none_or(fits)
            && (1_000..=1_000_000).contains(&self.factor_per_mille)
    }
}

impl ReturnWindows {
    /// The default: critical 0–0.5 s, standard 0.5–3.5 s, background 3.5–9.5 s.
    pub const USUAL: Self = Self {
        critical: TimeRange { from: Span::ZERO, to: Span::millis(500) },
        standard: TimeRange { from: Span::millis(500), to: Span::millis(3_500) },
        background: TimeRange { from: Span::millis(3_500), to: Span::millis(9_500) },
    };

    /// Returns windows that spread all tiers over the same `length`.
    #[must_use]
    pub const fn smear(length: Span) -> Self {
        let range = TimeRange { from: Span::ZERO, to: length };
        Self { critical: range, standard: range, background: range }
    }

    /// Returns the window of a tier.
    #[must_use]
    pub const fn of(&self, tier: Priority) -> TimeRange {
        match tier {
            Priority::Critical => self.critical,
            Priority::Standard => self.standard,
            Priority::Background => self.background,
        }
    }

    fn check(&self) -> bool {
        Priority::ALL.iter().all(|tier| {
            let TimeRange { from, to } = self.of(*tier);
            from <= to && to <= bounds::PAUSE
        })
    }
}

impl CascadeThreshold {
    /// The default: three agents within 30 s.
    pub const USUAL: Self = Self { agents: 3, within: Span::secs(30) };

    /// The most agents that a threshold may name.
    pub const MAX_AGENTS: u8 = 64;

    fn check(&self) -> bool {
        (1..=Self::MAX_AGENTS).contains(&self.agents)
            && (1..=bounds::PAUSE.0).contains(&self.within.0)
    }
}

impl RetryBudget {
    /// The default: a tenth of the last minute's admissions, at least 3.
    pub const USUAL: Self = Self { per_mille: 100, least: 3 };
}
