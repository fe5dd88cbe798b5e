//! Why a call is refused, and how full a limit is: the input of the shapes.

use super::call::Unit;
use super::rule::Cap;

/// A call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The number of the rule.
    pub(super) rule: usize,
    pub(super) why: Why,
    /// The wait that the refusal states, if any.
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
    /// Whether a client that counts its own calls could have avoided it.
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
    /// Whether headers show it, if there is a choice.
    pub(super) shown: bool,
}
