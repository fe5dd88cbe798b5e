//! The admission rule, step by step, for one call: which rules deny it, why, and until when.
//!
//! It is computed from the same state that would decide, and changes nothing.

mod advice;
mod several;
mod step;

use std::collections::{BTreeMap, BTreeSet};
use std::iter::once;

use serde::Serialize;
use standpipe_core::{
    Breaker, Decision, LeaseOwner, LimitId, LimitUsage, Priority, QueueKey, Queued, Reason,
    Refusal, Reserve, State, Ticket, Unit, Zone,
};
use standpipe_store::PoolName;

pub use self::advice::{Advice, Remedy};
pub use self::step::{Denial, Returns, Step};
use self::step::{denial, steps};
use crate::refusal::when::NEW_WINDOW;
use crate::refusal::{Refused, When};
use crate::status::{
    AgentShares, Delay, Expected, KeptUnits, Label, LeaseStatus, LimitStatus, NextReason,
    PoolStatus, Processes, ProviderReset, TicketStatus, VerdictKind, amounts, breaker, claim_of,
    forecast_of, lease_status, next_reason, recovers, shares_of, shortage,
};
use crate::time::Now;

/// The decision that a call would get now.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It would be admitted.
    Admitted {
        /// In shadow mode: the refusal that enforcement would have given.
        instead_of: Option<Box<Refused>>,
    },
    /// It would wait.
    Waits(Box<Refused>),
    /// It would be refused.
    Refused(Box<Refused>),
}

/// The admission rule, step by step, for one call: the agent's first call that waits, unless the
/// question states a cost or another priority.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Explanation {
    /// On which pool.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub pool: PoolName,
    /// Who asks.
    pub agent: String,
    /// In which tier.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub priority: Label<Priority>,
    /// What the call takes.
    pub cost: BTreeMap<String, u64>,
    /// How long the call has waited; `None` for a call that is not made yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_ms: Option<u64>,
    /// When it may be admitted, with a forecast where no exact instant is known.
    pub admission: When,
    /// What it waits for after the first reason, or as well: the rule that decides the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextReason>,
    /// How much quota is left: `green`, `amber` or `red`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub zone: Label<Zone>,
    /// `closed`, `pre_emptive`, `open` or `half_open`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub breaker: Label<Breaker>,
    /// What to do about a long wait.
    pub advice: Option<Advice>,
    /// `admitted`, `waits` or `refused`.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub verdict: Label<VerdictKind>,
    /// Why not, and until when; in shadow mode, the refusal that enforcement would have given.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<crate::refusal::RefusedJson>))]
    pub why: Option<Refused>,
    /// The steps in their order. The first that denies the call gives the reason.
    pub steps: Vec<Step>,
    /// The limits the call goes by.
    pub limits: Vec<LimitStatus>,
    /// The floors and caps of the agent, with its use.
    pub shares: Vec<AgentShares>,
    /// What floors of other agents keep from the call.
    pub floors: Vec<KeptUnits>,
    /// The calls that hold the slots that it waits for, the oldest first, a few at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<LeaseStatus>,
    /// Stopped processes (`SIGSTOP`) that hold leases, a few at most.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stopped_holders: Vec<u32>,
    /// Whether limits count as full because the store lost the ledger.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovers: bool,
    /// Whether the limits are from a configuration file. Those of code and flags can only be
    /// tightened.
    #[serde(skip)]
    pub from_file: bool,
    /// The calls of this agent that wait already, in order.
    pub waiting: Vec<TicketStatus>,
    /// Whether the call keeps its units here while it waits on another pool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub holds: bool,
    /// The pool whose bound `admission` has, if that is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<String>,
    /// The same for the other pools that the call draws on, in the order in which they are asked.
    /// The call is admitted when all of them admit it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(no_recursion))]
    pub others: Vec<Explanation>,
}

impl Explanation {
    /// Explains the decision that a call would get now. `None` if the pool has no limits. The state
    /// must have been brought to now.
    #[must_use]
    pub fn of(
        pool: &PoolName,
        state: &State,
        reserve: &Reserve,
        now: &Now,
        processes: Processes<'_>,
    ) -> Option<Self> {
        let waiting = PoolStatus::waiting(pool, state, &reserve.agent, now, processes);
        let queued = queued_call(state, reserve);
        let asked = match queued {
            Some((_, ticket)) => claim_of(state, ticket)?,
            None => like_the_waiting_call(reserve, &waiting),
        };
        let verdict = Verdict::of(pool, state, &asked, now)?;
        let mut judged = state.admission_steps(&asked, now.store);
        if verdict.why().is_none() {
            // A call above the usable part is admitted while nothing else is charged.
            judged.refusals.clear();
        }
        let figures = state.figures(now.store);
        let place = queued.map_or(QueueKey::last_of(judged.tier), |(place, _)| place);
        let first = judged.refusals.iter().find(|no| verdict.why().is_some_and(|why| why.is(no)));
        let (admission, reset) = match (queued, waiting.first(), verdict.why()) {
            (Some(_), Some(ticket), _) => (ticket.when.clone(), ticket.reset),
            (_, _, Some(why)) => {
                let expected = forecast_of(state, &asked, now.store);
                let no = first.map(|no| (no, expected));
                let reset =
                    no.and_then(|no| ProviderReset::deciding_queued(state, &figures, no, now));
                (admission(state, why, expected, reset.is_some(), now), reset)
            }
            _ => (When::default(), None),
        };
        let denial = |no: &Refusal| {
            let reset = reset.filter(|_| first.is_some_and(|first| first.limit == no.limit));
            let delay = waiting.first().filter(|_| no.reason == Reason::Hold && queued.is_some());
            let delay = delay.and_then(|ticket| ticket.delay.clone());
            Denial { reset, delay, ..denial(state, &figures, &asked, (&judged, place), no, now) }
        };
        let next = first.and_then(|no| next_reason(state, &asked, no, now));
        let lacks_slots = |no: &Refusal| no.limit == Some(LimitId::Parallel);
        let lacks_slots = judged.refusals.iter().any(lacks_slots);
        Some(Self {
            pool: pool.clone(),
            agent: asked.agent.to_string(),
            priority: judged.tier.into(),
            cost: amounts(&judged.cost),
            waits_ms: queued.map(|(_, ticket)| now.millis_since(ticket.since)),
            admission,
            next,
            zone: state.zone().into(),
            breaker: breaker(state, &figures, now).into(),
            advice: state.advise(&asked, now.store).as_ref().map(Advice::of),
            verdict: verdict.kind().into(),
            why: verdict.why().cloned(),
            steps: steps(&judged.refusals, &denial),
            limits: PoolStatus::limits_of(state, now),
            shares: shares_of(state, &asked.agent, now),
            floors: floors(state, &figures, &asked, now),
            holders: if lacks_slots { holders(pool, state, now, processes) } else { Vec::new() },
            stopped_holders: stopped_holders(state, processes),
            recovers: recovers(state, now),
            from_file: state.facts().provenance.file,
            waiting,
            holds: false,
            bound_by: None,
            others: Vec::new(),
        })
    }
}

impl Explanation {
    /// Names what delays the call, where a step denies it for that.
    pub fn set_delay(&mut self, delay: Option<Delay>) {
        let noes = self.steps.iter_mut().flat_map(|step| &mut step.noes);
        noes.filter(|no| no.reason == Reason::Hold).for_each(|no| no.delay.clone_from(&delay));
    }
}

/// When a call that is not queued may be admitted. `for_response` is set if a response of the
/// provider decides about it.
fn admission(
    state: &State,
    why: &Refused,
    expected: Option<Expected>,
    for_response: bool,
    now: &Now,
) -> When {
    if for_response {
        return When::new(None, false, Some(NEW_WINDOW));
    }
    match why.reason {
        // Its place in the return windows is drawn when it is queued.
        Reason::Pause if returns_staggered(state) => When::default(),
        _ => why.when().with_forecast(expected, now),
    }
}

impl Verdict {
    /// Computes the decision that a call would get now. `None` if the pool has no limits.
    #[must_use]
    pub fn of(pool: &PoolName, state: &State, reserve: &Reserve, now: &Now) -> Option<Self> {
        let refused = |refusal: &Refusal| {
            let refused = Refused::new(pool, refusal, state, now);
            let short_by = shortage(&state.figures(now.store), &reserve.cost, refusal);
            let refused = Refused { short_by, ..refused };
            Box::new(refused.of_call(reserve, refusal, state, now))
        };
        Some(match state.peek(reserve, now.store) {
            Decision::Admit(grant) => {
                Self::Admitted { instead_of: grant.instead_of.as_ref().map(refused) }
            }
            Decision::Wait(Queued { refusal, position, .. }) => {
                let mut waits = refused(&refusal);
                waits.position = Some(position);
                Self::Waits(waits)
            }
            Decision::Refuse(refusal) if has_no_limits(&refusal) => return None,
            Decision::Refuse(refusal) => Self::Refused(refused(&refusal)),
        })
    }

    /// Marks it as the answer of one of the pools that a call draws on: its instant is a lower
    /// bound, because the others decide as well.
    #[must_use]
    pub fn of_one_pool(mut self) -> Self {
        if let Self::Waits(refused) | Self::Refused(refused) = &mut self {
            refused.exact = false;
        }
        self
    }

    /// Whether the call would be admitted now.
    #[must_use]
    pub const fn is_admitted(&self) -> bool {
        matches!(self, Self::Admitted { .. })
    }

    /// Returns what kind of answer it is.
    #[must_use]
    pub const fn kind(&self) -> VerdictKind {
        match self {
            Self::Admitted { .. } => VerdictKind::Admitted,
            Self::Waits(_) => VerdictKind::Waits,
            Self::Refused(_) => VerdictKind::Refused,
        }
    }

    /// Returns the name of the answer: `admitted`, `waits` or `refused`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        self.kind().as_str()
    }

    /// Why not, and until when; in shadow mode, the refusal that enforcement would have given.
    #[must_use]
    pub fn why(&self) -> Option<&Refused> {
        match self {
            Self::Admitted { instead_of } => instead_of.as_deref(),
            Self::Waits(refused) | Self::Refused(refused) => Some(refused),
        }
    }
}

/// Whether the refusal is that of a pool without limits: the core refuses for good and names none.
#[must_use]
pub fn has_no_limits(refusal: &Refusal) -> bool {
    refusal.reason == Reason::Never && refusal.limit.is_none()
}

/// Returns the first call of the agent that waits, if the question could be about it: it states
/// nothing but the agent.
fn queued_call<'a>(state: &'a State, reserve: &Reserve) -> Option<(QueueKey, &'a Ticket)> {
    let has_bounds = reserve.bytes.is_some() || !reserve.at_most.is_empty();
    let is_plain = reserve.cost.iter().eq(once((&Unit::Requests, 1))) && !has_bounds;
    let facts = state.facts();
    let is_own = |ticket: &Ticket| {
        let agent = facts.agents.get(usize::from(ticket.agent));
        agent.is_some_and(|agent| agent.name == reserve.agent)
    };
    let mut own = facts.tickets.iter().filter(|(_, ticket)| is_own(ticket));
    let (place, ticket) = own.next().filter(|_| is_plain)?;
    let same = reserve.priority.is_none_or(|priority| priority == place.tier);
    same.then_some((*place, ticket))
}

/// A call that states no priority is judged with that of the agent's first waiting call.
fn like_the_waiting_call(reserve: &Reserve, waiting: &[TicketStatus]) -> Reserve {
    let first = waiting.first().map(|ticket| ticket.priority);
    let priority = first.and_then(|label| match label {
        Label::Known(priority) => Some(priority),
        Label::Unknown => None,
    });
    Reserve { priority: reserve.priority.or(priority), ..reserve.clone() }
}

/// Whether calls return from a pause one after another.
fn returns_staggered(state: &State) -> bool {
    state.facts().config.as_ref().is_some_and(|config| config.policy.comeback.is_some())
}

/// What floors keep from a call of what is left.
fn floors(state: &State, figures: &[LimitUsage], asked: &Reserve, now: &Now) -> Vec<KeptUnits> {
    let left = |limit: &LimitId| {
        figures.iter().find(|own| own.limit.id() == *limit).map_or(0, |own| own.left)
    };
    let kept = state.floors_kept_from(asked, now.store).into_iter().map(|floor| {
        let units = floor.units.min(left(&floor.limit));
        KeptUnits { units, ..KeptUnits::of(&floor) }
    });
    kept.filter(|kept| kept.units > 0).collect()
}

/// The most calls that are listed as holders of slots.
const MAX_HOLDERS: usize = 5;

/// The oldest calls in flight.
fn holders(
    pool: &PoolName,
    state: &State,
    now: &Now,
    processes: Processes<'_>,
) -> Vec<LeaseStatus> {
    let mut leases: Vec<_> = state.facts().leases.iter().collect();
    leases.sort_by_key(|(key, lease)| (lease.started, **key));
    let oldest = leases.into_iter().take(MAX_HOLDERS);
    oldest.map(|(key, lease)| lease_status(pool, state, *key, lease, now, processes)).collect()
}

/// The most stopped processes that are named.
const MAX_STOPPED: usize = 3;

/// Stopped processes are alive, so they keep their leases.
fn stopped_holders(state: &State, processes: Processes<'_>) -> Vec<u32> {
    let sessions = state.facts().leases.values().filter_map(|lease| match lease.owner {
        LeaseOwner::Session(session) => Some(session),
        LeaseOwner::Ttl { .. } => None,
    });
    let sessions: BTreeSet<u64> = sessions.collect();
    let stopped = sessions.into_iter().filter_map(processes).filter(|process| process.stopped);
    let pids: BTreeSet<u32> = stopped.map(|process| process.pid).collect();
    pids.into_iter().take(MAX_STOPPED).collect()
}

/// The name of a priority. An earlier name for [`Priority::as_str`], see `compat.rs`.
#[must_use]
pub const fn tier_word(tier: Priority) -> &'static str {
    tier.as_str()
}
