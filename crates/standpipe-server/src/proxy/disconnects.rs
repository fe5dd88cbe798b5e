//! Notices clients that disconnect while their calls wait for the provider.
//!
//! Sockets are polled once a second, by one timer for all calls of a thread. A timer of each call
//! would be the next one to fire, so that the event loop wakes itself for it: two system calls and
//! one more turn per request.

use std::cell::RefCell;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::Notify;

use crate::http::peer::Peer;

/// How often sockets are polled.
const INTERVAL: Duration = Duration::from_secs(1);
/// The timer ends when no call waited for so many intervals.
const IDLE_TICKS: u32 = 10;

thread_local! {
    /// The timer of this thread's event loop, while it runs.
    static TICKS: RefCell<Weak<Notify>> = RefCell::default();
}

/// Resolves when the client has closed the connection.
pub(crate) async fn disconnected(peer: &Peer) {
    let ticks = ticks();
    loop {
        ticks.notified().await;
        if peer.is_disconnected() {
            return;
        }
    }
}

/// What is notified once in an interval.
fn ticks() -> Arc<Notify> {
    TICKS.with_borrow_mut(|running| {
        running.upgrade().unwrap_or_else(|| {
            let ticks = Arc::<Notify>::default();
            *running = Arc::downgrade(&ticks);
            tokio::spawn(tick(Arc::clone(&ticks)));
            ticks
        })
    })
}

async fn tick(ticks: Arc<Notify>) {
    let mut idle = 0;
    while idle < IDLE_TICKS {
        tokio::time::sleep(INTERVAL).await;
        ticks.notify_waiters();
        // Every call that waits has a handle.
        idle = if Arc::strong_count(&ticks) > 1 { 0 } else { idle + 1 };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_disconnect_is_noticed_and_the_timer_ends_when_no_call_waits() {
        let (own, other) = UnixStream::pair().unwrap();
        let peer = Peer::of(&own);
        let waits = tokio::time::timeout(INTERVAL * 5, disconnected(&peer)).await;
        assert!(waits.is_err(), "it is connected");
        drop(other);
        disconnected(&peer).await;
        assert!(TICKS.with_borrow(|running| running.upgrade().is_some()));
        tokio::time::sleep(INTERVAL * (IDLE_TICKS + 2)).await;
        assert!(TICKS.with_borrow(|running| running.upgrade().is_none()));
        disconnected(&peer).await;
    }
}
