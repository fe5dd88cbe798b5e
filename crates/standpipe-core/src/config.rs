//! The configuration of a pool: limits, agents, durations and policies, as plain values.
//!
//! [`PoolConfig::check`] is the only validation: a configuration that passes it cannot overflow or
//! exceed [`bounds`] later. Files, rates as text and defaults belong to other crates.
//!
//! `precedence.rs` decides which of two configurations wins, `compiled.rs` derives the constraints
//! from it, and `change.rs` puts it into force.

pub(crate) mod change;
pub(crate) mod compiled;
mod invalid;
mod order;
pub(crate) mod policy;
pub(crate) mod precedence;
mod priority;
pub(crate) mod resets;

use alloc::vec::Vec;
use core::fmt;

use crate::bounds;
pub use crate::config::invalid::InvalidConfig;
pub use crate::config::order::Order;
use crate::config::policy::Policy;
pub use crate::config::priority::Priority;
pub use crate::config::resets::Resets;
pub(crate) use crate::mul_div::mul_div;
use crate::name::{AgentName, PoolRef};
use crate::time::Span;
use crate::unit::{Amounts, Unit};

/// The configuration of one pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// The limits, at least one unless limits are learned.
    pub limits: Vec<Limit>,
    /// The share of every stated rate that is left unused.
    pub margin: Margin,
    /// The time added to every period, because calls reach the provider with jitter.
    pub slack: Span,
    /// The time for which units stay earmarked for a due ticket that nobody claims.
    pub claim: Span,
    /// The default time to live of a lease without a session, and the time for which the id of an
    /// ended call is remembered.
    pub lease_ttl: Span,
    /// The longest time a lease stays in flight without a progress commit; `None` is unlimited.
    pub longest_lease: Option<Span>,
    /// Whether limits are enforced. `false` is shadow mode: decide, record, admit anyway.
    pub enforce: bool,
    /// The order in which tickets of one tier are served.
    pub order: Order,
    /// The policies before and after a refusal of the provider.
    pub policy: Policy,
    /// The rules for particular agents.
    pub agents: Vec<AgentRule>,
    /// The price of a million of each unit, in millionths of a dollar.
    pub prices: Amounts,
    /// The pool that every call on this one draws on too. The ledger only stores it, so that every
    /// process follows the same one.
    pub within: Option<PoolRef>,
}

/// One limit of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The kind of the limit and its numbers.
    pub rule: Rule,
    /// The minimum gap between two grants that draw on this limit.
    pub pace: Option<Span>,
    /// When the units of a call are charged.
    pub charged: Charged,
    /// How the provider counts the period.
    pub resets: Resets,
}

/// The kind of a limit and its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A rolling window: at most `amount` units in any interval of one `period`.
    Window {
        /// The unit it counts.
        unit: Unit,
        /// The number of units.
        amount: u64,
        /// The length of the window.
        period: Span,
    },
    /// A token bucket: refills continuously by `amount` per `period`, up to `burst`.
    Bucket {
        /// The unit it counts.
        unit: Unit,
        /// The units refilled in one period.
        amount: u64,
        /// The refill period.
        period: Span,
        /// The capacity.
        burst: u64,
    },
    /// A concurrency limit: leases in flight hold at most `amount` slots.
    Parallel {
        /// The number of slots.
        amount: u64,
    },
}

/// When the units of a call are charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charged {
    /// At admission.
    #[default]
    Start,
    /// When the call reports them; until then the estimate is held.
    End,
}

/// The share of a stated rate that is left unused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// A share that adjusts itself; see `provider/auto_margin.rs`.
    Auto,
    /// A fixed share, in thousandths.
    Fixed(u16),
}

/// The rules for one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRule {
    /// The name of the agent.
    pub name: AgentName,
    /// The priority, unless a reserve names another.
    pub priority: Option<Priority>,
    /// The shares that are reserved for the agent while it is active.
    pub floors: Vec<Share>,
    /// The shares that the agent may not exceed.
    pub caps: Vec<Share>,
    /// The weight of the agent in fair order, from 1 to [`bounds::WEIGHT`]; other agents have 1.
    pub weight: u16,
}

/// A share of some limits of a pool: the amount of a floor or cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The limits it applies to.
    pub of: LimitSelector,
    /// The amount.
    pub portion: Portion,
}

/// The limits that a [`Share`] applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitSelector {
    /// Every limit of the pool.
    All,
    /// The limits that count this unit.
    Unit(Unit),
    /// The concurrency limit.
    Parallel,
}

/// The amount of a [`Share`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    /// Thousandths of the limit.
    PerMille(u16),
    /// A rate. A floor is scaled to the period of the limit; a cap keeps this period.
    Rate {
        /// The number of units.
        amount: u64,
        /// The period.
        period: Span,
    },
    /// A number of slots in flight.
    Slots(u64),
}

/// The identity of a limit: it is the same limit across configurations while this is equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitId {
    /// A rolling window of this unit and period.
    Window(Unit, Span),
    /// A bucket of this unit and period.
    Bucket(Unit, Span),
    /// The concurrency limit.
    Parallel,
    /// The gate: calls in flight that the provider has not answered, while others wait for it.
    Unanswered,
}

impl Margin {
    /// Returns the margin in thousandths, for `Auto` the one it starts with.
    #[must_use]
    pub const fn per_mille(self) -> u16 {
        match self {
            Self::Auto => 200,
            Self::Fixed(per_mille) => per_mille,
        }
    }
}

impl Limit {
    /// Creates a limit with the defaults: charged at the start, rolling, no pace.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self { rule, pace: None, charged: Charged::Start, resets: Resets::Rolling }
    }

    /// Creates a bucket that also satisfies a rolling window of `amount` per `period`.
    ///
    /// A bucket admits its burst plus one refill in one period, so the refill is `amount - burst`.
    #[must_use]
    pub const fn bucket_under_window(unit: Unit, amount: u64, period: Span, burst: u64) -> Self {
        Self::new(Rule::Bucket { unit, amount: amount.saturating_sub(burst), period, burst })
    }

    /// Returns the identity of the limit.
    #[must_use]
    pub fn id(&self) -> LimitId {
        match &self.rule {
            Rule::Window { unit, period, .. } => LimitId::Window(unit.clone(), *period),
            Rule::Bucket { unit, period, .. } => LimitId::Bucket(unit.clone(), *period),
            Rule::Parallel { .. } => LimitId::Parallel,
        }
    }

    /// Returns the largest cost that one call can ever have on this limit.
    #[must_use]
    pub const fn stated(&self) -> u64 {
        match self.rule {
            Rule::Window { amount, .. } | Rule::Parallel { amount } => amount,
            Rule::Bucket { burst, .. } => burst,
        }
    }

    fn check(&self) -> Result<(), InvalidConfig> {
        let amount_fits = |n: u64| (1..=bounds::AMOUNT).contains(&n);
        let (amount, burst, period) = match self.rule {
            Rule::Window { amount, period, .. } => (amount, 1, period),
            Rule::Bucket { amount, burst, period, .. } => (amount, burst, period),
            Rule::Parallel { amount } => (amount, 1, Span(1)),
        };
        if !amount_fits(amount) || !amount_fits(burst) {
            return Err(InvalidConfig::Amount(self.id()));
        }
        if self.id().unit() == Some(&Unit::Parallel) {
            return Err(InvalidConfig::Slots);
        }
        if !is_valid_duration(period) || !self.pace.is_none_or(is_valid_duration) {
            return Err(InvalidConfig::Time);
        }
        match self.has_valid_resets() {
            true => Ok(()),
            false => Err(InvalidConfig::Calendar(self.id())),
        }
    }
}

impl LimitId {
    /// Returns the unit the limit counts, or `None` for calls in flight.
    #[must_use]
    pub const fn unit(&self) -> Option<&Unit> {
        match self {
            Self::Window(unit, _) | Self::Bucket(unit, _) => Some(unit),
            Self::Parallel | Self::Unanswered => None,
        }
    }

    /// Returns the period of the limit, or `None` for calls in flight.
    #[must_use]
    pub const fn period(&self) -> Option<Span> {
        match self {
            Self::Window(_, period) | Self::Bucket(_, period) => Some(*period),
            Self::Parallel | Self::Unanswered => None,
        }
    }
}

impl PoolConfig {
    /// Creates a configuration of these limits with the core's defaults for all else.
    ///
    /// The margin is 0, there is no slack, tickets must be claimed within 2 s,
    /// leases live 10 min and at most 1 h, and [`Policy::NONE`] applies.
    #[must_use]
    pub fn new(limits: Vec<Limit>) -> Self {
        Self {
            limits,
            margin: Margin::Fixed(0),
            slack: Span::ZERO,
            claim: Span::secs(2),
            lease_ttl: Span::secs(600),
            longest_lease: Some(Span::secs(3_600)),
            enforce: true,
            order: Order::Arrival,
            policy: Policy::NONE,
            agents: Vec::new(),
            prices: Amounts::default(),
            within: None,
        }
    }

    /// Returns the rules for an agent.
    #[must_use]
    pub fn agent(&self, name: &AgentName) -> Option<&AgentRule> {
        self.agents.iter().find(|rule| rule.name == *name)
    }

    /// Returns the longest period of all limits; after that time without use every window is empty.
    #[must_use]
    pub fn longest_period(&self) -> Span {
        let periods = self.limits.iter().filter_map(Limit::counts_for);
        periods.max().unwrap_or(Span::ZERO)
    }

    /// Checks that the configuration can be used.
    ///
    /// # Errors
    /// The first problem found.
    pub fn check(&self) -> Result<(), InvalidConfig> {
        let nothing = self.limits.is_empty() && !self.policy.learn;
        if nothing || self.limits.len() > bounds::LIMITS {
            return Err(InvalidConfig::Limits(self.limits.len()));
        }
        for (at, limit) in self.limits.iter().enumerate() {
            limit.check()?;
            if self.limits[..at].iter().any(|other| other.id() == limit.id()) {
                return Err(InvalidConfig::Twice(limit.id()));
            }
        }
        let per_mille = self.margin.per_mille();
        if per_mille > 999 {
            return Err(InvalidConfig::Margin(per_mille));
        }
        let times = [self.claim, self.lease_ttl, self.longest_lease.unwrap_or(Span(1))];
        let times_fit = times.into_iter().all(is_valid_duration) && self.policy.check();
        if !times_fit || self.slack > bounds::SPAN {
            return Err(InvalidConfig::Time);
        }
        self.check_agents()
    }

    fn check_agents(&self) -> Result<(), InvalidConfig> {
        if self.agents.len() > bounds::AGENT_RULES {
            return Err(InvalidConfig::Agents);
        }
        let mut shares = 0;
        for (at, rule) in self.agents.iter().enumerate() {
            if self.agents[..at].iter().any(|other| other.name == rule.name) {
                return Err(InvalidConfig::Agents);
            }
            if !(1..=bounds::WEIGHT).contains(&rule.weight) {
                return Err(InvalidConfig::Weight(rule.name.clone()));
            }
            let all = rule.floors.iter().chain(&rule.caps);
            shares += all.clone().count();
            // A share may apply to every limit, so this bounds the number of usage counters.
            let too_many = shares * self.limits.len() > bounds::AGENT_USAGES;
            if too_many || !all.clone().all(Share::check) {
                return Err(InvalidConfig::Share(rule.name.clone()));
            }
        }
        self.check_floors()
    }

    fn check_floors(&self) -> Result<(), InvalidConfig> {
        for limit in &self.limits {
            // In thousandths: on a small limit, rounding to whole units could hide an excess.
            let floors = self.agents.iter().flat_map(|rule| &rule.floors);
            let reserved: u128 = floors.filter_map(|floor| floor.thousandths_of(limit)).sum();
            if reserved > u128::from(limit.stated()) * 1_000 {
                return Err(InvalidConfig::Floors(limit.id()));
            }
        }
        Ok(())
    }
}

impl Share {
    fn check(&self) -> bool {
        let kinds_match = matches!(
            (&self.of, self.portion),
            (_, Portion::PerMille(_))
                | (LimitSelector::Unit(_), Portion::Rate { .. })
                | (LimitSelector::Parallel, Portion::Slots(_))
        );
        let of_slots = self.of == LimitSelector::Unit(Unit::Parallel);
        kinds_match && !of_slots && self.portion.check()
    }

    /// Returns the units of the stated limit, scaled to its period, or `None` if the share applies
    /// to other limits.
    #[must_use]
    pub fn of_limit(&self, limit: &Limit) -> Option<u64> {
        self.of_usable(limit, limit.stated())
    }

    /// Returns the same as [`Share::of_limit`] if only `usable` units of the limit are usable.
    #[must_use]
    pub fn of_usable(&self, limit: &Limit, usable: u64) -> Option<u64> {
        let id = limit.id();
        let applies = match (&self.of, id.unit()) {
            (LimitSelector::All, _) | (LimitSelector::Parallel, None) => true,
            (LimitSelector::Unit(unit), Some(counted)) => unit == counted,
            _ => false,
        };
        if !applies {
            return None;
        }
        match (self.portion, id.period()) {
            (Portion::PerMille(share), _) => Some(mul_div(usable, u64::from(share), 1_000)),
            (Portion::Rate { amount, period }, Some(of)) => Some(mul_div(amount, of.0, period.0)),
            (Portion::Slots(amount), None) => Some(amount),
            _ => None,
        }
    }

    /// The units of the stated limit in thousandths, so that nothing is rounded.
    fn thousandths_of(&self, limit: &Limit) -> Option<u128> {
        let whole = self.of_limit(limit)?;
        Some(match self.portion {
            Portion::PerMille(share) => u128::from(limit.stated()) * u128::from(share),
            Portion::Rate { .. } | Portion::Slots(_) => u128::from(whole) * 1_000,
        })
    }
}

impl Portion {
    fn check(self) -> bool {
        match self {
            Self::PerMille(share) => (1..=1_000).contains(&share),
            Self::Rate { amount, period } => {
                (1..=bounds::AMOUNT).contains(&amount) && is_valid_duration(period)
            }
            Self::Slots(amount) => (1..=bounds::AMOUNT).contains(&amount),
        }
    }
}

impl fmt::Display for LimitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Window(unit, period) => write!(f, "{unit} per {}us", period.0),
            Self::Bucket(unit, period) => write!(f, "{unit} refilled per {}us", period.0),
            Self::Parallel => f.write_str("parallel"),
            Self::Unanswered => f.write_str("unanswered calls"),
        }
    }
}

const fn is_valid_duration(span: Span) -> bool {
    span.0 > 0 && span.0 <= bounds::SPAN.0
}
