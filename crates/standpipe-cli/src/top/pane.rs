//! The panes of the view and the sort orders of their rows.

/// The number of panes.
pub(super) const PANES: usize = 6;

/// What a pane lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pane {
    Pools,
    Leases,
    Queue,
    Agents,
    Events,
    /// Calls through a daemon's proxy that ended.
    Proxied,
}

/// How rows are sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// As in the snapshot: by pool, and within it as the ledger orders them.
    Unsorted,
    /// The pool in the worst state first, then the busiest.
    Worst,
    /// The pool with the fullest limit first.
    MostUsed,
    /// Most waiting calls first, then most in flight.
    Busiest,
    Oldest,
    Newest,
    Agent,
    Pool,
    Kind,
    /// The most expensive call first.
    Dearest,
}

impl Pane {
    pub(super) const ALL: [Self; PANES] =
        [Self::Pools, Self::Leases, Self::Queue, Self::Agents, Self::Events, Self::Proxied];

    pub(super) const fn index(self) -> usize {
        match self {
            Self::Pools => 0,
            Self::Leases => 1,
            Self::Queue => 2,
            Self::Agents => 3,
            Self::Events => 4,
            Self::Proxied => 5,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pools => "pools",
            Self::Leases => "leases",
            Self::Queue => "queue",
            Self::Agents => "agents",
            Self::Events => "events",
            Self::Proxied => "proxied",
        }
    }

    /// Returns the pane `steps` further, wrapping around.
    pub(super) fn step(self, steps: usize) -> Self {
        let at = (self.index() + steps) % Self::ALL.len();
        Self::ALL.get(at).copied().unwrap_or(self)
    }

    /// Returns the orders of this pane; the first is the default.
    pub(super) const fn orders(self) -> &'static [Order] {
        match self {
            Self::Pools => &[Order::Worst, Order::Unsorted, Order::MostUsed, Order::Busiest],
            Self::Leases => &[Order::Oldest, Order::Newest, Order::Agent, Order::Pool],
            Self::Queue => &[Order::Unsorted, Order::Oldest, Order::Agent],
            Self::Agents => &[Order::Newest, Order::Agent, Order::Busiest, Order::Pool],
            Self::Events => &[Order::Newest, Order::Kind, Order::Pool],
            Self::Proxied => &[Order::Newest, Order::Dearest, Order::Agent, Order::Pool],
        }
    }

    /// Describes an order, for the title.
    pub(super) const fn order_label(self, order: Order) -> &'static str {
        match (self, order) {
            (Self::Pools, Order::Unsorted) => "by name",
            (_, Order::Unsorted) => "in the order of the queue",
            (_, Order::Worst) => "worst state first",
            (_, Order::MostUsed) => "most used first",
            (_, Order::Busiest) => "busiest first",
            (Self::Queue, Order::Oldest) => "longest wait first",
            (_, Order::Oldest) => "oldest first",
            (Self::Agents, Order::Newest) => "last active first",
            (_, Order::Newest) => "newest first",
            (_, Order::Agent) => "by agent",
            (_, Order::Pool) => "by pool",
            (_, Order::Kind) => "by kind",
            (_, Order::Dearest) => "most expensive first",
        }
    }
}
