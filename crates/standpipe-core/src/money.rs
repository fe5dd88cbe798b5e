//! Money: prices turn units into millionths of a dollar, which a limit can count like any other
//! unit.
//!
//! What second tries cost, and calls that nobody settled, is waste: it bought nothing that was not
//! paid for before.

use alloc::borrow::Cow;

use crate::bounds;
use crate::lease::Lease;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::{Amounts, Unit};

/// What is remembered of what was spent.
pub(crate) const A_DAY: Span = Span::secs(86_400);

/// Prices are per so many units.
const A_MILLION: u128 = 1_000_000;

impl State {
    /// Whether money is computed here.
    #[must_use]
    pub fn has_prices(&self) -> bool {
        self.facts.config.as_ref().is_some_and(|config| !config.prices.is_empty())
    }

    /// What these units cost; of a unit that `first` does not name, as `second` says.
    pub(crate) fn price_of(&self, first: &Amounts, second: &Amounts) -> u64 {
        let prices = self.facts.config.iter().flat_map(|config| config.prices.iter());
        let each = prices.map(|(unit, price)| {
            let units = first.of(unit).or_else(|| second.of(unit)).unwrap_or(0);
            u128::from(units) * u128::from(price)
        });
        let total = each.fold(0, u128::saturating_add).div_ceil(A_MILLION);
        u64::try_from(total).unwrap_or(bounds::AMOUNT).min(bounds::AMOUNT)
    }

    /// What a call used, with what that cost, where there are prices and nobody said. Of a unit
    /// that `used` does not name, as `else_` says.
    pub(crate) fn priced<'a>(&self, used: &'a Amounts, else_: &Amounts) -> Cow<'a, Amounts> {
        if !self.has_prices() || used.of(&Unit::Usd).is_some() {
            return Cow::Borrowed(used);
        }
        let mut priced = used.clone();
        priced.add(Unit::Usd, self.price_of(used, else_));
        Cow::Owned(priced)
    }

    /// A call is over and cost so much.
    pub(crate) fn spend(&mut self, lease: &Lease, usd: u64, settled: bool, now: Instant) {
        if !self.has_prices() || usd == 0 {
            return;
        }
        let outlook = &mut self.facts.outlook;
        outlook.spent.expire(now, A_DAY);
        outlook.wasted.expire(now, A_DAY);
        outlook.spent.charge(now, usd, A_DAY);
        if !settled || lease.call.retry_of.is_some() {
            outlook.wasted.charge(now, usd, A_DAY);
        }
    }

    /// What the last day's calls cost, in millionths of a dollar, and the part of it that bought
    /// nothing. `None` where there are no prices.
    #[must_use]
    pub fn money(&self, now: Instant) -> Option<(u64, u64)> {
        let outlook = &self.facts.outlook;
        self.has_prices()
            .then(|| (outlook.spent.used_at(now, A_DAY), outlook.wasted.used_at(now, A_DAY)))
    }
}
