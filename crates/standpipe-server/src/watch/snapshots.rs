//! The task and the streams of snapshots: one per second for all viewers, sampled for the history.
//!
//! However many streams are open, the pools are read once per second.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use axum::response::sse::Event;
use futures_util::stream::unfold;
use standpipe::{PoolName, Snapshot};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::views::{View, Views};
use super::{history, sse};
use crate::api::pools::PoolsResponse;
use crate::http::problem::Problem;
use crate::state::{AppState, lock};

/// The time between two events of a stream.
const FRAME_INTERVAL: Duration = Duration::from_secs(1);
/// The default number of leases, tickets and agents per pool in a stream.
const DEFAULT_ROWS: usize = 200;

/// One snapshot for all streams.
#[derive(Debug)]
pub(crate) struct SnapshotFrame {
    view: View,
    /// Serialised once, in the shape that most streams send.
    text: String,
}

/// Reads snapshots for streams and history until the daemon stops.
pub(crate) async fn run(state: Arc<AppState>) {
    let mut ticks = interval(FRAME_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sampled: Option<Instant> = None;
    let mut is_cut_off = false;
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = state.stopped() => return,
        }
        let sample_is_due =
            sampled.is_none_or(|at| at.elapsed() >= history::SAMPLE_INTERVAL - FRAME_INTERVAL / 4);
        let watched = state.frames.receiver_count() > 0;
        if !sample_is_due && !watched {
            continue;
        }
        // Requests report an unavailable store; here the next reading is soon enough.
        let view = Views::all(&state).await;
        let outage = match &view {
            Ok(view) => view.outage.as_ref().map(|outage| outage.detail.as_str()),
            Err(problem) => Some(problem.detail.as_str()),
        };
        log_outage(&mut is_cut_off, outage);
        let Ok(view) = view else { continue };
        if sample_is_due && view.outage.is_none() {
            sampled = Some(Instant::now());
            lock(&state.history).add(&view.snapshot);
        }
        if watched {
            let text = text(&state, &view, Snapshot::clone(&view.snapshot), DEFAULT_ROWS);
            state.frames.send_replace(Some(Arc::new(SnapshotFrame { view, text })));
        }
    }
}

/// Logs once that the store is unavailable, and once that it answers again.
fn log_outage(is_cut_off: &mut bool, outage: Option<&str>) {
    let was_cut_off = std::mem::replace(is_cut_off, outage.is_some());
    match outage {
        Some(detail) if !was_cut_off => tracing::warn!("the store is unavailable: {detail}"),
        None if was_cut_off => tracing::info!("the store answers again"),
        _ => {}
    }
}

fn text(state: &AppState, view: &View, snapshot: Snapshot, rows: usize) -> String {
    let response = PoolsResponse::new(state, snapshot.at_most(rows), view.outage.as_ref());
    serde_json::to_string(&response).unwrap_or_default()
}

/// The state of one stream of snapshots.
struct SnapshotStream {
    state: Arc<AppState>,
    frames: watch::Receiver<Option<Arc<SnapshotFrame>>>,
    only: Option<PoolName>,
    rows: Option<usize>,
    /// The first snapshot, until it is sent: it was read for this stream, so that it need not wait
    /// a second.
    first: Option<View>,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

/// Answers with a stream of snapshots.
pub(crate) fn stream(
    state: &Arc<AppState>,
    first: View,
    only: Option<PoolName>,
    rows: Option<usize>,
) -> Result<Response, Problem> {
    let stream = SnapshotStream {
        state: Arc::clone(state),
        frames: state.frames.subscribe(),
        only,
        rows,
        first: Some(first),
        ended: false,
        _permit: sse::permit(state)?,
    };
    let events = unfold(stream, |mut stream| async {
        let event = stream.next().await?;
        Some((Ok::<_, Infallible>(event), stream))
    });
    Ok(sse::response(events))
}

impl SnapshotStream {
    async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        if let Some(view) = self.first.take() {
            self.frames.mark_unchanged();
            return Some(self.event(&view, None));
        }
        let state = Arc::clone(&self.state);
        tokio::select! {
            changed = self.frames.changed() => changed.ok()?,
            () = state.stopped() => {
                self.ended = true;
                return Some(sse::bye());
            }
        }
        let frame = self.frames.borrow_and_update().clone()?;
        Some(self.event(&frame.view, Some(&frame.text)))
    }

    fn event(&self, view: &View, ready: Option<&String>) -> Event {
        let event = Event::default().event("pools");
        let is_default = self.only.is_none() && self.rows.unwrap_or(DEFAULT_ROWS) == DEFAULT_ROWS;
        if let Some(ready) = ready.filter(|_| is_default) {
            return event.data(ready);
        }
        let mut snapshot = Snapshot::clone(&view.snapshot);
        if let Some(only) = &self.only {
            snapshot.pools.retain(|pool| pool.pool == *only);
        }
        event.data(text(&self.state, view, snapshot, self.rows.unwrap_or(DEFAULT_ROWS)))
    }
}
