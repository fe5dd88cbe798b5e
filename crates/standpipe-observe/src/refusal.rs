//! A refusal as callers see it: why, about which limit, and when it is worth asking again.

pub mod when;
mod why;

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Serialize, Serializer};
use standpipe_core::{LimitId, Reason, Refusal, Reserve, State, Unit};
use standpipe_store::PoolName;

pub use self::when::When;
pub use self::why::Why;
pub(crate) use self::why::amount;
use crate::status::{
    Backpressure, Incident, Pause, PausedBy, ProviderReset, is_by_cap, reset_if_idle,
};
use crate::time::{Now, Timestamp, format_ms, format_span};

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
    /// Whether the agent's own cap on the limit is what the call can never fit.
    pub by_cap: bool,
    /// How many units a call that can never fit takes there.
    pub takes: Option<u64>,
    /// In fair order, the agent whose call is first in the queue for the limit.
    pub behind: Option<String>,
    /// Who ordered the pause that the call waits for, and when.
    pub paused: Option<PausedBy>,
    /// The refusal that stopped the pool, if the provider did.
    pub stopped_by: Option<Incident>,
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
    /// Set after the store lost the ledger: until then slots count as full.
    pub slots_unknown: Option<Pause>,
    /// The provider's own window that has to begin first, if a response decides and not time.
    pub reset: Option<ProviderReset>,
    /// Processes that hold leases and are stopped (`SIGSTOP`), a few at most.
    pub stopped_holders: Vec<u32>,
}

impl Refused {
    /// What a person does about a pool that the provider stopped, before resuming it.
    pub const FIX_ACCOUNT: &'static str =
        "fix the account at the provider (credit, spend limit, key)";

    /// Describes a stopped process, which keeps what it holds, and what to do about it.
    #[must_use]
    pub fn stopped_holder(pid: u32) -> String {
        format!(
            "process {pid} holds a lease and is stopped (kill -CONT {pid} resumes it, kill -9 \
             {pid} ends it)"
        )
    }

    /// Whether it is this refusal of the ledger.
    pub(crate) fn is(&self, refusal: &Refusal) -> bool {
        self.reason == refusal.reason && self.limit == refusal.limit.as_ref().map(limit_text)
    }

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
        if self.reset.is_some() {
            return Some(when::NEW_WINDOW);
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
    pub fn new(pool: &PoolName, refusal: &Refusal, state: &State, now: &Now) -> Self {
        let reset = ProviderReset::deciding(state, refusal, now);
        let until = when::instant(refusal).filter(|_| reset.is_none());
        Self {
            pool: pool.clone(),
            reason: refusal.reason,
            waited_for: None,
            limit: refusal.limit.as_ref().map(limit_text),
            short_by: refusal.short_by,
            by_cap: false,
            takes: None,
            behind: refusal.behind.as_ref().map(ToString::to_string),
            paused: PausedBy::of(state, refusal, now),
            stopped_by: Incident::of_stop(state, now)
                .filter(|_| refusal.reason == Reason::Terminal),
            until: until.map(|until| now.system(until)),
            exact: refusal.exact,
            retry_after: until.map(|until| now.until(until)),
            position: None,
            waited: Duration::ZERO,
            backpressure: None,
            slots_unknown: state.learning_until().and_then(|until| Pause::of(until, now)),
            reset,
            stopped_holders: Vec::new(),
        }
    }

    /// Adds what only the call itself shows.
    #[must_use]
    pub fn of_call(self, reserve: &Reserve, refusal: &Refusal, state: &State, now: &Now) -> Self {
        let limit = refusal.limit.as_ref().filter(|_| refusal.reason == Reason::Never);
        let takes = limit.and_then(|limit| match limit {
            LimitId::Parallel => reserve.cost.of(&Unit::Parallel),
            limit => reserve.cost.of(limit.unit()?),
        });
        Self { by_cap: is_by_cap(state, reserve, refusal, now), takes, ..self }
    }

    /// Creates the refusal of a pool that the provider stopped, where the end is not known.
    pub fn stopped(pool: &PoolName) -> Self {
        Self {
            pool: pool.clone(),
            reason: Reason::Terminal,
            waited_for: None,
            limit: None,
            short_by: 0,
            by_cap: false,
            takes: None,
            behind: None,
            paused: None,
            stopped_by: None,
            until: None,
            exact: false,
            retry_after: None,
            position: None,
            waited: Duration::ZERO,
            backpressure: None,
            slots_unknown: None,
            reset: None,
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
    /// With instants in UTC.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(&when::utc))
    }
}

impl Refused {
    /// Describes the refusal, and when to ask again. `clock` formats an instant.
    #[must_use]
    pub fn describe(&self, clock: &dyn Fn(Timestamp, u64) -> String) -> String {
        let pool = &self.pool;
        let loss = self.loss_remedy();
        let is_named = self.waited_for.unwrap_or(self.reason) == Reason::Learning;
        let full = self.slots_unknown.as_ref().filter(|_| loss.is_some()).map(|full| {
            let lost = if is_named { "" } else { "the store lost the ledger: " };
            format!(" ({lost}slots count as full until {})", clock(full.until, full.for_ms))
        });
        let cause = full.unwrap_or_default();
        let why = || self.why().map(|why| format!(": {why}{cause}")).unwrap_or_default();
        let mut text = match self.reason {
            Reason::Never => return self.never(),
            Reason::Terminal => return self.terminal(clock),
            Reason::QueueFull => {
                format!("`{pool}` is full: too many calls are queued or in flight")
            }
            Reason::Deadline => {
                format!("not in time on `{pool}`: waited {}{}", short(self.waited), why())
            }
            _ => format!("not admitted on `{pool}`{}", why()),
        };
        let when = self.when();
        if !when.is_empty() {
            let again = if when.until.is_some() { "ask again " } else { "" };
            text += &format!("; {again}{}", when.describe(clock));
        }
        if let Some(remedy) = loss {
            text += &format!("; {remedy}");
        }
        for pid in &self.stopped_holders {
            text += &format!("; {}", Self::stopped_holder(*pid));
        }
        text
    }

    /// Returns what to do about a call that waits for units because the store lost the ledger.
    #[must_use]
    pub fn loss_remedy(&self) -> Option<String> {
        let why = self.waited_for.unwrap_or(self.reason);
        let for_units =
            matches!(why, Reason::Limit | Reason::Order | Reason::Learning | Reason::Floor);
        let is_lost = for_units && self.slots_unknown.is_some();
        is_lost.then(|| reset_if_idle(self.pool.as_str()))
    }

    /// Only a person can end a stop whose end the provider does not name.
    fn terminal(&self, clock: &dyn Fn(Timestamp, u64) -> String) -> String {
        let pool = &self.pool;
        let who = self.stopped_by.as_ref().map(|incident| {
            let agent = incident.agent.as_deref().unwrap_or("a call");
            format!(" ({agent} was refused at {})", clock(incident.at, incident.ago_ms))
        });
        let when = self.when();
        let again = if when.until.is_some() { "without that, ask again " } else { "" };
        format!(
            "the provider stopped `{pool}`{}; {}, then `standpipe resume {pool}`; {again}{}",
            who.unwrap_or_default(),
            Self::FIX_ACCOUNT,
            when.describe(clock)
        )
    }

    fn never(&self) -> String {
        let pool = &self.pool;
        let what = if self.by_cap { "cap" } else { "limit" };
        let most = self.takes.and_then(|takes| Some((takes, takes.checked_sub(self.short_by)?)));
        if let (Some(limit), Some((takes, most))) = (&self.limit, most) {
            let unit = limit.split(' ').next().unwrap_or_default();
            let (takes, most) = (why::counted(unit, takes), why::amount(unit, most));
            let whose = if self.by_cap { "the agent's own cap on " } else { "" };
            return format!(
                "this call can never fit `{pool}`: it takes {takes}, and {whose}{limit} allows \
                 {most} at most; make it smaller or raise the {what}"
            );
        }
        match self.why().filter(|_| self.limit.is_some()) {
            Some(why) => {
                format!(
                    "this call can never fit `{pool}`: {why}; make it smaller or raise the {what}"
                )
            }
            None => format!("this call can never fit `{pool}`"),
        }
    }

    /// Whether the call waited for a call in flight to end.
    #[must_use]
    pub fn waits_for_a_slot(&self) -> bool {
        let why = self.waited_for.unwrap_or(self.reason);
        let for_room = matches!(why, Reason::Limit | Reason::Order | Reason::Floor);
        for_room && self.limit.as_deref() == Some("parallel")
    }
}

/// The JSON form of a refusal.
#[derive(Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = Refused))]
pub struct RefusedJson {
    /// The pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pool: PoolName,
    /// The first reason of the admission rule.
    reason: &'static str,
    /// What a call that timed out was waiting for at the end.
    waited_for: Option<&'static str>,
    /// The limit it is about.
    limit: Option<String>,
    /// How many units are missing there.
    short_by: u64,
    /// Whether the agent's own cap on the limit is what the call can never fit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_cap: bool,
    /// In fair order, the agent whose call is first in the queue for the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<String>,
    /// Who ordered the pause that the call waits for, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<PausedBy>,
    /// The refusal that stopped the pool, if the provider did.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_by: Option<Incident>,
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
            pool: self.pool.clone(),
            reason: self.reason.as_str(),
            waited_for: self.waited_for.map(Reason::as_str),
            limit: self.limit.clone(),
            short_by: self.short_by,
            by_cap: self.by_cap,
            behind: self.behind.clone(),
            paused: self.paused.clone(),
            stopped_by: self.stopped_by.clone(),
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
    format_ms(millis(length))
}
