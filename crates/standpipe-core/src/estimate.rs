//! What a call will take when its cost does not say: learned from the calls before, of its agent or
//! of all.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::bounds;
use crate::event::Reserve;
use crate::lease::Lease;
use crate::outlook::Measure;
use crate::plan::LaneKind;
use crate::state::State;
use crate::unit::{Amounts, Unit};

/// Sizes per bytes are kept for so many bytes.
const BYTES: u64 = 4_096;

impl State {
    /// The reserve with everything in its cost: what it says, what is estimated, what that costs.
    pub(crate) fn completed<'a>(&self, reserve: &'a Reserve) -> Cow<'a, Reserve> {
        let Some(config) = &self.facts.config else { return Cow::Borrowed(reserve) };
        let mut missing: Vec<(Unit, u64)> = Vec::new();
        if config.policy.estimates || !reserve.at_most.is_empty() {
            let agent = self.index.agent_of.get(&reserve.agent).copied();
            for unit in self.estimated_units().filter(|unit| reserve.cost.of(unit).is_none()) {
                let size = self.estimate(agent, unit, reserve);
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

    /// The units that rates count and that are not known before a call. Each once.
    fn estimated_units(&self) -> impl Iterator<Item = &Unit> {
        let rates = self.index.plan.lanes.iter().filter(|lane| lane.kind == LaneKind::Rate);
        let units = rates.filter_map(|lane| lane.id.unit());
        let learned = units.filter(|unit| !matches!(unit, Unit::Requests | Unit::Usd));
        let mut seen: Vec<&Unit> = Vec::new();
        learned.filter(move |unit| {
            let new = !seen.contains(unit);
            seen.push(unit);
            new
        })
    }

    /// What nine of ten such calls do not exceed; never more than was promised, nor than fits at
    /// all.
    fn estimate(&self, agent: Option<AgentId>, unit: &Unit, reserve: &Reserve) -> Option<u64> {
        let promised = reserve.at_most.of(unit);
        let by_bytes = reserve.bytes.filter(|_| is_sent(unit)).and_then(|bytes| {
            let per = self.learned(agent, &Measure::PerBytes(unit.clone()))?;
            let size = (u128::from(bytes) * u128::from(per)).div_ceil(u128::from(BYTES));
            Some(u64::try_from(size).unwrap_or(bounds::AMOUNT))
        });
        let learned = by_bytes.or_else(|| self.learned(agent, &Measure::Of(unit.clone())));
        let size = match (learned, promised) {
            (Some(learned), Some(promised)) => learned.min(promised),
            (learned, promised) => learned.or(promised)?,
        };
        let lanes = self.index.plan.lanes.iter();
        let rates = lanes.filter(|lane| lane.settles() == Some(unit));
        Some(rates.map(|lane| lane.spec.stated).fold(size, u64::min))
    }

    /// What was learned of an agent's calls, and while they are few, of all.
    fn learned(&self, agent: Option<AgentId>, measure: &Measure) -> Option<u64> {
        let sizes = &self.facts.outlook.sizes;
        let p90 = |whose| sizes.get(&(whose, measure.clone())).and_then(crate::Sizes::p90);
        agent.and_then(|agent| p90(Some(agent))).or_else(|| p90(None))
    }

    /// A call says what it used: the next ones are estimated by it.
    pub(crate) fn learn_sizes(&mut self, lease: &Lease, used: &Amounts) {
        let on = self.facts.config.as_ref().is_some_and(|config| config.policy.estimates);
        if !on {
            return;
        }
        let units: Vec<Unit> = self.estimated_units().cloned().collect();
        for unit in units {
            let Some(size) = used.of(&unit) else { continue };
            if let Some(bytes) = lease.call.bytes.filter(|bytes| *bytes > 0 && is_sent(&unit)) {
                let per = (u128::from(size) * u128::from(BYTES)).div_ceil(u128::from(bytes));
                let per = u64::try_from(per).unwrap_or(bounds::AMOUNT);
                self.learn_size(lease.agent, Measure::PerBytes(unit.clone()), per);
            }
            self.learn_size(lease.agent, Measure::Of(unit), size);
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

/// Whether a unit grows with the bytes that are sent.
const fn is_sent(unit: &Unit) -> bool {
    matches!(unit, Unit::InputTokens | Unit::Tokens)
}
