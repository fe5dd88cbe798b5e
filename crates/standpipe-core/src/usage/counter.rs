//! A counter: the use of one limit, gate, floor or cap.
//!
//! It knows how much is charged and held, and when time alone frees units. It does not know who
//! asks, who waits, or what is kept for whom.

use crate::config::Charged;
use crate::event::Key;
use crate::time::{Instant, Span};
use crate::usage::bucket::{Bucket, Refill};
use crate::usage::window::Window;

/// The use of one limit, gate, floor or cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageCounter {
    /// The units charged.
    pub count: Count,
    /// Units of calls in flight that are not charged yet.
    pub held: u64,
    /// The provider's own window, if it announces one.
    pub reset: Option<Reset>,
    /// Calls in flight are unknown before then, because state was lost.
    pub learning: Option<Instant>,
}

/// How units are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// In a rolling window.
    Window(Window),
    /// In a bucket.
    Bucket(Bucket),
    /// In flight only.
    Slots,
    /// A minimum gap between two grants; counts as a limit of one.
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
    /// What has happened since.
    pub phase: ResetPhase,
}

/// What has happened since a reset was announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetPhase {
    /// It lies ahead.
    Announced,
    /// It has passed. Calls that were in flight may count in the new window.
    Passed {
        /// The units of those calls.
        carried: u64,
    },
    /// One call was admitted as a probe.
    Probing {
        /// See [`ResetPhase::Passed`].
        carried: u64,
        /// The probe.
        probe: Key,
    },
    /// The probe was answered and showed no new window.
    Spent {
        /// See [`ResetPhase::Passed`].
        carried: u64,
    },
}

/// What the configuration says of one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CounterSpec {
    /// The most that one call can ever take.
    pub(crate) stated: u64,
    /// What is usable of that.
    pub(crate) effective: u64,
    /// The period including slack; for a gate, its gap.
    pub(crate) period: Span,
    /// What a bucket regains per period.
    pub(crate) refill: u64,
    pub(crate) charged: Charged,
    /// How long after an announced reset a probe may be sent.
    pub(crate) slack: Span,
}

impl UsageCounter {
    pub(crate) const fn new(count: Count) -> Self {
        Self { count, held: 0, reset: None, learning: None }
    }

    /// The units charged and held at an instant.
    pub(crate) fn taken_at(&self, now: Instant, spec: &CounterSpec) -> u64 {
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
    pub(crate) fn free_at(&self, now: Instant, spec: &CounterSpec) -> u64 {
        if self.learning.is_some_and(|until| now < until) {
            return 0;
        }
        spec.effective.saturating_sub(self.taken_at(now, spec))
    }

    /// Whether one call may pass without room: the provider's window should have reset, and the
    /// answer will show it.
    pub(crate) fn probe_open_at(&self, now: Instant, spec: &CounterSpec) -> bool {
        self.probe_opens(spec).is_some_and(|opens| now >= opens)
    }

    /// Whether nothing is charged or held: then a call above the effective limit may pass alone.
    pub(crate) fn is_empty_at(&self, now: Instant, spec: &CounterSpec) -> bool {
        self.taken_at(now, spec) == 0
    }

    /// When a call of `need` units passes as a probe, because there is no room then.
    pub(crate) fn probed_from(
        &self,
        need: u64,
        from: Instant,
        spec: &CounterSpec,
    ) -> Option<Instant> {
        let opens = self.probe_opens(spec)?.max(from);
        (need > self.free_at(opens, spec)).then_some(opens)
    }

    fn probe_opens(&self, spec: &CounterSpec) -> Option<Instant> {
        let reset = self.reset.as_ref()?;
        let open = matches!(reset.phase, ResetPhase::Announced | ResetPhase::Passed { .. });
        open.then(|| reset.at + spec.slack)
    }

    /// The next instant at which time alone frees units. In a bucket it depends on how many are
    /// wanted.
    pub(crate) fn next_room(&self, want: u64, now: Instant, spec: &CounterSpec) -> Option<Instant> {
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

    /// The first instant from `from` on at which `need` units fit if only time passes;
    /// [`Instant::NEVER`] if calls in flight hold them. Probes are not considered.
    pub(crate) fn fits_from(&self, need: u64, from: Instant, spec: &CounterSpec) -> Instant {
        let from = from.max(self.learning.unwrap_or(from));
        // A call above the effective limit needs the counter to be empty.
        match spec.effective.saturating_sub(need).checked_sub(self.held) {
            Some(allowed) => self.charged_falls_to(allowed, from, spec),
            None => Instant::NEVER,
        }
    }

    fn charged_falls_to(&self, allowed: u64, from: Instant, spec: &CounterSpec) -> Instant {
        match &self.count {
            Count::Window(window) => window.falls_to(allowed, from, spec.period),
            Count::Bucket(bucket) => bucket.falls_to(allowed, from, spec.as_refill()),
            Count::Slots => from,
            Count::Gate { last } => last.map_or(from, |last| from.max(last + spec.period)),
        }
    }

    /// Charges units now and returns the handle for a refund.
    pub(crate) fn charge(&mut self, now: Instant, units: u64, spec: &CounterSpec) -> u64 {
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

    /// Refunds units that were charged under a handle.
    pub(crate) fn refund(
        &mut self,
        now: Instant,
        mark: u64,
        units: u64,
        spec: &CounterSpec,
    ) -> u64 {
        match &mut self.count {
            Count::Window(window) => window.refund(Instant(mark), units),
            Count::Bucket(bucket) => bucket.refund(now, mark, units, spec.as_refill()),
            Count::Slots | Count::Gate { .. } => 0,
        }
    }

    /// Drops what no longer counts.
    pub(crate) fn expire(&mut self, now: Instant, spec: &CounterSpec) {
        if let Count::Window(window) = &mut self.count {
            window.expire(now, spec.period);
        }
        if self.learning.is_some_and(|until| now >= until) {
            self.learning = None;
        }
    }

    /// Lets a bucket that is in debt count as empty.
    pub(crate) fn forgive_debt(&mut self, now: Instant, spec: &CounterSpec) {
        if let Count::Bucket(bucket) = &mut self.count {
            bucket.forgive_debt(now, spec.effective, spec.as_refill());
        }
    }

    /// Counts everything as used after a loss of state; it returns over time.
    pub(crate) fn assume_full(&mut self, now: Instant, lease_ttl: Span, spec: &CounterSpec) {
        match &mut self.count {
            Count::Window(window) => window.assume_full(now, spec.effective, spec.period),
            Count::Bucket(bucket) => bucket.assume_empty(now, spec.effective, spec.as_refill()),
            Count::Slots => self.learning = Some(now + lease_ttl),
            Count::Gate { last } => *last = Some(now),
        }
    }
}

impl CounterSpec {
    /// How long a charge can matter: one period, or until a bucket is refilled.
    pub(crate) fn remembers(&self) -> Span {
        let periods = self.effective.div_ceil(self.refill.max(1)).max(1);
        let periods = if self.refill == 0 { 1 } else { periods };
        Span(self.period.0.saturating_mul(periods))
    }

    pub(crate) const fn as_refill(&self) -> Refill {
        Refill { amount: self.refill, period: self.period }
    }
}
