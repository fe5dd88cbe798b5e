//! Prices: convert units into millionths of a dollar, which a limit counts like any other unit.
//!
//! The cost of calls that nobody settled is reported as wasted, because it bought nothing. A retry
//! that succeeded is not. `estimate.rs` completes the units of a call before they are priced.

use alloc::borrow::Cow;

use crate::bounds;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::{Amounts, Unit};
use crate::usage::history::{History, Resolution};

/// A day's spending, in millionths of a dollar.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spending {
    /// What calls cost.
    pub spent: History,
    /// The part of it that bought nothing: calls that nobody settled.
    pub wasted: History,
}

/// The time for which spending is remembered.
const DAY: Span = Span::secs(86_400);
const KEPT: Resolution<'_> = Resolution { periods: &[DAY], slices: bounds::AGENT_SLICES };

/// The number of units that a price refers to.
const PRICED_UNITS: u128 = 1_000_000;

impl State {
    /// Returns whether the pool has prices.
    #[must_use]
    pub fn has_prices(&self) -> bool {
        self.facts.config.as_ref().is_some_and(|config| !config.prices.is_empty())
    }

    /// The price of `used`, rounded up. Units that `used` omits are taken from `estimate`.
    pub(crate) fn price_of(&self, used: &Amounts, estimate: &Amounts) -> u64 {
        let prices = self.facts.config.iter().flat_map(|config| config.prices.iter());
        let each = prices.map(|(unit, price)| {
            let units = used.of(unit).or_else(|| estimate.of(unit)).unwrap_or(0);
            u128::from(units) * u128::from(price)
        });
        let total = each.fold(0, u128::saturating_add).div_ceil(PRICED_UNITS);
        u64::try_from(total).unwrap_or(bounds::AMOUNT).min(bounds::AMOUNT)
    }

    /// Adds the price to what a call used, unless the caller reported it or there are no prices.
    /// Units that `used` omits are taken from `estimate`.
    pub(crate) fn priced<'a>(&self, used: &'a Amounts, estimate: &Amounts) -> Cow<'a, Amounts> {
        if !self.has_prices() || used.of(&Unit::Usd).is_some() {
            return Cow::Borrowed(used);
        }
        let mut priced = used.with_room_for(1);
        priced.add(Unit::Usd, self.price_of(used, estimate));
        Cow::Owned(priced)
    }

    /// Records the cost of a call that ended.
    pub(crate) fn spend(&mut self, usd: u64, settled: bool, now: Instant) {
        if !self.has_prices() || usd == 0 {
            return;
        }
        self.facts.spending.spent.count(now, usd, KEPT);
        if !settled {
            self.facts.spending.wasted.count(now, usd, KEPT);
        }
    }

    /// Returns what the last day's calls cost and how much of that was wasted, in millionths of a
    /// dollar, or `None` without prices.
    #[must_use]
    pub fn money(&self, now: Instant) -> Option<(u64, u64)> {
        self.has_prices().then(|| {
            (
                self.facts.spending.spent.used_at(now, DAY),
                self.facts.spending.wasted.used_at(now, DAY),
            )
        })
    }
}
