//! Computes the status of a pool from its state.

use std::collections::BTreeMap;

use standpipe_core::{
    Agent, AgentId, AgentLimitUsage, AgentName, Amounts, Id, Instant, Key, Lease, LeaseOwner,
    LimitId, LimitSelector, LimitUsage, Margin, Owner, PoolConfig, PoolRef, Portion, Priority,
    Provenance, Reason, Refusal, Rule, Share, State, ThrottleKind,
};
use standpipe_store::{PoolName, Process};

use super::throttle::speed;
use super::tickets::tickets;
use super::{
    AgentStatus, AgentUsage, ConfigSource, KeptUnits, LeaseHolder, LeaseStatus, LimitKind,
    LimitStatus, Origin, Pause, PausedBy, PoolStatus, ProviderReset, RampStatus, Stop,
    ThrottleStatus, TicketStatus, breaker, foresight,
};
use crate::lease_id::LeaseId;
use crate::pool_set::PoolSet;
use crate::refusal::limit_text;
use crate::time::{Now, Timestamp, format_span};
use standpipe_config::plain;

/// Looks up the process of a session, where that can be seen.
pub type Processes<'a> = &'a dyn Fn(u64) -> Option<Process>;

impl PoolStatus {
    /// Computes the status of a pool. The state must have been brought to now.
    #[must_use]
    pub fn of(pool: &PoolName, state: &State, now: &Now, processes: Processes<'_>) -> Self {
        let facts = state.facts();
        let config = facts.config.as_ref();
        let margin = config.map_or(Margin::Auto, |config| config.margin);
        let figures = state.figures(now.store);
        let limits = limits(state, &figures, now);
        let largest = limits.iter().filter_map(|limit| limit.margin_per_mille).max();
        let tickets = tickets(pool, state, &figures, now, processes);
        let agents = agents(state, &limits, &tickets, now);
        let learning = state.learning_until();
        let stop = facts.terminal.map(|terminal| Stop {
            until: terminal.until.map(|until| now.ahead(until)),
            for_ms: terminal.until.map(|until| now.millis_until(until)),
            look_ms: terminal.next_probe.map(|look| now.millis_until(look)),
        });
        Self {
            pool: pool.clone(),
            provider: None,
            within: config.and_then(|config| Some(config.within.as_ref()?.to_string())),
            parents: Vec::new(),
            at: now.past(now.store),
            position: 0,
            enforce: config.is_none_or(|config| config.enforce),
            margin_per_mille: largest.unwrap_or_else(|| margin.per_mille()),
            margin_auto: margin == Margin::Auto,
            origin: origin(config, facts.provenance),
            pause: Pause::of_pool(state, now),
            terminal: stop,
            learning: learning.and_then(|until| Pause::of(until, now)),
            recovering: recovering(state, now),
            limits_lost_at: facts.state_lost_at.filter(|_| config.is_none()).map(|at| now.past(at)),
            trouble: ThrottleStatus::of(state, &figures, now),
            zone: state.zone().into(),
            breaker: breaker(state, &figures, now).into(),
            money: foresight::money(state, now),
            limits,
            in_flight: facts.leases.len(),
            leases: leases(pool, state, now, processes),
            waiting: facts.tickets.len(),
            tickets,
            agents,
            skipped: 0,
            cut_off: None,
            unavailable: None,
        }
    }

    /// Returns the queued calls of an agent, in order.
    #[must_use]
    pub fn waiting(
        pool: &PoolName,
        state: &State,
        agent: &AgentName,
        now: &Now,
        processes: Processes<'_>,
    ) -> Vec<TicketStatus> {
        let figures = state.figures(now.store);
        let all = tickets(pool, state, &figures, now, processes).into_iter();
        all.filter(|ticket| ticket.agent == agent.as_str()).collect()
    }

    /// Computes the status of its limits.
    #[must_use]
    pub fn limits_of(state: &State, now: &Now) -> Vec<LimitStatus> {
        limits(state, &state.figures(now.store), now)
    }
}

fn limits(state: &State, figures: &[LimitUsage], now: &Now) -> Vec<LimitStatus> {
    let learned = |id: &LimitId| {
        let learned = state.facts().learned.limits.iter();
        let mut same = learned.filter(|learned| {
            id.unit() == Some(&learned.unit) && id.period() == Some(learned.period)
        });
        same.next().map(|learned| learned.amount)
    };
    let each = figures.iter().map(|amounts| {
        let id = amounts.limit.id();
        let mut status = limit(amounts, learned(&id), now);
        status.margin_per_mille = state.margin_of(&id);
        status.outside = foresight::outside(state, &id, now);
        status.reset = ProviderReset::of(state, amounts, now);
        let ramp = amounts.ramp.as_ref().zip(speed(state));
        status.ramp = ramp.map(|(ramp, speed)| RampStatus::of(ramp, speed, now));
        let left = amounts.ramp.map(|ramp| ramp.usable.saturating_sub(ramp.used));
        status.left = left.map_or(status.left, |left| left.min(status.left));
        status
    });
    each.collect()
}

/// Until when rates return after the store lost the ledger: what was charged before is unknown, and
/// all of it has aged out after the longest period.
fn recovering(state: &State, now: &Now) -> Option<Pause> {
    let facts = state.facts();
    let (lost, config) = (facts.state_lost_at?, facts.config.as_ref()?);
    let longest = Some(config.longest_period()).filter(|period| period.0 > 0)?;
    Pause::of(lost + (longest + config.slack), now)
}

/// Whether limits count as full because the store lost the ledger.
pub(crate) fn recovers(state: &State, now: &Now) -> bool {
    let learning = state.learning_until().and_then(|until| Pause::of(until, now));
    learning.is_some() || recovering(state, now).is_some()
}

fn origin(config: Option<&PoolConfig>, provenance: Provenance) -> Origin {
    let source = match (config, provenance.file) {
        (None, _) => ConfigSource::None,
        (_, true) => ConfigSource::File,
        (_, false) => ConfigSource::Code,
    };
    let written = Some(Timestamp { millis: provenance.written }).filter(|_| provenance.file);
    Origin {
        source: source.into(),
        version: provenance.version,
        written,
        changes: provenance.changes,
        learned: config.is_some_and(|config| config.limits.is_empty() && config.policy.learn),
    }
}

impl Pause {
    /// Creates it, unless its end has passed.
    #[must_use]
    pub fn of(until: Instant, now: &Now) -> Option<Self> {
        let for_ms = now.millis_until(until);
        (for_ms > 0).then(|| Self { until: now.ahead(until), for_ms, by: None, at: None })
    }

    /// Returns the pause of a pool, with who ordered it.
    #[must_use]
    pub fn of_pool(state: &State, now: &Now) -> Option<Self> {
        let facts = state.facts();
        let order = facts.throttling.order.as_ref();
        let by = order.and_then(|order| Some(order.by.as_ref()?.to_string()));
        let at = order.map(|order| now.past(order.at));
        Some(Self { by, at, ..Self::of(facts.pause?, now)? })
    }
}

impl PausedBy {
    /// What caused the pause: `by ops`, `: blog got a 429 (quota)`.
    #[must_use]
    pub fn cause(&self) -> String {
        let by = &self.by;
        match &self.refusal {
            None => format!(" by {by}"),
            Some(kind) if *kind == ThrottleKind::Overload => {
                format!(": {by} got an overload error")
            }
            Some(kind) => format!(": {by} got a 429 ({})", kind.as_str().replace('_', " ")),
        }
    }

    /// Returns who caused the pause that a refusal is about; `None` for any other refusal, and for
    /// a pause whose cause is not known.
    pub(crate) fn of(state: &State, refusal: &Refusal, now: &Now) -> Option<Self> {
        let throttling = &state.facts().throttling;
        if refusal.reason != Reason::Pause {
            return None;
        }
        let until = state.facts().pause.map(|until| now.ahead(until));
        if let Some(order) = &throttling.order {
            let by = order.by.as_ref()?.to_string();
            return Some(Self { by, at: now.past(order.at), until, refusal: None });
        }
        let incident = throttling.incident.as_ref()?;
        let by = incident.agent.as_ref()?.to_string();
        Some(Self { by, at: now.past(incident.at), until, refusal: Some(incident.kind.into()) })
    }
}

fn limit(amounts: &LimitUsage, learned: Option<u64>, now: &Now) -> LimitStatus {
    let id = amounts.limit.id();
    let (kind, amount, burst) = match amounts.limit.rule {
        Rule::Window { amount, .. } => (LimitKind::Window, amount, None),
        Rule::Bucket { amount, burst, .. } => (LimitKind::Bucket, amount, Some(burst)),
        Rule::Parallel { amount } => (LimitKind::Parallel, amount, None),
    };
    let until = |at: Option<Instant>| at.map(|at| now.millis_until(at));
    let rate = id.period().is_some();
    LimitStatus {
        limit: limit_text(&id),
        unit: id.unit().map_or("parallel", |unit| unit.name()).to_owned(),
        kind: kind.into(),
        amount,
        burst,
        period_ms: id.period().map(|period| period.0.div_ceil(1_000)),
        learned,
        effective: amounts.effective,
        used: amounts.used,
        held: amounts.held,
        left: amounts.left,
        kept: amounts.kept.iter().map(KeptUnits::of).collect(),
        ramp: None,
        refill: amounts.refill,
        last_period: amounts.refill.map(|_| amounts.last_period),
        margin_per_mille: None,
        outside: 0,
        by_others: amounts.by_others,
        full_again_ms: if rate { Some(until(amounts.clear_at).unwrap_or(0)) } else { None },
        reset: None,
        pace_ms: amounts.limit.pace.map(|pace| pace.0.div_ceil(1_000)),
        next_grant_ms: until(amounts.next_grant),
    }
}

/// The pool that every call on this one draws on too.
pub(super) fn within(state: &State) -> Option<&PoolRef> {
    state.facts().config.as_ref().and_then(|config| config.within.as_ref())
}

fn leases(pool: &PoolName, state: &State, now: &Now, processes: Processes<'_>) -> Vec<LeaseStatus> {
    let mut leases: Vec<(&Key, &Lease)> = state.facts().leases.iter().collect();
    leases.sort_by_key(|(key, lease)| (lease.started, **key));
    leases
        .into_iter()
        .map(|(key, lease)| lease_status(pool, state, *key, lease, now, processes))
        .collect()
}

/// Describes a call in flight.
pub(crate) fn lease_status(
    pool: &PoolName,
    state: &State,
    key: Key,
    lease: &Lease,
    now: &Now,
    processes: Processes<'_>,
) -> LeaseStatus {
    let ends = state.lease_ends(key);
    let (set, within) = (PoolSet::of(&lease.call), within(state));
    let (holder, process) = match lease.owner {
        LeaseOwner::Session(session) => {
            (LeaseHolder::Session, process_of(Some(session), None, processes))
        }
        LeaseOwner::Ttl { .. } => (LeaseHolder::Ttl, process_of(None, lease.call.owner, processes)),
    };
    LeaseStatus {
        id: LeaseId::new(pool.clone(), key),
        agent: agent_of(state, lease.agent),
        priority: lease.tier.into(),
        cost: amounts(&lease.call.cost),
        since: now.past(lease.started),
        age_ms: now.millis_since(lease.started),
        holder: holder.into(),
        pid: process.map(|process| process.pid),
        stopped: process.is_some_and(|process| process.stopped),
        daemon: false,
        expires_ms: (ends != Instant::NEVER).then(|| now.millis_until(ends)),
        model: lease.call.model.as_ref().map(ToString::to_string),
        task: lease.call.task.as_ref().map(ToString::to_string),
        part_of: set.part_of(pool),
        also: set.beside(pool, within),
    }
}

fn agents(
    state: &State,
    limits: &[LimitStatus],
    queued: &[TicketStatus],
    now: &Now,
) -> Vec<AgentStatus> {
    let facts = state.facts();
    let status = |(at, agent): (usize, &Agent)| {
        let its = |id: AgentId| usize::from(id) == at;
        let rule = facts.config.as_ref().and_then(|config| config.agent(&agent.name));
        let in_flight: Vec<Priority> =
            facts.leases.values().filter(|l| its(l.agent)).map(|lease| lease.tier).collect();
        let waiting: Vec<Priority> =
            facts.tickets.iter().filter(|(_, t)| its(t.agent)).map(|(key, _)| key.tier).collect();
        let current = in_flight.iter().chain(&waiting).min().copied();
        let is_denied = queued.iter().any(|ticket| {
            ticket.agent == agent.name.as_str() && ticket.reason != Some(Reason::Cap.into())
        });
        let denied = state.denied_for(&agent.name, now.store).filter(|_| is_denied);
        let shares = |shares: Option<&Vec<Share>>| {
            shares.into_iter().flatten().map(share_text).collect::<Vec<_>>()
        };
        AgentStatus {
            name: agent.name.to_string(),
            priority: current.or(rule.and_then(|rule| rule.priority)).unwrap_or_default().into(),
            in_flight: in_flight.len(),
            waiting: waiting.len(),
            keeps_for: Vec::new(),
            usage: usage(state, AgentId::of(at), limits, now),
            floor: shares(rule.map(|rule| &rule.floors)),
            cap: shares(rule.map(|rule| &rule.caps)),
            weight: rule.map(|rule| rule.weight).filter(|weight| *weight != 1),
            active_ms: if current.is_some() { 0 } else { now.millis_since(agent.active) },
            never_called: current.is_none() && rule.is_some() && has_never_called(agent),
            denied_ms: denied.map(|for_| for_.0 / 1_000),
            promoted: agent.promoted.is_some(),
        }
    };
    let mut agents: Vec<AgentStatus> = facts.agents.iter().enumerate().map(status).collect();
    let key = |agent: &AgentStatus| (agent.never_called, agent.active_ms);
    agents.sort_by(|one, other| (key(one), &one.name).cmp(&(key(other), &other.name)));
    agents
}

/// Whether only the configuration names an agent with a rule: its record was made with that.
fn has_never_called(agent: &Agent) -> bool {
    let nothing = agent.admitted.is_none() && agent.refused.is_none() && agent.denied.is_none();
    nothing && agent.asked.iter().next().is_none()
}

/// Returns what an agent uses of the limits, without those it does not use.
fn usage(state: &State, agent: AgentId, limits: &[LimitStatus], now: &Now) -> Vec<AgentUsage> {
    let figures = state.agent_figures(agent, now.store);
    let used = limits.iter().zip(figures).filter(|(_, own)| own.used + own.held > 0);
    let status = |(limit, own): (&LimitStatus, AgentLimitUsage)| AgentUsage {
        limit: limit.limit.clone(),
        used: own.used,
        held: own.held,
    };
    used.map(status).collect()
}

fn share_text(share: &Share) -> String {
    let portion = match share.portion {
        Portion::PerMille(share) if share % 10 == 0 => format!("{}%", share / 10),
        Portion::PerMille(share) => format!("{}.{}%", share / 10, share % 10),
        Portion::Rate { amount, period } => match &share.of {
            LimitSelector::Unit(unit) => plain::rate(unit, amount, period),
            _ => format!("{amount}/{}", format_span(period)),
        },
        Portion::Slots(slots) => slots.to_string(),
    };
    match &share.of {
        LimitSelector::All => portion,
        LimitSelector::Unit(unit) => format!("{unit} {portion}"),
        LimitSelector::Parallel => format!("parallel {portion}"),
    }
}

pub(super) fn agent_of(state: &State, agent: AgentId) -> String {
    let agent = state.facts().agents.get(usize::from(agent));
    agent.map_or_else(|| "other".to_owned(), |agent| agent.name.to_string())
}

pub(super) fn process_of(
    session: Option<u64>,
    owner: Option<Owner>,
    processes: Processes<'_>,
) -> Option<Process> {
    let process = session.and_then(processes);
    process.or_else(|| owner.map(|owner| Process { pid: owner.pid, stopped: false }))
}

/// Amounts by the names of their units.
pub(crate) fn amounts(amounts: &Amounts) -> BTreeMap<String, u64> {
    amounts.iter().map(|(unit, amount)| (unit.name().to_owned(), amount)).collect()
}
