//! A refusal as callers see it: why, about which limit, and when it is worth asking again.

pub mod when;

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use standpipe_core::{LimitId, Reason, Refusal, Unit};
use standpipe_store::PoolName;

pub use self::when::When;
use crate::status::Backpressure;
use crate::time::{Now, Timestamp, format_span};
use standpipe_config::plain;

/// A call that may not be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The pool.
    pub pool: PoolName,
    /// The first reason of the admission rule; [`Reason::Deadline`] when the call timed out in the
    /// queue.
    pub reason: Reason,
    /// What a call that timed out was waiting for at the end.
    pub waited_for: Option<Reason>,
    /// The limit it is about, for example `requests per 1min`.
    pub limit: Option<String>,
    /// How many units are missing there.
    pub short_by: u64,
    /// In fair order, the agent whose call is first in the queue for the limit.
    pub behind: Option<String>,
    /// When the call is admitted: at this instant if it is `exact`, and not before it otherwise.
    /// `None` if no instant is known; [`Refused::waiting_for`] returns what must happen then.
    pub until: Option<SystemTime>,
    /// Whether the call is admitted at `until` if nothing else happens. Otherwise `until` is a
    /// lower bound.
    pub exact: bool,
    /// The time from the refusal to `until`, rounded up to a whole millisecond.
    pub retry_after: Option<Duration>,
    /// Its place in the queue, from 1; `None` if it was never queued.
    pub position: Option<usize>,
    /// The time the call had waited.
    pub waited: Duration,
    /// An agent upstream of this one is throttled, on any pool.
    pub backpressure: Option<Backpressure>,
    /// Processes that hold leases and are stopped (`SIGSTOP`), a few at most.
    pub stopped_holders: Vec<u32>,
}

impl Refused {
    /// Whether no waiting helps, because the call is larger than a limit.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.reason == Reason::Never
    }

    /// Whether the provider stopped the pool for good.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.reason == Reason::Terminal
    }

    /// Returns what must happen before the call is admitted, if no instant is known:
    /// `a call in flight to end`. `None` if `until` is known or nothing helps.
    #[must_use]
    pub fn waiting_for(&self) -> Option<&'static str> {
        if self.until.is_some() {
            return None;
        }
        when::waiting_for(self.waited_for.unwrap_or(self.reason))
    }

    /// Returns when the call may be admitted, as every face shows it.
    #[must_use]
    pub fn when(&self) -> When {
        // At least 1 ms, so that no caller retries in a busy loop.
        let ms = self.retry_after.map_or(0, millis).max(1);
        let at = self.until.map(|until| (Timestamp::not_before(until), ms));
        When::new(at, self.exact, self.waiting_for())
    }

    /// A refusal by the ledger, on the clocks of this process.
    #[must_use]
    pub fn new(pool: &PoolName, refusal: &Refusal, now: &Now) -> Self {
        let until = when::instant(refusal);
        Self {
            pool: pool.clone(),
            reason: refusal.reason,
            waited_for: None,
            limit: refusal.limit.as_ref().map(limit_text),
            short_by: refusal.short_by,
            behind: refusal.behind.as_ref().map(ToString::to_string),
            until: until.map(|until| now.system(until)),
            exact: refusal.exact,
            retry_after: until.map(|until| now.until(until)),
            position: None,
            waited: Duration::ZERO,
            backpressure: None,
            stopped_holders: Vec::new(),
        }
    }

    /// Creates the refusal of a pool that the provider stopped, where the end is not known.
    pub fn stopped(pool: &PoolName) -> Self {
        Self {
            pool: pool.clone(),
            reason: Reason::Terminal,
            waited_for: None,
            limit: None,
            short_by: 0,
            behind: None,
            until: None,
            exact: false,
            retry_after: None,
            position: None,
            waited: Duration::ZERO,
            backpressure: None,
            stopped_holders: Vec::new(),
        }
    }

    /// Marks it as timed out after waiting so long.
    pub fn in_vain(mut self, waited: Duration, position: Option<usize>) -> Self {
        if self.reason != Reason::Deadline {
            self.waited_for = Some(self.reason);
        }
        self.reason = Reason::Deadline;
        self.waited = waited;
        self.position = position;
        self
    }
}

/// What a limit is called in answers: `requests per 1min`, `parallel`.
pub fn limit_text(limit: &LimitId) -> String {
    match limit {
        LimitId::Window(unit, period) => format!("{unit} per {}", format_span(*period)),
        LimitId::Bucket(unit, period) => format!("{unit} refilled per {}", format_span(*period)),
        LimitId::Parallel => "parallel".to_owned(),
        LimitId::Unanswered => "unanswered calls".to_owned(),
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pool, reason, .. } = self;
        match reason {
            Reason::Never => return self.fmt_never(f),
            Reason::Terminal => write!(f, "the provider stopped `{pool}`")?,
            Reason::QueueFull => {
                write!(f, "`{pool}` is full: too many calls are queued or in flight")?;
            }
            Reason::Deadline => {
                let waited = short(self.waited);
                write!(f, "not in time on `{pool}`: waited {waited}")?;
                self.fmt_why(f, self.waited_for)?;
            }
            _ => {
                write!(f, "not admitted on `{pool}`")?;
                self.fmt_why(f, Some(*reason))?;
            }
        }
        match self.when() {
            when if when.is_empty() => Ok(()),
            when if when.until.is_some() => write!(f, "; ask again {when}"),
            when => write!(f, "; {when}"),
        }?;
        self.fmt_stopped(f)
    }
}

impl Refused {
    /// What is missing, in the words of its unit.
    fn shortage(&self) -> String {
        let of = self.limit.as_deref().and_then(|limit| limit.split(' ').next());
        let unit = of.and_then(Unit::named).unwrap_or(Unit::Requests);
        let figure = plain::amount(&unit, self.short_by);
        if unit == Unit::Usd { format!("${figure}") } else { self.short_by.to_string() }
    }

    fn fmt_stopped(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pid in &self.stopped_holders {
            write!(
                f,
                "; process {pid} holds a lease and is stopped (kill -CONT {pid} resumes it)"
            )?;
        }
        Ok(())
    }

    /// Whether the call waited for a call in flight to end.
    #[must_use]
    pub fn waits_for_a_slot(&self) -> bool {
        let why = self.waited_for.unwrap_or(self.reason);
        let for_room = matches!(why, Reason::Limit | Reason::Order | Reason::Floor);
        for_room && self.limit.as_deref() == Some("parallel")
    }

    fn fmt_never(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pool, short_by) = (&self.pool, self.shortage());
        match &self.limit {
            Some(limit) => write!(
                f,
                "this call can never fit `{pool}`: it takes {short_by} more than {limit} ever \
                 allows; make it smaller or raise the limit"
            ),
            None => write!(f, "this call can never fit `{pool}`"),
        }
    }

    fn fmt_why(&self, f: &mut fmt::Formatter<'_>, why: Option<Reason>) -> fmt::Result {
        let limit = self.limit.as_deref().unwrap_or("a limit");
        match why {
            Some(Reason::Pause) => f.write_str(": the pool is paused"),
            Some(Reason::ReturnWindow) => {
                f.write_str(": a pause has just ended, and callers return staggered by priority")
            }
            Some(Reason::Zone) => {
                write!(f, ": little is left of {limit}, so the calls of this agent are spaced out")
            }
            Some(Reason::Yield) => {
                write!(f, ": little is left of {limit}, and background yields to higher priorities")
            }
            Some(Reason::Spread) => write!(
                f,
                ": background waits so that {limit} lasts while higher priorities are active"
            ),
            Some(Reason::Hold) => f.write_str(
                ": it is delayed before a retry, or because an agent it depends on is throttled",
            ),
            Some(Reason::Probe) => {
                f.write_str(": the probe after a pause has not been answered yet")
            }
            Some(Reason::Sequential) => {
                f.write_str(": several agents were throttled, so calls go one at a time")
            }
            Some(Reason::RetryBudget) => {
                f.write_str(": too many of the last minute's calls were retries")
            }
            Some(Reason::Cap) => {
                write!(
                    f,
                    ": the agent's own cap on {limit} is reached (short by {})",
                    self.shortage()
                )
            }
            Some(Reason::Order) => match &self.behind {
                Some(agent) => write!(f, ": behind {agent} by fair order for {limit}"),
                None => write!(f, ": other calls are ahead in the queue for {limit}"),
            },
            Some(Reason::Limit) => {
                write!(f, ": {limit} has no room (short by {})", self.shortage())
            }
            Some(Reason::Floor) => {
                write!(f, ": the rest of {limit} is reserved for the floors of other agents")
            }
            Some(Reason::Pace) => write!(f, ": too soon after the last call ({limit})"),
            Some(Reason::Learning) if self.limit.is_some() => f.write_str(
                ": the store lost the ledger, and calls in flight are being counted again",
            ),
            Some(Reason::Learning) => {
                f.write_str(": the provider's limits are not known yet, so few calls run at a time")
            }
            Some(Reason::QueueFull) => f.write_str(": too many calls are in flight"),
            _ => Ok(()),
        }
    }
}

/// The JSON form of a refusal.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Refused))]
pub struct RefusedJson {
    /// The pool.
    pool: String,
    /// The first reason of the admission rule.
    reason: &'static str,
    /// What a call that timed out was waiting for at the end.
    waited_for: Option<&'static str>,
    /// The limit it is about.
    limit: Option<String>,
    /// How many units are missing there.
    short_by: u64,
    /// In fair order, the agent whose call is first in the queue for the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<String>,
    /// The exact instant at which the call is admitted if nothing else happens.
    until: Option<Timestamp>,
    /// A lower bound: the call is not admitted earlier, and perhaps later.
    not_before: Option<Timestamp>,
    /// What must happen first, if no instant is known.
    waiting_for: Option<String>,
    /// Milliseconds to `until` or `not_before`.
    retry_after_ms: Option<u64>,
    /// Its place in the queue, from 1.
    position: Option<usize>,
    /// The time the call had waited.
    waited_ms: u64,
    /// An agent upstream of this one is throttled.
    #[serde(skip_serializing_if = "Option::is_none")]
    backpressure: Option<Backpressure>,
    /// One sentence, for people.
    detail: String,
}

impl Serialize for Refused {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let when = self.when();
        let json = RefusedJson {
            pool: self.pool.to_string(),
            reason: self.reason.as_str(),
            waited_for: self.waited_for.map(Reason::as_str),
            limit: self.limit.clone(),
            short_by: self.short_by,
            behind: self.behind.clone(),
            until: when.until,
            not_before: when.not_before,
            waiting_for: when.waiting_for,
            retry_after_ms: when.until_ms.or(when.not_before_ms),
            position: self.position,
            waited_ms: millis(self.waited),
            backpressure: self.backpressure.clone(),
            detail: self.to_string(),
        };
        json.serialize(serializer)
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

fn short(length: Duration) -> String {
    format_span(crate::time::span(length))
}
