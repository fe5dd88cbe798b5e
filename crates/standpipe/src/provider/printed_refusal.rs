//! Refusals that a program's message reports, and not a provider's answer.
//!
//! Programs repeat such messages from a cache long after the limit was reset. Before one pauses a
//! pool it is checked against what the ledger knows of the reset. A message is rejected only if the
//! ledger has evidence against it; without evidence the pool pauses.

use std::time::Duration;

use standpipe_core::{State, ThrottleKind};

use crate::client::operation::Operation;
use crate::error::Error;
use crate::journal::{Event, EventData, EventKind};
use crate::moment::{Now, Timestamp};
use crate::pool::Pool;
use crate::status::PoolStatus;

/// How far back the journal is searched for an announced reset: as long as refusals are kept.
const KEPT: Duration = Duration::from_secs(8 * 86_400);

/// The share of each rate that must be left, in percent, for a pool to count as healthy.
const HEALTHY_PERCENT: u64 = 10;

impl Pool {
    /// Returns why a message about a reached limit is rejected, if the ledger has evidence against
    /// it: the provider reported room since, or the reset that it announced with its last refusal
    /// has passed and calls were served after it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn check_refusal(&self) -> Operation<Option<String>> {
        self.operation(Self::check_refusal_now)
    }

    fn check_refusal_now(&self) -> Result<Option<String>, Error> {
        let known = self.read_state(|state, now| {
            let healthy = state.facts().pause.is_none() && has_room(state, now);
            let served = state.facts().throttling.streak == 0;
            (healthy, served, reported_room(state, now))
        })?;
        let (healthy, served, reported) = known;
        if !healthy {
            return Ok(None);
        }
        if let Some(limit) = reported {
            return Ok(Some(format!("the provider reported room on {limit} since")));
        }
        let passed = self.announced_reset().filter(|reset| served && *reset < Timestamp::now());
        Ok(passed
            .map(|reset| format!("the limit was reset at {reset} and calls were served since")))
    }

    /// Writes to the journal that a message was rejected.
    pub fn note_anomaly(&self, about: &str, why: &str) {
        let (about, why) = (about.to_owned(), why.to_owned());
        if let Ok(handle) = self.tap().store_handle() {
            let anomaly = EventData::Anomaly { about, value: String::new(), why };
            handle.store_client().journal().note(self.name(), anomaly);
        }
    }

    /// Returns the reset that came with the last refusal for quota.
    fn announced_reset(&self) -> Option<Timestamp> {
        let since = std::time::SystemTime::now().checked_sub(KEPT);
        let all = self.tap().journal().events(since, Some(EventKind::Throttle));
        let mut ours = all.filter(|event| event.pool == self.name().as_str());
        ours.rfind(is_quota).and_then(|event| match event.what {
            EventData::Throttle { retry_after_ms, .. } => {
                Some(Timestamp { millis: event.at.millis.saturating_add(retry_after_ms?) })
            }
            _ => None,
        })
    }
}

fn is_quota(event: &Event) -> bool {
    let quota = ThrottleKind::Quota.as_str();
    matches!(&event.what, EventData::Throttle { about, .. } if about == quota)
}

/// Returns whether every rate of the pool has room.
fn has_room(state: &State, now: &Now) -> bool {
    let limits = PoolStatus::limits_of(state, now);
    let mut rates = limits.iter().filter(|limit| limit.period_ms.is_some());
    rates
        .all(|rate| rate.left.saturating_mul(100) >= rate.effective.saturating_mul(HEALTHY_PERCENT))
}

/// Returns a limit of which the provider reported what is left, within its period and since its
/// last refusal. With [`has_room`] that report left room.
fn reported_room(state: &State, now: &Now) -> Option<String> {
    let facts = state.facts();
    let refused = facts.throttling.incident.as_ref().map(|incident| incident.at);
    let reports = facts.external.iter().filter(|report| {
        let recent =
            report.limit.period().is_some_and(|period| now.store.since(report.last_seen) <= period);
        recent && refused.is_none_or(|refused| refused < report.last_seen)
    });
    reports.map(|report| crate::refused::limit_text(&report.limit)).next()
}
