//! Why a call is refused, and how full a limit is: what the shapes put into words.

use super::call::Unit;
use super::rule::Cap;

/// A call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The number of the rule.
    pub(super) rule: usize,
    pub(super) why: Why,
    /// How long it would go on to be refused, if that can be known, or as told.
    pub(super) wait: Option<u64>,
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Quota { unit: Unit, amount: u64, period: u64, used: u64, requested: u64 },
    Concurrency { amount: u64 },
    Secondary,
    Acceleration,
    Overload,
    Spent { cap: Cap, resets: u64 },
}

impl Why {
    /// Whether whoever keeps count of its own calls could have known.
    pub(super) const fn is_quota(&self) -> bool {
        matches!(self, Self::Quota { .. } | Self::Concurrency { .. } | Self::Secondary)
    }
}

/// How full a limit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub(super) unit: Unit,
    pub(super) amount: u64,
    pub(super) period: u64,
    /// Whole units that are left.
    pub(super) left: u64,
    /// How long until all are there again.
    pub(super) full_in: u64,
    /// Whether headers tell of it, if there is a choice.
    pub(super) shown: bool,
}
