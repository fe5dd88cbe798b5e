//! Leases: what an admitted call holds, and how each of its charges is settled.
//!
//! A lease is a list of charges, one per unit that is counted. The functions here move units
//! between held, charged and returned. `settlement` decides which leases end how, and `leases` is
//! their table.
//!
//! Invariant: a lease's share of what is held of a unit is [`Charge::holds`].

pub(crate) mod admission;
pub(crate) mod call;
pub(crate) mod grant;
pub(crate) mod ids;
pub(crate) mod leases;
pub(crate) mod redate;
pub(crate) mod reserve;
pub(crate) mod session;
pub(crate) mod sessions;
pub(crate) mod settlement;

use alloc::vec::Vec;

use crate::bounds;
use crate::config::{Charged, Priority};
use crate::id::{AgentId, UnitId};
use crate::lease::call::Call;
use crate::state::State;
use crate::time::{Instant, Span};

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
    /// One charge per unit that is counted.
    pub charges: Vec<Charge>,
    /// What was left of each constraint when it was admitted, if readings of the provider are
    /// compared with it.
    pub left: Vec<u64>,
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

/// The part of a lease in one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The unit.
    pub unit: UnitId,
    /// When its units are charged, as configured when the lease began.
    pub when: Charged,
    /// The units reserved.
    pub estimate: u64,
    /// The units charged so far.
    pub charged: u64,
    /// The mark of the first charge, under which it is refunded.
    pub mark: u64,
    /// The final figure is known: it can grow, but nothing is refunded any more.
    pub known: bool,
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
    /// The units held in flight that belong to this lease.
    pub(crate) const fn holds(&self) -> u64 {
        match self.when {
            Charged::Start => 0,
            Charged::End => self.estimate.saturating_sub(self.charged),
        }
    }
}

impl State {
    /// Reserves `need` units of a unit.
    pub(crate) fn take_unit(
        &mut self,
        unit: UnitId,
        agent: AgentId,
        need: u64,
        now: Instant,
    ) -> Charge {
        let when = self.facts.units[unit].charged;
        let mut charge = Charge { unit, when, estimate: need, charged: 0, mark: 0, known: false };
        match when {
            Charged::Start => {
                charge.mark = self.charge_unit(unit, agent, need, now);
                charge.charged = need;
            }
            Charged::End => self.change_held(unit, agent, 0, need),
        }
        charge
    }

    /// Records that a call has used `total` so far. Repeating it changes nothing.
    pub(crate) fn progress_charge(
        &mut self,
        charge: &mut Charge,
        agent: AgentId,
        total: u64,
        now: Instant,
    ) {
        match charge.when {
            Charged::Start => {
                self.settle_start_charge(charge, agent, total, now);
                charge.known = true;
            }
            Charged::End => self.stamp(charge, agent, total, now),
        }
    }

    /// Settles a charge.
    pub(crate) fn end_charge(
        &mut self,
        mut charge: Charge,
        agent: AgentId,
        ending: Ending,
        total: Option<u64>,
        now: Instant,
    ) {
        match (charge.when, ending) {
            (Charged::Start, Ending::Used) => {
                if let Some(total) = total {
                    self.settle_start_charge(&mut charge, agent, total, now);
                }
            }
            (Charged::Start, Ending::Lost | Ending::Refused) => {}
            (Charged::Start, Ending::Cancelled) => {
                self.settle_start_charge(&mut charge, agent, 0, now)
            }
            (Charged::End, Ending::Used | Ending::Lost) => {
                let total = total.unwrap_or(charge.estimate);
                self.stamp(&mut charge, agent, total, now);
            }
            (Charged::End, Ending::Refused | Ending::Cancelled) => {}
        }
        self.change_held(charge.unit, agent, charge.holds(), 0);
    }

    /// A start-charged figure becomes known: refund the difference, or charge it now.
    fn settle_start_charge(
        &mut self,
        charge: &mut Charge,
        agent: AgentId,
        total: u64,
        now: Instant,
    ) {
        if total > charge.charged {
            self.charge_unit(charge.unit, agent, total - charge.charged, now);
        } else if charge.known {
            return;
        } else {
            self.refund_unit(charge, agent, charge.charged - total, now);
        }
        charge.charged = total;
    }

    /// Stamps what an end-charged figure grew by, and releases it from what is held.
    fn stamp(&mut self, charge: &mut Charge, agent: AgentId, total: u64, now: Instant) {
        if total <= charge.charged {
            return;
        }
        let held_before = charge.holds();
        self.charge_unit(charge.unit, agent, total - charge.charged, now);
        charge.charged = total;
        self.change_held(charge.unit, agent, held_before, charge.holds());
    }
}
