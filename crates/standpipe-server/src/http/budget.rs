//! How many connections may be open, per transport.
//!
//! A connection whose next head is incomplete holds its place only until another one needs it: at
//! the bound the oldest such connection is closed, so half-sent heads lock no client out.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use crate::state::lock;

/// The connections of one transport.
#[derive(Debug)]
pub(crate) struct ConnectionBudget {
    max: usize,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    next: u64,
    /// Oldest first.
    slots: BTreeMap<u64, Arc<SlotState>>,
}

/// What is known of a connection without a lock, because every request changes it.
#[derive(Debug, Default)]
struct SlotState {
    /// A complete head has arrived at some time.
    had_head: AtomicBool,
    /// Bytes of the next head have arrived, but not all.
    has_partial_head: AtomicBool,
    /// A request is being answered.
    is_busy: AtomicBool,
    evicted: Notify,
}

/// The place of one open connection, free again when it is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    budget: Arc<ConnectionBudget>,
    number: u64,
    state: Arc<SlotState>,
}

impl ConnectionBudget {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, open: Mutex::default() })
    }

    /// How many connections are open.
    pub(crate) fn open(&self) -> usize {
        lock(&self.open).slots.len()
    }

    /// Takes a place. At the bound this evicts the oldest connection with an incomplete head; if
    /// there is none, there is no place.
    pub(crate) fn acquire(self: &Arc<Self>) -> Option<ConnectionSlot> {
        let mut open = lock(&self.open);
        if open.slots.len() >= self.max {
            let oldest = open.slots.iter().find(|(_, slot)| slot.awaits_head());
            let number = oldest.map(|(number, _)| *number)?;
            // `drop` finds nothing to free: the place is the new connection's.
            open.slots.remove(&number)?.evicted.notify_one();
        }
        open.next += 1;
        let (number, state) = (open.next, Arc::<SlotState>::default());
        open.slots.insert(number, Arc::clone(&state));
        drop(open);
        Some(ConnectionSlot { budget: Arc::clone(self), number, state })
    }
}

impl SlotState {
    /// Whether the connection has begun a request, or never sent one, and its head is incomplete.
    /// One that is idle between requests keeps its place.
    fn awaits_head(&self) -> bool {
        let partial = self.has_partial_head.load(Ordering::Relaxed);
        let started = partial || !self.had_head.load(Ordering::Relaxed);
        started && !self.is_busy.load(Ordering::Relaxed)
    }
}

impl ConnectionSlot {
    /// Records that bytes have arrived. Those that arrive during a request are its body.
    pub(crate) fn bytes_arrived(&self) {
        if !self.state.is_busy.load(Ordering::Relaxed) {
            self.state.has_partial_head.store(true, Ordering::Relaxed);
        }
    }

    /// Records that a complete head has arrived.
    pub(crate) fn head_arrived(&self) {
        self.state.is_busy.store(true, Ordering::Relaxed);
        self.state.had_head.store(true, Ordering::Relaxed);
        self.state.has_partial_head.store(false, Ordering::Relaxed);
    }

    /// Records that the request has its response.
    pub(crate) fn answered(&self) {
        self.state.is_busy.store(false, Ordering::Relaxed);
    }

    /// Resolves when the connection is to be closed: it was evicted, or its first head did not
    /// arrive in time.
    pub(crate) async fn overdue(&self, head_timeout: Duration) {
        tokio::select! {
            () = self.state.evicted.notified() => return,
            () = tokio::time::sleep(head_timeout) => {}
        }
        if self.state.had_head.load(Ordering::Relaxed) {
            self.state.evicted.notified().await;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.budget.open).slots.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_the_bound_the_oldest_with_an_incomplete_head_gives_way() {
        let budget = ConnectionBudget::new(3);
        let busy = budget.acquire().unwrap();
        busy.head_arrived();
        busy.bytes_arrived();
        let (old, new) = (budget.acquire().unwrap(), budget.acquire().unwrap());
        let another = budget.acquire().unwrap();
        assert_eq!(budget.open(), 3);
        // A head that arrives after the eviction changes nothing.
        old.head_arrived();
        drop(old);
        assert_eq!(budget.open(), 3);
        new.head_arrived();
        new.answered();
        another.head_arrived();
        assert!(budget.acquire().is_none(), "busy and idle connections keep their place");
        new.bytes_arrived();
        let newest = budget.acquire().unwrap();
        assert_eq!(budget.open(), 3, "a second head that is incomplete gives way, too");
        drop((busy, new, another, newest));
        assert_eq!(budget.open(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_connection_without_a_head_is_overdue() {
        const TIMEOUT: Duration = Duration::from_secs(10);
        let budget = ConnectionBudget::new(2);
        let (silent, busy) = (budget.acquire().unwrap(), budget.acquire().unwrap());
        busy.head_arrived();
        silent.overdue(TIMEOUT).await;
        let an_hour = Duration::from_secs(3_600);
        assert!(tokio::time::timeout(an_hour, busy.overdue(TIMEOUT)).await.is_err());
        drop(silent);
        let evicted = budget.acquire().unwrap();
        let _newcomer = budget.acquire().unwrap();
        tokio::time::timeout(TIMEOUT / 2, evicted.overdue(TIMEOUT)).await.unwrap();
    }
}
