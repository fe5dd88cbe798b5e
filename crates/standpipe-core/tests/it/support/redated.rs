//! What the oracle makes of a lease that is dated to now, or withdrawn, because its call was not
//! sent yet.
//!
//! Dated charges are charges of now: that no limit is exceeded in any stretch of time is checked as
//! for every other charge.

use standpipe_core::{Answer, Key, LeaseAnswer, Rule};

use super::book::{Book, Call, Guarantee};
use super::mark::{Change, Mark};

impl Book {
    pub(super) fn withdraw(&mut self, lease: Key, answer: &Answer) {
        let living = self.end(lease, self.now, Mark::undo);
        self.release_id(lease, living);
        self.expect_end(lease, living, answer);
    }

    pub(super) fn redate(&mut self, lease: Key, answer: &Answer) {
        let living = |call: &Call| call.lease == lease && call.ended.is_none();
        let Some(number) = self.calls.iter().position(living) else {
            return self.expect_end(lease, false, answer);
        };
        if self.was_sent(number, answer) {
            return self.expect_life(number, answer);
        }
        if *answer == Answer::Lease(LeaseAnswer::Ended) {
            if self.certainly_has_its_units(number) {
                let complaint = format!("{lease:?} withdrawn at {:?} without need", self.now);
                self.complain(Guarantee::Leases, complaint);
            }
            self.end(lease, self.now, Mark::undo);
            return self.release_id(lease, true);
        }
        if self.now < self.paused_until {
            self.complain(Guarantee::Pause, format!("{lease:?} dated into a pause"));
        }
        for limit in 0..self.config.limits.len() {
            let estimate = self.calls[number].marks[limit].estimate;
            let back = self.calls[number].marks[limit].erase();
            self.change_tank(limit, number, back);
            let mark = Mark::new(estimate, self.charged(limit), self.now);
            let change = Change { charged: mark.total(), back: 0 };
            self.calls[number].marks[limit] = mark;
            self.change_tank(limit, number, change);
            if estimate > 0 {
                self.granted_at[limit] = Some(self.now);
            }
        }
        let (call, now) = (&mut self.calls[number], self.now);
        (call.granted_at, call.heard_at, call.moved_at) = (now, now, now);
        self.expect_life(number, answer);
    }

    /// Whether the call has reported something. A report at the instant of its grant need not have
    /// changed anything.
    fn was_sent(&self, number: usize, answer: &Answer) -> bool {
        let call = &self.calls[number];
        let unchanged = *answer == Answer::Lease(LeaseAnswer::Lives(self.ends_at(call)));
        call.moved && (call.moved_at > call.granted_at || unchanged)
    }

    /// The id of a call that was never made is free again.
    pub(super) fn release_id(&mut self, lease: Key, released: bool) {
        let own = self.calls.iter_mut().filter(|call| released && call.lease == lease);
        own.for_each(|call| call.id = None);
    }

    /// Whether nothing can have come between a lease and its units: every window still counts them,
    /// and there is nothing else that could.
    fn certainly_has_its_units(&self, number: usize) -> bool {
        let call = &self.calls[number];
        let capped = self.config.agent(&call.agent).is_some_and(|rule| !rule.caps.is_empty());
        let limits = self.config.limits.iter().zip(&call.marks);
        !capped
            && self.paused_until < call.granted_at
            && limits.into_iter().all(|(limit, mark)| {
                let period = limit.id().period().unwrap_or_default() + self.config.slack;
                let plain = limit.pace.is_none() && !matches!(limit.rule, Rule::Bucket { .. });
                let mut charges = mark.charges.iter().filter(|charge| charge.units > 0);
                plain && charges.all(|charge| self.now < charge.at + period)
            })
    }
}
