//! The events of the journal: one event, one line.
//!
//! Names inside an event are texts, not enums: a line that a newer version wrote is passed on byte
//! for byte.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Usage;
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
        /// What they first waited for.
        reason: String,
        /// The limit they first waited for, if it was one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        limit: Option<String>,
        /// What was used of that limit and held by calls in flight when the first wait began.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        used: Option<u64>,
        /// What was usable of it then.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        usable: Option<u64>,
        /// The first wait's place in the queue when it began.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        position: Option<u64>,
        /// `admitted`, `refused` or `cancelled`.
        ended: String,
        /// How many.
        count: u64,
        /// How long, all together.
        waited_ms: u64,
        /// How long the longest waited.
        longest_ms: u64,
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
    Resume,
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
    Doubt {
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

/// The kinds of events, to choose by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EventKind {
    /// See [`EventData::Wait`].
    Wait,
    /// See [`EventData::Shadow`].
    Shadow,
    /// See [`EventData::Throttle`].
    Throttle,
    /// See [`EventData::Observe`].
    Observe,
    /// See [`EventData::Reclaim`].
    Reclaim,
    /// See [`EventData::Pause`].
    Pause,
    /// See [`EventData::Resume`].
    Resume,
    /// See [`EventData::Stop`].
    Stop,
    /// See [`EventData::SessionEnd`].
    SessionEnd,
    /// See [`EventData::Config`].
    Config,
    /// See [`EventData::WindowReset`].
    WindowReset,
    /// See [`EventData::Sequential`].
    Sequential,
    /// See [`EventData::Learn`].
    Learn,
    /// See [`EventData::Zone`].
    Zone,
    /// See [`EventData::Promote`].
    Promote,
    /// See [`EventData::Margin`].
    Margin,
    /// See [`EventData::Outside`].
    Outside,
    /// See [`EventData::Breaker`].
    Breaker,
    /// See [`EventData::ClientRetry`].
    ClientRetry,
    /// See [`EventData::Doubt`].
    Doubt,
    /// See [`EventData::Store`].
    Store,
    /// See [`EventData::Usage`].
    Usage,
    /// See [`EventData::Lost`].
    Lost,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 23] = [
        Self::Wait,
        Self::Shadow,
        Self::Throttle,
        Self::Observe,
        Self::Reclaim,
        Self::Pause,
        Self::Resume,
        Self::Stop,
        Self::SessionEnd,
        Self::Config,
        Self::WindowReset,
        Self::Sequential,
        Self::Learn,
        Self::Zone,
        Self::Promote,
        Self::Margin,
        Self::Outside,
        Self::Breaker,
        Self::ClientRetry,
        Self::Doubt,
        Self::Store,
        Self::Usage,
        Self::Lost,
    ];

    /// The word for it, as in the lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Shadow => "shadow",
            Self::Throttle => "throttle",
            Self::Observe => "observe",
            Self::Reclaim => "reclaim",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Stop => "stop",
            Self::SessionEnd => "session_end",
            Self::Config => "config",
            Self::WindowReset => "window_reset",
            Self::Sequential => "sequential",
            Self::Learn => "learn",
            Self::Zone => "zone",
            Self::Promote => "promote",
            Self::Margin => "margin",
            Self::Outside => "outside",
            Self::Breaker => "breaker",
            Self::ClientRetry => "client_retry",
            Self::Doubt => "doubt",
            Self::Store => "store",
            Self::Usage => "usage",
            Self::Lost => "lost",
        }
    }
}

impl Event {
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
            Self::Shadow { .. } => EventKind::Shadow,
            Self::Throttle { .. } => EventKind::Throttle,
            Self::Observe { .. } => EventKind::Observe,
            Self::Reclaim { .. } => EventKind::Reclaim,
            Self::Pause { .. } => EventKind::Pause,
            Self::Resume => EventKind::Resume,
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
            Self::Doubt { .. } => EventKind::Doubt,
            Self::Store { .. } => EventKind::Store,
            Self::Usage(_) => EventKind::Usage,
            Self::Lost { .. } => EventKind::Lost,
        }
    }
}

/// A word that is no kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownEventKind;

impl fmt::Display for UnknownEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such kind of event; use one of:")?;
        for (at, kind) in EventKind::ALL.into_iter().enumerate() {
            write!(f, "{} {}", if at == 0 { "" } else { "," }, kind.as_str())?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownEventKind {}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EventKind {
    type Err = UnknownEventKind;

    fn from_str(word: &str) -> Result<Self, UnknownEventKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or(UnknownEventKind)
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
        for what in [reclaim, EventData::Resume, EventData::Stop { until: None }] {
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
        assert!("waits".parse::<EventKind>().unwrap_err().to_string().contains("wait, shadow"));
    }
}
