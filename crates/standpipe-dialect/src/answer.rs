//! The input and output of reading: a provider's [`Response`] in, an [`Answer`] out. Plain values.
//!
//! [`Dialect::read`](crate::Dialect::read) turns the first into the second.

use std::borrow::Cow;
use std::time::Duration;

use crate::anomaly::Anomaly;
use crate::usage::Usage;

/// A provider's HTTP response.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The HTTP status.
    pub status: u16,
    /// Names, in any letter case, and values.
    pub headers: &'a [(&'a str, &'a str)],
    /// The decoded body. It may be empty or truncated.
    pub body: &'a [u8],
    /// When the response was received, by the local clock, in milliseconds since 1970; 0 if
    /// unknown. Used only if the response has no plausible `date` header.
    pub received: u64,
}

/// What a response says about limits, usage and refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether the provider served, refused or failed the call.
    pub verdict: Verdict,
    /// The limits that the response states.
    pub limits: Vec<LimitSeen>,
    /// What the call used, if the response states it.
    pub usage: Option<Usage>,
    /// The values that were rejected as implausible.
    pub anomalies: Vec<Anomaly>,
}

/// Whether the provider served, refused or failed a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The provider served the call.
    Ok,
    /// The provider refused the call for a reason that affects every caller of the pool.
    Refused(Refused),
    /// The call failed with an error that says nothing about quota.
    Failed {
        /// Whether retrying the same call can succeed.
        transient: bool,
    },
}

/// A refusal that affects every caller of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The reason for the refusal.
    pub kind: Kind,
    /// How long to wait, if the response states it, at most [`WAIT`](crate::bounds::WAIT). For
    /// [`Kind::Terminal`] until calls are served again, at most
    /// [`TERMINAL_WAIT`](crate::bounds::TERMINAL_WAIT).
    pub wait: Option<Duration>,
    /// The unit of the exceeded limit, if the response states it.
    pub unit: Option<Cow<'static, str>>,
    /// The period of the exceeded limit, if the response states it.
    pub period: Option<Duration>,
    /// The provider's error message: one short line without control characters, with anything
    /// that looks like a key or an account masked.
    pub message: String,
}

/// The reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rate limit was exceeded.
    Quota,
    /// Too many calls are in flight.
    Concurrency,
    /// The call rate rose too fast.
    SlowDown,
    /// The provider lacks capacity; the caller's quota is not exceeded.
    Overload,
    /// The provider serves nothing for hours or longer: a spend cap, a daily quota, an empty
    /// account.
    Terminal,
}

impl Kind {
    /// The name of the kind in configuration, logs and the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Concurrency => "concurrency",
            Self::SlowDown => "slow_down",
            Self::Overload => "overload",
            Self::Terminal => "terminal",
        }
    }
}

/// One limit as a response states it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSeen {
    /// What the limit counts: `requests`, `input_tokens`, `output_tokens`, `tokens`, `points`,
    /// `content`, `bytes`; `parallel` for calls in flight; `budget` if the provider states only a
    /// share.
    pub unit: Cow<'static, str>,
    /// The period, if known.
    pub period: Option<Duration>,
    /// The limit itself.
    pub limit: Option<u64>,
    /// What remains of the limit.
    pub remaining: Option<u64>,
    /// The step that the provider rounds `remaining` to; 1 means exact.
    pub coarse: u64,
    /// The time until the reset, counted from the response's date.
    pub reset_in: Option<Duration>,
    /// What happens at the reset.
    pub reset: ResetMeans,
    /// The share used, in parts per million, if the provider states that instead of counts.
    pub utilization: Option<u32>,
    /// The provider's name for the limit: `5h`, `core`, `burst`.
    pub name: Option<String>,
}

/// What happens at the instant that a provider calls a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetMeans {
    /// A token bucket is full again. Calls are admitted long before.
    Full,
    /// A fixed window ends and its count starts from zero.
    WindowEnds,
    /// The provider does not document it.
    Unknown,
}
