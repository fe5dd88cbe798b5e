//! The automatic margin: adjusts the usable share of each stated rate.
//!
//! The usable share starts at 80 %. It rises by one percentage point after a clean period with
//! enough calls, and falls by a tenth when the provider reports that the rate was exceeded. Only a
//! success raises it.

use crate::config::compiled::ConstraintKind;
use crate::config::{Headroom, LimitId, PoolConfig};
use crate::event::Hit;
use crate::id::ConstraintSet;
use crate::outcome::Notice;

use crate::state::State;
use crate::time::{Instant, Span};

/// The usable share of one rate, found automatically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutoMargin {
    /// The limit.
    pub limit: LimitId,
    /// The usable share, in thousandths.
    pub per_mille: u16,
    /// When the present interval without refusals began.
    pub since: Instant,
    /// The successful calls in that interval.
    pub successes: u32,
    /// The share does not rise before this.
    pub rests: Instant,
}

/// The smallest usable share, in thousandths.
const MIN_SHARE: u16 = 500;
/// The rise after a clean period, in thousandths.
const STEP: u16 = 10;
/// The shortest time between two rises.
const STEP_EVERY: Span = Span::secs(60);
/// The number of successes that a clean period needs.
const MIN_SUCCESSES: u32 = 20;
/// The number of periods after a refusal in which the share does not rise.
const REST_PERIODS: u64 = 10;

/// The usable share of a limit, in thousandths.
pub(crate) fn share_of(config: &PoolConfig, margins: &[AutoMargin], limit: &LimitId) -> u16 {
    let known = || margins.iter().find(|margin| margin.limit == *limit);
    match config.headroom {
        Headroom::Fixed(per_mille) => per_mille,
        Headroom::Auto => known().map_or(config.headroom.per_mille(), |margin| margin.per_mille),
    }
}

impl State {
    fn has_auto_margin(&self) -> bool {
        self.facts.config.as_ref().is_some_and(|config| config.headroom == Headroom::Auto)
    }

    /// Counts a success on the constraints in `drawn`, and raises the usable share of those rates
    /// whose clean period is complete.
    pub(crate) fn raise_margin_use(&mut self, drawn: ConstraintSet, now: Instant) {
        if !self.has_auto_margin() {
            return;
        }
        let mut risen = false;
        for at in drawn.iter() {
            let constraint = &self.index.compiled.constraints[at];
            if constraint.kind == ConstraintKind::Rate {
                let (limit, period) =
                    (constraint.id.clone(), constraint.id.period().unwrap_or(STEP_EVERY));
                risen |= self.count_margin_success(limit, period.max(STEP_EVERY), now);
            }
        }
        // Compiling is expensive: once for all rates, and only after a change.
        if risen {
            self.recompile(now);
        }
    }

    /// Counts a success on a rate, and returns whether its usable share rose.
    fn count_margin_success(&mut self, limit: LimitId, period: Span, now: Instant) -> bool {
        let margin = self.auto_margin_of(limit, now);
        margin.successes = margin.successes.saturating_add(1);
        let clean = now >= margin.since + period && now >= margin.rests;
        if !clean || margin.successes < MIN_SUCCESSES || margin.per_mille >= 1_000 {
            return false;
        }
        margin.per_mille = (margin.per_mille + STEP).min(1_000);
        (margin.since, margin.successes) = (now, 0);
        let (limit, per_mille) = (margin.limit.clone(), margin.per_mille);
        self.effects.notices.push(Notice::Headroom { limit, per_mille });
        true
    }

    /// Lowers the usable share of the rate that the provider reports as exceeded.
    pub(crate) fn lower_margin_use(&mut self, hit: Option<&Hit>, now: Instant) {
        let constraint = self.hit_constraint(hit).filter(|_| self.has_auto_margin());
        let Some(constraint) = constraint.map(|at| &self.index.compiled.constraints[at]) else {
            return;
        };
        let (limit, period) = (constraint.id.clone(), constraint.id.period().unwrap_or(STEP_EVERY));
        let margin = self.auto_margin_of(limit, now);
        let lowered = u32::from(margin.per_mille) * 9 / 10;
        margin.per_mille = u16::try_from(lowered).unwrap_or(MIN_SHARE).max(MIN_SHARE);
        (margin.since, margin.successes) = (now, 0);
        // Without the rest the share would climb back and cause the same refusal every few periods.
        margin.rests = now + Span(period.0.saturating_mul(REST_PERIODS));
        let (limit, per_mille) = (margin.limit.clone(), margin.per_mille);
        self.effects.notices.push(Notice::Headroom { limit, per_mille });
    }

    /// The margin of a limit; a new one starts at the default share.
    fn auto_margin_of(&mut self, limit: LimitId, now: Instant) -> &mut AutoMargin {
        let all = &mut self.facts.auto_margins;
        let at = all.iter().position(|known| known.limit == limit).unwrap_or_else(|| {
            let per_mille = Headroom::Auto.per_mille();
            all.push(AutoMargin { limit, per_mille, since: now, successes: 0, rests: now });
            all.len() - 1
        });
        &mut all[at]
    }
}
