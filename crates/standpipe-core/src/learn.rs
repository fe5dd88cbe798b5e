//! What the provider teaches: its limits, how many calls it bears at once, and, while nothing is
//! known, the courage to send more than one.
//!
//! Limits are lowered at once, and raised only by a success or by the provider's own word.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::{Charged, Limit, LimitId, PoolConfig, Rule, part};
use crate::event::Reading;
use crate::gate::is_cautious;
use crate::headroom::share_of;
use crate::outcome::Notice;
use crate::outlook::Outlook;
use crate::plan::Plan;
use crate::state::State;
use crate::tally::Count;
use crate::time::{Instant, Span};
use crate::trouble::{Bears, Told, Trouble};
use crate::unit::Unit;

/// One call more at once after so long without a refusal.
const QUIET: Span = Span::secs(60);

/// The period of a limit of which the provider does not say it, where nobody declared any.
const A_MINUTE: Span = Span::secs(60);

/// 2 to this is more calls than can be in flight.
const MOST_COURAGE: u8 = 12;

impl State {
    fn learns(&self) -> bool {
        self.facts.config.as_ref().is_some_and(|config| config.policy.learn)
    }

    /// Too many calls at once. The first refusal says that one less would have done; each further
    /// one of the same incident, that it would have to be one less still.
    pub(crate) fn bear_less(&mut self, new: bool, in_flight: usize, now: Instant) {
        if !self.learns() {
            return;
        }
        let seen = self.facts.trouble.bears.map(|bears| bears.calls);
        let there = in_flight as u64;
        let calls = match (new, seen) {
            (true, seen) => there.saturating_sub(1).min(seen.unwrap_or(u64::MAX)),
            (false, seen) => seen.unwrap_or(there).saturating_sub(1),
        };
        let calls = calls.max(1);
        self.facts.trouble.bears = Some(Bears { calls, since: now });
        let (limit, amount) = (LimitId::Parallel, calls);
        self.news.notices.push(Notice::Learned { limit, amount });
    }

    /// A success after a quiet minute: one more at once, up to what is declared.
    pub(crate) fn bear_more(&mut self, now: Instant) {
        let Some(bears) = self.facts.trouble.bears else { return };
        let steps = now.since(bears.since).0 / QUIET.0;
        if steps == 0 {
            return;
        }
        let calls = bears.calls.saturating_add(steps);
        let limits = self.facts.config.iter().flat_map(|config| &config.limits);
        let declared = limits.filter(|limit| limit.id() == LimitId::Parallel).map(Limit::stated);
        let whole = declared.min().unwrap_or(bounds::LEASES as u64);
        let since = bears.since + Span(steps.saturating_mul(QUIET.0));
        self.facts.trouble.bears = (calls < whole).then_some(Bears { calls, since });
        self.retune(now);
    }

    /// While nothing is known of the limits: how many calls may be unanswered.
    #[must_use]
    pub fn cautious(&self) -> Option<u64> {
        is_cautious(&self.facts).then(|| 1 << self.facts.trouble.courage.min(MOST_COURAGE))
    }

    /// While nothing is known of the limits, every answer allows twice as many calls.
    pub(crate) fn take_courage(&mut self) {
        if is_cautious(&self.facts) && self.facts.trouble.courage < MOST_COURAGE {
            self.facts.trouble.courage += 1;
            self.set_gate();
        }
    }

    /// The provider said how large a limit is. A lower one counts at once.
    pub(crate) fn hear_limit(&mut self, reading: &Reading) -> bool {
        let Some(config) = self.facts.config.as_ref().filter(|config| config.policy.learn) else {
            return false;
        };
        let Some(amount) = reading.limit.filter(|n| (1..=bounds::AMOUNT).contains(n)) else {
            return false;
        };
        let Some(period) = period_of(config, reading) else { return false };
        let (unit, told) = (reading.unit.clone(), &mut self.facts.trouble.told);
        let known = told.iter().position(|told| told.unit == unit && told.period == period);
        match known {
            Some(at) if told[at].amount == amount => return false,
            Some(at) => told[at].amount = amount,
            None if told.len() + config.limits.len() >= bounds::LIMITS => return false,
            None => told.push(Told { unit: unit.clone(), period, amount }),
        }
        let limit = LimitId::Window(unit, period);
        self.news.notices.push(Notice::Learned { limit, amount });
        true
    }

    /// What is used of the limits changes with what is known; what was used stays.
    pub(crate) fn retune(&mut self, now: Instant) {
        let Some(config) = &self.facts.config else { return };
        let new = Plan::of_facts(&self.facts);
        let old = &self.index.plan;
        if new == *old {
            return;
        }
        let same = new.lanes.len() == old.lanes.len()
            && new.lanes.iter().zip(&old.lanes).all(|(new, old)| new.id == old.id);
        if !same {
            let (config, provenance) = (config.clone(), self.facts.provenance);
            self.put_into_force(config, provenance, now);
            return;
        }
        for (lane, tally) in self.facts.lanes.iter_mut().enumerate() {
            let (old, new) = (&old.lanes[lane].spec, &new.lanes[lane].spec);
            if let Count::Bucket(bucket) = &mut tally.count {
                bucket.rescale(now, old.as_refill(), new.as_refill());
            }
            self.index.dirty |= 1 << lane;
            self.index.returned |= 1 << lane;
        }
        self.index.plan = new;
        self.turn_out_impossible(now);
    }
}

/// The period a reading is about: its own, or that of the one declared limit of its unit. A limit
/// that nobody declared counts per minute, but only where nothing at all is declared: else it may
/// be about something else.
fn period_of(config: &PoolConfig, reading: &Reading) -> Option<Span> {
    if let Some(period) = reading.period {
        return (1..=bounds::SPAN.0).contains(&period.0).then_some(period);
    }
    let ids: Vec<LimitId> = config.limits.iter().map(Limit::id).collect();
    let mut declared = ids.iter().filter(|id| id.unit() == Some(&reading.unit));
    match (declared.next(), declared.next()) {
        (Some(one), None) => one.period(),
        (None, _) if config.limits.is_empty() => Some(A_MINUTE),
        _ => None,
    }
}

/// The limits that count: as declared, those the provider told besides, and how many calls it
/// bears.
pub(crate) fn limits_in_force(
    config: &PoolConfig,
    trouble: &Trouble,
    outlook: &Outlook,
) -> Vec<Limit> {
    let mut limits = config.limits.clone();
    for told in &trouble.told {
        let concerns = |limit: &Limit| {
            let id = limit.id();
            id.unit() == Some(&told.unit) && id.period() == Some(told.period)
        };
        if !config.limits.iter().any(concerns) {
            limits.push(told.as_limit());
        }
    }
    for limit in &mut limits {
        limit.lower(trouble);
    }
    spread_evenly(config, trouble, outlook, &mut limits);
    if let Some(bears) = trouble.bears {
        let slots = |limit: &Limit| limit.id() == LimitId::Parallel;
        if !limits.iter().any(slots) && limits.len() < bounds::LIMITS {
            limits.push(Limit::new(Rule::Parallel { amount: bears.calls }));
        }
    }
    limits
}

/// While the provider finds that calls grow too fast, the requests of the shortest rates keep a
/// distance.
fn spread_evenly(config: &PoolConfig, trouble: &Trouble, outlook: &Outlook, limits: &mut [Limit]) {
    let Some(ramp) = trouble.ramp.filter(|ramp| ramp.paced) else { return };
    let shortest = limits.iter().filter_map(|limit| limit.id().period()).min();
    for limit in limits {
        let (Rule::Window { unit, amount, period } | Rule::Bucket { unit, amount, period, .. }) =
            &limit.rule
        else {
            continue;
        };
        if *unit == Unit::Requests && Some(*period) == shortest {
            let share = share_of(config, outlook, &limit.id());
            let used = part(*amount, u64::from(share), 1_000);
            let gap = Span(period.0 / (used >> ramp.halvings).max(1));
            limit.pace = limit.pace.max(Some(gap.max(Span(1))));
        }
    }
}

impl Told {
    pub(crate) fn is_sound(&self) -> bool {
        (1..=bounds::AMOUNT).contains(&self.amount) && (1..=bounds::SPAN.0).contains(&self.period.0)
    }

    fn as_limit(&self) -> Limit {
        let (unit, amount, period) = (self.unit.clone(), self.amount, self.period);
        let mut limit = Limit::new(Rule::Window { unit, amount, period });
        if self.unit == Unit::OutputTokens {
            limit.charged = Charged::End;
        }
        limit
    }
}

impl Limit {
    /// No more than the provider says or bears.
    fn lower(&mut self, trouble: &Trouble) {
        let id = self.id();
        let told = trouble
            .told
            .iter()
            .find(|told| id.unit() == Some(&told.unit) && id.period() == Some(told.period));
        match &mut self.rule {
            Rule::Window { amount, .. } => {
                *amount = told.map_or(*amount, |told| told.amount.min(*amount));
            }
            Rule::Bucket { amount, burst, .. } => {
                *amount = told.map_or(*amount, |told| told.amount.min(*amount));
                *burst = told.map_or(*burst, |told| told.amount.min(*burst));
            }
            Rule::Parallel { amount } => {
                *amount = trouble.bears.map_or(*amount, |bears| bears.calls.min(*amount));
            }
        }
    }
}
