//! The rows of a pane: those that have the wanted text in them, in the wanted order. Only reads.

use std::cmp::Reverse;

use standpipe::journal::{Event, What};
use standpipe::{AgentStatus, LeaseStatus, LimitStatus, PoolStatus, TicketStatus};

use super::pane::{Order, Pane};
use super::picture::Picture;

/// One row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Row<'a> {
    Pool(&'a PoolStatus),
    Lease(&'a PoolStatus, &'a LeaseStatus),
    Ticket(&'a PoolStatus, &'a TicketStatus),
    Agent(&'a PoolStatus, &'a AgentStatus),
    Event(&'a Event),
}

impl<'a> Row<'a> {
    /// The pool it is about; none for what is about all.
    pub(super) fn pool(self) -> Option<&'a str> {
        match self {
            Self::Pool(pool)
            | Self::Lease(pool, _)
            | Self::Ticket(pool, _)
            | Self::Agent(pool, _) => Some(&pool.pool),
            Self::Event(event) => Some(event.pool.as_str()).filter(|pool| *pool != "*"),
        }
    }

    /// What it is told again by in the next picture. Several may have the same.
    pub(super) fn key(self) -> String {
        match self {
            Self::Pool(pool) => pool.pool.clone(),
            Self::Lease(_, lease) => lease.id.to_string(),
            Self::Ticket(pool, ticket) => {
                format!("{} {} {}", pool.pool, ticket.agent, ticket.pid.unwrap_or_default())
            }
            Self::Agent(pool, agent) => format!("{} {}", pool.pool, agent.name),
            Self::Event(event) => format!("{} {}", event.at, event.pool),
        }
    }

    fn has(self, text: &str) -> bool {
        let words = |pool: &str, agent: &str, model: &Option<String>, task: &Option<String>| {
            let others = [model, task];
            let mut others = others.into_iter().flatten().map(String::as_str);
            within(pool, text) || within(agent, text) || others.any(|word| within(word, text))
        };
        match self {
            Self::Pool(pool) => {
                within(&pool.pool, text)
                    || pool.leases.iter().any(|lease| Self::Lease(pool, lease).has(text))
                    || pool.tickets.iter().any(|ticket| Self::Ticket(pool, ticket).has(text))
                    || pool.agents.iter().any(|agent| within(&agent.name, text))
            }
            Self::Lease(pool, lease) => words(&pool.pool, &lease.agent, &lease.model, &lease.task),
            Self::Ticket(pool, ticket) => {
                words(&pool.pool, &ticket.agent, &ticket.model, &ticket.task)
            }
            Self::Agent(pool, agent) => words(&pool.pool, &agent.name, &None, &None),
            Self::Event(event) => {
                within(&event.pool, text)
                    || within(event.what.kind().as_str(), text)
                    || agent(&event.what).is_some_and(|agent| within(agent, text))
                    || model(&event.what).is_some_and(|model| within(model, text))
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
        }
    }

    fn age(self) -> u64 {
        match self {
            Self::Pool(_) => 0,
            Self::Lease(_, lease) => lease.age_ms,
            Self::Ticket(_, ticket) => ticket.waits_ms,
            Self::Agent(_, agent) => agent.active_ms,
            Self::Event(event) => u64::MAX - event.at.millis,
        }
    }

    fn busy(self) -> (usize, usize) {
        match self {
            Self::Pool(pool) => (pool.waiting, pool.in_flight),
            Self::Agent(_, agent) => (agent.waiting, agent.in_flight),
            _ => (0, 0),
        }
    }

    fn kind(self) -> &'static str {
        if let Self::Event(event) = self { event.what.kind().as_str() } else { "" }
    }
}

/// The rows of a pane.
pub(super) fn rows<'a>(
    picture: &'a Picture,
    pane: Pane,
    order: Order,
    filter: &str,
) -> Vec<Row<'a>> {
    let pools = picture.seen.pools.iter();
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
        Pane::Events => picture.events.iter().map(Row::Event).collect(),
    };
    let text = filter.to_lowercase();
    rows.retain(|row| text.is_empty() || row.has(&text));
    // All of these keep rows that are alike in the order of the snapshot.
    match order {
        Order::AsItIs => {}
        Order::Taken => rows.sort_by_key(|row| Reverse(taken(*row))),
        Order::Busy => rows.sort_by_key(|row| Reverse(row.busy())),
        Order::Oldest => rows.sort_by_key(|row| Reverse(row.age())),
        Order::Youngest => rows.sort_by_key(|row| row.age()),
        Order::Agent => rows.sort_by_key(|row| row.agent()),
        Order::Pool => rows.sort_by_key(|row| row.pool()),
        Order::Kind => rows.sort_by_key(|row| row.kind()),
    }
    rows
}

/// The limit of a pool of which most is taken, and how much, in thousandths.
pub(super) fn tightest(pool: &PoolStatus) -> Option<(&LimitStatus, u64)> {
    let each = pool.limits.iter().map(|limit| {
        let taken = u128::from(limit.used) + u128::from(limit.held);
        let thousandths = taken * 1_000 / u128::from(limit.effective.max(1));
        (limit, u64::try_from(thousandths).unwrap_or(u64::MAX))
    });
    // The first of those that are as full.
    each.reduce(|most, next| if next.1 > most.1 { next } else { most })
}

fn taken(row: Row<'_>) -> u64 {
    if let Row::Pool(pool) = row { tightest(pool).map_or(0, |(_, taken)| taken) } else { 0 }
}

fn within(words: &str, text: &str) -> bool {
    words.to_lowercase().contains(text)
}

fn agent(what: &What) -> Option<&str> {
    match what {
        What::Wait { agent, .. }
        | What::Shadow { agent, .. }
        | What::Reclaim { agent, .. }
        | What::Promote { agent } => Some(agent),
        What::Throttle { agent, .. } => agent.as_deref(),
        What::Usage(usage) => Some(&usage.agent),
        _ => None,
    }
}

fn model(what: &What) -> Option<&str> {
    match what {
        What::Wait { model, .. } | What::Shadow { model, .. } => model.as_deref(),
        _ => None,
    }
}
