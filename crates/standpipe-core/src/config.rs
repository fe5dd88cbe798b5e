//! What a pool is told about itself: limits, agents, and a few times.
//!
//! Plain values. Finding out which of two configurations counts is in `precedence.rs`; putting one
//! into force is in `configure.rs`. Files, rates as text and defaults are the business of others.

use alloc::vec::Vec;
use core::fmt;

use crate::bounds;
use crate::name::AgentName;
use crate::policy::Policy;
use crate::time::Span;
use crate::unit::{Amounts, Unit};

/// Everything a pool is told about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Its limits, at least one.
    pub limits: Vec<Limit>,
    /// The share of every stated rate that is used.
    pub headroom: Headroom,
    /// What widens every period, against jitter on the way to the provider.
    pub slack: Span,
    /// How long units stay set aside for a due ticket that nobody claims.
    pub claim: Span,
    /// How long a lease without a session lives, and how long the id of an ended call is known.
    pub lease_ttl: Span,
    /// How long any lease lives without a commit of progress; `None` where it may be for ever.
    pub longest_lease: Option<Span>,
    /// `false` is shadow mode: decide, record, admit anyway.
    pub enforce: bool,
    /// What it does when the provider says no, and before.
    pub policy: Policy,
    /// What is said about particular agents.
    pub agents: Vec<AgentRule>,
    /// What a million of a unit costs, in millionths of a dollar.
    pub prices: Amounts,
}

/// One rule of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// So many units per period, or so many calls in flight.
    pub rule: Rule,
    /// The least time between two grants that take from this limit.
    pub pace: Option<Span>,
    /// When a call's units are charged.
    pub charged: Charged,
    /// How the provider counts the period.
    pub resets: Resets,
}

/// The kind and the numbers of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// At most `amount` in any rolling `period`.
    Window {
        /// What it counts.
        unit: Unit,
        /// How many.
        amount: u64,
        /// In any stretch of this length.
        period: Span,
    },
    /// Refills by `amount` per `period`, up to `burst`.
    Bucket {
        /// What it counts.
        unit: Unit,
        /// How many come back.
        amount: u64,
        /// In this time, continuously.
        period: Span,
        /// The most it holds.
        burst: u64,
    },
    /// At most `amount` leases in flight.
    Parallel {
        /// How many.
        amount: u64,
    },
}

/// When a call's units are charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charged {
    /// When it is admitted.
    #[default]
    Start,
    /// When they are known; held while the call is in flight.
    End,
}

/// How the provider counts a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resets {
    /// As we do: any stretch of one period.
    #[default]
    Rolling,
    /// In fixed stretches whose end it announces.
    Provider,
}

/// The share of a stated rate that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headroom {
    /// Begins at 800 ‰ and finds its own figure.
    Auto,
    /// So many thousandths.
    Fixed(u16),
}

/// What is said about one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentRule {
    /// Who.
    pub name: AgentName,
    /// Its tier, unless a reserve names another.
    pub priority: Option<Priority>,
    /// What is kept for it while it is active.
    pub floors: Vec<Share>,
    /// The most it may use.
    pub caps: Vec<Share>,
}

/// A part of a pool's limits: which, and how much of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Of which limits.
    pub of: Of,
    /// How much.
    pub portion: Portion,
}

/// Which limits a [`Share`] is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    /// Every limit of the pool.
    All,
    /// Those that count this unit.
    Unit(Unit),
    /// Calls in flight.
    Parallel,
}

/// How much of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Portion {
    /// Thousandths of it.
    PerMille(u16),
    /// As a rate. A floor is scaled to the limit's period; a cap has this period of its own.
    Rate {
        /// How many units.
        amount: u64,
        /// In how long.
        period: Span,
    },
    /// So many calls in flight.
    Slots(u64),
}

/// A tier: critical before standard before background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// P0.
    Critical,
    /// P1.
    #[default]
    Standard,
    /// P2.
    Background,
}

/// What makes a limit the same limit across configurations, and its name in answers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LimitId {
    /// A rolling window.
    Window(Unit, Span),
    /// A bucket.
    Bucket(Unit, Span),
    /// Calls in flight.
    Parallel,
    /// Calls in flight that are not answered, while others wait for their answers.
    Unanswered,
}

/// Why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidConfig {
    /// There is no limit, or there are more than [`bounds::LIMITS`].
    Limits(usize),
    /// The same unit, kind and period twice.
    Twice(LimitId),
    /// An amount, burst or portion that is zero or too large.
    Amount(LimitId),
    /// A period, pace or other time that is zero or too long.
    Time,
    /// Headroom outside 1 to 1,000 thousandths.
    Headroom(u16),
    /// More agents than [`bounds::AGENT_RULES`], or one named twice.
    Agents,
    /// A floor or cap of an agent that is zero, too large or too many.
    Share(AgentName),
    /// The floors on a limit add up to more than the limit.
    Floors(LimitId),
}

impl Headroom {
    /// In thousandths.
    #[must_use]
    pub const fn per_mille(self) -> u16 {
        match self {
            Self::Auto => 800,
            Self::Fixed(per_mille) => per_mille,
        }
    }
}

impl Priority {
    /// All tiers, the first served first.
    pub const ALL: [Self; 3] = [Self::Critical, Self::Standard, Self::Background];
}

impl Limit {
    /// A limit with the defaults: charged at the start, rolling, no pace.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self { rule, pace: None, charged: Charged::Start, resets: Resets::Rolling }
    }

    /// A bucket that a provider with a rolling window cannot object to: `burst` at once, and never
    /// more than `amount` in any stretch of one `period`, because burst and refill share it.
    #[must_use]
    pub const fn bucket_under_window(unit: Unit, amount: u64, period: Span, burst: u64) -> Self {
        Self::new(Rule::Bucket { unit, amount: amount.saturating_sub(burst), period, burst })
    }

    /// What identifies it.
    #[must_use]
    pub fn id(&self) -> LimitId {
        match &self.rule {
            Rule::Window { unit, period, .. } => LimitId::Window(unit.clone(), *period),
            Rule::Bucket { unit, period, .. } => LimitId::Bucket(unit.clone(), *period),
            Rule::Parallel { .. } => LimitId::Parallel,
        }
    }

    /// The most one call can ever take of it, as stated.
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
        if !time_fits(period) || !self.pace.is_none_or(time_fits) {
            return Err(InvalidConfig::Time);
        }
        Ok(())
    }
}

impl LimitId {
    /// The unit it counts; none for calls in flight.
    #[must_use]
    pub const fn unit(&self) -> Option<&Unit> {
        match self {
            Self::Window(unit, _) | Self::Bucket(unit, _) => Some(unit),
            Self::Parallel | Self::Unanswered => None,
        }
    }

    /// Its period; none for calls in flight.
    #[must_use]
    pub const fn period(&self) -> Option<Span> {
        match self {
            Self::Window(_, period) | Self::Bucket(_, period) => Some(*period),
            Self::Parallel | Self::Unanswered => None,
        }
    }
}

impl PoolConfig {
    /// These limits with the defaults for all else: everything of the stated rate is used, no
    /// slack, tickets claimed within 2 s, leases of 10 min, none longer than an hour, and after a
    /// refusal only what the provider says.
    #[must_use]
    pub fn new(limits: Vec<Limit>) -> Self {
        Self {
            limits,
            headroom: Headroom::Fixed(1_000),
            slack: Span::ZERO,
            claim: Span::secs(2),
            lease_ttl: Span::secs(600),
            longest_lease: Some(Span::secs(3_600)),
            enforce: true,
            policy: Policy::NONE,
            agents: Vec::new(),
            prices: Amounts::default(),
        }
    }

    /// What is said about that agent.
    #[must_use]
    pub fn agent(&self, name: &AgentName) -> Option<&AgentRule> {
        self.agents.iter().find(|rule| rule.name == *name)
    }

    /// The longest period of its limits; silence for so long means everything has aged.
    #[must_use]
    pub fn longest_period(&self) -> Span {
        let periods = self.limits.iter().filter_map(|limit| limit.id().period());
        periods.max().unwrap_or(Span::ZERO)
    }

    /// Whether it can be used at all.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
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
        let per_mille = self.headroom.per_mille();
        if !(1..=1_000).contains(&per_mille) {
            return Err(InvalidConfig::Headroom(per_mille));
        }
        let times = [self.claim, self.lease_ttl, self.longest_lease.unwrap_or(Span(1))];
        let times_fit = times.into_iter().all(time_fits) && self.policy.check();
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
            let all = rule.floors.iter().chain(&rule.caps);
            shares += all.clone().count();
            // A share may apply to every limit, so this bounds the meters there can be.
            let many = shares * self.limits.len() > bounds::METERS;
            if many || !all.clone().all(Share::check) {
                return Err(InvalidConfig::Share(rule.name.clone()));
            }
        }
        self.check_floors()
    }

    fn check_floors(&self) -> Result<(), InvalidConfig> {
        for limit in &self.limits {
            // In thousandths: of a small limit what is too much might be lost in rounding.
            let floors = self.agents.iter().flat_map(|rule| &rule.floors);
            let kept: u128 = floors.filter_map(|floor| floor.thousandths_of(limit)).sum();
            if kept > u128::from(limit.stated()) * 1_000 {
                return Err(InvalidConfig::Floors(limit.id()));
            }
        }
        Ok(())
    }
}

impl Share {
    fn check(&self) -> bool {
        let makes_sense = matches!(
            (&self.of, self.portion),
            (_, Portion::PerMille(_))
                | (Of::Unit(_), Portion::Rate { .. })
                | (Of::Parallel, Portion::Slots(_))
        );
        makes_sense && self.portion.check()
    }

    /// How much of the stated limit this is, scaled to its period; nothing if it is about others.
    #[must_use]
    pub fn of_limit(&self, limit: &Limit) -> Option<u64> {
        let id = limit.id();
        let concerns = match (&self.of, id.unit()) {
            (Of::All, _) | (Of::Parallel, None) => true,
            (Of::Unit(unit), Some(counted)) => unit == counted,
            _ => false,
        };
        if !concerns {
            return None;
        }
        match (self.portion, id.period()) {
            (Portion::PerMille(share), _) => Some(part(limit.stated(), u64::from(share), 1_000)),
            (Portion::Rate { amount, period }, Some(of)) => Some(part(amount, of.0, period.0)),
            (Portion::Slots(amount), None) => Some(amount),
            _ => None,
        }
    }
}

impl Share {
    /// The same, not rounded to whole units.
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
                (1..=bounds::AMOUNT).contains(&amount) && time_fits(period)
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

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limits(0) => f.write_str("the pool has no limit; give it at least one"),
            Self::Limits(n) => write!(f, "{n} limits; at most {} are kept", bounds::LIMITS),
            Self::Twice(id) => write!(f, "two limits for {id}; keep the stricter one"),
            Self::Amount(id) => {
                write!(f, "the limit for {id} must be between 1 and {}", bounds::AMOUNT)
            }
            Self::Time => f.write_str("a time is zero or longer than 400 days"),
            Self::Headroom(n) => write!(f, "headroom of {n} thousandths; use 1 to 1000"),
            Self::Agents => {
                write!(f, "an agent is named twice, or more than {} are", bounds::AGENT_RULES)
            }
            Self::Share(name) => write!(f, "a floor or cap of `{name}` cannot be used"),
            Self::Floors(id) => write!(f, "the floors on {id} add up to more than the limit"),
        }
    }
}

impl core::error::Error for InvalidConfig {}

/// `amount` × `share` / `whole`, rounded down, without overflow.
pub(crate) const fn part(amount: u64, share: u64, whole: u64) -> u64 {
    let product = amount as u128 * share as u128 / if whole == 0 { 1 } else { whole as u128 };
    if product > bounds::AMOUNT as u128 { bounds::AMOUNT } else { product as u64 }
}

const fn time_fits(span: Span) -> bool {
    span.0 > 0 && span.0 <= bounds::SPAN.0
}
