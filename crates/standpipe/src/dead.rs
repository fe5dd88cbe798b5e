//! Who of those that hold something on a pool, or wait there, is dead.
//!
//! A store that sees deaths is only asked when it matters: by whoever waits, and before a call is
//! refused or a pool is shown. Then the ledger is told, and what the dead held is free.

use std::collections::BTreeSet;

use standpipe_core::{Action, Facts, Holder, Key, Owner, Reason, Ticket};
use standpipe_store::Store;

use crate::desk::Counter;
use crate::owner;

/// How many are tested in one look, so that a crowd does not make it long.
const MOST: usize = 256;

/// Those who may be dead, in the order in which they are tested.
#[derive(Default)]
pub(crate) struct Suspects {
    order: Vec<Suspect>,
    sessions: BTreeSet<u64>,
}

enum Suspect {
    Session(u64),
    Owner(Key, Owner),
}

impl Suspects {
    /// Everybody who has something on the pool: first who holds, then who waits.
    pub(crate) fn of(facts: &Facts) -> Self {
        let mut suspects = Self::default();
        suspects.add_holders(facts);
        facts.tickets.values().for_each(|ticket| suspects.add_waiter(ticket));
        suspects
    }

    /// Those who hold leases.
    pub(crate) fn add_holders(&mut self, facts: &Facts) {
        for (key, lease) in &facts.leases {
            match (lease.holder, lease.call.owner) {
                (Holder::Session(session), _) => self.add(session),
                (Holder::Ttl { .. }, Some(owner)) => self.order.push(Suspect::Owner(*key, owner)),
                (Holder::Ttl { .. }, None) => {}
            }
        }
    }

    /// Somebody who waits.
    pub(crate) fn add_waiter(&mut self, ticket: &Ticket) {
        if let Some(session) = ticket.session {
            self.add(session);
        }
    }

    fn add(&mut self, session: u64) {
        if self.sessions.insert(session) {
            self.order.push(Suspect::Session(session));
        }
    }

    /// What to say of those who are dead.
    pub(crate) fn dead(self, store: &dyn Store) -> Vec<Action> {
        let tested = self.order.into_iter().take(MOST);
        tested.filter_map(|suspect| suspect.obituary(store)).collect()
    }
}

impl Suspect {
    fn obituary(self, store: &dyn Store) -> Option<Action> {
        match self {
            Self::Session(session) => {
                store.is_gone(session).then_some(Action::SessionEnded { session })
            }
            Self::Owner(lease, owner) => {
                owner::is_gone(owner).then_some(Action::OwnerEnded { lease })
            }
        }
    }
}

/// Looks once who on the pool is dead, and tells the ledger. Answers whether anybody was. The
/// replica must have been read just now.
pub(crate) fn bury(counter: &mut Counter, store: &dyn Store) -> bool {
    let now = counter.now();
    let state = counter.member.replica().state().at(now.store);
    let actions = Suspects::of(state.facts()).dead(store);
    drop(state);
    !actions.is_empty() && counter.tell_all(actions)
}

/// Whether the end of somebody else could bring what was refused for this reason.
pub(crate) const fn could_help(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Cap
            | Reason::Order
            | Reason::Limit
            | Reason::Floor
            | Reason::Probe
            | Reason::Sequential
            | Reason::Learning
            | Reason::QueueFull
            | Reason::Deadline
    )
}
