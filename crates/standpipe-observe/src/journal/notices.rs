//! What the ledger reports beside its answers, as the journal keeps it.

use standpipe_core::{Notice, Reclaim};
use standpipe_store::PoolName;

use crate::journal::EventData;
use crate::lease_id::LeaseId;
use crate::refusal::limit_text;
use crate::time::{Now, Timestamp, format_ms};

/// Returns when what a notice reports happened, if that may be before the event that shows it.
#[must_use]
pub fn instant_of_notice(notice: &Notice, now: &Now) -> Option<Timestamp> {
    match notice {
        Notice::Resumed { at, .. } => Some(now.past(*at)),
        _ => None,
    }
}

/// The journal's line for a notice.
#[must_use]
pub fn event_of_notice(pool: &PoolName, notice: &Notice, now: &Now) -> Option<EventData> {
    Some(match notice {
        Notice::Reclaimed { lease, agent, why } => EventData::Reclaim {
            lease: LeaseId::new(pool.clone(), *lease).to_string(),
            agent: agent.to_string(),
            why: match why {
                Reclaim::Expired => "expired".to_owned(),
                Reclaim::OwnerGone => "owner_gone".to_owned(),
            },
        },
        Notice::SessionEnded { session } => EventData::SessionEnd { session: *session },
        Notice::Paused { until, by } => EventData::Pause {
            until: now.ahead(*until),
            for_ms: now.millis_until(*until),
            by: by.as_ref().map(ToString::to_string),
        },
        Notice::Resumed { by, .. } => {
            EventData::Resume { by: by.as_ref().map(ToString::to_string) }
        }
        Notice::Stopped { until } => EventData::Stop { until: until.map(|until| now.ahead(until)) },
        Notice::WindowReset { limit } => EventData::WindowReset { limit: limit_text(limit) },
        Notice::Sequential { on } => EventData::Sequential { on: *on },
        Notice::Learned { limit, amount } => {
            EventData::Learn { limit: limit_text(limit), amount: *amount }
        }
        Notice::Zone { zone } => EventData::Zone { zone: zone.as_str().to_owned() },
        Notice::Promoted { agent, .. } => EventData::Promote { agent: agent.to_string() },
        Notice::Margin { limit, per_mille } => {
            EventData::Margin { limit: limit_text(limit), per_mille: *per_mille }
        }
        Notice::Outside { limit, units, total } => {
            EventData::Outside { limit: limit_text(limit), units: *units, total: *total }
        }
        Notice::Breaker { on } => EventData::Breaker { on: *on },
        Notice::Unbelieved { retry_after } => EventData::Anomaly {
            about: "retry-after".to_owned(),
            value: retry_after.map(|said| format!("{} s", said.0 / 1_000_000)).unwrap_or_default(),
            why: "longer than 8 days".to_owned(),
        },
        Notice::ReadingIgnored { limit, remaining, full_in } => EventData::Anomaly {
            about: limit_text(limit),
            value: format!("{remaining} remaining"),
            why: format!(
                "all of it is free again in {}, too soon for this limit: it is about a smaller \
                 burst limit",
                format_ms(full_in.0 / 1_000)
            ),
        },
        // Written by those who report or wait: they know more of it.
        Notice::Throttled { .. } | Notice::TicketEnded { .. } | Notice::Waited { .. } => {
            return None;
        }
    })
}
