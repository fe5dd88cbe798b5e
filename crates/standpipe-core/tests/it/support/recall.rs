//! What the oracle remembers for a changed configuration: charges, for the longest period of their
//! unit in this configuration and the one before.

use std::collections::BTreeMap;

use standpipe_core::{Instant, PoolConfig, Rule, Span, Unit};

use super::book::Book;
use super::mark::{Change, Tank};

/// How long charges are remembered, and what is forgotten already.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recall {
    /// By unit: the longest period in the present configuration, and in the one before.
    spans: BTreeMap<Unit, (Span, Span)>,
    /// By unit: what was charged at this instant or before is forgotten.
    forgotten: BTreeMap<Unit, Instant>,
}

impl Recall {
    /// At the beginning there was no configuration before.
    pub(crate) fn of(book: &Book) -> Self {
        let spans = book.spans().into_iter().map(|(unit, span)| (unit, (span, Span::ZERO)));
        Self { spans: spans.collect(), forgotten: BTreeMap::new() }
    }

    /// Forgets what is too old.
    pub(crate) fn forget(&mut self, now: Instant) {
        for (unit, (present, before)) in &self.spans {
            let kept_for = *present.max(before);
            if now.0 >= kept_for.0 {
                let forgotten = self.forgotten.entry(unit.clone()).or_default();
                *forgotten = (*forgotten).max(now - kept_for);
            }
        }
    }

    fn rotate(&mut self, present: &BTreeMap<Unit, Span>) {
        for (present, before) in self.spans.values_mut() {
            (*before, *present) = (*present, Span::ZERO);
        }
        for (unit, span) in present {
            self.spans.entry(unit.clone()).or_default().0 = *span;
        }
    }
}

impl Book {
    /// A configuration comes into force: a bucket whose rule changed counts what is remembered as
    /// if it had always been so. A debt that may be older stays.
    pub(crate) fn reconfigure(&mut self, config: PoolConfig) {
        self.recall.forget(self.now);
        let before = self.clone();
        self.config = config;
        for limit in 0..self.config.limits.len() {
            let rule = &self.config.limits[limit].rule;
            if matches!(rule, Rule::Bucket { .. }) && *rule != before.config.limits[limit].rule {
                self.tanks[limit] = self.refilled_anew(limit, &before);
            }
        }
        let spans = self.spans();
        self.recall.rotate(&spans);
    }

    fn refilled_anew(&self, limit: usize, before: &Self) -> Tank {
        let unit = self.config.limits[limit].id().unit().cloned().expect("a bucket counts one");
        let forgotten = self.recall.forgotten.get(&unit).copied();
        let mut charges = Vec::new();
        for (call, known) in self.calls.iter().enumerate() {
            let own = known.marks[limit].charges.iter();
            charges.extend(own.map(|charge| (charge.at, call, charge.units)));
        }
        charges.retain(|(at, ..)| forgotten.is_none_or(|forgotten| *at > forgotten));
        charges.sort();
        let (flow, mut tank) = (self.flow(limit), Tank::default());
        for (at, call, charged) in charges {
            tank.advance(at, flow);
            tank.change(call, Change { charged, back: 0 }, flow);
        }
        tank.advance(self.now, flow);
        let old = before.flow(limit);
        let units = |tank: &Tank, per: i128| (tank.missing() + per - 1).div_euclid(per);
        let owed = units(&before.tanks[limit], old.per);
        let counted = units(&tank, flow.per);
        if owed > i128::from(before.effective(limit)) && owed > counted {
            let charged = u64::try_from(owed - counted).expect("small");
            tank.change(usize::MAX, Change { charged, back: 0 }, flow);
        }
        tank
    }

    /// By unit: how long a charge can matter.
    fn spans(&self) -> BTreeMap<Unit, Span> {
        let mut spans: BTreeMap<Unit, Span> = BTreeMap::new();
        for limit in &self.config.limits {
            let Some(unit) = limit.id().unit().cloned() else { continue };
            let period = limit.id().period().unwrap_or_default() + self.config.slack;
            let periods = match limit.rule {
                Rule::Bucket { amount, burst, .. } => {
                    self.share(burst).div_ceil(self.share(amount)).max(1)
                }
                _ => 1,
            };
            let span = Span(period.0 * periods).max(limit.pace.unwrap_or_default());
            let longest = spans.entry(unit).or_default();
            *longest = span.max(*longest);
        }
        spans
    }
}
