//! Sends actions whose outcome a caller waits for, or that must arrive although no caller waits.
//!
//! While the store is unavailable, the offline ledger of the pool answers what concerns its leases.

use std::sync::Arc;
use std::time::{Duration, Instant as Local};

use standpipe_core::{Action, Answer, Key, LeaseAnswer};

use super::store_client::{FIRST_RETRY, LAST_RETRY, SEND_TIMEOUT, StoreClient, answers};
use super::{CallerId, DispatchGuard, PoolClient};
use crate::error::Error;
use crate::lease_id::LeaseId;
use crate::moment::Now;
use crate::offline::OfflineFallback;

impl StoreClient {
    /// Sends actions and returns their answers. Retries for [`SEND_TIMEOUT`] while the store does
    /// not answer.
    pub(crate) fn settle(
        self: &Arc<Self>,
        client: &PoolClient,
        actions: Vec<Action>,
    ) -> Result<(Vec<Answer>, Now), Error> {
        self.settle_within(SEND_TIMEOUT, client, actions)
    }

    pub(super) fn settle_within(
        self: &Arc<Self>,
        patience: Duration,
        client: &PoolClient,
        actions: Vec<Action>,
    ) -> Result<(Vec<Answer>, Now), Error> {
        self.maintenance().run_inline_if_due(self);
        if let Some(answered) = self.settle_carried(client, &actions) {
            return answered;
        }
        let caller = self.caller();
        let (deadline, mut pause) = (Local::now() + patience, FIRST_RETRY);
        client.submit(caller, actions.clone());
        loop {
            let mut dispatcher = client.dispatcher();
            if let Some(home) = client.resumed().filter(|_| !dispatcher.has_answer(caller)) {
                dispatcher.give_up(caller);
                drop(dispatcher);
                return self.settle_within(patience, &home, actions);
            }
            match dispatcher.answer(caller) {
                Ok(outcomes) => {
                    self.journal_messages(client.pool());
                    return Ok((answers(outcomes), dispatcher.now()));
                }
                Err(error) if error.is_transient() => {
                    let answered = self.settle_offline(client, dispatcher, caller, &actions);
                    if let Some(answered) = answered {
                        return answered;
                    }
                    if Local::now() + pause >= deadline {
                        client.dispatcher().detach(caller);
                        self.schedule_resend();
                        return Err(error.into());
                    }
                }
                Err(error) => return Err(error.into()),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(LAST_RETRY);
        }
    }

    /// Takes the answers to actions that the store did not answer from the pool's offline ledger,
    /// if it has one. The store receives the actions later.
    fn settle_offline(
        self: &Arc<Self>,
        client: &PoolClient,
        mut dispatcher: DispatchGuard<'_>,
        caller: CallerId,
        actions: &[Action],
    ) -> Option<Result<(Vec<Answer>, Now), Error>> {
        if !client.has_fallback() {
            return None;
        }
        self.schedule_resend();
        let home = self.client(client.pool()).ok()?;
        OfflineFallback::of(self, &home, &mut dispatcher, || None);
        drop(dispatcher);
        let answered = self.answer_carried(client, actions)?;
        client.dispatcher().detach(caller);
        Some(answered)
    }

    /// Settles a lease that the store granted before the outage in the offline ledger, which has it
    /// too. The actions are sent when the store takes writes again. Returns `None` if there is no
    /// such ledger or lease.
    fn settle_carried(
        self: &Arc<Self>,
        client: &PoolClient,
        actions: &[Action],
    ) -> Option<Result<(Vec<Answer>, Now), Error>> {
        let answered = self.answer_carried(client, actions)?;
        for action in actions {
            client.submit_unattended(action.clone());
        }
        self.schedule_resend();
        Some(answered)
    }

    fn answer_carried(
        &self,
        client: &PoolClient,
        actions: &[Action],
    ) -> Option<Result<(Vec<Answer>, Now), Error>> {
        let fallback = client.offline()?;
        let lease = actions.iter().find_map(lease_of)?;
        let mut dispatcher = fallback.client.dispatcher();
        let known = dispatcher.participant.replica().state().facts().leases.contains_key(&lease);
        // While its dispatcher is held, the hand-over cannot end that ledger.
        if !known || fallback.client.resumed().is_some() {
            return None;
        }
        let caller = self.caller();
        fallback.client.submit(caller, actions.to_vec());
        let answered =
            dispatcher.answer(caller).map(|outcomes| (answers(outcomes), dispatcher.now()));
        Some(answered.map_err(Error::from))
    }

    /// Sends an action whose outcome no caller waits for, without blocking. If the store does not
    /// answer at once or is across a network, a worker or the maintenance thread sends it.
    pub(crate) fn send_unattended(self: &Arc<Self>, client: &Arc<PoolClient>, action: Action) {
        if self.settle_carried(client, std::slice::from_ref(&action)).is_some() {
            return;
        }
        client.submit_unattended(action);
        if let Some(home) = client.resumed() {
            client.forward_unattended(&home);
            self.schedule_resend();
            return;
        }
        // A drop settles a lease and must not wait for the network. Turns on a local store are
        // short.
        let sent = match self.store().is_remote() {
            true => client.worker().send(self, client),
            false => client.dispatcher().flush().is_ok(),
        };
        if !sent {
            self.schedule_resend();
        }
    }

    /// Sends an action about a lease and returns its answer. A lease that has ended is an error.
    pub(crate) fn about_lease(
        self: &Arc<Self>,
        client: &PoolClient,
        lease: &LeaseId,
        action: Action,
    ) -> Result<(LeaseAnswer, Now), Error> {
        let (answers, now) = self.settle(client, vec![action])?;
        Ok((crate::lease::lease_answer(answers, lease)?, now))
    }
}

/// Returns the lease that an action is about.
const fn lease_of(action: &Action) -> Option<Key> {
    match action {
        Action::Commit(commit) => Some(commit.lease),
        Action::Cancel { lease } | Action::Redate { lease } | Action::Withdraw { lease } => {
            Some(*lease)
        }
        Action::Heartbeat { lease, .. } => *lease,
        Action::Throttled(throttled) => throttled.lease,
        _ => None,
    }
}
