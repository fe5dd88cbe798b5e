//! A call on several pools: one answer from the explanations of all of them.
//!
//! A pool on which the call keeps its units denies nothing. Of the others the latest bound counts,
//! and no instant of one pool is exact for the whole call.

use super::{Explanation, VerdictKind};
use crate::refusal::When;

impl Explanation {
    /// Adds the other pools that the call draws on, in the order in which they are asked. `holds`
    /// returns whether the call keeps its units on a pool already.
    #[must_use]
    pub fn with_others(mut self, mut others: Vec<Self>, holds: &dyn Fn(&str) -> bool) -> Self {
        if others.is_empty() {
            return self;
        }
        for one in std::iter::once(&mut self).chain(&mut others) {
            match holds(one.pool.as_str()) {
                true => one.keep(),
                false => one.admission = std::mem::take(&mut one.admission).into_bound(),
            }
        }
        for other in others.iter().filter(|other| !other.holds) {
            if self.admission.raise(&other.admission) {
                self.bound_by = Some(other.pool.to_string());
            }
        }
        self.others = others;
        self
    }

    /// Marks the calls that a process holds or makes as those of the daemon's clients.
    pub fn mark_daemon(&mut self, pid: u32) {
        let is_its = |own: Option<u32>| own == Some(pid);
        self.holders.iter_mut().for_each(|lease| lease.daemon = is_its(lease.pid));
        self.waiting.iter_mut().for_each(|ticket| ticket.daemon = is_its(ticket.pid));
        self.others.iter_mut().for_each(|other| other.mark_daemon(pid));
    }

    /// The call has its units here: nothing denies it.
    fn keep(&mut self) {
        self.holds = true;
        self.verdict = VerdictKind::Admitted.into();
        self.admission = When::default();
        (self.why, self.next, self.advice) = (None, None, None);
        self.steps.iter_mut().for_each(|step| step.noes.clear());
        self.holders.clear();
    }

    /// The pool that the call waits on while it keeps its units here.
    #[must_use]
    pub fn waits_on(&self) -> Option<&Self> {
        let waits = |other: &&Self| !other.holds && other.waits_ms.is_some();
        self.others.iter().find(waits).filter(|_| self.holds)
    }

    /// Whether the call draws on several pools.
    #[must_use]
    pub fn is_of_several(&self) -> bool {
        let of_ticket = self.waiting.first().is_some_and(|ticket| !ticket.also.is_empty());
        !self.others.is_empty() || of_ticket && self.waits_ms.is_some()
    }
}
