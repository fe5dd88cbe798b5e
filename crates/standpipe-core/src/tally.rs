//! One thing that is counted: a limit of the pool, a gate, or the meter of one agent.
//!
//! A tally knows how much of it is used and held, and when time alone brings room. It does not know
//! who asks, who waits, or what is kept for whom.

use crate::bucket::{Bucket, Refill};
use crate::config::Charged;
use crate::event::Key;
use crate::time::{Instant, Span};
use crate::window::Window;

/// What is known of one thing that is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tally {
    /// What was charged.
    pub count: Count,
    /// Units of calls in flight that are not charged yet.
    pub held: u64,
    /// The provider's own window, where it announces one.
    pub reset: Option<Reset>,
    /// Nothing is known of the calls in flight before then.
    pub learning: Option<Instant>,
}

/// How it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// In a rolling period.
    Window(Window),
    /// In a bucket.
    Bucket(Bucket),
    /// In flight only.
    Slots,
    /// A least time between two grants; counts as a limit of one.
    Gate {
        /// The last grant.
        last: Option<Instant>,
    },
}

/// The end of a provider's fixed window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reset {
    /// When it ends, as announced.
    pub at: Instant,
    /// What came of it.
    pub phase: ResetPhase,
}

/// What came of an announced reset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetPhase {
    /// It lies ahead.
    Announced,
    /// It has passed; the units of calls that were under way then may count in the new window.
    Passed {
        /// Those units.
        carried: u64,
    },
    /// One call was let through to see.
    Probing {
        /// See [`ResetPhase::Passed`].
        carried: u64,
        /// The call.
        probe: Key,
    },
    /// The probe is back and showed nothing.
    Spent {
        /// See [`ResetPhase::Passed`].
        carried: u64,
    },
}

/// What the configuration says of one tally, worked out once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// The most one call can ever take.
    pub(crate) stated: u64,
    /// What is used of that.
    pub(crate) effective: u64,
    /// The period, slack included; for a gate, its gap.
    pub(crate) period: Span,
    /// What a bucket regains per period.
    pub(crate) refill: u64,
    pub(crate) charged: Charged,
    /// How long after an announced reset a probe may go.
    pub(crate) slack: Span,
}

/// A lease's hold on a tally and when it ends by itself, for looking ahead.
pub(crate) struct Holding {
    pub(crate) ends: Instant,
    pub(crate) units: u64,
}

impl Tally {
    pub(crate) const fn new(count: Count) -> Self {
        Self { count, held: 0, reset: None, learning: None }
    }

    /// What counts as taken at an instant: charged and held.
    pub(crate) fn taken_at(&self, now: Instant, spec: &Spec) -> u64 {
        let charged = match &self.count {
            Count::Window(window) => window.used_at(now, spec.period),
            Count::Bucket(bucket) => bucket.used_at(now, spec.as_refill()),
            Count::Slots => 0,
            Count::Gate { last } => {
                let shut = last.is_some_and(|last| now < last + spec.period);
                u64::from(shut)
            }
        };
        charged.saturating_add(self.held)
    }

    /// The units that are free at an instant.
    pub(crate) fn free_at(&self, now: Instant, spec: &Spec) -> u64 {
        if self.learning.is_some_and(|until| now < until) {
            return 0;
        }
        spec.effective.saturating_sub(self.taken_at(now, spec))
    }

    /// Whether one call may be let through although there is no room: the provider's window should
    /// have begun anew, and its answer will tell.
    pub(crate) fn probe_open_at(&self, now: Instant, spec: &Spec) -> bool {
        self.probe_opens(spec).is_some_and(|opens| now >= opens)
    }

    /// Whether nothing at all is taken: then a call above the effective limit may pass alone.
    pub(crate) fn is_empty_at(&self, now: Instant, spec: &Spec) -> bool {
        self.taken_at(now, spec) == 0
    }

    /// When a call of so many units will be let through as a probe, because there is no room then.
    pub(crate) fn probed_from(&self, need: u64, from: Instant, spec: &Spec) -> Option<Instant> {
        let opens = self.probe_opens(spec)?.max(from);
        (need > self.free_at(opens, spec)).then_some(opens)
    }

    fn probe_opens(&self, spec: &Spec) -> Option<Instant> {
        let reset = self.reset.as_ref()?;
        let open = matches!(reset.phase, ResetPhase::Announced | ResetPhase::Passed { .. });
        open.then(|| reset.at + spec.slack)
    }

    /// The next instant at which time alone gives room. For a bucket that depends on how much is
    /// wanted.
    pub(crate) fn next_room(&self, want: u64, now: Instant, spec: &Spec) -> Option<Instant> {
        let by_count = match &self.count {
            Count::Window(window) => window.next_ageing(spec.period),
            Count::Bucket(bucket) => {
                let allowed = spec.effective.saturating_sub(want.saturating_add(self.held));
                Some(bucket.falls_to(allowed, now, spec.as_refill()))
            }
            Count::Slots => None,
            Count::Gate { last } => last.map(|last| last + spec.period),
        };
        let all = [by_count, self.probe_opens(spec), self.learning];
        all.into_iter().flatten().filter(|at| *at > now).min()
    }

    /// The first instant from `from` on at which `need` units fit, if only time passes and nobody
    /// else asks. A probe that may be sent is not in it.
    ///
    /// `holdings` are what leases hold of it, in the order in which they end.
    pub(crate) fn fits_from<I: IntoIterator<Item = Holding>>(
        &self,
        need: u64,
        from: Instant,
        spec: &Spec,
        holdings: impl FnOnce() -> I,
    ) -> Instant {
        let from = from.max(self.learning.unwrap_or(from));
        // A call above the effective limit is allowed nothing beside it.
        let allowed = spec.effective.saturating_sub(need);
        if self.held <= allowed {
            // Holdings that end are charged at once: what is taken does not fall by their ending.
            self.charged_falls_to(allowed - self.held, from, spec)
        } else {
            self.fits_as_holdings_end(allowed, from, spec, holdings())
        }
    }

    fn charged_falls_to(&self, allowed: u64, from: Instant, spec: &Spec) -> Instant {
        match &self.count {
            Count::Window(window) => window.falls_to(allowed, from, spec.period),
            Count::Bucket(bucket) => bucket.falls_to(allowed, from, spec.as_refill()),
            Count::Slots => from,
            Count::Gate { last } => last.map_or(from, |last| from.max(last + spec.period)),
        }
    }

    /// As holdings end their units are charged then, or given back where only flight counts.
    fn fits_as_holdings_end(
        &self,
        allowed: u64,
        mut from: Instant,
        spec: &Spec,
        holdings: impl IntoIterator<Item = Holding>,
    ) -> Instant {
        let mut ahead = self.clone();
        for Holding { ends, units } in holdings {
            if ahead.held <= allowed {
                let fits = ahead.charged_falls_to(allowed - ahead.held, from, spec);
                if fits <= ends {
                    return fits;
                }
            }
            ahead.holding_ends(ends, units, spec);
            from = from.max(ends);
        }
        ahead.charged_falls_to(allowed.saturating_sub(ahead.held), from, spec)
    }

    /// A lease that held so much ends by itself: that is charged then.
    pub(crate) fn holding_ends(&mut self, ends: Instant, units: u64, spec: &Spec) {
        self.expire(ends, spec);
        self.held = self.held.saturating_sub(units);
        self.charge(ends, units, spec);
    }

    /// Charges units now; answers the mark for a later refund.
    pub(crate) fn charge(&mut self, now: Instant, units: u64, spec: &Spec) -> u64 {
        match &mut self.count {
            Count::Window(window) => window.charge(now, units, spec.period).0,
            Count::Bucket(bucket) => bucket.charge(now, units, spec.as_refill()),
            Count::Slots => 0,
            Count::Gate { last } => {
                *last = Some(now);
                0
            }
        }
    }

    /// Gives units back that were charged under a mark.
    pub(crate) fn refund(&mut self, now: Instant, mark: u64, units: u64, spec: &Spec) -> u64 {
        match &mut self.count {
            Count::Window(window) => window.refund(Instant(mark), units),
            Count::Bucket(bucket) => bucket.refund(now, mark, units, spec.as_refill()),
            Count::Slots | Count::Gate { .. } => 0,
        }
    }

    /// Forgets what no longer counts.
    pub(crate) fn expire(&mut self, now: Instant, spec: &Spec) {
        if let Count::Window(window) = &mut self.count {
            window.expire(now, spec.period);
        }
        if self.learning.is_some_and(|until| now >= until) {
            self.learning = None;
        }
    }

    /// Everything counts as taken and comes back by itself: nothing is known any more.
    pub(crate) fn assume_full(&mut self, now: Instant, lease_ttl: Span, spec: &Spec) {
        match &mut self.count {
            Count::Window(window) => window.assume_full(now, spec.effective, spec.period),
            Count::Bucket(bucket) => bucket.assume_empty(now, spec.effective, spec.as_refill()),
            Count::Slots => self.learning = Some(now + lease_ttl),
            Count::Gate { last } => *last = Some(now),
        }
    }
}

impl Spec {
    pub(crate) const fn as_refill(&self) -> Refill {
        Refill { amount: self.refill, period: self.period }
    }
}
