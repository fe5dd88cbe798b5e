//! The steps of the admission rule, and what denies a call in each.

use serde::Serialize;
use standpipe_core::{
    AdmissionSteps, LimitId, LimitUsage, Priority, QueueKey, Reason, Refusal, Reserve, Span, State,
};

use crate::refusal::{When, limit_text};
use crate::status::{
    Delay, KeptUnits, Label, PausedBy, ProviderReset, agents_ahead, is_by_cap, is_zero, kept_from,
    needs_all, rate_users, shortage, slot_holders, superior_of,
};
use crate::time::{Now, Timestamp};

/// One step of the admission rule.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Step {
    /// Its number, from 1.
    pub number: u8,
    /// `stop`, `size`, `delay`, `share`, `queue`, `room`.
    pub name: &'static str,
    /// What holds when the step admits the call.
    pub passed: &'static str,
    /// Everything that denies the call in this step.
    pub noes: Vec<Denial>,
}

/// A rule that denies the call.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = No))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Denial {
    /// Why.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub reason: Label<Reason>,
    /// The limit it is about.
    pub limit: Option<String>,
    /// How many units are missing there.
    pub short_by: u64,
    /// In fair order, the agent whose call is first in the queue for the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<String>,
    /// How many calls are in its way in the queue for the limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub calls_ahead: usize,
    /// The agents of the calls that are ahead of it in the queue for the limit, the first ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ahead: Vec<String>,
    /// How many more agents are ahead of it.
    #[serde(skip_serializing_if = "is_zero")]
    pub ahead_more: usize,
    /// The agents that hold the slots that it waits for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_use_by: Vec<String>,
    /// The agent of the call.
    #[serde(skip)]
    pub agent: String,
    /// Whether the agent's own cap is what the call can never fit.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_cap: bool,
    /// It takes more than the usable part of the limit: it is admitted when nothing else is
    /// charged there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// What floors of other agents keep from it on the limit.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptUnits>,
    /// The agent of a higher priority that it leaves units to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superior: Option<String>,
    /// What delays it, if that is not the pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Delay>,
    /// Who ordered the pause, and when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<PausedBy>,
    /// The provider's own window that has to begin first, if a response decides and not time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<ProviderReset>,
    /// While the pool is paused: when calls of this priority return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returns: Option<Returns>,
    /// When this step alone would admit the call.
    #[serde(flatten)]
    pub when: When,
}

/// When calls of one priority return from a pause.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Returns {
    /// When the pause ends.
    pub pause_ends: Timestamp,
    /// When the first call of this priority returns at the earliest.
    pub from: Timestamp,
    /// When the calls that waited through the pause have returned.
    pub to: Timestamp,
}

impl Returns {
    fn of(state: &State, refusal: &Refusal, tier: Priority, now: &Now) -> Option<Self> {
        let facts = state.facts();
        let end = facts.pause.filter(|_| refusal.reason == Reason::Pause)?;
        let window = facts.config.as_ref()?.policy.comeback?.of(tier);
        let at = |after: Span| now.ahead(end + after);
        Some(Self { pause_ends: now.ahead(end), from: at(window.from), to: at(window.to) })
    }
}

impl Step {
    /// Whether this step denies the call.
    #[must_use]
    pub fn says_no(&self) -> bool {
        !self.noes.is_empty()
    }
}

/// Returns the steps with what denies the call in each.
pub(super) fn steps(refusals: &[Refusal], denial: &dyn Fn(&Refusal) -> Denial) -> Vec<Step> {
    // What never fits a limit waits for no room there.
    let never_fits = |limit: &Option<LimitId>| {
        limit.is_some()
            && refusals.iter().any(|no| no.reason == Reason::Never && no.limit == *limit)
    };
    let noes = |reasons: &[Reason]| {
        let named = refusals.iter().filter(|no| {
            let is_moot = no.reason != Reason::Never && never_fits(&no.limit);
            reasons.contains(&no.reason) && !is_moot
        });
        named.map(denial).collect()
    };
    let own = [Reason::Pause, Reason::ReturnWindow, Reason::Zone, Reason::Hold];
    let room = [
        Reason::Limit,
        Reason::Floor,
        Reason::Ramp,
        Reason::Pace,
        Reason::Probe,
        Reason::Sequential,
        Reason::Learning,
    ];
    let never = [Reason::Never, Reason::RetryBudget];
    let names = [
        ("stop", "the provider has not stopped the pool", noes(&[Reason::Terminal])),
        ("size", "it fits every limit and the retry budget", noes(&never)),
        ("delay", "no pause, zone or retry delays it", noes(&own)),
        (
            "share",
            "its cap is not reached, and it does not yield to others",
            noes(&[Reason::Yield, Reason::Spread, Reason::Cap]),
        ),
        ("queue", "no call ahead of it takes what it needs", noes(&[Reason::Order])),
        ("room", "every limit has room", noes(&room)),
    ];
    let numbered = (1..).zip(names);
    numbered.map(|(number, (name, passed, noes))| Step { number, name, passed, noes }).collect()
}

/// Describes a refusal.
pub(super) fn denial(
    state: &State,
    figures: &[LimitUsage],
    reserve: &Reserve,
    (judged, place): (&AdmissionSteps, QueueKey),
    refusal: &Refusal,
    now: &Now,
) -> Denial {
    let ahead = agents_ahead(state, refusal, place);
    Denial {
        reason: refusal.reason.into(),
        limit: refusal.limit.as_ref().map(limit_text),
        short_by: shortage(figures, &judged.cost, refusal),
        behind: refusal.behind.as_ref().map(ToString::to_string),
        calls_ahead: ahead.calls,
        ahead: ahead.first,
        ahead_more: ahead.more,
        in_use_by: match refusal.limit {
            Some(LimitId::Parallel) => slot_holders(state, refusal),
            _ => rate_users(state, figures, refusal, now),
        },
        agent: reserve.agent.to_string(),
        by_cap: is_by_cap(state, reserve, refusal, now),
        alone: needs_all(figures, &judged.cost, refusal),
        kept: kept_from(state, reserve, refusal, now),
        superior: superior_of(state, refusal, judged.tier),
        delay: None,
        paused: PausedBy::of(state, refusal, now),
        reset: None,
        returns: Returns::of(state, refusal, judged.tier, now),
        when: When::of(refusal, now),
    }
}
