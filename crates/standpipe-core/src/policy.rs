//! What a pool does when its provider says no, and before: plain values, each of which can be left
//! out.
//!
//! What they mean is in the file of each idea: `throttle.rs`, `comeback.rs`, `cascade.rs`,
//! `retries.rs`, `learn.rs`; `zone.rs`, `yields.rs`, `promote.rs`, `breaker.rs`, `reconcile.rs`,
//! `estimate.rs`.

use crate::bounds;
use crate::config::Priority;
use crate::time::Span;

/// What a pool does when its provider says no, and before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long it pauses; `None` is as long as the provider says, and not at all without a word.
    pub backoff: Option<Backoff>,
    /// How everybody comes back after a pause; `None` is all at once.
    pub comeback: Option<ReturnWindows>,
    /// Whether several throttled agents make everybody go one at a time.
    pub cascade: bool,
    /// How many calls may be tried again; `None` is as many as like.
    pub retries: Option<RetryBudget>,
    /// Whether the provider's own word about its limits is believed.
    pub learn: bool,
    /// How often one call is let through after the provider said stop for good; `None` is never.
    pub second_look: Option<Span>,
    /// Which limits the traffic light looks at.
    pub zones: Zones,
    /// Whether background calls give way when little is left and a higher tier is active.
    pub yields: bool,
    /// Whether a background agent that is denied for long is served as a standard one.
    pub promotes: bool,
    /// Whether calls are advised before the quota runs out.
    pub breaker: bool,
    /// Whether the provider's own count lowers the ledger's view.
    pub reconciles: bool,
    /// Whether what a cost omits is estimated from earlier calls.
    pub estimates: bool,
}

/// Which limits the traffic light looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zones {
    /// None: it is always green.
    Off,
    /// Rates of five minutes and longer: of shorter ones everything is back soon.
    Long,
    /// All rates.
    All,
}

/// How long a pool pauses after a refusal, when the provider does not ask for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// After the first.
    pub base: Span,
    /// What each further one in a row multiplies it by, in thousandths.
    pub factor_per_mille: u32,
    /// The most; `None` is one period of the limit that was hit: by then its bucket is full.
    pub cap: Option<Span>,
    /// Whether the length is drawn between the base and the whole.
    pub jitter: bool,
}

/// When each tier comes back, counted from the end of a pause.
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

/// How many of a minute's calls may be second tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// The share of the last minute's admissions, in thousandths.
    pub per_mille: u16,
    /// So many in any case.
    pub least: u16,
}

impl Policy {
    /// Only what the provider says, nothing learned, nothing foreseen.
    pub const NONE: Self = Self {
        backoff: None,
        comeback: None,
        cascade: false,
        retries: None,
        learn: false,
        second_look: None,
        zones: Zones::Off,
        yields: false,
        promotes: false,
        breaker: false,
        reconciles: false,
        estimates: false,
    };

    /// What people get who say nothing else.
    #[must_use]
    pub const fn usual() -> Self {
        Self {
            backoff: Some(Backoff::USUAL),
            comeback: Some(ReturnWindows::USUAL),
            cascade: true,
            retries: Some(RetryBudget::USUAL),
            learn: true,
            second_look: Some(Span::secs(3_600)),
            zones: Zones::Long,
            yields: true,
            promotes: true,
            breaker: true,
            reconciles: true,
            estimates: true,
        }
    }

    /// Whether calls may have to wait for the answers of others.
    pub(crate) const fn gates(&self) -> bool {
        self.comeback.is_some() || self.cascade || self.learn
    }

    /// Whether it matters who is active.
    pub(crate) const fn protects(&self) -> bool {
        self.zones.are_on() || self.yields
    }

    pub(crate) fn check(&self) -> bool {
        self.backoff.is_none_or(|backoff| backoff.check())
            && self.comeback.is_none_or(|windows| windows.check())
            && self.retries.is_none_or(|budget| budget.per_mille <= 1_000)
            && self.second_look.is_none_or(|look| (1..=bounds::SPAN.0).contains(&look.0))
    }
}

impl Zones {
    pub(crate) const fn are_on(self) -> bool {
        !matches!(self, Self::Off)
    }

    /// Whether it looks at a rate of this period.
    pub(crate) fn look_at(self, period: Span) -> bool {
        match self {
            Self::Off => false,
            Self::Long => period >= Span::secs(300),
            Self::All => true,
        }
    }
}

impl Backoff {
    /// 10 s, doubling, capped at one period of the limit that was hit.
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
    /// Critical 0–0.5 s, standard 0.5–3.5 s, background 3.5–9.5 s.
    pub const USUAL: Self = Self {
        critical: Stretch { from: Span::ZERO, to: Span::millis(500) },
        standard: Stretch { from: Span::millis(500), to: Span::millis(3_500) },
        background: Stretch { from: Span::millis(3_500), to: Span::millis(9_500) },
    };

    /// Everybody within the same stretch.
    #[must_use]
    pub const fn smear(length: Span) -> Self {
        let stretch = Stretch { from: Span::ZERO, to: length };
        Self { critical: stretch, standard: stretch, background: stretch }
    }

    /// That of a tier.
    #[must_use]
    pub const fn of(&self, tier: Priority) -> Stretch {
        match tier {
            Priority::Critical => self.critical,
            Priority::Standard => self.standard,
            Priority::Background => self.background,
        }
    }

    fn check(&self) -> bool {
        Priority::ALL.iter().all(|tier| {
            let Stretch { from, to } = self.of(*tier);
            from <= to && to <= bounds::PAUSE
        })
    }
}

impl RetryBudget {
    /// A tenth of the last minute's admissions, at least 3.
    pub const USUAL: Self = Self { per_mille: 100, least: 3 };
}
