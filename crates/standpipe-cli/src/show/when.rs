//! When a call may be admitted, in the time zone of this machine.

use standpipe::observe::{TicketStatus, Timestamp, Why};
use standpipe::{Refused, When};

use crate::show::local_time::clock;

/// Describes when a call may be admitted.
pub(crate) fn when(when: &When) -> String {
    when.describe(&local)
}

/// Describes why a call is not admitted, and when it may be or what must happen first.
pub(crate) fn why_and_when(why: &Why<'_>, at: &When) -> String {
    // These name what must happen already.
    let is_named = at.waiting_for.is_some() && ["order", "probe"].contains(&why.reason);
    let text = match why.paused {
        Some(order) => format!("paused by {} at {}", order.by, clock(order.at)),
        None => why.to_string(),
    };
    match at.is_empty() || is_named {
        true => text,
        false => format!("{text}, {}", when(at)),
    }
}

/// Describes why a call waits, and until when.
pub(crate) fn wait_reason(ticket: &TicketStatus) -> String {
    match ticket.why() {
        Some(why) => why_and_when(&why, &ticket.when),
        None => "it is next".to_owned(),
    }
}

/// Describes a reason of the admission rule, about a limit.
pub(crate) fn reason_text(reason: &str, limit: Option<&str>) -> String {
    Why { reason, limit, short_by: 0, behind: None, ahead: &[], kept: &[], paused: None }
        .to_string()
}

/// Describes a refusal.
pub(crate) fn refused(refused: &Refused) -> String {
    refused.describe(&local)
}

fn local(at: Timestamp, _ms: u64) -> String {
    clock(at)
}
