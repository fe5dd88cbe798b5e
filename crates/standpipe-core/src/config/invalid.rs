//! Why a configuration is not valid, and the text of it.

use core::fmt;

use super::LimitId;
use crate::bounds;
use crate::name::AgentName;
#[cfg(doc)]
use crate::unit::Unit;

/// The reason why a configuration is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidConfig {
    /// There is no limit, or there are more than [`bounds::LIMITS`].
    Limits(usize),
    /// Two limits have the same unit, kind and period.
    Twice(LimitId),
    /// An amount or burst is zero or too large.
    Amount(LimitId),
    /// A rate counts [`Unit::Parallel`], which has no period.
    Slots,
    /// A period, pace or other duration is zero or too long, or a policy is out of range.
    Time,
    /// The margin leaves nothing usable: it is above 999 thousandths.
    Margin(u16),
    /// More than [`bounds::AGENT_RULES`] agents are named, or one is named twice.
    Agents,
    /// The weight of an agent is zero or above [`bounds::WEIGHT`].
    Weight(AgentName),
    /// A floor or cap of an agent is zero, too large, or one of too many.
    Share(AgentName),
    /// The floors on a limit add up to more than the limit.
    Floors(LimitId),
    /// Only a window of one day can be reset at a time of day.
    Calendar(LimitId),
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limits(0) => f.write_str("the pool has no limit; give it at least one"),
            Self::Limits(n) => write!(f, "{n} limits, at most {} are allowed", bounds::LIMITS),
            Self::Twice(id) => write!(f, "two limits for {id} (keep the stricter one)"),
            Self::Amount(id) => {
                write!(f, "the limit for {id} must be between 1 and {}", bounds::AMOUNT)
            }
            Self::Slots => f.write_str("`parallel` counts calls in flight and has no period"),
            Self::Time => f.write_str("a duration is zero or longer than 400 days"),
            Self::Margin(n) => write!(f, "a margin of {n} thousandths is not between 0 and 999"),
            Self::Agents => {
                write!(f, "an agent is named twice, or more than {} are named", bounds::AGENT_RULES)
            }
            Self::Weight(name) => write!(f, "the weight of `{name}` is not between 1 and 1000"),
            Self::Share(name) => write!(f, "a floor or cap of `{name}` is not valid"),
            Self::Calendar(id) => {
                write!(f, "the limit for {id} is not per day, so it has no daily reset")
            }
            Self::Floors(id) => write!(f, "the floors on {id} add up to more than the limit"),
        }
    }
}

impl core::error::Error for InvalidConfig {}
