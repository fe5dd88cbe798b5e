//! What goes in, an answer as it came, and what comes out, what it means. Plain values.

use std::borrow::Cow;
use std::time::Duration;

use crate::doubt::Doubt;
use crate::usage::Usage;

/// A provider's answer as it came.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The HTTP status.
    pub status: u16,
    /// Names, in any case, and values.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, without content encoding; may be empty or only a beginning.
    pub body: &'a [u8],
    /// When it was received, by the local clock, in milliseconds since 1970; 0 if that is not
    /// known. Used only where the answer has no `date` that can be believed.
    pub received: u64,
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it was a refusal.
    pub verdict: Verdict,
    /// The limits it told of.
    pub limits: Vec<LimitSeen>,
    /// What the call used, if it says so.
    pub usage: Option<Usage>,
    /// What it said and was not believed.
    pub doubts: Vec<Doubt>,
}

/// Whether a call was served, refused, or failed for reasons of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Served.
    Ok,
    /// The provider said no, for a reason that concerns everybody on the pool.
    Refused(Refused),
    /// An error that says nothing about quota.
    NotOurs {
        /// Whether the same call may be tried again.
        transient: bool,
    },
}

/// A refusal that concerns everybody on the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What it is about.
    pub kind: Kind,
    /// How long to wait, if it says so. Of a terminal one, until it ends, if that is known and
    /// within eight days.
    pub wait: Option<Duration>,
    /// What the limit that was hit counts, if it says so.
    pub unit: Option<Cow<'static, str>>,
    /// The period of the limit that was hit, if it says so.
    pub period: Option<Duration>,
    /// The provider's words, shortened, without control characters and without anything that looks
    /// like a key or an account.
    pub message: String,
}

/// What a refusal is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A rate was exceeded.
    Quota,
    /// Too many calls in flight.
    Concurrency,
    /// The rate grew too fast.
    SlowDown,
    /// The provider is short of capacity; nobody's quota is at fault.
    Overload,
    /// Nothing will be served for long: a spend cap, a daily quota, an empty account.
    Terminal,
}

impl Kind {
    /// The word for it everywhere.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quota => "quota",
            Self::Concurrency => "concurrency",
            Self::SlowDown => "slow_down",
            Self::Overload => "overload",
            Self::Terminal => "terminal",
        }
    }
}

/// What an answer said of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitSeen {
    /// What it counts: `requests`, `input_tokens`, `output_tokens`, `tokens`, `points`, `content`,
    /// `bytes`; `parallel` for calls in flight; `budget` where only a share of it is told.
    pub unit: Cow<'static, str>,
    /// Its period, when known.
    pub period: Option<Duration>,
    /// The limit.
    pub limit: Option<u64>,
    /// What is left of it.
    pub remaining: Option<u64>,
    /// What `remaining` is rounded to; 1 is exact.
    pub coarse: u64,
    /// How long until it resets, from the answer's date.
    pub reset_in: Option<Duration>,
    /// What resetting means.
    pub reset: ResetMeans,
    /// The share that is used, in parts per million, where the provider tells that instead.
    pub utilization: Option<u32>,
    /// What the provider calls it: `5h`, `core`, `burst`.
    pub name: Option<String>,
}

/// What happens at the instant a provider calls a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetMeans {
    /// A bucket is full again; calls are let through long before.
    Full,
    /// A fixed window ends and the count begins anew.
    WindowEnds,
    /// It does not say.
    Unknown,
}
