//! The automatic margin: adjusts the share of each stated rate that is left unused.
//!
//! The margin starts at 20 %, or at 5 % where the provider reports what remains. It falls by one
//! percentage point after a clean period with enough calls. When the provider reports that the rate
//! was exceeded, the usable share shrinks by a tenth. Only a success lowers the margin.

use crate::config::compiled::ConstraintKind;
use crate::config::{LimitId, Margin, PoolConfig};
use crate::id::{ConstraintId, ConstraintSet};
use crate::outcome::Notice;

use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::Unit;

/// The automatic margin of one rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoMargin {
    /// The limit.
    pub limit: LimitId,
    /// The margin, in thousandths.
    pub per_mille: u16,
    /// When the present interval without refusals began.
    pub since: Instant,
    /// The successful calls in that interval.
    pub successes: u32,
    /// The margin does not fall before this.
    pub rests: Instant,
    /// Whether the provider reports what remains of the limit.
    pub reported: bool,
}

/// The largest margin, in thousandths.
const MAX_MARGIN: u16 = 500;
/// How much smaller the margin is where the provider reports what remains, in thousandths: usage
/// from outside is visible there before it causes a refusal.
const REPORTED: u16 = 150;
/// The fall after a clean period, in thousandths.
const STEP: u16 = 10;
/// The shortest time between two falls.
const STEP_EVERY: Span = Span::secs(60);
/// The number of successes that a clean period needs.
const MIN_SUCCESSES: u32 = 20;
/// The number of periods after a refusal in which the margin does not fall.
const REST_PERIODS: u64 = 10;

/// Whether a limit has a margin. A budget of money is the user's own, and nothing is left of it.
fn has_margin(limit: &LimitId) -> bool {
    limit.period().is_some() && limit.unit() != Some(&Unit::Usd)
}

/// The usable share of a limit, in thousandths.
pub(crate) fn usable_share(config: &PoolConfig, margins: &[AutoMargin], limit: &LimitId) -> u16 {
    if !has_margin(limit) {
        return 1_000;
    }
    let known = || margins.iter().find(|margin| margin.limit == *limit);
    let margin = match config.margin {
        Margin::Fixed(per_mille) => per_mille,
        Margin::Auto => known().map_or(config.margin.per_mille(), |margin| margin.per_mille),
    };
    1_000_u16.saturating_sub(margin)
}

impl State {
    /// Returns the margin of a limit in thousandths, or `None` if the limit has none.
    #[must_use]
    pub fn margin_of(&self, limit: &LimitId) -> Option<u16> {
        let config = self.facts.config.as_ref().filter(|_| has_margin(limit))?;
        Some(1_000 - usable_share(config, &self.facts.auto_margins, limit))
    }

    fn has_auto_margin(&self) -> bool {
        self.facts.config.as_ref().is_some_and(|config| config.margin == Margin::Auto)
    }

    /// Counts a success on the constraints in `drawn`, and lowers the margin of those rates whose
    /// clean period is complete.
    pub(crate) fn lower_margins(&mut self, drawn: ConstraintSet, now: Instant) {
        if !self.has_auto_margin() {
            return;
        }
        let mut changed = false;
        for at in drawn.iter() {
            let constraint = &self.index.compiled.constraints[at];
            if constraint.kind == ConstraintKind::Rate && has_margin(&constraint.id) {
                let (limit, period) =
                    (constraint.id.clone(), constraint.id.period().unwrap_or(STEP_EVERY));
                changed |= self.count_margin_success(limit, period.max(STEP_EVERY), now);
            }
        }
        // Compiling is expensive: once for all rates, and only after a change.
        if changed {
            self.recompile(now);
        }
    }

    /// Counts a success on a rate, and returns whether its margin fell.
    fn count_margin_success(&mut self, limit: LimitId, period: Span, now: Instant) -> bool {
        let margin = self.auto_margin_of(limit, now);
        margin.successes = margin.successes.saturating_add(1);
        let clean = now >= margin.since + period && now >= margin.rests;
        if !clean || margin.successes < MIN_SUCCESSES || margin.per_mille == 0 {
            return false;
        }
        margin.per_mille = margin.per_mille.saturating_sub(STEP);
        (margin.since, margin.successes) = (now, 0);
        let (limit, per_mille) = (margin.limit.clone(), margin.per_mille);
        self.effects.notices.push(Notice::Margin { limit, per_mille });
        true
    }

    /// Raises the margin of the rate that the provider reports as exceeded.
    pub(crate) fn raise_margin(&mut self, hit: Option<ConstraintId>, now: Instant) {
        let constraint = hit.filter(|_| self.has_auto_margin());
        let constraint = constraint.map(|at| &self.index.compiled.constraints[at]);
        let Some(constraint) = constraint.filter(|own| has_margin(&own.id)) else {
            return;
        };
        let (limit, period) = (constraint.id.clone(), constraint.id.period().unwrap_or(STEP_EVERY));
        let margin = self.auto_margin_of(limit, now);
        let usable = 1_000_u16.saturating_sub(margin.per_mille);
        margin.per_mille = (margin.per_mille + usable.div_ceil(10)).min(MAX_MARGIN);
        (margin.since, margin.successes) = (now, 0);
        // Without the rest the margin would fall back and cause the same refusal every few periods.
        margin.rests = now + Span(period.0.saturating_mul(REST_PERIODS));
        let (limit, per_mille) = (margin.limit.clone(), margin.per_mille);
        self.effects.notices.push(Notice::Margin { limit, per_mille });
    }

    /// Lowers the margin of a rate once, when the provider first reports what remains of it.
    /// Returns whether it changed.
    pub(crate) fn lower_reported_margin(&mut self, constraint: ConstraintId, now: Instant) -> bool {
        let limit = self.index.compiled.constraints[constraint].id.clone();
        if !self.has_auto_margin() || !has_margin(&limit) {
            return false;
        }
        let margin = self.auto_margin_of(limit, now);
        if margin.reported {
            return false;
        }
        margin.reported = true;
        margin.per_mille = margin.per_mille.saturating_sub(REPORTED);
        let (limit, per_mille) = (margin.limit.clone(), margin.per_mille);
        self.effects.notices.push(Notice::Margin { limit, per_mille });
        true
    }

    /// The margin of a limit; a new one starts at the default.
    fn auto_margin_of(&mut self, limit: LimitId, now: Instant) -> &mut AutoMargin {
        let all = &mut self.facts.auto_margins;
        let at = all.iter().position(|known| known.limit == limit).unwrap_or_else(|| {
            let (per_mille, reported) = (Margin::Auto.per_mille(), false);
            all.push(AutoMargin {
                limit,
                per_mille,
                since: now,
                successes: 0,
                rests: now,
                reported,
            });
            all.len() - 1
        });
        &mut all[at]
    }
}
