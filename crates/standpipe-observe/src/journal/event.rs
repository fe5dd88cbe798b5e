//! The events of the journal: one event, one line.
//!
//! Names inside an event are texts, not enums: a line that a newer version wrote is passed on byte
//! for byte.

mod kind;
mod wait_part;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use self::kind::{EventKind, UnknownEventKind};
pub use self::wait_part::WaitPart;
use super::Usage;
use super::usage::is_zero;
use crate::time::Timestamp;

/// One line of the journal.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When it was written down.
    pub at: Timestamp,
    /// On which pool; `*` when it is about the journal itself.
    pub pool: String,
    /// What happened.
    #[serde(flatten)]
    pub what: EventData,
}

/// What happened.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = What))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventData {
    /// Calls waited. Those of one agent, model, tier, reason and limit that end at about the same
    /// time are one line.
    Wait {
        /// Whose they were.
        agent: String,
        /// What they called.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// The tier they waited in.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        priority: Option<String>,
        /// What they waited for, or what they waited for longest.
        reason: String,
        /// The limit they waited for, if it was one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        limit: Option<String>,
        /// What was used of that limit and held by calls in flight when the first of them met it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        used: Option<u64>,
        /// What was usable of it then.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        usable: Option<u64>,
        /// The place of the first of them in the queue then.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        position: Option<u64>,
        /// The agents that held the slots then, a few at most.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        held_by: Vec<String>,
        /// What else they waited for. `waited_ms` includes it.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        also: Vec<WaitPart>,
        /// `admitted`, `refused`, `cancelled`, or `continued` if this pool granted the call and
        /// another one that it draws on had yet to.
        ended: String,
        /// The pool that was reserved next, if the call continued there.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        next: Option<String>,
        /// Why they were refused, if not because they timed out. A `refuse` event counts them too.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        refused_for: Option<String>,
        /// How many.
        count: u64,
        /// How long, all together.
        waited_ms: u64,
        /// How long the longest waited.
        longest_ms: u64,
    },
    /// Calls were not admitted, at once or for another reason than their timeout. Those of one
    /// agent, model, tier, reason and limit within ten seconds are one line.
    Refuse {
        /// Whose they were.
        agent: String,
        /// What they called.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// The tier they had.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        priority: Option<String>,
        /// Why.
        reason: String,
        /// The limit it was about, if it was one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        limit: Option<String>,
        /// How many units the first of them lacked there.
        #[serde(skip_serializing_if = "is_zero", default)]
        short_by: u64,
        /// Whether it is about the agent's own cap on the limit.
        #[serde(skip_serializing_if = "std::ops::Not::not", default)]
        by_cap: bool,
        /// The agents that held the slots at the first of them, a few at most.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        held_by: Vec<String>,
        /// How long the first of them would have waited.
        timeout_ms: u64,
        /// How many.
        count: u64,
    },
    /// In shadow mode a call was admitted that would have been held back.
    Shadow {
        /// Whose it was.
        agent: String,
        /// What it called.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        model: Option<String>,
        /// The reason that enforcement would have given.
        reason: String,
        /// The limit it is about.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        limit: Option<String>,
    },
    /// The provider refused a call.
    Throttle {
        /// The agent, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        agent: Option<String>,
        /// Its lease.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        lease: Option<String>,
        /// What it was about: `quota`, `concurrency`, `slow_down`, `overload`, `terminal`.
        about: String,
        /// The wait that the provider requested.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        retry_after_ms: Option<u64>,
        /// The provider's message, shortened, without secrets.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        said: Option<String>,
    },
    /// A provider's answer spoke of its limits.
    Observe {
        /// The lease of the call it answered.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        lease: Option<String>,
        /// The headers that speak of limits, as they came.
        headers: BTreeMap<String, String>,
    },
    /// A lease ended without being settled.
    Reclaim {
        /// Which.
        lease: String,
        /// Whose.
        agent: String,
        /// `expired` or `owner_gone`.
        why: String,
    },
    /// A lease was settled by somebody else than the process that holds it, which goes on.
    Settle {
        /// Which.
        lease: String,
        /// Whose, if known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        agent: Option<String>,
        /// Who settled it.
        by: String,
        /// The process that holds it.
        pid: u32,
    },
    /// A pause began: no call is admitted before its end.
    Pause {
        /// The end.
        until: Timestamp,
        /// In how long that was.
        for_ms: u64,
        /// The agent that ordered it; none after a refusal.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        by: Option<String>,
    },
    /// The pause is over.
    Resume {
        /// The agent that ended it by hand; none if it ended by itself.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        by: Option<String>,
    },
    /// The provider stopped the pool.
    Stop {
        /// The end, if it is known.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        until: Option<Timestamp>,
    },
    /// A process fell silent or died.
    SessionEnd {
        /// Which session.
        session: u64,
    },
    /// A process offered a configuration.
    Config {
        /// `applied`, or `kept` when another configuration counts.
        result: String,
        /// Where it came from: `file`, `code` or `change`.
        source: String,
    },
    /// The provider's window began anew.
    WindowReset {
        /// Of which limit.
        limit: String,
    },
    /// Several agents were throttled: calls go one at a time from now on, or no longer.
    Sequential {
        /// Whether it begins.
        on: bool,
    },
    /// The provider taught the size of a limit.
    Learn {
        /// Which.
        limit: String,
        /// How large it is.
        amount: u64,
    },
    /// How much quota is left has changed.
    Zone {
        /// `green`, `amber` or `red`.
        zone: String,
    },
    /// A background agent was denied for so long that it was served as a standard one, once.
    Promote {
        /// Who.
        agent: String,
    },
    /// The automatic margin of a rate changed.
    Margin {
        /// The limit.
        limit: String,
        /// The new margin, in thousandths.
        per_mille: u16,
    },
    /// The key is used outside Standpipe.
    Outside {
        /// On which limit.
        limit: String,
        /// What was charged for it now.
        units: u64,
        /// What counts of it in all.
        total: u64,
    },
    /// Calls are forecast to have to wait, or no longer.
    Breaker {
        /// Whether it begins.
        on: bool,
    },
    /// A client of the proxy retries on its own, on top of the proxy's retries.
    ClientRetry {
        /// Whose call it was.
        agent: String,
        /// The program or SDK, as it names itself.
        client: String,
        /// The client does not count its retries: it repeated a call that had just been refused.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        guessed: bool,
    },
    /// A value that the provider sent was implausible and ignored.
    Anomaly {
        /// Which header or field.
        about: String,
        /// The value, shortened.
        value: String,
        /// Why not.
        why: String,
    },
    /// The store became unavailable or available again, or lost something.
    Store {
        /// In words.
        what: String,
    },
    /// What an agent used.
    Usage(Usage),
    /// A process could not write all of its lines.
    Lost {
        /// The number of lines dropped since the last such event.
        lines: u64,
    },
}

/// The pool that logs which agents are throttled. No caller names it, so views leave it out.
pub const LOG_POOL: &str = "standpipe/board";

impl Event {
    /// Returns whether the event is about the log of throttled agents, which no view shows unasked.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        self.pool == LOG_POOL
    }

    /// Returns the position of the event among others: by time, and of one instant the refusal
    /// before the pause and the margin that it caused.
    pub(super) fn order(&self) -> (Timestamp, bool) {
        (self.at, !matches!(self.what, EventData::Throttle { .. }))
    }
}

impl EventData {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::Wait { .. } => EventKind::Wait,
            Self::Refuse { .. } => EventKind::Refuse,
            Self::Shadow { .. } => EventKind::Shadow,
            Self::Throttle { .. } => EventKind::Throttle,
            Self::Observe { .. } => EventKind::Observe,
            Self::Reclaim { .. } => EventKind::Reclaim,
            Self::Settle { .. } => EventKind::Settle,
            Self::Pause { .. } => EventKind::Pause,
            Self::Resume { .. } => EventKind::Resume,
            Self::Stop { .. } => EventKind::Stop,
            Self::SessionEnd { .. } => EventKind::SessionEnd,
            Self::Config { .. } => EventKind::Config,
            Self::WindowReset { .. } => EventKind::WindowReset,
            Self::Sequential { .. } => EventKind::Sequential,
            Self::Learn { .. } => EventKind::Learn,
            Self::Zone { .. } => EventKind::Zone,
            Self::Promote { .. } => EventKind::Promote,
            Self::Margin { .. } => EventKind::Margin,
            Self::Outside { .. } => EventKind::Outside,
            Self::Breaker { .. } => EventKind::Breaker,
            Self::ClientRetry { .. } => EventKind::ClientRetry,
            Self::Anomaly { .. } => EventKind::Anomaly,
            Self::Store { .. } => EventKind::Store,
            Self::Usage(_) => EventKind::Usage,
            Self::Lost { .. } => EventKind::Lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_says_its_kind() {
        let reclaim = EventData::Reclaim {
            lease: "lease1_x".to_owned(),
            agent: "blog".to_owned(),
            why: "expired".to_owned(),
        };
        for what in [reclaim, EventData::Resume { by: None }, EventData::Stop { until: None }] {
            let event = Event { at: Timestamp { millis: 7 }, pool: "a/b".to_owned(), what };
            let line = serde_json::to_string(&event).unwrap();
            let kind = format!("\"kind\":\"{}\"", event.what.kind());
            assert!(line.contains(&kind), "{line}");
            assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
        }
        for kind in EventKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        // Lines of older versions that gave the used share are skipped, not read the wrong way.
        let old = r#"{"at":"2026-01-31T12:00:00.000Z","pool":"a/b","kind":"KIND",
            "limit":"requests per 1min","per_mille":810}"#;
        assert!(serde_json::from_str::<Event>(&old.replace("KIND", "margin")).is_ok());
        assert!(serde_json::from_str::<Event>(&old.replace("KIND", "headroom")).is_err());
        assert!("waits".parse::<EventKind>().unwrap_err().to_string().contains("wait, refuse"));
    }
}
