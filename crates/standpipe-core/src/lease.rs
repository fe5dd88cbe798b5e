//! Leases: what an admitted call holds, and how each of its charges is settled.
//!
//! A lease is a list of charges, one per counter it draws on. The functions here move units between
//! held, charged and returned on one counter. `settlement` and `expiry` decide which leases end
//! when.
//!
//! Invariant: a lease's share of a counter's `held` is [`Charge::holds`].

pub(crate) mod admission;
pub(crate) mod call;
pub(crate) mod expiry;
pub(crate) mod grant;
pub(crate) mod ids;
pub(crate) mod reserve;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod settlement;

use alloc::vec::Vec;

use crate::agents::agent::AgentId;
use crate::bounds;
use crate::config::{Charged, Priority};
use crate::lease::call::Call;
use crate::time::{Instant, Span};
use crate::usage::counter::{Count, CounterSpec, UsageCounter};

/// What an admitted call holds until it is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What ends the lease if nobody settles it.
    pub owner: LeaseOwner,
    /// The agent of the call.
    pub agent: AgentId,
    /// The tier in which it was admitted.
    pub tier: Priority,
    /// The cost and everything else the caller stated.
    pub call: Call,
    /// When it was admitted.
    pub started: Instant,
    /// The last sign of life: its start, or a commit of progress.
    pub progressed: Instant,
    /// One charge per counter it draws on.
    pub charges: Vec<Charge>,
}

/// What ends a lease when nobody settles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseOwner {
    /// The end of its session.
    Session(u64),
    /// A time to live of its own.
    Ttl {
        /// By how much a heartbeat extends it.
        ttl: Span,
        /// When it expires.
        expires: Instant,
    },
}

/// The part of a lease in one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Which counter.
    pub to: Target,
    /// When its units are charged, as configured when the lease began.
    pub when: Charged,
    /// The units reserved.
    pub estimate: u64,
    /// The units charged so far.
    pub charged: u64,
    /// Where the first charge is found for a refund.
    pub mark: u64,
    /// The final figure is known: it can grow, but nothing is refunded any more.
    pub known: bool,
    /// What was left of the stated limit after this charge.
    pub left: u64,
}

/// The counter a charge is made to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A constraint of the pool.
    Constraint(u8),
    /// A floor or cap of the lease's agent.
    Usage(u8),
    /// The history of a unit.
    Unit(u8),
    /// The history of a unit for the lease's agent alone.
    AgentUnit(u8),
}

impl Target {
    /// Whether it only remembers charges and limits nothing.
    pub(crate) const fn is_history(self) -> bool {
        matches!(self, Self::Unit(_) | Self::AgentUnit(_))
    }
}

/// How a lease's units are settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With the reported figures, at the estimate where none is reported.
    Used,
    /// At the estimate, because nobody reported.
    Lost,
    /// Refused by the provider: end-charged units were not used.
    Refused,
    /// Never sent: everything is returned.
    Cancelled,
}

impl LeaseOwner {
    /// A time to live if there is one, else the session.
    pub(crate) fn of(ttl: Option<Span>, session: u64, now: Instant) -> Self {
        match ttl.map(|ttl| ttl.min(bounds::SPAN)) {
            Some(ttl) => Self::Ttl { ttl, expires: now + ttl },
            None => Self::Session(session),
        }
    }
}

impl Charge {
    /// Reserves `need` units of a counter.
    pub(crate) fn take(
        to: Target,
        counter: &mut UsageCounter,
        spec: &CounterSpec,
        need: u64,
        now: Instant,
    ) -> Self {
        let when = match counter.count {
            Count::Slots => Charged::End,
            Count::Gate { .. } => Charged::Start,
            _ => spec.charged,
        };
        let mut charge =
            Self { to, when, estimate: need, charged: 0, mark: 0, known: false, left: 0 };
        match when {
            Charged::Start => {
                charge.mark = counter.charge(now, need, spec);
                charge.charged = need;
            }
            Charged::End => counter.held = counter.held.saturating_add(need),
        }
        charge.left = spec.stated.saturating_sub(counter.taken_at(now, spec));
        charge
    }

    /// The units of the counter's `held` that belong to this lease.
    pub(crate) const fn holds(&self) -> u64 {
        match self.when {
            Charged::Start => 0,
            Charged::End => self.estimate.saturating_sub(self.charged),
        }
    }

    /// Records that the call has used `total` so far. Repeating it changes nothing.
    pub(crate) fn progress(
        &mut self,
        counter: &mut UsageCounter,
        spec: &CounterSpec,
        total: u64,
        now: Instant,
    ) {
        match self.when {
            Charged::Start => {
                self.know(counter, spec, total, now);
                self.known = true;
            }
            Charged::End => self.stamp(counter, spec, total, now),
        }
    }

    /// Settles the charge.
    pub(crate) fn end(
        mut self,
        counter: &mut UsageCounter,
        spec: &CounterSpec,
        ending: Ending,
        total: Option<u64>,
        now: Instant,
    ) {
        match (self.when, ending) {
            (Charged::Start, Ending::Used) => {
                if let Some(total) = total {
                    self.know(counter, spec, total, now);
                }
            }
            (Charged::Start, Ending::Lost | Ending::Refused) => {}
            (Charged::Start, Ending::Cancelled) => self.know(counter, spec, 0, now),
            (Charged::End, Ending::Used | Ending::Lost) => {
                let total = total.unwrap_or(self.estimate);
                self.stamp(counter, spec, total, now);
            }
            (Charged::End, Ending::Refused | Ending::Cancelled) => {}
        }
        counter.held = counter.held.saturating_sub(self.holds());
    }

    /// A start-charged figure becomes known: refund the difference, or charge it now.
    fn know(&mut self, counter: &mut UsageCounter, spec: &CounterSpec, total: u64, now: Instant) {
        if total > self.charged {
            counter.charge(now, total - self.charged, spec);
        } else if self.known {
            return;
        } else {
            counter.refund(now, self.mark, self.charged - total, spec);
        }
        self.charged = total;
    }

    /// Stamps what an end-charged figure grew by, and releases it from `held`.
    fn stamp(&mut self, counter: &mut UsageCounter, spec: &CounterSpec, total: u64, now: Instant) {
        if total <= self.charged {
            return;
        }
        let held_before = self.holds();
        counter.charge(now, total - self.charged, spec);
        self.charged = total;
        counter.held = counter.held.saturating_sub(held_before - self.holds());
    }
}
