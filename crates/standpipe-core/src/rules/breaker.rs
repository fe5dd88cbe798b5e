//! The breaker: forecasts from the current burn rate whether calls will have to wait.
//!
//! It never refuses a call. It only advises callers to request fewer units or to use another pool.

use crate::bounds;
use crate::config::LimitId;
use crate::config::compiled::ConstraintKind;
use crate::event::Reserve;
use crate::id::ConstraintId;
use crate::lease::admission::Candidate;
use crate::outcome::Notice;
use crate::provider::return_windows::Probe;
use crate::state::State;
use crate::time::{Instant, Span};
use crate::usage::view::Counted;

/// The shortest wait that causes advice, and the interval over which the burn rate is measured.
pub(crate) const HORIZON: Span = Span::secs(5);

/// The number of tickets that a forecast takes into account.
const MAX_TICKETS: usize = 32;

/// The advice for a caller whose call would have to wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The forecast wait of the call.
    pub wait: Span,
    /// The limit it would wait for.
    pub limit: LimitId,
    /// The units of that limit that would be admitted without a wait.
    pub fits: u64,
}

/// The state of the circuit breaker of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaker {
    /// Calls are admitted.
    Closed,
    /// Calls are admitted, but forecast to have to wait soon.
    PreEmptive,
    /// No call is admitted: the pool is paused or in the terminal state.
    Open,
    /// One probe is admitted, and the others wait for its answer.
    HalfOpen,
}

impl Breaker {
    /// Returns the name of the state, the same in every API, view and metric.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::PreEmptive => "pre_emptive",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

impl State {
    /// Returns the state of the breaker. A forecast is void once the pool was unused for 5 s.
    #[must_use]
    pub fn breaker(&self, now: Instant) -> Breaker {
        if self.facts.pause.is_some() || self.facts.terminal.is_some() {
            Breaker::Open
        } else if self.facts.returning.probe != Probe::Over {
            Breaker::HalfOpen
        } else if self.facts.pre_emptive && now < self.facts.used + HORIZON {
            Breaker::PreEmptive
        } else {
            Breaker::Closed
        }
    }

    /// Returns advice for a call, or `None` if it would not wait long.
    #[must_use]
    pub fn advise(&self, reserve: &Reserve, now: Instant) -> Option<Advice> {
        let now = now.max(self.facts.clock);
        let cost = self.completed_cost(reserve);
        self.breaker_advice(&self.newcomer(reserve, &cost, now), now)
    }

    /// The advice of the limit with the longest wait.
    fn breaker_advice(&self, candidate: &Candidate<'_>, now: Instant) -> Option<Advice> {
        let enabled = self.facts.config.as_ref().is_some_and(|config| config.policy.breaker);
        if !enabled {
            return None;
        }
        let constraints = self.index.compiled.constraints.ids();
        let advice =
            constraints.filter_map(|constraint| self.breaker_advice_on(candidate, constraint, now));
        advice.max_by_key(|advice| advice.wait)
    }

    /// Forecasts the wait on one constraint, if others go on as in the last [`HORIZON`] and all
    /// waiting tickets are served first.
    fn breaker_advice_on(
        &self,
        candidate: &Candidate<'_>,
        constraint: ConstraintId,
        now: Instant,
    ) -> Option<Advice> {
        let declared = &self.index.compiled.constraints[constraint];
        let need = declared.need(candidate.cost);
        if need == 0 || declared.kind != ConstraintKind::Rate || need > declared.spec.effective {
            return None;
        }
        let usage = self.usage(constraint);
        let taken = usage.taken_at(now);
        let free = declared.spec.effective.saturating_sub(taken);
        // A cheap test for the common case: nobody waits, and there is room even if everything that
        // counts now is used once more.
        if self.facts.tickets.is_empty() && need.saturating_add(taken) <= free {
            return None;
        }
        let burnt = match usage.counted {
            Counted::Window { .. } => usage.history.charged_since(now - HORIZON),
            _ => 0,
        };
        // The next one: there is room for all tickets.
        let demand = need.saturating_add(self.index.demand[constraint]);
        if demand.saturating_add(burnt) <= free {
            return None;
        }
        // Behind this many tickets the wait is long in any case.
        let first = self.facts.tickets.values().take(MAX_TICKETS);
        let waiting = first.map(|ticket| declared.need(&ticket.call.cost));
        let waiting = waiting.fold(0, u64::saturating_add).min(bounds::AMOUNT);
        let competing = burnt.saturating_add(waiting);
        let want = need.saturating_add(competing).min(declared.spec.effective);
        // Nobody knows when calls in flight end, so a wait for them causes no advice.
        let fits_from = Some(usage.fits_from(want, now)).filter(|at| *at != Instant::NEVER)?;
        let wait = fits_from.since(now);
        let limit = declared.id.clone();
        let fits = free.saturating_sub(competing).min(need);
        (wait > HORIZON).then_some(Advice { wait, limit, fits })
    }

    /// Updates the pre-emptive state with the forecast of a reserve, and reports a change.
    pub(crate) fn look_ahead(&mut self, candidate: &Candidate<'_>, now: Instant) {
        let on = self.breaker_advice(candidate, now).is_some();
        if self.facts.pre_emptive != on {
            self.facts.pre_emptive = on;
            self.effects.notices.push(Notice::Breaker { on });
        }
    }
}
