//! The kinds of events, and the words for them in lines, flags and queries.

use std::fmt;
use std::str::FromStr;

#[cfg(doc)]
use super::EventData;

/// The kinds of events, to choose by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EventKind {
    /// See [`EventData::Wait`].
    Wait,
    /// See [`EventData::Refuse`].
    Refuse,
    /// See [`EventData::Shadow`].
    Shadow,
    /// See [`EventData::Throttle`].
    Throttle,
    /// See [`EventData::Observe`].
    Observe,
    /// See [`EventData::Reclaim`].
    Reclaim,
    /// See [`EventData::Settle`].
    Settle,
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
    /// See [`EventData::Anomaly`].
    Anomaly,
    /// See [`EventData::Store`].
    Store,
    /// See [`EventData::Usage`].
    Usage,
    /// See [`EventData::Lost`].
    Lost,
}

impl EventKind {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Self::Wait,
        Self::Refuse,
        Self::Shadow,
        Self::Throttle,
        Self::Observe,
        Self::Reclaim,
        Self::Settle,
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
        Self::Anomaly,
        Self::Store,
        Self::Usage,
        Self::Lost,
    ];

    /// The word for it, as in the lines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Refuse => "refuse",
            Self::Shadow => "shadow",
            Self::Throttle => "throttle",
            Self::Observe => "observe",
            Self::Reclaim => "reclaim",
            Self::Settle => "settle",
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
            Self::Anomaly => "anomaly",
            Self::Store => "store",
            Self::Usage => "usage",
            Self::Lost => "lost",
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
