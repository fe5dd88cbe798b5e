//! Estimates of the units that a cost omits, learned from earlier calls of the agent or the pool.
//!
//! Without any information a call takes one request, one point and one token of every limit, so a
//! limit that is over its bound also blocks calls that do not name its unit. It takes no content
//! and nothing of declared units: most calls do not. `size_histogram.rs` stores what was learned.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::bounds;
use crate::event::Reserve;
use crate::id::{AgentId, ConstraintId};
use crate::lease::Lease;
use crate::lease::call::Call;
use crate::state::State;
use crate::unit::{Amounts, Unit};
use crate::usage::size_histogram::SizeKey;

/// The bytes to which [`SizeKey::PerBytes`] refers; tokens per single byte would round to one.
const RATIO_BYTES: u64 = 4_096;

/// The bytes per token that are assumed before a ratio is learned.
const BYTES_PER_TOKEN: u64 = 4;

impl State {
    /// The completed cost of a reserve: with estimates for omitted units, then the price.
    pub(crate) fn completed_cost<'a>(&self, reserve: &'a Reserve) -> Cow<'a, Amounts> {
        let Some(config) = &self.facts.config else { return Cow::Borrowed(&reserve.cost) };
        let mut missing: Vec<(Unit, u64)> = Vec::new();
        if config.policy.estimates || !reserve.at_most.is_empty() {
            let agent = self.index.agent_of.get(&reserve.agent).copied();
            for unit in self.estimated_units().filter(|unit| reserve.cost.of(unit).is_none()) {
                let size = match config.policy.estimates {
                    true => Some(self.estimate(agent, unit, reserve)),
                    // Without estimates, the caller's upper bound is charged.
                    false => reserve.at_most.of(unit).map(|most| self.clamp_to_limits(unit, most)),
                };
                missing.extend(size.map(|size| (unit.clone(), size)));
            }
        }
        if self.counts(&Unit::Points) && reserve.cost.of(&Unit::Points).is_none() {
            missing.push((Unit::Points, 1));
        }
        let prices = !config.prices.is_empty() && reserve.cost.of(&Unit::Usd).is_none();
        if missing.is_empty() && !prices {
            return Cow::Borrowed(&reserve.cost);
        }
        let mut completed = reserve.cost.with_room_for(missing.len() + usize::from(prices));
        for (unit, size) in missing {
            completed.add(unit, size);
        }
        if prices {
            let usd = self.price_of(&completed, &Amounts::default());
            completed.add(Unit::Usd, usd);
        }
        Cow::Owned(completed)
    }

    /// The units that rate limits count and that a call does not know in advance, each once.
    fn estimated_units(&self) -> impl Iterator<Item = &Unit> {
        self.index.compiled.constraints.ids().filter_map(|at| self.estimated_unit(at))
    }

    /// The estimated unit of a constraint, if no earlier one has the same.
    fn estimated_unit(&self, at: ConstraintId) -> Option<&Unit> {
        let constraint = &self.index.compiled.constraints[at];
        constraint.settles().filter(|_| constraint.estimated)
    }

    /// The 90th percentile of such calls, but at least one, at most the caller's bound, and at most
    /// what the limits can ever admit.
    fn estimate(&self, agent: Option<AgentId>, unit: &Unit, reserve: &Reserve) -> u64 {
        let learned = self.learned_from_bytes(agent, unit, reserve.bytes);
        let learned = learned.or_else(|| self.learned(agent, &SizeKey::Units(unit.clone())));
        let derived = self.derived_amount(agent, unit, reserve);
        let size = match (learned, derived) {
            (_, Some((exact, true))) => exact,
            (Some(learned), Some((most, false))) => learned.min(most),
            (None, Some((most, false))) => most,
            (Some(learned), None) => learned,
            (None, None) => 1,
        };
        self.clamp_to_limits(unit, size.max(1))
    }

    /// Limits an estimate to the stated limits: a call must never be refused for good because of an
    /// estimate.
    fn clamp_to_limits(&self, unit: &Unit, size: u64) -> u64 {
        let constraints = self.index.compiled.constraints.iter();
        let rates = constraints.filter(|constraint| constraint.settles() == Some(unit));
        rates.map(|constraint| constraint.spec.stated).fold(size, u64::min)
    }

    /// The amount that follows from the other fields of a reserve, and whether it is exact or only
    /// an upper bound. [`Unit::Tokens`] is the sum of input and output tokens.
    fn derived_amount(
        &self,
        agent: Option<AgentId>,
        unit: &Unit,
        reserve: &Reserve,
    ) -> Option<(u64, bool)> {
        if let Some(most) = reserve.at_most.of(unit) {
            return Some((most, false));
        }
        let prompt = || reserve.bytes.map(|bytes| bytes.div_ceil(BYTES_PER_TOKEN));
        match unit {
            Unit::InputTokens if self.learned_from_bytes(agent, unit, reserve.bytes).is_none() => {
                prompt().map(|size| (size, true))
            }
            Unit::Tokens => {
                let input = reserve.cost.of(&Unit::InputTokens);
                let output = reserve.cost.of(&Unit::OutputTokens);
                let most = reserve.at_most.of(&Unit::OutputTokens);
                let from_bytes = || {
                    self.learned_from_bytes(agent, &Unit::InputTokens, reserve.bytes)
                        .or_else(prompt)
                };
                // An output bound makes the sum a bound; a known output, or a known input without
                // any bound, counts as exact.
                let exact = output.is_some() || most.is_none() && input.is_some();
                let (input, output) = (input.or_else(from_bytes), output.or(most));
                let both = input.unwrap_or(0).saturating_add(output.unwrap_or(0));
                (input.is_some() || output.is_some()).then_some((both.min(bounds::AMOUNT), exact))
            }
            _ => None,
        }
    }

    /// The input tokens of a request of this size, by the learned ratio.
    fn learned_from_bytes(
        &self,
        agent: Option<AgentId>,
        unit: &Unit,
        bytes: Option<u64>,
    ) -> Option<u64> {
        let bytes = bytes.filter(|_| *unit == Unit::InputTokens)?;
        let ratio = self.learned(agent, &SizeKey::PerBytes(unit.clone()))?;
        let size = (u128::from(bytes) * u128::from(ratio)).div_ceil(u128::from(RATIO_BYTES));
        Some(u64::try_from(size).unwrap_or(bounds::AMOUNT).min(bounds::AMOUNT))
    }

    /// The 90th percentile of the agent's calls, or of the pool's while the agent has made too few.
    fn learned(&self, agent: Option<AgentId>, measure: &SizeKey) -> Option<u64> {
        let sizes = &self.facts.sizes;
        let p90 = |scope| sizes.get(&(scope, measure.clone())).and_then(crate::SizeHistogram::p90);
        agent.and_then(|agent| p90(Some(agent))).or_else(|| p90(None))
    }

    /// Adds the units that follow from what a call used: the sum of both token units, and the
    /// price. Units that `used` omits are taken from `estimate`.
    pub(crate) fn with_totals<'a>(
        &self,
        used: &'a Amounts,
        estimate: &Amounts,
        call: &Call,
    ) -> Cow<'a, Amounts> {
        let input = used.of(&Unit::InputTokens);
        let output = used.of(&Unit::OutputTokens);
        let reported = input.is_some() || output.is_some();
        let follows =
            self.estimates() && reported && call.tokens_follow && self.counts(&Unit::Tokens);
        if !follows || used.of(&Unit::Tokens).is_some() {
            return self.priced(used, estimate);
        }
        let input = input.or_else(|| estimate.of(&Unit::InputTokens)).unwrap_or(0);
        let output = output.or_else(|| estimate.of(&Unit::OutputTokens)).unwrap_or(0);
        let mut with_totals = used.with_room_for(1);
        with_totals.add(Unit::Tokens, input.saturating_add(output));
        Cow::Owned(self.priced(&with_totals, estimate).into_owned())
    }

    fn estimates(&self) -> bool {
        self.facts.config.as_ref().is_some_and(|config| config.policy.estimates)
    }

    /// Whether a limit counts a unit.
    fn counts(&self, unit: &Unit) -> bool {
        let mut constraints = self.index.compiled.constraints.iter();
        constraints.any(|constraint| constraint.settles() == Some(unit))
    }

    /// Learns the sizes of a settled call.
    pub(crate) fn learn_sizes(&mut self, lease: &Lease, used: &Amounts) {
        if !self.estimates() {
            return;
        }
        let input = used.of(&Unit::InputTokens).filter(|_| lease.call.bytes > Some(0));
        if let (Some(size), Some(bytes)) = (input, lease.call.bytes) {
            let ratio = (u128::from(size) * u128::from(RATIO_BYTES)).div_ceil(u128::from(bytes));
            let ratio = u64::try_from(ratio).unwrap_or(bounds::AMOUNT);
            self.learn_size(lease.agent, SizeKey::PerBytes(Unit::InputTokens), ratio);
        }
        for at in self.index.compiled.constraints.ids() {
            let unit = self.estimated_unit(at);
            if let Some((unit, size)) = unit.and_then(|unit| Some((unit.clone(), used.of(unit)?))) {
                self.learn_size(lease.agent, SizeKey::Units(unit), size);
            }
        }
    }

    fn learn_size(&mut self, agent: AgentId, measure: SizeKey, size: u64) {
        let sizes = &mut self.facts.sizes;
        sizes.entry((None, measure.clone())).or_default().add(size);
        // The pool's histogram is always kept. Agents beyond the bound use it in place of their
        // own.
        let has_room = sizes.len() < bounds::HISTOGRAMS;
        let key = (Some(agent), measure);
        if let Some(known) = sizes.get_mut(&key) {
            known.add(size);
        } else if has_room {
            sizes.entry(key).or_default().add(size);
        }
    }

    /// Removes what was learned from an agent whose record is reused.
    pub(crate) fn forget_sizes(&mut self, agent: AgentId) {
        self.facts.sizes.retain(|(scope, _), _| *scope != Some(agent));
    }
}
