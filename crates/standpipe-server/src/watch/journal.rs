//! Follows the machine's journal: counts its events for `/metrics` and wakes event streams.
//!
//! Every event of every process of the machine is counted exactly once.

use std::sync::Arc;
use std::time::Duration;

use standpipe::observe::journal::EventKind;
use tokio::time::{MissedTickBehavior, interval};

use crate::state::{AppState, lock};

/// How often the journal is read while a stream follows it.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Counts journal events until the daemon stops.
pub(crate) async fn run(state: Arc<AppState>) {
    let tap = state.tap();
    let mut events = tap.journal().follow(None, None);
    let mut usage = tap.journal().follow(None, Some(EventKind::Usage));
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unwatched = 0_u8;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = state.stopped() => return,
        }
        // Without a stream, counters may be a second old: the journal is read every fourth time.
        unwatched = if state.journal_grew.receiver_count() > 0 { 0 } else { (unwatched + 1) % 4 };
        if unwatched != 0 {
            continue;
        }
        let shared = Arc::clone(&state);
        let read = tokio::task::spawn_blocking(move || {
            let (some, used) = (events.more(), usage.more());
            let grew = !some.is_empty() || !used.is_empty();
            let mut counters = lock(&shared.counters);
            some.iter().chain(&used).for_each(|event| counters.add(event));
            drop(counters);
            (events, usage, grew)
        });
        let Ok((read_events, read_usage, grew)) = read.await else { return };
        (events, usage) = (read_events, read_usage);
        if grew {
            state.journal_grew.send_modify(|times| *times += 1);
        }
    }
}
