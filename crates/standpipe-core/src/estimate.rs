//! What a call will take when its cost does not say: learned from the calls before, of its agent or
//! of all.
//!
//! Of a limited unit that nobody knows anything about a call takes one: so that a limit which is
//! over its bound holds back also those who do not say what they take of it.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::bounds;
use crate::call::Call;
use crate::event::Reserve;
use crate::lease::Lease;
use crate::outlook::Measure;
use crate::plan::LaneKind;
use crate::state::State;
use crate::unit::{Amounts, Unit};

/// Sizes per bytes are kept for so many bytes.
const BYTES: u64 = 4_096;

/// While nothing is known of a prompt but its bytes, so many of them are a token.
const PER_TOKEN: u64 = 4;

impl State {
    /// The reserve with everything in its cost: what it says, what is estimated, what that costs.
    pub(crate) fn completed<'a>(&self, reserve: &'a Reserve) -> Cow<'a, Reserve> {
        let Some(config) = &self.facts.config else { return Cow::Borrowed(reserve) };
        let mut missing: Vec<(Unit, u64)> = Vec::new();
        if config.policy.estimates || !reserve.at_most.is_empty() {
            let agent = self.index.agent_of.get(&reserve.agent).copied();
            for unit in self.estimated_units().filter(|unit| reserve.cost.of(unit).is_none()) {
                let size = match config.policy.estimates {
                    true => Some(self.estimate(agent, unit, reserve)),
                    // Nothing is estimated: the most that was promised is taken.
                    false => reserve.at_most.of(unit).map(|most| self.at_all(unit, most)),
                };
                missing.extend(size.map(|size| (unit.clone(), size)));
            }
        }
        let prices = !config.prices.is_empty() && reserve.cost.of(&Unit::Usd).is_none();
        if missing.is_empty() && !prices {
            return Cow::Borrowed(reserve);
        }
        let mut completed = reserve.clone();
        for (unit, size) in missing {
            completed.cost.add(unit, size);
        }
        if prices {
            let usd = self.price_of(&completed.cost, &Amounts::default());
            completed.cost.add(Unit::Usd, usd);
        }
        Cow::Owned(completed)
    }

    /// The units that rates count and that are not known before a call. Each once. Money is
    /// computed where there are prices.
    fn estimated_units(&self) -> impl Iterator<Item = &Unit> {
        let rates = self.index.plan.lanes.iter().filter(|lane| lane.kind == LaneKind::Rate);
        let units = rates.filter_map(|lane| lane.id.unit());
        let prices = self.has_prices();
        let learned = units.filter(move |unit| match unit {
            Unit::Requests => false,
            Unit::Usd => !prices,
            _ => true,
        });
        let mut seen: Vec<&Unit> = Vec::new();
        learned.filter(move |unit| {
            let new = !seen.contains(unit);
            seen.push(unit);
            new
        })
    }

    /// What nine of ten such calls do not exceed; never more than was promised, nor than fits at
    /// all, and at least one.
    fn estimate(&self, agent: Option<AgentId>, unit: &Unit, reserve: &Reserve) -> u64 {
        let learned = self.sent(agent, unit, reserve.bytes);
        let learned = learned.or_else(|| self.learned(agent, &Measure::Of(unit.clone())));
        let said = self.said_otherwise(agent, unit, reserve);
        let size = match (learned, said) {
            (_, Some((said, true))) => said,
            (Some(learned), Some((most, false))) => learned.min(most),
            (None, Some((most, false))) => most,
            (Some(learned), None) => learned,
            (None, None) => 1,
        };
        self.at_all(unit, size.max(1))
    }

    /// No more of a unit than fits at all.
    fn at_all(&self, unit: &Unit, size: u64) -> u64 {
        let lanes = self.index.plan.lanes.iter();
        let rates = lanes.filter(|lane| lane.settles() == Some(unit));
        rates.map(|lane| lane.spec.stated).fold(size, u64::min)
    }

    /// What a call says of a unit without naming it in its cost, and whether that is exact or the
    /// most it takes. Tokens are those of both directions.
    fn said_otherwise(
        &self,
        agent: Option<AgentId>,
        unit: &Unit,
        reserve: &Reserve,
    ) -> Option<(u64, bool)> {
        if let Some(most) = reserve.at_most.of(unit) {
            return Some((most, false));
        }
        let prompt = || reserve.bytes.map(|bytes| bytes.div_ceil(PER_TOKEN));
        match unit {
            Unit::InputTokens if self.sent(agent, unit, reserve.bytes).is_none() => {
                prompt().map(|size| (size, true))
            }
            Unit::Tokens => {
                let input = reserve.cost.of(&Unit::InputTokens);
                let output = reserve.cost.of(&Unit::OutputTokens);
                let most = reserve.at_most.of(&Unit::OutputTokens);
                let sent = || self.sent(agent, &Unit::InputTokens, reserve.bytes).or_else(prompt);
                let exact = output.is_some() || most.is_none() && input.is_some();
                let (input, output) = (input.or_else(sent), output.or(most));
                let both = input.unwrap_or(0).saturating_add(output.unwrap_or(0));
                (input.is_some() || output.is_some()).then_some((both.min(bounds::AMOUNT), exact))
            }
            _ => None,
        }
    }

    /// What was learned of the tokens in so many bytes that are sent.
    fn sent(&self, agent: Option<AgentId>, unit: &Unit, bytes: Option<u64>) -> Option<u64> {
        let bytes = bytes.filter(|_| *unit == Unit::InputTokens)?;
        let per = self.learned(agent, &Measure::PerBytes(unit.clone()))?;
        let size = (u128::from(bytes) * u128::from(per)).div_ceil(u128::from(BYTES));
        Some(u64::try_from(size).unwrap_or(bounds::AMOUNT).min(bounds::AMOUNT))
    }

    /// What was learned of an agent's calls, and while they are few, of all.
    fn learned(&self, agent: Option<AgentId>, measure: &Measure) -> Option<u64> {
        let sizes = &self.facts.outlook.sizes;
        let p90 = |whose| sizes.get(&(whose, measure.clone())).and_then(crate::Sizes::p90);
        agent.and_then(|agent| p90(Some(agent))).or_else(|| p90(None))
    }

    /// What a call used, with what follows from it: tokens of both directions together, and what it
    /// cost. Of a unit that `used` does not name, as `else_` says.
    pub(crate) fn figured<'a>(
        &self,
        used: &'a Amounts,
        else_: &Amounts,
        call: &Call,
    ) -> Cow<'a, Amounts> {
        let input = used.of(&Unit::InputTokens);
        let output = used.of(&Unit::OutputTokens);
        let said = input.is_some() || output.is_some();
        let follows = self.estimates() && said && call.tokens_follow && self.counts_tokens();
        if !follows || used.of(&Unit::Tokens).is_some() {
            return self.priced(used, else_);
        }
        let input = input.or_else(|| else_.of(&Unit::InputTokens)).unwrap_or(0);
        let output = output.or_else(|| else_.of(&Unit::OutputTokens)).unwrap_or(0);
        let mut figured = used.clone();
        figured.add(Unit::Tokens, input.saturating_add(output));
        Cow::Owned(self.priced(&figured, else_).into_owned())
    }

    fn estimates(&self) -> bool {
        self.facts.config.as_ref().is_some_and(|config| config.policy.estimates)
    }

    fn counts_tokens(&self) -> bool {
        self.index.plan.lanes.iter().any(|lane| lane.settles() == Some(&Unit::Tokens))
    }

    /// A call says what it used: the next ones are estimated by it.
    pub(crate) fn learn_sizes(&mut self, lease: &Lease, used: &Amounts) {
        if !self.estimates() {
            return;
        }
        let sent = used.of(&Unit::InputTokens).filter(|_| lease.call.bytes > Some(0));
        if let (Some(size), Some(bytes)) = (sent, lease.call.bytes) {
            let per = (u128::from(size) * u128::from(BYTES)).div_ceil(u128::from(bytes));
            let per = u64::try_from(per).unwrap_or(bounds::AMOUNT);
            self.learn_size(lease.agent, Measure::PerBytes(Unit::InputTokens), per);
        }
        let units: Vec<Unit> = self.estimated_units().cloned().collect();
        for unit in units {
            if let Some(size) = used.of(&unit) {
                self.learn_size(lease.agent, Measure::Of(unit), size);
            }
        }
    }

    fn learn_size(&mut self, agent: AgentId, measure: Measure, size: u64) {
        let sizes = &mut self.facts.outlook.sizes;
        sizes.entry((None, measure.clone())).or_default().add(size);
        let room = sizes.len() < bounds::HISTOGRAMS;
        let own = (Some(agent), measure);
        if let Some(known) = sizes.get_mut(&own) {
            known.add(size);
        } else if room {
            sizes.entry(own).or_default().add(size);
        }
    }

    /// Another agent gets the record: what was learned of the one before is not its.
    pub(crate) fn forget_sizes(&mut self, agent: AgentId) {
        self.facts.outlook.sizes.retain(|(whose, _), _| *whose != Some(agent));
    }
}
