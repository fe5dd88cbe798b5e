//! An oracle for changing configurations: a plain list of charges, counted anew for every question.
//!
//! It forgets a charge only when it is older than the longest period of its unit in the
//! configuration in force and the one before it.

use standpipe_core::{
    Amounts, Charged, Instant, Key, Limit, LimitSelector, PoolConfig, Portion, Rule, Span, Unit,
};

/// What is remembered, and the configuration in force.
pub(crate) struct Remembered {
    config: PoolConfig,
    /// By unit and when it is charged: the longest period now, and in the configuration before.
    spans: Vec<(Unit, Charged, Span, Span)>,
    charges: Vec<Charge>,
    calls: Vec<Call>,
    /// When limits were last switched on.
    enforced: Instant,
    /// Whether a bucket was ever emptied beyond its burst when it was changed: that debt stays,
    /// also where it is older than what is remembered.
    indebted: bool,
}

#[derive(Clone, Debug)]
struct Charge {
    at: Instant,
    agent: usize,
    unit: Unit,
    /// What counts of it, and what was charged before refunds.
    units: u64,
    gross: u64,
    lease: Key,
    /// A bucket in force may still count it; a new limit does not.
    forgotten: bool,
}

struct Call {
    lease: Key,
    agent: usize,
    cost: Amounts,
}

/// The agent that has the cap.
const CAPPED: usize = 0;

impl Remembered {
    pub(crate) fn new(config: PoolConfig, now: Instant) -> Self {
        let mut new = Self {
            config: PoolConfig::new(Vec::new()),
            spans: Vec::new(),
            charges: Vec::new(),
            calls: Vec::new(),
            enforced: Instant(0),
            indebted: false,
        };
        new.reconfigure(config, now);
        new
    }

    pub(crate) fn reconfigure(&mut self, config: PoolConfig, now: Instant) {
        if config == self.config {
            return;
        }
        self.indebted |= self.config.limits.iter().any(|limit| self.owes(limit, now));
        self.forget(now);
        if config.enforce && !self.config.enforce {
            self.enforced = now;
        }
        self.config = config;
        for (.., present, before) in &mut self.spans {
            (*before, *present) = (*present, Span::ZERO);
        }
        for (unit, span) in self.longest() {
            let charged = charged(&unit);
            match self.spans.iter_mut().find(|(known, ..)| *known == unit) {
                Some((.., present, _)) => *present = span,
                None => {
                    self.spans.push((unit.clone(), charged, span, Span::ZERO));
                    self.begin(&unit, charged, now);
                }
            }
        }
        self.spans.retain(|(.., present, before)| present.max(before).0 > 0);
        let known: Vec<Unit> = self.spans.iter().map(|(unit, ..)| unit.clone()).collect();
        let gone = self.charges.iter_mut().filter(|charge| !known.contains(&charge.unit));
        gone.for_each(|charge| charge.forgotten = true);
    }

    /// A unit is counted from now on: what is in flight counts as charged now.
    fn begin(&mut self, unit: &Unit, when: Charged, now: Instant) {
        if when == Charged::End {
            return;
        }
        for call in &self.calls {
            let units = call.cost.of(unit).unwrap_or(0);
            let (unit, agent, lease) = (unit.clone(), call.agent, call.lease);
            self.charges.push(Charge {
                at: now,
                agent,
                unit,
                units,
                gross: units,
                lease,
                forgotten: false,
            });
        }
    }

    pub(crate) fn admit(&mut self, lease: Key, agent: usize, cost: &Amounts, now: Instant) {
        self.forget(now);
        for (unit, when, ..) in &self.spans {
            let units = cost.of(unit).unwrap_or(0);
            if *when == Charged::Start {
                let unit = unit.clone();
                self.charges.push(Charge {
                    at: now,
                    agent,
                    unit,
                    units,
                    gross: units,
                    lease,
                    forgotten: false,
                });
            }
        }
        self.calls.push(Call { lease, agent, cost: cost.clone() });
    }

    pub(crate) fn commit(&mut self, lease: Key, used: &[(Unit, u64)], now: Instant) {
        let Some(at) = self.calls.iter().position(|call| call.lease == lease) else { return };
        let Call { agent, cost, .. } = self.calls.remove(at);
        for (unit, when, ..) in &self.spans {
            let total = used.iter().find(|(known, _)| known == unit).map_or(0, |(_, n)| *n);
            let estimate = cost.of(unit).unwrap_or(0);
            let more = match when {
                Charged::End => total,
                Charged::Start => {
                    let own = |charge: &&mut Charge| {
                        charge.lease == lease && charge.unit == *unit && !charge.forgotten
                    };
                    if let Some(first) = self.charges.iter_mut().find(own) {
                        first.units = first.units.min(total);
                    }
                    total.saturating_sub(estimate)
                }
            };
            let unit = unit.clone();
            self.charges.push(Charge {
                at: now,
                agent,
                unit,
                units: more,
                gross: more,
                lease,
                forgotten: false,
            });
        }
    }

    pub(crate) fn cancel(&mut self, lease: Key) {
        self.calls.retain(|call| call.lease != lease);
        let own = self.charges.iter_mut().filter(|charge| charge.lease == lease);
        own.for_each(|charge| charge.units = 0);
    }

    /// A limit or cap that a call is above, whatever may have been refilled meanwhile.
    pub(crate) fn certainly_over(
        &self,
        agent: usize,
        cost: &Amounts,
        now: Instant,
    ) -> Option<String> {
        let limits = self.config.limits.iter().filter(|_| self.config.enforce);
        let over =
            limits.filter(|limit| self.is_over(limit, cost, now, true, |charge| charge.units));
        let over = over.map(|limit| format!("{limit:?}")).next();
        let capped = self.config.enforce && self.above_cap(agent, cost, now);
        over.or_else(|| capped.then(|| format!("the cap {:?}", self.config.agents)))
    }

    /// Whether a call is above any limit or cap if every refund came too late.
    pub(crate) fn possibly_over(&self, agent: usize, cost: &Amounts, now: Instant) -> bool {
        let mut limits = self.config.limits.iter();
        let over = limits.any(|limit| {
            let bucket = matches!(limit.rule, Rule::Bucket { .. });
            if bucket && self.indebted {
                return true;
            }
            let figure = |charge: &Charge| if bucket { charge.gross } else { charge.units };
            self.is_over(limit, cost, now, false, figure)
        });
        // Many charges of one agent are remembered in slices, which count a little longer.
        let own = self.charges.iter().filter(|charge| charge.agent == agent).count();
        over || self.above_cap(agent, cost, now) || agent == CAPPED && own > 14
    }

    fn is_over(
        &self,
        limit: &Limit,
        cost: &Amounts,
        now: Instant,
        certain: bool,
        figure: impl Fn(&Charge) -> u64,
    ) -> bool {
        let id = limit.id();
        let Some(unit) = id.unit() else {
            return self.calls.len() as u64 + 1 > limit.stated();
        };
        let need = cost.of(unit).unwrap_or(0);
        let held = self.held(unit, |_| true);
        let length = id.period().unwrap_or_default() + self.config.slack;
        let bucket = matches!(limit.rule, Rule::Bucket { .. });
        let counts = |charge: &&Charge| !charge.forgotten || bucket && !certain;
        let charges = self.charges.iter().filter(|charge| charge.unit == *unit).filter(counts);
        match limit.rule {
            Rule::Bucket { amount, burst, .. } => {
                let per = u128::from(length.0);
                let (mut missing, mut at) = (0_u128, Instant(0));
                let charged = charges.map(|charge| (charge.at, figure(charge)));
                // Nothing that was used in shadow mode is a debt.
                let mut all: Vec<(Instant, u64, bool)> =
                    charged.map(|(at, units)| (at, units, false)).collect();
                all.push((self.enforced, 0, true));
                // What was charged at that very instant may have come before it or after.
                all.sort_by_key(|(at, _, forgiven)| (*at, *forgiven == certain));
                for (then, units, forgiven) in all {
                    let refill = u128::from(then.since(at).0) * u128::from(amount);
                    missing = missing.saturating_sub(refill) + u128::from(units) * per;
                    if forgiven && missing > u128::from(burst) * per {
                        missing = u128::from(burst) * per;
                    }
                    at = then;
                }
                let refill = u128::from(now.since(at).0) * u128::from(amount);
                let missing = missing.saturating_sub(refill).div_ceil(per);
                need > 0 && missing + u128::from(held + need) > u128::from(burst)
            }
            _ => {
                let young = charges.filter(|charge| now < charge.at + length);
                need > 0 && young.map(figure).sum::<u64>() + held + need > limit.stated()
            }
        }
    }

    /// Whether more is missing from a bucket than it holds.
    fn owes(&self, limit: &Limit, now: Instant) -> bool {
        let id = limit.id();
        let nothing = id.unit().map(|unit| Amounts::new([(unit.clone(), 1)]).expect("one unit"));
        let more = |cost: &Amounts| {
            let Rule::Bucket { unit, amount, period, burst } = limit.rule.clone() else {
                return false;
            };
            let deeper = Limit {
                rule: Rule::Bucket { unit, amount, period, burst: burst + 1 },
                ..limit.clone()
            };
            self.is_over(&deeper, cost, now, false, |charge| charge.gross)
        };
        nothing.as_ref().is_some_and(more)
    }

    fn above_cap(&self, agent: usize, cost: &Amounts, now: Instant) -> bool {
        let caps = self.config.agents.iter().flat_map(|rule| &rule.caps);
        agent == CAPPED
            && caps.into_iter().any(|cap| match (&cap.of, cap.portion) {
                (LimitSelector::Unit(unit), Portion::Rate { amount, period }) => {
                    let length = period + self.config.slack;
                    self.used_by(agent, unit, length, now) + cost.of(unit).unwrap_or(0) > amount
                        && cost.of(unit).unwrap_or(0) > 0
                }
                _ => self.config.limits.iter().any(|limit| {
                    let most = cap.of_limit(limit).unwrap_or(u64::MAX).max(1);
                    let id = limit.id();
                    let Some(unit) = id.unit() else {
                        let own =
                            self.calls.iter().filter(|call| call.agent == agent).count() as u64;
                        return own + 1 > most;
                    };
                    let need = cost.of(unit).unwrap_or(0);
                    let length = id.period().unwrap_or_default() + self.config.slack;
                    need > 0 && self.used_by(agent, unit, length, now) + need > most
                }),
            })
    }

    fn used_by(&self, agent: usize, unit: &Unit, length: Span, now: Instant) -> u64 {
        let own = self.charges.iter().filter(|c| c.agent == agent && c.unit == *unit);
        let own = own.filter(|charge| !charge.forgotten);
        let young = own.filter(|charge| now < charge.at + length).map(|charge| charge.units);
        young.sum::<u64>() + self.held(unit, |call| call.agent == agent)
    }

    fn held(&self, unit: &Unit, whose: impl Fn(&Call) -> bool) -> u64 {
        let end = charged(unit) == Charged::End;
        let calls = self.calls.iter().filter(|call| end && whose(call));
        calls.map(|call| call.cost.of(unit).unwrap_or(0)).sum()
    }

    fn forget(&mut self, now: Instant) {
        let spans = &self.spans;
        for charge in &mut self.charges {
            let span = spans.iter().find(|(unit, ..)| *unit == charge.unit);
            let kept =
                span.is_some_and(|(.., now_for, before)| now < charge.at + *now_for.max(before));
            charge.forgotten |= !kept;
        }
    }

    /// Each unit that is limited or capped, and how long a charge of it can matter.
    fn longest(&self) -> Vec<(Unit, Span)> {
        let slack = self.config.slack;
        let mut all: Vec<(Unit, Span)> = Vec::new();
        let mut add =
            |unit: &Unit, span: Span| match all.iter_mut().find(|(known, _)| known == unit) {
                Some((_, longest)) => *longest = span.max(*longest),
                None => all.push((unit.clone(), span)),
            };
        for limit in &self.config.limits {
            let id = limit.id();
            let (Some(unit), Some(period)) = (id.unit(), id.period()) else { continue };
            let periods = match limit.rule {
                Rule::Bucket { amount, burst, .. } => burst.div_ceil(amount).max(1),
                _ => 1,
            };
            add(unit, Span((period + slack).0 * periods));
            // A pace counts grants, which are remembered apart from what is charged at the end.
            if charged(unit) == Charged::Start {
                add(unit, limit.pace.unwrap_or_default());
            }
        }
        for cap in self.config.agents.iter().flat_map(|rule| &rule.caps) {
            if let (LimitSelector::Unit(unit), Portion::Rate { period, .. }) =
                (&cap.of, cap.portion)
            {
                add(unit, period + slack);
            }
        }
        all
    }
}

/// When a unit is charged in these scenes.
fn charged(unit: &Unit) -> Charged {
    if *unit == Unit::OutputTokens { Charged::End } else { Charged::Start }
}
