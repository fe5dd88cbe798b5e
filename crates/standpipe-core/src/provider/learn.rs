//! Learning from the provider: its limits, its concurrency, and a slow start while both are
//! unknown.
//!
//! A limit is lowered at once, and raised only by a success or by the provider's own numbers.
//! [`limits_in_force`] combines declared and learned limits; `config/compiled.rs` compiles them.

use alloc::vec::Vec;

use crate::bounds;
use crate::config::compiled::CompiledConfig;
use crate::config::{Charged, Limit, LimitId, PoolConfig, Rule, mul_div};
use crate::event::Reading;
use crate::facts::Facts;
use crate::outcome::Notice;
use crate::provider::auto_margin::usable_share;

use crate::rules::gate::is_cautious;
use crate::rules::spread;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::unit::Unit;
use crate::usage::counter::Count;

/// What the provider taught about its limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// How many concurrent calls the provider accepts.
    pub concurrency: Option<LearnedConcurrency>,
    /// The limits the provider stated.
    pub limits: Vec<LearnedLimit>,
    /// While no limit is known, 2 to this many calls may be unanswered.
    pub slow_start_exp: u8,
}

/// How many concurrent calls the provider accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedConcurrency {
    /// How many, as slots.
    pub calls: u64,
    /// Since when; it rises by one a minute later.
    pub since: Instant,
}

/// A limit that the provider stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnedLimit {
    /// The unit it counts.
    pub unit: Unit,
    /// Its period.
    pub period: Span,
    /// Its size.
    pub amount: u64,
    /// Whether the provider refills it continuously, as far as its answers show.
    pub refills: bool,
}

/// The time without a refusal after which one more concurrent call is allowed.
const RAISE_EVERY: Span = Span::secs(60);

/// Providers report the time until a limit is full in whole seconds.
const ROUNDING: Span = Span::secs(1);

/// The period of a learned limit if neither the provider nor the configuration names one.
const DEFAULT_PERIOD: Span = Span::secs(60);

/// The end of the slow start: 2 to this power is [`bounds::LEASES`].
const MAX_SLOW_START_EXP: u8 = 12;

impl State {
    fn learns(&self) -> bool {
        self.facts.config.as_ref().is_some_and(|config| config.policy.learn)
    }

    /// Lowers the learned concurrency after a refusal for too many calls at once. The first refusal
    /// of an incident sets it to one less than was in flight, each further one lowers it by one.
    pub(crate) fn lower_concurrency(&mut self, new: bool, in_flight: u64, now: Instant) {
        if !self.learns() {
            return;
        }
        let known = self.facts.learned.concurrency.map(|learned| learned.calls);
        let calls = match (new, known) {
            (true, known) => in_flight.saturating_sub(1).min(known.unwrap_or(u64::MAX)),
            (false, known) => known.unwrap_or(in_flight).saturating_sub(1),
        };
        let calls = calls.clamp(1, bounds::AMOUNT);
        self.facts.learned.concurrency = Some(LearnedConcurrency { calls, since: now });
        let (limit, amount) = (LimitId::Parallel, calls);
        self.effects.notices.push(Notice::Learned { limit, amount });
    }

    /// Raises the learned concurrency after a success: by one per quiet minute, until it reaches
    /// the declared limit and is dropped.
    pub(crate) fn raise_concurrency(&mut self, now: Instant) {
        let Some(learned) = self.facts.learned.concurrency else { return };
        let steps = now.since(learned.since).0 / RAISE_EVERY.0;
        if steps == 0 {
            return;
        }
        let calls = learned.calls.saturating_add(steps);
        let limits = self.facts.config.iter().flat_map(|config| &config.limits);
        let declared = limits.filter(|limit| limit.id() == LimitId::Parallel).map(Limit::stated);
        let full = declared.min().unwrap_or(bounds::LEASES as u64);
        // Keep the rest of the current minute, so that frequent successes do not slow the rise.
        let since = learned.since + Span(steps.saturating_mul(RAISE_EVERY.0));
        self.facts.learned.concurrency =
            (calls < full).then_some(LearnedConcurrency { calls, since });
        self.recompile(now);
    }

    /// Returns the number of unanswered calls that the slow start allows, or `None` once a limit is
    /// known.
    #[must_use]
    pub fn cautious(&self) -> Option<u64> {
        is_cautious(&self.facts)
            .then(|| 1 << self.facts.learned.slow_start_exp.min(MAX_SLOW_START_EXP))
    }

    /// Doubles the slow start after an answer.
    pub(crate) fn double_slow_start(&mut self) {
        if is_cautious(&self.facts) && self.facts.learned.slow_start_exp < MAX_SLOW_START_EXP {
            self.facts.learned.slow_start_exp += 1;
            self.set_gate();
        }
    }

    /// Learns the size of a limit from a reading, and returns whether it changed.
    pub(crate) fn learn_limit(&mut self, reading: &Reading) -> bool {
        let Some(config) = self.facts.config.as_ref().filter(|config| config.policy.learn) else {
            return false;
        };
        if reading.unit == Unit::Parallel {
            return false;
        }
        let Some(amount) = reading.limit.filter(|n| (1..=bounds::AMOUNT).contains(n)) else {
            return false;
        };
        let Some(period) = period_of(config, reading) else { return false };
        let (unit, learned) = (reading.unit.clone(), &mut self.facts.learned.limits);
        let known = learned.iter().position(|limit| limit.unit == unit && limit.period == period);
        let before = known.map(|at| learned[at].clone());
        let refills = shows_refill(reading, amount, period)
            .unwrap_or_else(|| before.as_ref().is_some_and(|before| before.refills));
        let limit = LearnedLimit { unit, period, amount, refills };
        match known {
            Some(at) if learned[at] == limit => return false,
            Some(at) => learned[at] = limit.clone(),
            // Declared and learned limits together must fit the bits of a constraint set.
            None if learned.len() + config.limits.len() >= bounds::LIMITS => return false,
            None => learned.push(limit.clone()),
        }
        if before.is_none_or(|before| before.amount != amount) {
            let limit = limit.as_limit().id();
            self.effects.notices.push(Notice::Learned { limit, amount });
        }
        true
    }

    /// Compiles the configuration again, because something that was learned changed. The charges so
    /// far stay. If the set of constraints changed, the configuration is installed again.
    pub(crate) fn recompile(&mut self, now: Instant) {
        let Some(config) = &self.facts.config else { return };
        let new = CompiledConfig::of_facts(&self.facts);
        let old = &self.index.compiled;
        if new == *old {
            return;
        }
        let same = new.constraints.len() == old.constraints.len()
            && new.constraints.iter().zip(&old.constraints).all(|(new, old)| new.id == old.id);
        if !same {
            let (config, provenance) = (config.clone(), self.facts.provenance);
            self.install(config, provenance, now);
            return;
        }
        // The constraints are the same, so counters and lines stay and only the numbers change.
        for (constraint, counter) in new.constraints.ids().zip(&mut self.facts.counters) {
            let (old, new) = (&old.constraints[constraint].spec, &new.constraints[constraint].spec);
            if let Count::Bucket(bucket) = &mut counter.count {
                bucket.rescale(now, old.as_refill(), new.as_refill());
            }
            if let Some(bucket) = &mut counter.spread {
                bucket.rescale(now, spread::refill(old), spread::refill(new));
            }
            // Waiters are woken only if there is more room; less room concerns nobody who waits.
            let more = new.effective > old.effective || new.refill > old.refill;
            self.index.dirty.insert(constraint);
            self.index.returned.insert_if(constraint, more);
        }
        self.index.compiled = new;
        self.refuse_impossible(now);
    }
}

/// The period of a reading: its own, or that of the only declared limit of its unit. An undeclared
/// limit counts per minute, but only if no limit is declared; otherwise the reading may refer to
/// another limit.
fn period_of(config: &PoolConfig, reading: &Reading) -> Option<Span> {
    if let Some(period) = reading.period {
        return (1..=bounds::SPAN.0).contains(&period.0).then_some(period);
    }
    let ids: Vec<LimitId> = config.limits.iter().map(Limit::id).collect();
    let mut declared = ids.iter().filter(|id| id.unit() == Some(&reading.unit));
    match (declared.next(), declared.next()) {
        (Some(one), None) => one.period(),
        (None, _) if config.limits.is_empty() => Some(DEFAULT_PERIOD),
        _ => None,
    }
}

/// Whether a reading shows that the provider refills a limit continuously: while little of it is
/// missing, it is full again soon. `None` if the reading shows neither.
///
/// A wrong guess must not last: a fixed window that is about to end looks the same once, and not
/// after the next one began.
fn shows_refill(reading: &Reading, amount: u64, period: Span) -> Option<bool> {
    let (full_in, remaining) = (reading.full_in?, reading.remaining?);
    let missing = amount.saturating_sub(remaining).saturating_add(reading.coarse.max(1) - 1);
    if missing == 0 || missing > amount / 4 {
        return None;
    }
    let refill = mul_div(period.0, missing, amount);
    Some(full_in.0 <= refill.saturating_add(refill / 4).saturating_add(ROUNDING.0))
}

/// The limits in force: the declared ones, lowered by what was learned, then the learned ones that
/// are not declared.
pub(crate) fn limits_in_force(config: &PoolConfig, facts: &Facts) -> Vec<Limit> {
    let mut limits = config.limits.clone();
    for learned in &facts.learned.limits {
        let is_same = |limit: &Limit| {
            let id = limit.id();
            id.unit() == Some(&learned.unit) && id.period() == Some(learned.period)
        };
        if !config.limits.iter().any(is_same) {
            limits.push(learned.as_limit());
        }
    }
    for limit in &mut limits {
        limit.lower(&facts.learned);
    }
    pace_ramp(config, facts, &mut limits);
    if let Some(learned) = facts.learned.concurrency {
        let slots = |limit: &Limit| limit.id() == LimitId::Parallel;
        if !limits.iter().any(slots) && limits.len() < bounds::LIMITS {
            limits.push(Limit::new(Rule::Parallel { amount: learned.calls }));
        }
    }
    limits
}

/// Paces the shortest request rates while the provider reports too steep a ramp: half a rate that
/// is spent in one burst would be too steep again.
fn pace_ramp(config: &PoolConfig, facts: &Facts, limits: &mut [Limit]) {
    let Some(ramp) = facts.ramp.filter(|ramp| ramp.paced) else { return };
    let shortest = limits.iter().filter_map(|limit| limit.id().period()).min();
    for limit in limits {
        let (Rule::Window { unit, amount, period } | Rule::Bucket { unit, amount, period, .. }) =
            &limit.rule
        else {
            continue;
        };
        if *unit == Unit::Requests && Some(*period) == shortest {
            let share = usable_share(config, &facts.auto_margins, &limit.id());
            let usable = mul_div(*amount, u64::from(share), 1_000);
            let gap = Span(period.0 / (usable >> ramp.halvings).max(1));
            limit.pace = limit.pace.max(Some(gap.max(Span(1))));
        }
    }
}

impl LearnedLimit {
    pub(crate) fn is_sound(&self) -> bool {
        (1..=bounds::AMOUNT).contains(&self.amount) && (1..=bounds::SPAN.0).contains(&self.period.0)
    }

    /// The limit to enforce. Output tokens are known only when a call ends, so they are charged
    /// then.
    fn as_limit(&self) -> Limit {
        let (unit, amount, period) = (self.unit.clone(), self.amount, self.period);
        let mut limit = Limit::new(match self.refills {
            true => Rule::Bucket { unit, amount, period, burst: amount },
            false => Rule::Window { unit, amount, period },
        });
        if self.unit == Unit::OutputTokens {
            limit.charged = Charged::End;
        }
        limit
    }
}

impl Limit {
    /// Lowers the limit to what was learned from the provider.
    fn lower(&mut self, taught: &Learned) {
        let id = self.id();
        let mut all = taught.limits.iter();
        let learned = all.find(|learned| {
            id.unit() == Some(&learned.unit) && id.period() == Some(learned.period)
        });
        match &mut self.rule {
            Rule::Window { amount, .. } => {
                *amount = learned.map_or(*amount, |learned| learned.amount.min(*amount));
            }
            Rule::Bucket { amount, burst, .. } => {
                *amount = learned.map_or(*amount, |learned| learned.amount.min(*amount));
                *burst = learned.map_or(*burst, |learned| learned.amount.min(*burst));
            }
            Rule::Parallel { amount } => {
                let learned = taught.concurrency;
                *amount = learned.map_or(*amount, |learned| learned.calls.min(*amount));
            }
        }
    }
}
