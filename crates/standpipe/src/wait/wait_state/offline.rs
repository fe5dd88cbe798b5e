//! A call whose store is unavailable: if its pool has a fallback, a ledger of this process decides
//! until the store takes writes again.
//!
//! A call has a ticket in at most one of the two ledgers. The ledger itself is in `offline.rs`.

use std::sync::Arc;

use standpipe_core::{Action, Decision, Reason};

use super::{Step, WaitState};
use crate::client::Dispatcher;
use crate::offline::OfflineFallback;

impl WaitState {
    /// Switches to the ledger of this process, if the store has been unavailable for long enough
    /// and the pool has a fallback.
    pub(super) fn go_offline(&mut self, dispatcher: &mut Dispatcher) -> Option<Step> {
        let home = Arc::clone(&self.client);
        if home.is_offline() {
            return None;
        }
        let store_client = Arc::clone(self.handle.store_client());
        let offline = OfflineFallback::of(&store_client, &home, dispatcher, || {
            self.pool.tap().settings().pool_config(home.pool())
        })?;
        if self.never_fits(&offline) {
            return None;
        }
        let ticket = self.ticket;
        self.left(dispatcher);
        dispatcher.give_up(self.caller);
        if let Some(ticket) = ticket.filter(|ticket| dispatcher.is_ours(*ticket)) {
            dispatcher.keep(Action::Cancel { lease: ticket });
        }
        self.switch_to(&offline.client);
        Some(Step::Again)
    }

    /// Switches to the ledger of this process without asking the store, if that ledger decides at
    /// present.
    pub(super) fn stay_offline(&mut self) {
        if let Some(fallback) = self.client.offline()
            && !self.never_fits(&fallback)
        {
            self.switch_to(&fallback.client);
        }
    }

    /// Switches back once the store takes writes again.
    pub(super) fn leave_offline(&mut self) {
        if let Some(home) = self.client.resumed() {
            self.left(&mut self.client.clone().dispatcher());
            self.switch_to(&home);
        }
    }

    fn switch_to(&mut self, client: &Arc<crate::client::PoolClient>) {
        self.client = Arc::clone(client);
        (self.ticket, self.ends, self.answered_at) = (None, None, None);
        (self.pending, self.claims, self.searched) = (None, false, false);
    }

    /// Returns whether the call is larger than the share of this process; such a call waits for the
    /// store.
    fn never_fits(&self, offline: &OfflineFallback) -> bool {
        let dispatcher = offline.client.dispatcher();
        let replica = dispatcher.participant.replica();
        let decision = replica.state().peek(&self.reserve, replica.now());
        matches!(decision, Decision::Refuse(refusal) if refusal.reason == Reason::Never)
    }
}
