//! Looking at all pools about every second, once for everybody who watches, and keeping what the
//! limits looked like.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use axum::response::sse::Event;
use futures_util::stream::unfold;
use standpipe::{Pool, PoolName, Snapshot, Standpipe};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::api::pools::Seen;
use crate::history;
use crate::house::{House, held};
use crate::problem::Problem;
use crate::stream;

/// How often those who watch are told.
const EVERY: Duration = Duration::from_secs(1);
/// How many calls and agents of each pool a stream has when nothing is said.
const ROWS: usize = 200;

/// What was seen at one moment.
#[derive(Debug)]
pub(crate) struct Frame {
    snapshot: Snapshot,
    /// As most streams send it.
    text: String,
}

/// A look at all pools.
pub(crate) fn look(tap: &Standpipe) -> Result<Snapshot, Problem> {
    let pools: Vec<Pool> = tap.pools()?.iter().map(|name| tap.pool_as_it_is(name)).collect();
    Ok(tap.snapshot(&pools)?)
}

/// Looks, for as long as the daemon lives.
pub(crate) async fn keep_looking(house: Arc<House>) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sampled: Option<Instant> = None;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = house.stops() => return,
        }
        let sample_is_due = sampled.is_none_or(|at| at.elapsed() >= history::EVERY - EVERY / 4);
        let watched = house.frames.receiver_count() > 0;
        if !sample_is_due && !watched {
            continue;
        }
        // A store that is away is seen by those who ask; here the next look will do.
        let Ok(snapshot) = house.aside(look).await else { continue };
        if sample_is_due {
            sampled = Some(Instant::now());
            held(&house.history).add(&snapshot);
        }
        if watched {
            let text = text(snapshot.clone().at_most(ROWS));
            house.frames.send_replace(Some(Arc::new(Frame { snapshot, text })));
        }
    }
}

fn text(snapshot: Snapshot) -> String {
    serde_json::to_string(&Seen { schema: crate::api::SCHEMA, snapshot }).unwrap_or_default()
}

/// What a stream of snapshots goes by.
struct Watcher {
    house: Arc<House>,
    frames: watch::Receiver<Option<Arc<Frame>>>,
    only: Option<PoolName>,
    rows: Option<usize>,
    begun: bool,
    ended: bool,
    _place: OwnedSemaphorePermit,
}

/// A stream of snapshots.
pub(crate) fn stream(
    house: &Arc<House>,
    only: Option<PoolName>,
    rows: Option<usize>,
) -> Result<Response, Problem> {
    let watcher = Watcher {
        house: Arc::clone(house),
        frames: house.frames.subscribe(),
        only,
        rows,
        begun: false,
        ended: false,
        _place: stream::place(house)?,
    };
    let events = unfold(watcher, |mut watcher| async {
        let event = watcher.next().await?;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    Ok(stream::answer(events))
}

impl Watcher {
    async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        if !std::mem::replace(&mut self.begun, true) {
            // The first look is its own, so that nobody waits for the next second.
            self.frames.mark_unchanged();
            if let Ok(snapshot) = self.house.aside(look).await {
                return Some(self.event(&snapshot, None));
            }
        }
        let house = Arc::clone(&self.house);
        tokio::select! {
            changed = self.frames.changed() => changed.ok()?,
            () = house.stops() => {
                self.ended = true;
                return Some(stream::bye());
            }
        }
        let frame = self.frames.borrow_and_update().clone()?;
        Some(self.event(&frame.snapshot, Some(&frame.text)))
    }

    fn event(&self, seen: &Snapshot, ready: Option<&String>) -> Event {
        let event = Event::default().event("pools");
        let usual = self.only.is_none() && self.rows.unwrap_or(ROWS) == ROWS;
        if let Some(ready) = ready.filter(|_| usual) {
            return event.data(ready);
        }
        let mut seen = seen.clone();
        if let Some(only) = &self.only {
            seen.pools.retain(|pool| pool.pool == only.as_str());
        }
        event.data(text(seen.at_most(self.rows.unwrap_or(ROWS))))
    }
}
