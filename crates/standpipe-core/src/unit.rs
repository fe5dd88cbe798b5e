//! Units, and amounts of several units: the cost of a call and the usage of a commit.
//!
//! [`Amounts`] is validated when it is built: sorted, no duplicates, every amount within
//! [`bounds::AMOUNT`].

use alloc::vec::Vec;
use core::fmt;

use crate::bounds;
use crate::name::UnitName;

/// A unit that a limit counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Calls; a cost that does not name them takes one.
    Requests,
    /// Tokens of the prompt.
    InputTokens,
    /// Tokens of the completion.
    OutputTokens,
    /// Input and output tokens together, for providers that limit their sum.
    Tokens,
    /// Weighted calls, as GitHub counts them.
    Points,
    /// Created content, as GitHub counts it.
    Content,
    /// Money, in millionths of a dollar.
    Usd,
    /// Slots of the concurrency limit, which a call holds while it is in flight; a cost that does
    /// not name them takes one. No rate counts them.
    Parallel,
    /// A unit that the configuration declares.
    Other(UnitName),
}

impl Unit {
    const KNOWN: [(&'static str, Self); 8] = [
        ("requests", Self::Requests),
        ("input_tokens", Self::InputTokens),
        ("output_tokens", Self::OutputTokens),
        ("tokens", Self::Tokens),
        ("points", Self::Points),
        ("content", Self::Content),
        ("usd", Self::Usd),
        ("parallel", Self::Parallel),
    ];

    /// Returns the unit of this name, or `None` if the name is not valid.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let known = Self::KNOWN.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, unit)| unit).or_else(|| UnitName::new(name).map(Self::Other))
    }

    /// Returns the name of the unit.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Requests => "requests",
            Self::InputTokens => "input_tokens",
            Self::OutputTokens => "output_tokens",
            Self::Tokens => "tokens",
            Self::Points => "points",
            Self::Content => "content",
            Self::Usd => "usd",
            Self::Parallel => "parallel",
            Self::Other(name) => name.as_str(),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Amounts of several units, each unit at most once, in the order of [`Unit`].
///
/// The cost of a reserve and the usage of a commit are both of this type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(Vec<(Unit, u64)>);

/// The reason why amounts are not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidAmounts {
    /// A unit occurs twice.
    Twice(Unit),
    /// The amount of a unit is above [`bounds::AMOUNT`].
    TooLarge(Unit),
    /// There are more than [`bounds::UNITS`] units.
    TooMany,
}

impl Amounts {
    /// Creates exactly these amounts.
    ///
    /// # Errors
    /// When a unit occurs twice, an amount is too large, or there are too many units.
    pub fn new(amounts: impl IntoIterator<Item = (Unit, u64)>) -> Result<Self, InvalidAmounts> {
        let mut list: Vec<(Unit, u64)> = Vec::new();
        for (unit, amount) in amounts {
            if amount > bounds::AMOUNT {
                return Err(InvalidAmounts::TooLarge(unit));
            }
            match list.binary_search_by(|(known, _)| known.cmp(&unit)) {
                Ok(_) => return Err(InvalidAmounts::Twice(unit)),
                Err(_) if list.len() == bounds::UNITS => return Err(InvalidAmounts::TooMany),
                Err(at) => list.insert(at, (unit, amount)),
            }
        }
        Ok(Self(list))
    }

    /// Creates the cost of a call: these amounts, and one request unless they name requests.
    ///
    /// # Errors
    /// As [`Amounts::new`].
    pub fn cost(amounts: impl IntoIterator<Item = (Unit, u64)>) -> Result<Self, InvalidAmounts> {
        let mut cost = Self::new(amounts)?;
        if cost.of(&Unit::Requests).is_none() {
            if cost.0.len() == bounds::UNITS {
                return Err(InvalidAmounts::TooMany);
            }
            cost.0.insert(0, (Unit::Requests, 1));
        }
        Ok(cost)
    }

    /// Returns the amount of a unit, if it is named.
    #[must_use]
    pub fn of(&self, unit: &Unit) -> Option<u64> {
        self.0.iter().find(|(known, _)| known == unit).map(|(_, amount)| *amount)
    }

    /// Returns the slots that a call of this cost holds: one unless it names [`Unit::Parallel`].
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.of(&Unit::Parallel).unwrap_or(1)
    }

    /// Returns whether no unit is named.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the same amounts with room for some more.
    pub(crate) fn with_room_for(&self, more: usize) -> Self {
        let mut amounts = Vec::with_capacity(self.0.len() + more);
        amounts.extend_from_slice(&self.0);
        Self(amounts)
    }

    /// Adds a unit, unless it is already named or [`bounds::UNITS`] is reached.
    pub(crate) fn add(&mut self, unit: Unit, amount: u64) {
        if let Err(at) = self.0.binary_search_by(|(known, _)| known.cmp(&unit))
            && self.0.len() < bounds::UNITS
        {
            self.0.insert(at, (unit, amount.min(bounds::AMOUNT)));
        }
    }

    /// Returns all units and amounts in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Unit, u64)> {
        self.0.iter().map(|(unit, amount)| (unit, *amount))
    }
}

impl fmt::Display for InvalidAmounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(unit) => write!(f, "`{unit}` is named twice"),
            Self::TooLarge(unit) => {
                write!(f, "the amount of `{unit}` is above {}", bounds::AMOUNT)
            }
            Self::TooMany => write!(f, "more than {} units", bounds::UNITS),
        }
    }
}

impl core::error::Error for InvalidAmounts {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_is_implied_but_none_can_be_said() {
        let implied = Amounts::cost([(Unit::Tokens, 5)]).unwrap();
        assert_eq!(implied.of(&Unit::Requests), Some(1));
        let said = Amounts::cost([(Unit::Requests, 0)]).unwrap();
        assert_eq!(said.of(&Unit::Requests), Some(0));
    }

    #[test]
    fn doubled_and_enormous_figures_are_refused() {
        let twice = Amounts::new([(Unit::Usd, 1), (Unit::Usd, 2)]);
        assert_eq!(twice, Err(InvalidAmounts::Twice(Unit::Usd)));
        let large = Amounts::new([(Unit::Usd, bounds::AMOUNT + 1)]);
        assert_eq!(large, Err(InvalidAmounts::TooLarge(Unit::Usd)));
    }

    #[test]
    fn names_and_units_are_the_same_both_ways() {
        for name in ["requests", "output_tokens", "usd", "gpu_seconds"] {
            assert_eq!(Unit::named(name).unwrap().name(), name);
        }
        assert_eq!(Unit::named("Requests"), None);
    }
}
