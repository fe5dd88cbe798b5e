//! The panes of a view, and the orders their rows can be in.

/// What a pane lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Pools,
    Leases,
    Queue,
    Agents,
    Events,
}

/// How rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As they stand in the snapshot: by pool, and there as the ledger orders them.
    AsItIs,
    /// What is taken most comes first.
    Taken,
    /// Those with most calls that wait, then most in flight.
    Busy,
    Oldest,
    Youngest,
    Agent,
    Pool,
    Kind,
}

impl Pane {
    pub(super) const ALL: [Self; 5] =
        [Self::Pools, Self::Leases, Self::Queue, Self::Agents, Self::Events];

    pub(super) const fn at(self) -> usize {
        match self {
            Self::Pools => 0,
            Self::Leases => 1,
            Self::Queue => 2,
            Self::Agents => 3,
            Self::Events => 4,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pools => "pools",
            Self::Leases => "leases",
            Self::Queue => "queue",
            Self::Agents => "agents",
            Self::Events => "events",
        }
    }

    /// The pane so many steps on, round and round.
    pub(super) fn step(self, steps: usize) -> Self {
        let at = (self.at() + steps) % Self::ALL.len();
        Self::ALL.get(at).copied().unwrap_or(self)
    }

    /// The orders it can be in, the first to begin with.
    pub(super) const fn orders(self) -> &'static [Order] {
        match self {
            Self::Pools => &[Order::AsItIs, Order::Taken, Order::Busy],
            Self::Leases => &[Order::Oldest, Order::Youngest, Order::Agent, Order::Pool],
            Self::Queue => &[Order::AsItIs, Order::Oldest, Order::Agent],
            Self::Agents => &[Order::Youngest, Order::Agent, Order::Busy, Order::Pool],
            Self::Events => &[Order::Youngest, Order::Kind, Order::Pool],
        }
    }

    /// An order in words, for the title.
    pub(super) const fn said(self, order: Order) -> &'static str {
        match (self, order) {
            (Self::Pools, Order::AsItIs) => "by name",
            (_, Order::AsItIs) => "in order of service",
            (_, Order::Taken) => "most taken first",
            (_, Order::Busy) => "busiest first",
            (Self::Queue, Order::Oldest) => "longest wait first",
            (_, Order::Oldest) => "oldest first",
            (Self::Agents, Order::Youngest) => "last active first",
            (_, Order::Youngest) => "newest first",
            (_, Order::Agent) => "by agent",
            (_, Order::Pool) => "by pool",
            (_, Order::Kind) => "by kind",
        }
    }
}
