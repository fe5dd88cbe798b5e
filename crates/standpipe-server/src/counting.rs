//! Following the machine's journal: what is counted for `/metrics`, and when streams have more.

use std::sync::Arc;
use std::time::Duration;

use standpipe::journal::Kind;
use tokio::time::{MissedTickBehavior, interval};

use crate::house::{House, held};

/// How often the journal is looked at.
const EVERY: Duration = Duration::from_millis(250);

/// Counts what every process of this machine writes down, for as long as the daemon lives.
pub(crate) async fn keep_counting(house: Arc<House>) {
    let tap = house.tap();
    let mut events = tap.journal().follow(None, None);
    let mut usage = tap.journal().follow(None, Some(Kind::Usage));
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut unwatched = 0_u8;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = house.stops() => return,
        }
        // Counters may be a second old while nobody follows the events.
        unwatched = if house.journal_grew.receiver_count() > 0 { 0 } else { (unwatched + 1) % 4 };
        if unwatched != 0 {
            continue;
        }
        let shared = Arc::clone(&house);
        let read = tokio::task::spawn_blocking(move || {
            let (some, used) = (events.more(), usage.more());
            let grew = !some.is_empty() || !used.is_empty();
            let mut tally = held(&shared.tally);
            some.iter().chain(&used).for_each(|event| tally.add(event));
            drop(tally);
            (events, usage, grew)
        });
        let Ok((read_events, read_usage, grew)) = read.await else { return };
        (events, usage) = (read_events, read_usage);
        if grew {
            house.journal_grew.send_modify(|times| *times += 1);
        }
    }
}
