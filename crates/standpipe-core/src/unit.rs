//! Units, and costs over several of them.

use alloc::vec::Vec;
use core::fmt;

use crate::bounds;
use crate::name::UnitName;

/// What a limit counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Calls. One is implied in every cost that does not say otherwise.
    Requests,
    /// Tokens sent.
    InputTokens,
    /// Tokens generated.
    OutputTokens,
    /// Tokens of both directions, where a provider counts them together.
    Tokens,
    /// Weighted calls.
    Points,
    /// Things created.
    Content,
    /// Money, in millionths of a dollar.
    Usd,
    /// A unit by declaration.
    Other(UnitName),
}

impl Unit {
    const KNOWN: [(&'static str, Self); 7] = [
        ("requests", Self::Requests),
        ("input_tokens", Self::InputTokens),
        ("output_tokens", Self::OutputTokens),
        ("tokens", Self::Tokens),
        ("points", Self::Points),
        ("content", Self::Content),
        ("usd", Self::Usd),
    ];

    /// The unit of that name, if it is a name at all.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let known = Self::KNOWN.into_iter().find(|(known, _)| *known == name);
        known.map(|(_, unit)| unit).or_else(|| UnitName::new(name).map(Self::Other))
    }

    /// Its name.
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
            Self::Other(name) => name.as_str(),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Amounts of several units, each named at most once, in the order of [`Unit`].
///
/// As the cost of a call it is what the call takes; as the usage of a commit, what it took so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(Vec<(Unit, u64)>);

/// Why amounts could not be taken as they were given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidAmounts {
    /// The unit is named twice.
    Twice(Unit),
    /// The figure is above [`bounds::AMOUNT`].
    TooLarge(Unit),
    /// More than [`bounds::UNITS`] units.
    TooMany,
}

impl Amounts {
    /// Exactly these figures.
    ///
    /// # Errors
    /// When a unit is named twice, a figure is too large, or there are too many.
    pub fn new(figures: impl IntoIterator<Item = (Unit, u64)>) -> Result<Self, InvalidAmounts> {
        let mut list: Vec<(Unit, u64)> = Vec::new();
        for (unit, amount) in figures {
            if amount > bounds::AMOUNT {
                return Err(InvalidAmounts::TooLarge(unit));
            }
            match list.binary_search_by(|(known, _)| known.cmp(&unit)) {
                Ok(_) => return Err(InvalidAmounts::Twice(unit)),
                Err(_) if list.len() == bounds::UNITS => return Err(InvalidAmounts::TooMany),
                Err(place) => list.insert(place, (unit, amount)),
            }
        }
        Ok(Self(list))
    }

    /// The cost of a call: these figures, and one request unless they say otherwise.
    ///
    /// # Errors
    /// As [`Amounts::new`].
    pub fn cost(figures: impl IntoIterator<Item = (Unit, u64)>) -> Result<Self, InvalidAmounts> {
        let mut cost = Self::new(figures)?;
        if cost.of(&Unit::Requests).is_none() {
            if cost.0.len() == bounds::UNITS {
                return Err(InvalidAmounts::TooMany);
            }
            cost.0.insert(0, (Unit::Requests, 1));
        }
        Ok(cost)
    }

    /// The figure for a unit, if it is named.
    #[must_use]
    pub fn of(&self, unit: &Unit) -> Option<u64> {
        self.0.iter().find(|(known, _)| known == unit).map(|(_, amount)| *amount)
    }

    /// Whether it names nothing.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names one more unit, if it is not named and there is room.
    pub(crate) fn add(&mut self, unit: Unit, amount: u64) {
        if let Err(place) = self.0.binary_search_by(|(known, _)| known.cmp(&unit))
            && self.0.len() < bounds::UNITS
        {
            self.0.insert(place, (unit, amount.min(bounds::AMOUNT)));
        }
    }

    /// All figures in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Unit, u64)> {
        self.0.iter().map(|(unit, amount)| (unit, *amount))
    }
}

impl fmt::Display for InvalidAmounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(unit) => write!(f, "`{unit}` is named twice"),
            Self::TooLarge(unit) => {
                write!(f, "the figure for `{unit}` is above {}", bounds::AMOUNT)
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
