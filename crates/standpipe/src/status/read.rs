//! Working out how a pool stands from its state.

use standpipe_core::{
    Agent, AgentId, AgentName, Decision, Instant, Key, Lease, LeaseOwner, LimitId, LimitSelector,
    LimitUsage, Margin, Owner, PoolConfig, Portion, Provenance, Queued, Refusal, Reserve, Rule,
    Share, State, Ticket,
};
use standpipe_store::{PoolName, Process, Store};

use super::foresight;
use super::{
    AgentStatus, LeaseStatus, LimitStatus, Origin, Pause, PoolStatus, Stop, TicketStatus, Trouble,
};
use crate::config::plain;
use crate::lease_id::LeaseId;
use crate::moment::{Moment, Now, spoken};
use crate::refused::limit_text;
use crate::shared::ask::{figures, tier_word};
use crate::when::When;

impl PoolStatus {
    /// How a pool stands now. The state must have been brought to now.
    pub(crate) fn of(pool: &PoolName, state: &State, now: &Now, store: &dyn Store) -> Self {
        let facts = state.facts();
        let config = facts.config.as_ref();
        let margin = config.map_or(Margin::Auto, |config| config.margin);
        let limits = Self::limits_of(state, now);
        let largest = limits.iter().filter_map(|limit| limit.margin_per_mille).max();
        let learning = state.learning_until();
        let stop = facts.terminal.map(|terminal| Stop {
            until: terminal.until.map(|until| now.ahead(until)),
            for_ms: terminal.until.map(|until| now.millis_until(until)),
            look_ms: terminal.next_probe.map(|look| now.millis_until(look)),
        });
        Self {
            pool: pool.to_string(),
            provider: None,
            at: now.past(now.store),
            position: 0,
            enforce: config.is_none_or(|config| config.enforce),
            margin_per_mille: largest.unwrap_or_else(|| margin.per_mille()),
            margin_auto: margin == Margin::Auto,
            origin: origin(config, facts.provenance),
            pause: facts.pause.and_then(|until| Pause::of(until, now)),
            terminal: stop,
            learning: learning.and_then(|until| Pause::of(until, now)),
            trouble: Trouble::of(state, now),
            zone: state.zone().as_str(),
            breaker: state.breaker(now.store).as_str(),
            money: foresight::money(state, now),
            limits,
            in_flight: facts.leases.len(),
            leases: leases(pool, state, now, store),
            waiting: facts.tickets.len(),
            tickets: tickets(state, now, store),
            agents: agents(state, now),
            skipped: 0,
            cut_off: None,
        }
    }

    /// The calls of an agent that wait, in order.
    pub(crate) fn waiting(
        state: &State,
        agent: &AgentName,
        now: &Now,
        store: &dyn Store,
    ) -> Vec<TicketStatus> {
        let all = tickets(state, now, store).into_iter();
        all.filter(|ticket| ticket.agent == agent.as_str()).collect()
    }

    /// How its limits stand.
    pub(crate) fn limits_of(state: &State, now: &Now) -> Vec<LimitStatus> {
        let told = |id: &LimitId| {
            let told = state.facts().learned.limits.iter();
            let mut same = told
                .filter(|told| id.unit() == Some(&told.unit) && id.period() == Some(told.period));
            same.next().map(|told| told.amount)
        };
        let each = state.figures(now.store);
        let each = each.iter().map(|figures| {
            let id = figures.limit.id();
            let mut status = limit(figures, told(&id), now);
            status.margin_per_mille = state.margin_of(&id);
            status.outside = foresight::outside(state, &id, now);
            status
        });
        each.collect()
    }
}

fn origin(config: Option<&PoolConfig>, provenance: Provenance) -> Origin {
    let source = match (config, provenance.file) {
        (None, _) => "none",
        (_, true) => "file",
        (_, false) => "code",
    };
    let written = Some(Moment { millis: provenance.written }).filter(|_| provenance.file);
    Origin { source, version: provenance.version, written, changes: provenance.changes }
}

impl Pause {
    /// What ends then, unless it has ended.
    pub(crate) fn of(until: Instant, now: &Now) -> Option<Self> {
        let for_ms = now.millis_until(until);
        (for_ms > 0).then(|| Self { until: now.ahead(until), for_ms })
    }
}

fn limit(figures: &LimitUsage, told: Option<u64>, now: &Now) -> LimitStatus {
    let id = figures.limit.id();
    let (kind, amount, burst) = match figures.limit.rule {
        Rule::Window { amount, .. } => ("window", amount, None),
        Rule::Bucket { amount, burst, .. } => ("bucket", amount, Some(burst)),
        Rule::Parallel { amount } => ("parallel", amount, None),
    };
    let until = |at: Option<Instant>| at.map(|at| now.millis_until(at));
    let rate = id.period().is_some();
    LimitStatus {
        limit: limit_text(&id),
        unit: id.unit().map_or("parallel", |unit| unit.name()).to_owned(),
        kind,
        amount,
        burst,
        period_ms: id.period().map(|period| period.0.div_ceil(1_000)),
        told,
        effective: figures.effective,
        used: figures.used,
        held: figures.held,
        left: figures.left,
        margin_per_mille: None,
        outside: 0,
        by_others: figures.by_others,
        full_again_ms: if rate { Some(until(figures.clear_at).unwrap_or(0)) } else { None },
        pace_ms: figures.limit.pace.map(|pace| pace.0.div_ceil(1_000)),
        next_grant_ms: until(figures.next_grant),
    }
}

fn leases(pool: &PoolName, state: &State, now: &Now, store: &dyn Store) -> Vec<LeaseStatus> {
    let mut leases: Vec<(&Key, &Lease)> = state.facts().leases.iter().collect();
    leases.sort_by_key(|(key, lease)| (lease.started, **key));
    let status = |(key, lease): (&Key, &Lease)| {
        let ends = state.lease_ends(*key);
        let (holder, process) = match lease.owner {
            LeaseOwner::Session(session) => ("session", process_of(Some(session), None, store)),
            LeaseOwner::Ttl { .. } => ("ttl", process_of(None, lease.call.owner, store)),
        };
        LeaseStatus {
            id: LeaseId::new(pool.clone(), *key),
            agent: agent_of(state, lease.agent),
            priority: tier_word(lease.tier),
            cost: figures(&lease.call.cost),
            since: now.past(lease.started),
            age_ms: now.millis_since(lease.started),
            holder,
            pid: process.map(|process| process.pid),
            stopped: process.is_some_and(|process| process.stopped),
            expires_ms: (ends != Instant::NEVER).then(|| now.millis_until(ends)),
            model: lease.call.model.as_ref().map(ToString::to_string),
            task: lease.call.task.as_ref().map(ToString::to_string),
        }
    };
    leases.into_iter().map(status).collect()
}

fn tickets(state: &State, now: &Now, store: &dyn Store) -> Vec<TicketStatus> {
    let ordered = (1..).zip(&state.facts().tickets);
    let status = |(position, (place, ticket)): (usize, (&standpipe_core::QueueKey, &Ticket))| {
        let why = why(state, ticket, now);
        let process = process_of(ticket.session, ticket.call.owner, store);
        TicketStatus {
            agent: agent_of(state, ticket.agent),
            priority: tier_word(place.tier),
            cost: figures(&ticket.call.cost),
            position,
            since: now.past(ticket.since),
            waits_ms: now.millis_since(ticket.since),
            reason: why.as_ref().map(|refusal| refusal.reason.as_str()),
            limit: why.as_ref().and_then(|refusal| refusal.limit.as_ref()).map(limit_text),
            short_by: why.as_ref().map_or(0, |refusal| refusal.short_by),
            when: why.as_ref().map(|refusal| When::of(refusal, now)).unwrap_or_default(),
            pid: process.map(|process| process.pid),
            stopped: process.is_some_and(|process| process.stopped),
            deadline_ms: now.millis_until(ticket.deadline),
            model: ticket.call.model.as_ref().map(ToString::to_string),
            task: ticket.call.task.as_ref().map(ToString::to_string),
        }
    };
    ordered.map(status).collect()
}

/// What the claim of a ticket would be told now, if it is no.
fn why(state: &State, ticket: &Ticket, now: &Now) -> Option<Refusal> {
    let agent = state.facts().agents.get(usize::from(ticket.agent))?.name.clone();
    let mut claim = Reserve::new(agent, ticket.call.cost.clone());
    claim.ticket = Some(ticket.key);
    match state.peek(&claim, now.store) {
        Decision::Wait(Queued { refusal, .. }) | Decision::Refuse(refusal) => Some(refusal),
        Decision::Admit(_) => None,
    }
}

fn agents(state: &State, now: &Now) -> Vec<AgentStatus> {
    let facts = state.facts();
    let status = |(at, agent): (usize, &Agent)| {
        let its = |id: AgentId| usize::from(id) == at;
        let rule = facts.config.as_ref().and_then(|config| config.agent(&agent.name));
        let shares = |shares: Option<&Vec<Share>>| {
            shares.into_iter().flatten().map(share_text).collect::<Vec<_>>()
        };
        AgentStatus {
            name: agent.name.to_string(),
            priority: tier_word(rule.and_then(|rule| rule.priority).unwrap_or_default()),
            in_flight: facts.leases.values().filter(|lease| its(lease.agent)).count(),
            waiting: facts.tickets.values().filter(|ticket| its(ticket.agent)).count(),
            floor: shares(rule.map(|rule| &rule.floors)),
            cap: shares(rule.map(|rule| &rule.caps)),
            active_ms: now.millis_since(agent.active),
            denied_ms: state.denied_for(&agent.name, now.store).map(|for_| for_.0 / 1_000),
            promoted: agent.promoted.is_some(),
        }
    };
    let mut agents: Vec<AgentStatus> = facts.agents.iter().enumerate().map(status).collect();
    agents.sort_by(|one, other| (one.active_ms, &one.name).cmp(&(other.active_ms, &other.name)));
    agents
}

fn share_text(share: &Share) -> String {
    let portion = match share.portion {
        Portion::PerMille(share) if share % 10 == 0 => format!("{}%", share / 10),
        Portion::PerMille(share) => format!("{}.{}%", share / 10, share % 10),
        Portion::Rate { amount, period } => match &share.of {
            LimitSelector::Unit(unit) => plain::rate(unit, amount, period),
            _ => format!("{amount}/{}", spoken(period)),
        },
        Portion::Slots(slots) => slots.to_string(),
    };
    match &share.of {
        LimitSelector::All => portion,
        LimitSelector::Unit(unit) => format!("{unit} {portion}"),
        LimitSelector::Parallel => format!("parallel {portion}"),
    }
}

fn agent_of(state: &State, agent: AgentId) -> String {
    let agent = state.facts().agents.get(usize::from(agent));
    agent.map_or_else(|| "other".to_owned(), |agent| agent.name.to_string())
}

fn process_of(session: Option<u64>, owner: Option<Owner>, store: &dyn Store) -> Option<Process> {
    let process = session.and_then(|session| store.process_of(session));
    process.or_else(|| owner.map(|owner| Process { pid: owner.pid, stopped: false }))
}
