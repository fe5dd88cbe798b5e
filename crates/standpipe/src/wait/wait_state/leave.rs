//! How a call leaves the queue: its ticket is cancelled, and so is what it was granted meanwhile.

use std::sync::Arc;

use standpipe_core::{Action, Key};

use super::wait_log::WaitEnd;
use super::{Pending, WaitState};
use crate::client::Dispatcher;

impl WaitState {
    /// Stops waiting for the ticket.
    pub(super) fn left(&mut self, dispatcher: &mut Dispatcher) {
        if let Some(ticket) = self.ticket.take() {
            dispatcher.leave(ticket, self.caller);
        }
    }

    /// Gives up the ticket, and whatever the store may have granted meanwhile.
    pub(super) fn leave(&mut self, dispatcher: &mut Dispatcher) {
        let ticket = self.ticket;
        self.left(dispatcher);
        dispatcher.give_up(self.caller);
        if let Some(ticket) = ticket.filter(|ticket| dispatcher.is_ours(*ticket)) {
            dispatcher.keep(Action::Cancel { lease: ticket });
        }
        if dispatcher.flush().is_err() {
            self.handle.store_client().schedule_resend();
        }
    }

    /// Leaves the ticket to the next call with its id. Until then it blocks no other, unless
    /// another call of this process waits for it already.
    fn leave_the_ticket(&mut self) {
        let client = Arc::clone(&self.client);
        let mut dispatcher = client.dispatcher();
        let ticket = self.ticket;
        self.left(&mut dispatcher);
        let store_client = self.handle.store_client();
        let is_free = |ticket: &Key| dispatcher.tickets().all(|waited| waited != *ticket);
        let Some(ticket) = ticket.filter(is_free).filter(|own| dispatcher.is_ours(*own)) else {
            return;
        };
        dispatcher.keep(Action::Leave { ticket });
        let is_local = !store_client.store().is_remote() || client.is_offline();
        let sent = match is_local {
            true => dispatcher.flush().is_ok(),
            false => {
                drop(dispatcher);
                client.worker().send(store_client, &client)
            }
        };
        if !sent {
            store_client.schedule_resend();
        }
    }

    /// Gives up without waiting for the network. Turns on a local store are short.
    fn leave_now(&mut self) {
        let (client, store_client) = (Arc::clone(&self.client), self.handle.store_client());
        if !store_client.store().is_remote() || client.is_offline() {
            self.leave(&mut client.dispatcher());
            return;
        }
        client.leave(self.caller, self.ticket.take());
        if !client.worker().send(store_client, &client) {
            store_client.schedule_resend();
        }
    }
}

impl Drop for WaitState {
    fn drop(&mut self) {
        if self.over || !self.handle.is_ours() {
            return;
        }
        let unanswered = matches!(self.pending, Some(Pending::Reserve { .. }));
        if self.keeps_place && self.ticket.is_some() && !unanswered {
            self.leave_the_ticket();
        } else if self.ticket.is_some() || unanswered {
            self.leave_now();
            self.note_wait(WaitEnd::Cancelled, self.began.elapsed());
        }
        self.finish();
    }
}
