//! What the ledger reports beside its answers, as the journal keeps it.

use standpipe_core::{Notice, Reclaim};
use standpipe_store::PoolName;

use crate::journal::What;
use crate::lease_id::LeaseId;
use crate::moment::Now;
use crate::refused::limit_text;

/// The journal's line for a notice.
pub(crate) fn event(pool: &PoolName, notice: &Notice, now: &Now) -> Option<What> {
    Some(match notice {
        Notice::Reclaimed { lease, agent, why } => What::Reclaim {
            lease: LeaseId::new(pool.clone(), *lease).to_string(),
            agent: agent.to_string(),
            why: match why {
                Reclaim::Expired => "expired".to_owned(),
                Reclaim::OwnerGone => "owner_gone".to_owned(),
            },
        },
        Notice::SessionEnded { session } => What::SessionEnd { session: *session },
        Notice::Paused { until } => {
            What::Pause { until: now.ahead(*until), for_ms: now.millis_until(*until) }
        }
        Notice::Resumed => What::Resume,
        Notice::Stopped { until } => What::Stop { until: until.map(|until| now.ahead(until)) },
        Notice::WindowReset { limit } => What::WindowReset { limit: limit_text(limit) },
        Notice::Sequential { on } => What::Sequential { on: *on },
        Notice::Learned { limit, amount } => {
            What::Learn { limit: limit_text(limit), amount: *amount }
        }
        Notice::Zone { zone } => What::Zone { zone: zone.as_str().to_owned() },
        Notice::Promoted { agent, .. } => What::Promote { agent: agent.to_string() },
        Notice::Margin { limit, per_mille } => {
            What::Margin { limit: limit_text(limit), per_mille: *per_mille }
        }
        Notice::Outside { limit, units, total } => {
            What::Outside { limit: limit_text(limit), units: *units, total: *total }
        }
        Notice::Breaker { on } => What::Breaker { on: *on },
        Notice::Unbelieved { retry_after } => What::Doubt {
            about: "retry-after".to_owned(),
            value: retry_after.map(|said| format!("{} s", said.0 / 1_000_000)).unwrap_or_default(),
            why: "longer than 8 days".to_owned(),
        },
        // Written by those who report or wait: they know more of it.
        Notice::Throttled { .. } | Notice::TicketEnded { .. } | Notice::Waited { .. } => {
            return None;
        }
    })
}
