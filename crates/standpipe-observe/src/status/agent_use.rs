//! The floors and caps of an agent, who is ahead of a call, and what floors keep from it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use standpipe_core::{
    AgentId, AgentName, Amounts, Id, LimitId, LimitUsage, Phase, Priority, QueueKey, Reason,
    Refusal, Reserve, State,
};

use crate::refusal::{amount, limit_text};
use crate::time::Now;

/// The most agents that are named as being ahead of a call.
const MAX_AHEAD: usize = 3;
/// The most calls that are searched for them, so that a long queue can be shown.
const MAX_SEARCHED: usize = 256;

/// The calls that are in the way of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    /// How many.
    pub(crate) calls: usize,
    /// Their agents, each once: the first ones.
    pub(crate) first: Vec<String>,
    /// How many more agents there are.
    pub(crate) more: usize,
}

/// For fields that are left out.
pub(crate) const fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// An agent's floor and cap on one limit, in units, and its use.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AgentShares {
    /// The limit, for example `requests per 1min`. A cap may have a period of its own.
    pub limit: String,
    /// What it counts; `parallel` for calls in flight.
    pub unit: String,
    /// What the agent used in the period, with what its calls in flight hold.
    pub used: u64,
    /// What is kept for the agent.
    pub floor: Option<u64>,
    /// The most that the agent may use.
    pub cap: Option<u64>,
}

/// Units of a limit that the floor of another agent keeps from a call.
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptUnits {
    /// The limit.
    pub limit: String,
    /// What it counts.
    pub unit: String,
    /// The owner of the floor.
    pub agent: String,
    /// The units that are kept now.
    pub units: u64,
}

/// Returns the floors and caps of an agent.
pub(crate) fn shares_of(state: &State, agent: &AgentName, now: &Now) -> Vec<AgentShares> {
    let shares = state.agent_shares(agent, now.store).into_iter();
    let each = shares.map(|own| AgentShares {
        limit: limit_text(&own.limit),
        unit: unit_text(&own.limit),
        used: own.used,
        floor: own.floor,
        cap: own.cap,
    });
    each.collect()
}

/// Returns the calls ahead of a place in the queue for the limit that refuses a call. A call that
/// is held back by a rule of its own blocks no other call.
pub(crate) fn agents_ahead(state: &State, no: &Refusal, place: QueueKey) -> Ahead {
    if no.reason != Reason::Order {
        return Ahead::default();
    }
    let unit = no.limit.as_ref().and_then(LimitId::unit);
    let (mut seen, mut calls): (Vec<AgentId>, usize) = (Vec::new(), 0);
    for (_, ticket) in state.facts().tickets.range(..place).take(MAX_SEARCHED) {
        let needs = unit.is_none_or(|unit| ticket.call.cost.of(unit).is_some_and(|n| n > 0));
        let blocks = matches!(ticket.phase, Phase::Line(_) | Phase::Due(_));
        if !needs || !blocks {
            continue;
        }
        calls += 1;
        if !seen.contains(&ticket.agent) {
            seen.push(ticket.agent);
        }
    }
    let agents = &state.facts().agents;
    let names = seen.iter().filter_map(|id| Some(agents.get(usize::from(*id))?.name.to_string()));
    let mut first: Vec<String> = names.collect();
    let more = first.len().saturating_sub(MAX_AHEAD);
    first.truncate(MAX_AHEAD);
    Ahead { calls, first, more }
}

/// Returns an agent of a higher priority that a call of this one leaves units to: one that has a
/// call or had one. `None` if none is known.
pub(crate) fn superior_of(state: &State, no: &Refusal, tier: Priority) -> Option<String> {
    if !matches!(no.reason, Reason::Zone | Reason::Yield | Reason::Spread) {
        return None;
    }
    let facts = state.facts();
    let leases = facts.leases.values().map(|lease| (lease.tier, lease.agent));
    let tickets = facts.tickets.iter().map(|(place, ticket)| (place.tier, ticket.agent));
    let with_call = leases
        .chain(tickets)
        .filter_map(|(other, at)| Some((other, &facts.agents.get(usize::from(at))?.name)));
    let idle = facts.agents.iter().filter(|agent| agent.admitted.is_some()).filter_map(|agent| {
        let rule = facts.config.as_ref().and_then(|config| config.agent(&agent.name))?;
        Some((rule.priority?, &agent.name))
    });
    // Of several always the same one, so that the text does not change with every call.
    let mut higher: Vec<(Priority, &AgentName)> =
        with_call.chain(idle).filter(|(other, _)| *other < tier).collect();
    higher.sort_by_key(|(priority, name)| (*priority, name.as_str()));
    higher.first().map(|(_, name)| name.to_string())
}

/// Returns the agents that hold the slots that a call waits for, the first ones: `blog (2 slots)`.
#[must_use]
pub fn slot_holders(state: &State, no: &Refusal) -> Vec<String> {
    if no.reason != Reason::Limit || no.limit != Some(LimitId::Parallel) {
        return Vec::new();
    }
    let mut slots: BTreeMap<AgentId, u64> = BTreeMap::new();
    for lease in state.facts().leases.values() {
        *slots.entry(lease.agent).or_default() += lease.call.cost.slots();
    }
    let mut slots: Vec<(AgentId, u64)> = slots.into_iter().collect();
    slots.sort_by_key(|(_, slots)| Reverse(*slots));
    let agents = &state.facts().agents;
    let mut holders: Vec<String> = slots
        .iter()
        .filter_map(|(id, slots)| {
            let name = &agents.get(usize::from(*id))?.name;
            Some(if *slots == 1 { name.to_string() } else { format!("{name} ({slots} slots)") })
        })
        .collect();
    let more = holders.len().saturating_sub(MAX_AHEAD);
    holders.truncate(MAX_AHEAD);
    holders.extend((more > 0).then(|| format!("{more} more")));
    // A free slot is kept for a call whose turn has come and that has not taken it yet.
    let due = state
        .facts()
        .tickets
        .values()
        .filter(|ticket| matches!(ticket.phase, Phase::Due(_)) && ticket.call.cost.slots() > 0);
    let due = due.filter_map(|ticket| agents.get(usize::from(ticket.agent)));
    holders.extend(due.take(1).map(|agent| format!("{} (its turn has come)", agent.name)));
    holders
}

/// Returns the agents that used most of the rate that refuses a call: `blog (1,200)`.
pub(crate) fn rate_users(
    state: &State,
    figures: &[LimitUsage],
    no: &Refusal,
    now: &Now,
) -> Vec<String> {
    let is_rate = no.reason == Reason::Limit && no.limit != Some(LimitId::Parallel);
    let at = figures.iter().position(|limit| Some(limit.limit.id()) == no.limit);
    let Some(at) = at.filter(|_| is_rate) else { return Vec::new() };
    let used = |id: usize| {
        let own = state.agent_figures(AgentId::of(id), now.store).into_iter().nth(at);
        own.map_or(0, |own| own.used.saturating_add(own.held))
    };
    let agents = state.facts().agents.iter().enumerate();
    let mut users: Vec<(u64, &str)> =
        agents.map(|(id, agent)| (used(id), agent.name.as_str())).collect();
    // Not through Standpipe.
    users.extend(figures.get(at).map(|limit| (limit.by_others, "others")));
    users.retain(|(units, _)| *units > 0);
    users.sort_by_key(|(units, name)| (Reverse(*units), *name));
    let unit = no.limit.as_ref().map(unit_text).unwrap_or_default();
    let more = users.len().saturating_sub(MAX_AHEAD);
    let named = users.iter().take(MAX_AHEAD);
    let named = named.map(|(units, name)| format!("{name} ({})", amount(&unit, *units)));
    named.chain((more > 0).then(|| format!("{more} more"))).collect()
}

/// Returns how many units a call lacks of the limit that refuses it. The ledger counts from a limit
/// that is full; where more is used than is usable now, that has to return, too.
pub(crate) fn shortage(figures: &[LimitUsage], cost: &Amounts, no: &Refusal) -> u64 {
    let same = |limit: &&LimitUsage| Some(limit.limit.id()) == no.limit;
    let limit = figures.iter().find(same).filter(|_| no.reason == Reason::Limit);
    let Some(limit) = limit else { return no.short_by };
    let takes = match no.limit.as_ref().and_then(LimitId::unit) {
        Some(unit) => cost.of(unit).unwrap_or(0),
        None => cost.slots(),
    };
    let wanted = limit.used.saturating_add(limit.held).saturating_add(takes);
    // A call that is larger than the usable part is admitted when nothing else is charged.
    let over = if takes > limit.effective { 0 } else { wanted.saturating_sub(limit.effective) };
    // Floors keep units, too; the ledger counts those.
    no.short_by.max(over)
}

/// Whether a call is refused because it takes more than the usable part of a limit. It is admitted
/// when nothing else is charged there.
pub(crate) fn needs_all(figures: &[LimitUsage], cost: &Amounts, no: &Refusal) -> bool {
    let same = |limit: &&LimitUsage| Some(limit.limit.id()) == no.limit;
    let limit = figures.iter().find(same).filter(|_| no.reason == Reason::Limit);
    let takes = no.limit.as_ref().and_then(LimitId::unit).and_then(|unit| cost.of(unit));
    limit.zip(takes).is_some_and(|(limit, units)| units > limit.effective)
}

/// Whether the agent's own cap on the limit is what a call can never fit.
pub(crate) fn is_by_cap(state: &State, reserve: &Reserve, no: &Refusal, now: &Now) -> bool {
    let Some(limit) = no.limit.as_ref().filter(|_| no.reason == Reason::Never) else {
        return false;
    };
    let takes = match limit.unit() {
        Some(unit) => reserve.cost.of(unit).unwrap_or(0),
        None => reserve.cost.slots(),
    };
    let shares = state.agent_shares(&reserve.agent, now.store);
    let mut caps = shares.iter().filter(|own| own.limit == *limit).filter_map(|own| own.cap);
    caps.any(|cap| takes.saturating_sub(cap) == no.short_by)
}

/// Returns what floors keep from a call on the limit that refuses it.
pub(crate) fn kept_from(
    state: &State,
    reserve: &Reserve,
    no: &Refusal,
    now: &Now,
) -> Vec<KeptUnits> {
    if no.reason != Reason::Floor {
        return Vec::new();
    }
    let kept = state.floors_kept_from(reserve, now.store).into_iter();
    let kept = kept.filter(|floor| no.limit.as_ref() == Some(&floor.limit));
    kept.map(|floor| KeptUnits::of(&floor)).collect()
}

impl KeptUnits {
    pub(crate) fn of(floor: &standpipe_core::KeptFloor) -> Self {
        Self {
            limit: limit_text(&floor.limit),
            unit: unit_text(&floor.limit),
            agent: floor.agent.to_string(),
            units: floor.units,
        }
    }
}

fn unit_text(limit: &LimitId) -> String {
    limit.unit().map_or("parallel", |unit| unit.name()).to_owned()
}
