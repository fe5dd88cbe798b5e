//! Leases: what a granted call holds, and how each unit of it is settled.
//!
//! A lease is a list of charges, one for every tally it draws on. The functions here move units
//! between "held", "charged" and "given back" on one tally; which leases end when is decided
//! elsewhere.
//!
//! Invariant: a lease's share of a tally's `held` is what [`Charge::holds`] says, always.

use alloc::vec::Vec;

use crate::agent::AgentId;
use crate::bounds;
use crate::call::Call;
use crate::config::{Charged, Priority};
use crate::tally::{Count, Spec, Tally};
use crate::time::{Instant, Span};

/// What a granted call holds until it is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// What ends it when nobody settles it.
    pub holder: Holder,
    /// Whose call it is.
    pub agent: AgentId,
    /// Its tier when it was admitted.
    pub tier: Priority,
    /// What it said it would take, and what else was said of it.
    pub call: Call,
    /// When it was admitted.
    pub started: Instant,
    /// The last sign that the call goes on: its start, or a commit of progress.
    pub progressed: Instant,
    /// One for every tally it draws on.
    pub charges: Vec<Charge>,
}

/// What ends a lease when nobody settles it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// The silence or death of a session.
    Session(u64),
    /// Its own time to live.
    Ttl {
        /// How long a heartbeat extends it by.
        ttl: Span,
        /// When it ends.
        expires: Instant,
    },
}

/// A lease's part in one tally.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// Which tally.
    pub to: Target,
    /// When its units are charged, as it was when the lease began.
    pub when: Charged,
    /// What was reserved.
    pub estimate: u64,
    /// What has been charged so far.
    pub charged: u64,
    /// Where the first of it can be found for a refund.
    pub mark: u64,
    /// The figure is known; it can still grow but no more comes back.
    pub known: bool,
    /// What was left of the stated limit then, with this taken.
    pub left: u64,
}

/// What a charge is made to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A lane of the pool.
    Lane(u8),
    /// A meter of the lease's agent.
    Meter(u8),
}

/// How a lease's units are settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With the figures given; at the estimate where none is.
    Used,
    /// Nobody said: at the estimate.
    Lost,
    /// Refused by the provider: what is charged at the end was not used.
    Refused,
    /// Never sent: everything goes back.
    Cancelled,
}

impl Holder {
    /// A time to live of its own, or its session.
    pub(crate) fn of(ttl: Option<Span>, session: u64, now: Instant) -> Self {
        match ttl.map(|ttl| ttl.min(bounds::SPAN)) {
            Some(ttl) => Self::Ttl { ttl, expires: now + ttl },
            None => Self::Session(session),
        }
    }
}

impl Lease {
    /// The units of a tally's `held` that are this lease's.
    pub(crate) fn holds(&self, of: Target) -> u64 {
        self.charges.iter().filter(|charge| charge.to == of).map(Charge::holds).sum()
    }
}

impl Charge {
    /// Takes `need` units of a tally.
    pub(crate) fn take(
        to: Target,
        tally: &mut Tally,
        spec: &Spec,
        need: u64,
        now: Instant,
    ) -> Self {
        let when = match tally.count {
            Count::Slots => Charged::End,
            Count::Gate { .. } => Charged::Start,
            _ => spec.charged,
        };
        let mut charge =
            Self { to, when, estimate: need, charged: 0, mark: 0, known: false, left: 0 };
        match when {
            Charged::Start => {
                charge.mark = tally.charge(now, need, spec);
                charge.charged = need;
            }
            Charged::End => tally.held = tally.held.saturating_add(need),
        }
        charge.left = spec.stated.saturating_sub(tally.taken_at(now, spec));
        charge
    }

    /// The units of the tally's `held` that are this lease's.
    pub(crate) const fn holds(&self) -> u64 {
        match self.when {
            Charged::Start => 0,
            Charged::End => self.estimate.saturating_sub(self.charged),
        }
    }

    /// The call goes on and has used `total` so far. Sending the same again changes nothing.
    pub(crate) fn progress(&mut self, tally: &mut Tally, spec: &Spec, total: u64, now: Instant) {
        match self.when {
            Charged::Start => {
                self.know(tally, spec, total, now);
                self.known = true;
            }
            Charged::End => self.stamp(tally, spec, total, now),
        }
    }

    /// The call is over.
    pub(crate) fn end(
        mut self,
        tally: &mut Tally,
        spec: &Spec,
        ending: Ending,
        total: Option<u64>,
        now: Instant,
    ) {
        match (self.when, ending) {
            (Charged::Start, Ending::Used) => {
                if let Some(total) = total {
                    self.know(tally, spec, total, now);
                }
            }
            (Charged::Start, Ending::Lost | Ending::Refused) => {}
            (Charged::Start, Ending::Cancelled) => self.know(tally, spec, 0, now),
            (Charged::End, Ending::Used | Ending::Lost) => {
                let total = total.unwrap_or(self.estimate);
                self.stamp(tally, spec, total, now);
            }
            (Charged::End, Ending::Refused | Ending::Cancelled) => {}
        }
        tally.held = tally.held.saturating_sub(self.holds());
    }

    /// A start-charged figure becomes known: the difference goes back at once, or is charged now.
    fn know(&mut self, tally: &mut Tally, spec: &Spec, total: u64, now: Instant) {
        if total > self.charged {
            tally.charge(now, total - self.charged, spec);
        } else if self.known {
            return;
        } else {
            tally.refund(now, self.mark, self.charged - total, spec);
        }
        self.charged = total;
    }

    /// What an end-charged figure grew by is stamped now and leaves the hold.
    fn stamp(&mut self, tally: &mut Tally, spec: &Spec, total: u64, now: Instant) {
        if total <= self.charged {
            return;
        }
        let held_before = self.holds();
        tally.charge(now, total - self.charged, spec);
        self.charged = total;
        tally.held = tally.held.saturating_sub(held_before - self.holds());
    }
}
