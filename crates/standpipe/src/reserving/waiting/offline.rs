//! A call whose store is away: where its pool says so, it is decided on here until the store is
//! back.

use std::sync::Arc;

use standpipe_core::{Action, Decision, Reason};

use super::{Step, Waiting};
use crate::desk::Counter;
use crate::offline::OfflineFallback;

impl Waiting {
    /// Goes to the ledger of this process, if the store has been away for long enough and the pool
    /// says what to do then.
    pub(super) fn goes_away(&mut self, counter: &mut Counter) -> Option<Step> {
        let home = Arc::clone(&self.desk);
        if home.is_substitute() {
            return None;
        }
        let shared = Arc::clone(self.guard.shared());
        let cut_off = OfflineFallback::of(&shared, &home, counter, || {
            self.pool.tap().settings().pool_config(home.pool())
        })?;
        if self.never_fits(&cut_off) {
            return None;
        }
        let ticket = self.ticket;
        self.left(counter);
        counter.give_up(self.caller);
        if let Some(ticket) = ticket.filter(|ticket| counter.is_ours(*ticket)) {
            counter.later(Action::Cancel { lease: ticket });
        }
        self.moves_to(&cut_off.desk);
        Some(Step::Again)
    }

    /// Goes to the ledger of this process without asking the store first, if that is what decides
    /// at present.
    pub(super) fn stays_offline(&mut self) {
        if let Some(place) = self.desk.cut_off()
            && !self.never_fits(&place)
        {
            self.moves_to(&place.desk);
        }
    }

    /// The store is back: it asks there.
    pub(super) fn comes_back(&mut self) {
        if let Some(home) = self.desk.moved_to() {
            self.left(&mut self.desk.clone().counter());
            self.moves_to(&home);
        }
    }

    fn moves_to(&mut self, desk: &Arc<crate::desk::Desk>) {
        self.desk = Arc::clone(desk);
        (self.ticket, self.ends, self.heard) = (None, None, None);
        (self.unanswered, self.claims, self.searched) = (false, false, false);
    }

    /// What is larger than a share waits for the store.
    fn never_fits(&self, cut_off: &OfflineFallback) -> bool {
        let counter = cut_off.desk.counter();
        let replica = counter.member.replica();
        let decision = replica.state().peek(&self.reserve, replica.now());
        matches!(decision, Decision::Refuse(refusal) if refusal.reason == Reason::Never)
    }
}
