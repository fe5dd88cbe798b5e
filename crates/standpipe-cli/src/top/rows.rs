//! The rows of a pane, filtered and sorted.

use std::cmp::Reverse;

use standpipe::PoolStatus;
use standpipe::observe::journal::{Event, EventData};
use standpipe::observe::{AgentStatus, LeaseStatus, LimitStatus, PoolState, TicketStatus};

use super::data::{ProxiedCall, ViewData};
use super::pane::{Order, Pane};

/// A row of a pane.
#[derive(Clone, Copy, Debug)]
pub(super) enum Row<'a> {
    Pool(&'a PoolStatus),
    Lease(&'a PoolStatus, &'a LeaseStatus),
    Ticket(&'a PoolStatus, &'a TicketStatus),
    Agent(&'a PoolStatus, &'a AgentStatus),
    Event(&'a Event),
    Proxied(&'a ProxiedCall),
}

impl<'a> Row<'a> {
    /// Returns the pool of the row; none for an event about all pools.
    pub(super) fn pool(self) -> Option<&'a str> {
        match self {
            Self::Pool(pool)
            | Self::Lease(pool, _)
            | Self::Ticket(pool, _)
            | Self::Agent(pool, _) => Some(&pool.pool),
            Self::Event(event) => Some(event.pool.as_str()).filter(|pool| *pool != "*"),
            Self::Proxied(call) => Some(&call.pool),
        }
    }

    /// Identifies the row in the next snapshot. Several rows may have the same key.
    pub(super) fn key(self) -> String {
        match self {
            Self::Pool(pool) => pool.pool.to_string(),
            Self::Lease(_, lease) => lease.id.to_string(),
            Self::Ticket(pool, ticket) => {
                format!("{} {} {}", pool.pool, ticket.agent, ticket.pid.unwrap_or_default())
            }
            Self::Agent(pool, agent) => format!("{} {}", pool.pool, agent.name),
            Self::Event(event) => format!("{} {}", event.at, event.pool),
            Self::Proxied(call) => format!("{} {} {}", call.at, call.agent, call.output_tokens),
        }
    }

    fn matches(self, text: &str) -> bool {
        let words = |pool: &str, agent: &str, model: &Option<String>, task: &Option<String>| {
            let others = [model, task];
            let mut others = others.into_iter().flatten().map(String::as_str);
            contains_ignoring_case(pool, text)
                || contains_ignoring_case(agent, text)
                || others.any(|word| contains_ignoring_case(word, text))
        };
        match self {
            Self::Pool(pool) => {
                contains_ignoring_case(&pool.pool, text)
                    || pool.leases.iter().any(|lease| Self::Lease(pool, lease).matches(text))
                    || pool.tickets.iter().any(|ticket| Self::Ticket(pool, ticket).matches(text))
                    || pool.agents.iter().any(|agent| contains_ignoring_case(&agent.name, text))
            }
            Self::Lease(pool, lease) => words(&pool.pool, &lease.agent, &lease.model, &lease.task),
            Self::Ticket(pool, ticket) => {
                words(&pool.pool, &ticket.agent, &ticket.model, &ticket.task)
            }
            Self::Agent(pool, agent) => words(&pool.pool, &agent.name, &None, &None),
            Self::Proxied(call) => words(&call.pool, &call.agent, &call.model, &call.session),
            Self::Event(event) => {
                contains_ignoring_case(&event.pool, text)
                    || contains_ignoring_case(event.what.kind().as_str(), text)
                    || agent(&event.what).is_some_and(|agent| contains_ignoring_case(agent, text))
                    || model(&event.what).is_some_and(|model| contains_ignoring_case(model, text))
            }
        }
    }

    fn agent(self) -> &'a str {
        match self {
            Self::Pool(_) => "",
            Self::Lease(_, lease) => &lease.agent,
            Self::Ticket(_, ticket) => &ticket.agent,
            Self::Agent(_, agent) => &agent.name,
            Self::Event(event) => agent(&event.what).unwrap_or_default(),
            Self::Proxied(call) => &call.agent,
        }
    }

    fn age(self) -> u64 {
        match self {
            Self::Pool(_) => 0,
            Self::Lease(_, lease) => lease.age_ms,
            Self::Ticket(_, ticket) => ticket.waits_ms,
            Self::Agent(_, agent) => agent.active_ms,
            Self::Event(event) => u64::MAX - event.at.millis,
            Self::Proxied(call) => u64::MAX - call.at.millis,
        }
    }

    fn state(self) -> Option<PoolState> {
        if let Self::Pool(pool) = self { Some(pool.state()) } else { None }
    }

    fn load(self) -> (usize, usize) {
        match self {
            Self::Pool(pool) => (pool.waiting, pool.in_flight),
            Self::Agent(_, agent) => (agent.waiting, agent.in_flight),
            _ => (0, 0),
        }
    }

    /// What a proxied call cost; without prices, its tokens.
    fn price(self) -> (u64, u64) {
        match self {
            Self::Proxied(call) => (call.micro_usd, call.input_tokens + call.output_tokens),
            _ => (0, 0),
        }
    }

    fn kind(self) -> &'static str {
        if let Self::Event(event) = self { event.what.kind().as_str() } else { "" }
    }
}

/// Returns the rows of a pane that match the filter.
pub(super) fn rows<'a>(data: &'a ViewData, pane: Pane, order: Order, filter: &str) -> Vec<Row<'a>> {
    let pools = data.snapshot.pools.iter();
    let mut rows: Vec<Row<'a>> = match pane {
        Pane::Pools => pools.map(Row::Pool).collect(),
        Pane::Leases => {
            pools.flat_map(|pool| pool.leases.iter().map(|row| Row::Lease(pool, row))).collect()
        }
        Pane::Queue => {
            pools.flat_map(|pool| pool.tickets.iter().map(|row| Row::Ticket(pool, row))).collect()
        }
        Pane::Agents => {
            pools.flat_map(|pool| pool.agents.iter().map(|row| Row::Agent(pool, row))).collect()
        }
        Pane::Events => data.events.iter().map(Row::Event).collect(),
        Pane::Proxied => data.proxied.iter().flatten().map(Row::Proxied).collect(),
    };
    let text = filter.to_lowercase();
    rows.retain(|row| text.is_empty() || row.matches(&text));
    // Sorting is stable: equal rows keep the order of the snapshot.
    match order {
        Order::Unsorted => {}
        Order::Worst => rows.sort_by_key(|row| (row.state(), Reverse(row.load()))),
        Order::MostUsed => rows.sort_by_key(|row| Reverse(usage(*row))),
        Order::Busiest => rows.sort_by_key(|row| Reverse(row.load())),
        Order::Oldest => rows.sort_by_key(|row| Reverse(row.age())),
        Order::Newest => rows.sort_by_key(|row| row.age()),
        Order::Agent => rows.sort_by_key(|row| row.agent()),
        Order::Pool => rows.sort_by_key(|row| row.pool()),
        Order::Kind => rows.sort_by_key(|row| row.kind()),
        Order::Dearest => rows.sort_by_key(|row| Reverse(row.price())),
    }
    rows
}

/// Returns the fullest limit of a pool and how full it is, in thousandths.
pub(super) fn tightest(pool: &PoolStatus) -> Option<(&LimitStatus, u64)> {
    let each = pool.limits.iter().map(|limit| {
        let taken = u128::from(limit.used) + u128::from(limit.held);
        let thousandths = taken * 1_000 / u128::from(limit.effective.max(1));
        (limit, u64::try_from(thousandths).unwrap_or(u64::MAX))
    });
    // Of equally full limits the first.
    each.reduce(|most, next| if next.1 > most.1 { next } else { most })
}

fn usage(row: Row<'_>) -> u64 {
    if let Row::Pool(pool) = row { tightest(pool).map_or(0, |(_, taken)| taken) } else { 0 }
}

fn contains_ignoring_case(words: &str, text: &str) -> bool {
    words.to_lowercase().contains(text)
}

fn agent(what: &EventData) -> Option<&str> {
    match what {
        EventData::Wait { agent, .. }
        | EventData::Refuse { agent, .. }
        | EventData::Shadow { agent, .. }
        | EventData::Reclaim { agent, .. }
        | EventData::Promote { agent } => Some(agent),
        EventData::Throttle { agent, .. } | EventData::Settle { agent, .. } => agent.as_deref(),
        EventData::Usage(usage) => Some(&usage.agent),
        _ => None,
    }
}

fn model(what: &EventData) -> Option<&str> {
    match what {
        EventData::Wait { model, .. }
        | EventData::Refuse { model, .. }
        | EventData::Shadow { model, .. } => model.as_deref(),
        _ => None,
    }
}
