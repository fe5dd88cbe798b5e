//! How much of a limit, gate, floor or cap is used at an instant, and when time alone frees units.
//!
//! It does not know who asks, who waits, or what is kept for whom.

use crate::config::compiled::{AgentUsage, ConstraintKind, UsageOf};
use crate::config::{LimitId, mul_div};
use crate::id::{AgentId, ConstraintId};
use crate::state::State;
use crate::time::Instant;
use crate::usage::bucket::Bucket;
use crate::usage::calendar::PendingReset;
use crate::usage::counter::{Began, Count, CounterSpec, Reset, ResetPhase};
use crate::usage::history::History;

/// The use of one limit, gate, floor or cap.
#[derive(Clone, Copy)]
pub(crate) struct UsageView<'a> {
    pub(crate) spec: &'a CounterSpec,
    pub(crate) counted: Counted<'a>,
    /// The charges of the unit it counts.
    pub(crate) history: &'a History,
    /// Units of calls in flight that are not charged yet; for slots, those in use.
    pub(crate) held: u64,
    /// The provider's own window, if it announces one.
    pub(crate) reset: Option<&'a Reset>,
    /// The next reset of a calendar window, if it is known.
    pub(crate) pending: Option<PendingReset<'a>>,
}

/// Where charged units are counted.
#[derive(Clone, Copy)]
pub(crate) enum Counted<'a> {
    /// The last period of a history.
    Window {
        began: Option<Began>,
        /// When the store lost the pool's state. Then everything counts as used and returns evenly
        /// over one period.
        lost: Option<Instant>,
    },
    Bucket(&'a Bucket),
    /// Only what is held. Calls in flight are unknown before an instant after a loss of state.
    Slots {
        unknown_until: Option<Instant>,
    },
    /// The last grant.
    Pace {
        last: Option<Instant>,
    },
}

impl UsageView<'_> {
    /// The units charged and held at an instant.
    pub(crate) fn taken_at(&self, now: Instant) -> u64 {
        self.charged_at(now).saturating_add(self.held)
    }

    /// The units charged at an instant.
    pub(crate) fn charged_at(&self, now: Instant) -> u64 {
        let period = self.spec.period;
        match self.counted {
            Counted::Window { began, lost } => {
                let began = self.began_by(now).or(began);
                let from = began.map_or(Instant(0), |began| began.at);
                let used = self.history.sum_after(|stamp| stamp + period <= now || stamp < from);
                if began.is_none() && lost.is_none() {
                    return used;
                }
                let carried = began.filter(|began| now < began.at + period);
                used.saturating_add(carried.map_or(0, |began| began.carried))
                    .saturating_add(self.assumed_at(now, lost))
            }
            Counted::Bucket(bucket) => bucket.used_at(now, self.spec.as_refill()),
            Counted::Slots { .. } => 0,
            Counted::Pace { last } => u64::from(last.is_some_and(|last| now < last + period)),
        }
    }

    /// The calendar window that will have begun by an instant.
    fn began_by(&self, now: Instant) -> Option<Began> {
        self.pending.and_then(|pending| pending.began_by(now, self.history))
    }

    /// What counts as used because the state was lost.
    fn assumed_at(&self, now: Instant, lost: Option<Instant>) -> u64 {
        let Some(lost) = lost else { return 0 };
        let returned = mul_div(self.spec.effective, now.since(lost).0, self.spec.period.0);
        self.spec.effective.saturating_sub(returned)
    }

    /// The units that are free at an instant.
    pub(crate) fn free_at(&self, now: Instant) -> u64 {
        if self.unknown_until().is_some_and(|until| now < until) {
            return 0;
        }
        self.spec.effective.saturating_sub(self.taken_at(now))
    }

    /// Calls in flight are unknown before then.
    pub(crate) const fn unknown_until(&self) -> Option<Instant> {
        match self.counted {
            Counted::Slots { unknown_until } => unknown_until,
            _ => None,
        }
    }

    /// Whether one call may pass without room: the provider's window should have reset, and the
    /// answer will show it.
    pub(crate) fn probe_open_at(&self, now: Instant) -> bool {
        self.probe_opens().is_some_and(|opens| now >= opens)
    }

    /// Whether nothing is charged or held: then a call above the effective limit may pass alone.
    pub(crate) fn is_empty_at(&self, now: Instant) -> bool {
        self.taken_at(now) == 0
    }

    /// When a call of `need` units passes as a probe, because there is no room then.
    pub(crate) fn probed_from(&self, need: u64, from: Instant) -> Option<Instant> {
        let opens = self.probe_opens()?.max(from);
        (need > self.free_at(opens)).then_some(opens)
    }

    /// When one call may pass without room.
    pub(crate) fn probe_opens(&self) -> Option<Instant> {
        let reset = self.reset?;
        let open = matches!(reset.phase, ResetPhase::Announced | ResetPhase::Passed { .. });
        open.then(|| reset.at + self.spec.slack)
    }

    /// The next instant after `now` at which time alone lets `want` units fit, or may.
    pub(crate) fn next_room(&self, want: u64, now: Instant) -> Option<Instant> {
        let fits = Some(self.fits_from(want, now)).filter(|at| *at != Instant::NEVER);
        let all = [fits, self.probe_opens(), self.unknown_until()];
        all.into_iter().flatten().filter(|at| *at > now).min()
    }

    /// The first instant from `from` on at which `need` units fit if only time passes;
    /// [`Instant::NEVER`] if calls in flight hold them. Probes are not considered.
    pub(crate) fn fits_from(&self, need: u64, from: Instant) -> Instant {
        let from = from.max(self.unknown_until().unwrap_or(from));
        // A call above the effective limit needs the counter to be empty.
        match self.spec.effective.saturating_sub(need).checked_sub(self.held) {
            Some(allowed) => self.charged_falls_to(allowed, from),
            None => Instant::NEVER,
        }
    }

    /// The first instant from `from` on at which at most `allowed` units are charged.
    pub(crate) fn charged_falls_to(&self, allowed: u64, from: Instant) -> Instant {
        let period = self.spec.period;
        match self.counted {
            Counted::Bucket(bucket) => bucket.falls_to(allowed, from, self.spec.as_refill()),
            Counted::Slots { .. } => from,
            Counted::Pace { last } => last.map_or(from, |last| from.max(last + period)),
            Counted::Window { began, lost } => {
                if self.charged_at(from) <= allowed {
                    return from;
                }
                if lost.is_some_and(|lost| from < lost + period) {
                    return self.search(allowed, from);
                }
                if began.is_none() && self.pending.is_none() {
                    return self
                        .history
                        .falls_to(allowed)
                        .map_or(from, |stamp| stamp + period)
                        .max(from);
                }
                // Something expires at `stamp + period`, and nothing in between.
                let pending = self.pending.iter().flat_map(|own| own.changes(period));
                let ends = began.map(|began| began.at + period).into_iter().chain(pending);
                let resets = ends.filter(|at| *at > from);
                let resets = resets.filter(|at| self.charged_at(*at) <= allowed);
                let enough = |stamp: Instant| self.charged_at(stamp + period) <= allowed;
                let aged = self.history.first_stamp(enough).map(|stamp| stamp + period);
                resets.chain(aged).min().unwrap_or(from).max(from)
            }
        }
    }

    /// Searches the first instant at which at most `allowed` units are charged, where units also
    /// return between the samples of a history.
    fn search(&self, allowed: u64, from: Instant) -> Instant {
        let last = self.history.last_stamp().map_or(from, |stamp| stamp.max(from));
        let (mut over, mut under) = (from.0, (last + self.spec.period).0);
        while over + 1 < under {
            let middle = over.midpoint(under);
            if self.charged_at(Instant(middle)) <= allowed {
                under = middle;
            } else {
                over = middle;
            }
        }
        Instant(under)
    }

    /// When a history of this view changes next by itself, whoever asks.
    pub(crate) fn next_ageing(&self, now: Instant) -> Option<Instant> {
        let charged = self.charged_at(now).checked_sub(1)?;
        let at = self.charged_falls_to(charged, now);
        Some(at).filter(|at| *at != Instant::NEVER && *at > now)
    }
}

/// The history of agents that have none.
static NO_CHARGES: History = History::new();

impl State {
    /// The use of a constraint.
    #[inline]
    pub(crate) fn usage(&self, constraint: ConstraintId) -> UsageView<'_> {
        let declared = &self.index.compiled.constraints[constraint];
        let counter = &self.facts.counters[constraint];
        let unit = declared.unit.map(|unit| &self.facts.units[unit]);
        let held_of_unit = unit.map_or(0, |unit| unit.held);
        let history = unit.map_or(&NO_CHARGES, |unit| &unit.history);
        let lost = self.facts.state_lost_at;
        let (counted, held) = match &counter.count {
            Count::Window { began } => (Counted::Window { began: *began, lost }, held_of_unit),
            Count::Bucket(bucket) => (Counted::Bucket(bucket), held_of_unit),
            Count::Slots if declared.id == LimitId::Unanswered => {
                (Counted::Slots { unknown_until: None }, self.facts.unanswered.len() as u64)
            }
            Count::Slots => {
                let unknown_until = lost.map(|lost| lost + self.index.compiled.lease_ttl);
                (Counted::Slots { unknown_until }, self.index.slots)
            }
            Count::Pace { last } => (Counted::Pace { last: *last }, 0),
        };
        let (reset, pending) = (counter.reset.as_ref(), self.pending_reset(constraint, true));
        UsageView { spec: &declared.spec, counted, history, held, reset, pending }
    }

    /// An agent's own use of what it has a floor or a cap on.
    pub(crate) fn agent_usage<'a>(
        &'a self,
        agent: Option<AgentId>,
        usage: &'a AgentUsage,
    ) -> UsageView<'a> {
        if usage.kind(&self.index.compiled.constraints) == ConstraintKind::Slots {
            let held = agent.map_or(0, |at| self.index.agent_loads[at].slots);
            let counted = Counted::Slots { unknown_until: None };
            let history = &NO_CHARGES;
            let (reset, pending) = (None, None);
            return UsageView { spec: &usage.spec, counted, history, held, reset, pending };
        }
        let own = agent.zip(usage.unit_index);
        let own = own.and_then(|(agent, unit)| self.facts.agents[agent].units.row(unit));
        let history = own.map_or(&NO_CHARGES, |own| &own.history);
        let (began, pending) = self.agent_window(usage);
        let counted = Counted::Window { began, lost: None };
        let held = own.map_or(0, |own| own.held);
        UsageView { spec: &usage.spec, counted, history, held, reset: None, pending }
    }

    /// An agent's own use of a limit, with or without a floor or cap on it.
    pub(crate) fn agent_limit_usage(
        &self,
        agent: AgentId,
        constraint: ConstraintId,
    ) -> UsageView<'_> {
        let declared = &self.index.compiled.constraints[constraint];
        let spec = &declared.spec;
        if declared.kind == ConstraintKind::Slots {
            let held = self.index.agent_loads[agent].slots;
            let counted = Counted::Slots { unknown_until: None };
            let history = &NO_CHARGES;
            return UsageView { spec, counted, history, held, reset: None, pending: None };
        }
        let own = declared.unit.and_then(|unit| self.facts.agents[agent].units.row(unit));
        let history = own.map_or(&NO_CHARGES, |own| &own.history);
        let began = match self.facts.counters[constraint].count {
            // What the provider counted before the window is of no agent.
            Count::Window { began } => began.map(|began| Began { carried: 0, ..began }),
            _ => None,
        };
        let counted = Counted::Window { began, lost: None };
        let held = own.map_or(0, |own| own.held);
        let pending = self.pending_reset(constraint, false);
        UsageView { spec, counted, history, held, reset: None, pending }
    }

    /// The window in which the use of a floor or cap is counted: a calendar window is reset for
    /// agents as well.
    fn agent_window(&self, usage: &AgentUsage) -> (Option<Began>, Option<PendingReset<'_>>) {
        let UsageOf::Constraint(at) = usage.measures else { return (None, None) };
        let last = self.facts.counters[at].calendar.last;
        let began = last.map(|last| Began { at: last.counts_from(), carried: 0 });
        (began, self.pending_reset(at, false))
    }
}
