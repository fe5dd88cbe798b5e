//! What a constraint remembers beside the history of its unit, and what the configuration says of
//! it.
//!
//! A rolling window needs nothing but the history, unless the provider has reset it.
//! `usage/view.rs` computes from both how much is used.

use crate::config::Charged;
use crate::event::Key;
use crate::rules::zone::Zone;
use crate::time::{Instant, Span};
use crate::usage::bucket::{Bucket, Refill};
use crate::usage::calendar::Calendar;

/// What a constraint remembers beside the history of its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageCounter {
    /// How units are counted.
    pub count: Count,
    /// The provider's own window, if it announces one.
    pub reset: Option<Reset>,
    /// How much of the limit is left.
    pub zone: Zone,
    /// By tier: when a call of an agent without a floor on the limit last began or ended, where
    /// others have one.
    pub without_floor: [Option<Instant>; 3],
    /// What every call draws on and background waits for; see `rules/spread.rs`.
    pub spread: Option<Bucket>,
    /// The resets of a calendar window.
    pub calendar: Calendar,
}

/// How units are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// In a rolling window: the charges of the last period.
    Window {
        /// The last reset of the provider's own window; earlier charges do not count.
        began: Option<Began>,
    },
    /// In a bucket.
    Bucket(Bucket),
    /// Calls in flight.
    Slots,
    /// A minimum gap between two grants; counts as a limit of one.
    Pace {
        /// The last grant.
        last: Option<Instant>,
    },
}

/// A reset of the provider's own window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Began {
    /// When the window began.
    pub at: Instant,
    /// The units of calls that were in flight then: they may count in the new window.
    pub carried: u64,
}

/// The end of a provider's fixed window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// When it ends, as announced.
    pub at: Instant,
    /// What has happened since.
    pub phase: ResetPhase,
}

/// What has happened since a reset was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetPhase {
    /// It lies ahead.
    Announced,
    /// It has passed. Calls that were in flight may count in the new window.
    Passed {
        /// The units of those calls.
        carried: u64,
    },
    /// One call was admitted as a probe.
    Probing {
        /// See [`ResetPhase::Passed`].
        carried: u64,
        /// The probe.
        probe: Key,
    },
    /// The probe was answered and showed no new window.
    Spent {
        /// See [`ResetPhase::Passed`].
        carried: u64,
    },
}

/// What the configuration says of one limit, gate, floor or cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CounterSpec {
    /// The most that one call can ever take.
    pub(crate) stated: u64,
    /// What is usable of that.
    pub(crate) effective: u64,
    /// The period including slack; for a gate, its gap.
    pub(crate) period: Span,
    /// What a bucket regains per period.
    pub(crate) refill: u64,
    pub(crate) charged: Charged,
    /// How long after an announced reset a probe may be sent.
    pub(crate) slack: Span,
}

impl UsageCounter {
    pub(crate) const fn new(count: Count) -> Self {
        Self {
            count,
            reset: None,
            zone: Zone::Green,
            without_floor: [None; 3],
            spread: None,
            calendar: Calendar { last: None, next: None },
        }
    }
}

impl CounterSpec {
    /// How long a charge can matter: one period, or until a bucket is refilled.
    pub(crate) fn remembers(&self) -> Span {
        let periods = self.effective.div_ceil(self.refill.max(1)).max(1);
        let periods = if self.refill == 0 { 1 } else { periods };
        Span(self.period.0.saturating_mul(periods))
    }

    /// What is usable in one period.
    pub(crate) const fn usable_per_period(&self) -> u64 {
        if self.refill == 0 { self.effective } else { self.refill }
    }

    pub(crate) const fn as_refill(&self) -> Refill {
        Refill { amount: self.refill, period: self.period }
    }
}
