//! What a caller wants to reserve.
//!
//! A request is a plain value. Names and amounts are checked when it is reserved, so building one
//! cannot fail. `Pool::reserve` takes it.

pub(crate) mod limited_units;

use std::time::Duration;

use standpipe_core::{
    AgentName, Amounts, InvalidAmounts, Key, Limit, Priority, Reserve, Text, Unit,
};
use standpipe_dialect::Dialect;
use standpipe_observe::pool_set;
use standpipe_store::PoolName;

use crate::error::Error;
use crate::lease_id::LeaseId;
use crate::maintenance::owner;
use crate::moment::{micros, span};

/// What a caller wants to reserve: one call, its agent, its cost and how long it waits.
///
/// ```
/// use std::time::Duration;
/// use standpipe::{Priority, Request};
///
/// let request = Request::by("blog")
///     .unit("input_tokens", 1_200)
///     .unit("output_tokens", 800)
///     .priority(Priority::Background)
///     .timeout(Duration::from_secs(30));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a request does nothing until it is reserved"]
pub struct Request {
    agent: Option<String>,
    figures: Vec<(String, u64)>,
    priority: Option<Priority>,
    timeout: Duration,
    ttl: Option<Duration>,
    owner: Option<u32>,
    id: Option<String>,
    keeps_place: bool,
    model: Option<String>,
    task: Option<String>,
    retry_of: Option<LeaseId>,
    hold: Option<Duration>,
    bytes: Option<u64>,
    at_most: Vec<(String, u64)>,
    max_output: Option<u64>,
    limits: Vec<Limit>,
    also: Vec<String>,
    /// The pools of `also`, once they are known: what the ledgers keep with the call.
    beside: Vec<PoolName>,
    part_of: Option<PoolName>,
    /// The retried lease, where only the ledger's name for it is known.
    retried_key: Option<Key>,
}

/// How long a call waits by default.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

impl Default for Request {
    fn default() -> Self {
        Self::new()
    }
}

impl Request {
    /// Creates a request by the process's own agent: the one the tap was opened with,
    /// `$STANDPIPE_AGENT`, or the program's name.
    pub const fn new() -> Self {
        Self {
            agent: None,
            figures: Vec::new(),
            priority: None,
            timeout: DEFAULT_TIMEOUT,
            ttl: None,
            owner: None,
            id: None,
            keeps_place: false,
            model: None,
            task: None,
            retry_of: None,
            hold: None,
            bytes: None,
            at_most: Vec::new(),
            max_output: None,
            limits: Vec::new(),
            also: Vec::new(),
            beside: Vec::new(),
            part_of: None,
            retried_key: None,
        }
    }

    /// Creates a request by this agent.
    pub fn by(agent: impl Into<String>) -> Self {
        Self { agent: Some(agent.into()), ..Self::new() }
    }

    /// Sets the agent.
    pub fn agent(mut self, agent: impl Into<String>) -> Self {
        self.agent = Some(agent.into());
        self
    }

    /// Adds an amount of a unit to the cost. One of `requests` is implied, and one slot of
    /// `parallel`.
    pub fn unit(mut self, unit: impl Into<String>, amount: u64) -> Self {
        self.figures.push((unit.into(), amount));
        self
    }

    /// Adds all of these amounts to the cost.
    pub fn cost(mut self, amounts: &Amounts) -> Self {
        let figures = amounts.iter().map(|(unit, amount)| (unit.name().to_owned(), amount));
        self.figures.extend(figures);
        self
    }

    /// Sets the tier, instead of the agent's own.
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets how long to wait at most; zero means not to wait. The default is [`DEFAULT_TIMEOUT`].
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Gives the lease a time to live, instead of the life of this process.
    pub const fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Sets a process of this machine whose death ends a lease with a time to live.
    pub const fn owner(mut self, pid: u32) -> Self {
        self.owner = Some(pid);
        self
    }

    /// Makes the request idempotent: another one of the same agent with the same id gets the same
    /// lease.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Keeps the place when the caller disconnects. The ticket stays until its deadline, for the
    /// next request with the same id; a lease that was not received stays for its time to live. It
    /// has no effect without an id and a time to live.
    pub const fn keeps_place(mut self) -> Self {
        self.keeps_place = true;
        self
    }

    /// Sets the model, for the journal.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the kind of task, for the journal and for
    /// [`Standpipe::route`](crate::Standpipe::route).
    pub fn task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Sets the lease of the call that this one retries.
    pub fn retry_of(mut self, lease: LeaseId) -> Self {
        self.retry_of = Some(lease);
        self
    }

    /// Delays the call by this long even if there is room. It keeps its place in the queue and
    /// blocks no other call.
    pub const fn hold(mut self, length: Duration) -> Self {
        self.hold = Some(length);
        self
    }

    /// Sets how many bytes are sent. If the cost does not name the tokens of the prompt, they are
    /// estimated from this and earlier calls.
    pub const fn bytes(mut self, bytes: u64) -> Self {
        self.bytes = Some(bytes);
        self
    }

    /// Sets an upper bound for a unit that the cost does not name. Less is reserved if earlier
    /// calls took less.
    pub fn at_most(mut self, unit: impl Into<String>, amount: u64) -> Self {
        self.at_most.push((unit.into(), amount));
        self
    }

    /// Sets the maximum output of the call (`max_tokens`). Where the provider charges it when the
    /// call arrives (OpenAI, Azure, Bedrock and others) it is reserved; where the provider counts
    /// what is generated (Anthropic, Gemini), what nine of ten earlier calls needed is reserved.
    pub const fn max_output_tokens(mut self, tokens: u64) -> Self {
        self.max_output = Some(tokens);
        self
    }

    /// Gives the pool these limits with the call, in the same step.
    ///
    /// They count only for pools that no file configures; between processes the stricter wins,
    /// limit by limit. [`Lease::limits_in_force`](crate::Lease::limits_in_force) returns whether
    /// they count.
    pub fn limits(mut self, limits: impl IntoIterator<Item = Limit>) -> Self {
        self.limits.extend(limits);
        self
    }

    /// Makes the call draw on another pool as well, with the same cost, all or none. It may be set
    /// several times. The caller gets one lease.
    ///
    /// The pools that a pool lies within (`within` in the file) need not be named.
    ///
    /// ```
    /// # use standpipe::config::{Settings, StoreUrl};
    /// # use standpipe::{Error, Limit, Request, Rule, Standpipe};
    /// # fn main() -> Result<(), Error> {
    /// # let tap = Standpipe::builder().settings(Settings::default());
    /// # let tap = tap.store(StoreUrl::Memory).open()?;
    /// let (model, search) = (tap.pool("doc/model")?, tap.pool("doc/search")?);
    /// for pool in [&model, &search] {
    ///     pool.limit(vec![Limit::new(Rule::Parallel { amount: 1 })]).blocking()?;
    /// }
    /// let lease = model.reserve(Request::by("blog").also("doc/search")).blocking()?;
    /// assert_eq!(search.status().blocking()?.in_flight, 1);
    /// lease.commit([]).blocking()?;
    /// assert_eq!(search.status().blocking()?.in_flight, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn also(mut self, pool: impl Into<String>) -> Self {
        self.also.push(pool.into());
        self
    }

    /// Returns whether it states no cost: such a question may be about a call that waits already.
    pub(crate) const fn is_plain(&self) -> bool {
        let has_bounds = self.bytes.is_some() || self.max_output.is_some();
        self.figures.is_empty() && self.at_most.is_empty() && !has_bounds
    }

    pub(crate) const fn has_also(&self) -> bool {
        !self.also.is_empty()
    }

    /// Returns the other pools that were named, and removes them.
    pub(crate) fn take_also(&mut self) -> Vec<String> {
        std::mem::take(&mut self.also)
    }

    /// Sets the other pools that were named, so that each pool shows that the call draws on them.
    pub(crate) fn beside(mut self, mut pools: Vec<PoolName>) -> Self {
        pools.sort();
        self.beside = pools;
        self
    }

    /// Makes it the part of a call on a pool that draws on another one. Only the named pool delays
    /// the call and gets the limits that came with it.
    pub(crate) fn part_of(mut self, named: &PoolName) -> Self {
        self.part_of = Some(named.clone());
        (self.hold, self.limits) = (None, Vec::new());
        self
    }

    /// Returns whether a reserve on a pool is part of a call whose caller named another one.
    pub(crate) fn is_part(reserve: &Reserve, pool: &PoolName) -> bool {
        pool_set::is_part(reserve.part_of.as_ref(), pool)
    }

    /// Returns the request of a reserve that was granted.
    pub(crate) fn of_reserve(reserve: &Reserve) -> Self {
        Self {
            priority: reserve.priority,
            timeout: micros(reserve.patience),
            ttl: reserve.ttl.map(micros),
            owner: reserve.owner.map(|owner| owner.pid),
            id: reserve.id.as_ref().map(ToString::to_string),
            model: reserve.model.as_ref().map(ToString::to_string),
            task: reserve.task.as_ref().map(ToString::to_string),
            retried_key: reserve.retry_of,
            bytes: reserve.bytes,
            ..Self::by(reserve.agent.as_str()).cost(&reserve.cost)
        }
    }

    pub(crate) fn task_name(&self) -> Option<&str> {
        self.task.as_deref()
    }

    /// Returns whether a later request with the same id may take over its place.
    pub(crate) const fn is_kept(&self) -> bool {
        self.keeps_place && self.id.is_some() && self.ttl.is_some()
    }

    pub(crate) const fn patience(&self) -> Duration {
        self.timeout
    }

    /// Returns the request as the ledger takes it on a pool, and the limits that came with it.
    pub(crate) fn into_reserve(
        mut self,
        pool: &PoolName,
        dialect: Dialect,
        default: &str,
    ) -> Result<(Reserve, Vec<Limit>), Error> {
        let limits = std::mem::take(&mut self.limits);
        let reserve = self.resolve(pool, dialect, default)?;
        limited_units::check(&limits, &reserve.cost)?;
        Ok((reserve, limits))
    }

    /// Returns the request as the ledger takes it on a pool.
    pub(crate) fn resolve(
        &self,
        pool: &PoolName,
        dialect: Dialect,
        default: &str,
    ) -> Result<Reserve, Error> {
        let agent = self.agent.as_deref().unwrap_or(default);
        let mut reserve = Reserve::new(agent_name(agent)?, self.amounts(dialect)?);
        reserve.bytes = self.bytes;
        reserve.at_most = self.ceilings(dialect)?;
        reserve.priority = self.priority;
        reserve.patience = span(self.timeout);
        reserve.ttl = self.ttl.map(span);
        if self.ttl == Some(Duration::ZERO) {
            return Err(Error::invalid(
                "the time to live is zero",
                "give the lease a longer time to live, or none",
            ));
        }
        reserve.owner = self.owner.map(owner::of).transpose()?;
        reserve.id = text("id", self.id.as_deref())?;
        reserve.model = text("model", self.model.as_deref())?;
        reserve.task = text("task", self.task.as_deref())?;
        reserve.retry_of = self.retried(pool)?;
        let named = self.part_of.as_ref().or_else(|| self.beside.first().map(|_| pool));
        reserve.part_of = named.and_then(|named| pool_set::reference(named, &self.beside));
        reserve.hold = self.hold.map(span);
        Ok(reserve)
    }

    fn amounts(&self, dialect: Dialect) -> Result<Amounts, Error> {
        let mut figures = units(&self.figures)?;
        if let Some(most) = self.max_output.filter(|_| dialect.charges_max_tokens()) {
            let named = |unit: &Unit| figures.iter().find(|(known, _)| known == unit);
            let input = named(&Unit::InputTokens).map(|(_, tokens)| *tokens);
            let total = named(&Unit::Tokens).is_none().then_some(input).flatten();
            let total = total.map(|input| (Unit::Tokens, input.saturating_add(most)));
            let output = named(&Unit::OutputTokens).is_none().then_some((Unit::OutputTokens, most));
            figures.extend(total.into_iter().chain(output));
        }
        Amounts::cost(figures).map_err(|wrong| cannot_be_taken(&wrong))
    }

    /// Returns the upper bounds of units that the cost does not name.
    fn ceilings(&self, dialect: Dialect) -> Result<Amounts, Error> {
        let mut figures = units(&self.at_most)?;
        if let Some(most) = self.max_output.filter(|_| !dialect.charges_max_tokens()) {
            figures.push((Unit::OutputTokens, most));
        }
        Amounts::new(figures).map_err(|wrong| cannot_be_taken(&wrong))
    }

    fn retried(&self, pool: &PoolName) -> Result<Option<Key>, Error> {
        let Some(lease) = &self.retry_of else { return Ok(self.retried_key) };
        match &self.part_of {
            // It is a retry there too, even if the first try did not draw on that pool.
            Some(_) => Ok(Some(lease.key_on(pool).unwrap_or_else(|| lease.key()))),
            None => key_on(pool, lease).map(Some),
        }
    }
}

fn units(figures: &[(String, u64)]) -> Result<Vec<(Unit, u64)>, Error> {
    figures.iter().map(|(unit, amount)| Ok((unit_named(unit)?, *amount))).collect()
}

fn cannot_be_taken(wrong: &InvalidAmounts) -> Error {
    Error::invalid(
        format!("invalid cost: {wrong}"),
        "name each unit once, with a figure a call can have",
    )
}

/// Returns the ledger's key of a lease, if it is on this pool.
pub(crate) fn key_on(pool: &PoolName, lease: &LeaseId) -> Result<Key, Error> {
    if let Some(key) = lease.key_on(pool) {
        return Ok(key);
    }
    Err(Error::invalid(
        format!("the lease is on `{}`, not on `{pool}`", lease.pool()),
        "name the pool the lease is on",
    ))
}

pub(crate) fn agent_name(name: &str) -> Result<AgentName, Error> {
    AgentName::new(name).ok_or_else(|| {
        Error::invalid(
            format!("`{}` cannot be the name of an agent", shown(name)),
            "use 1 to 64 of A-Z a-z 0-9 . _ @ -",
        )
    })
}

pub(crate) fn unit_named(name: &str) -> Result<Unit, Error> {
    Unit::named(name).ok_or_else(|| {
        Error::invalid(
            format!("`{}` cannot be the name of a unit", shown(name)),
            "use a small letter and then up to 31 of a-z 0-9 _, for example input_tokens",
        )
    })
}

fn text(what: &str, given: Option<&str>) -> Result<Option<Text>, Error> {
    let Some(given) = given else { return Ok(None) };
    let text = Text::new(given).ok_or_else(|| {
        Error::invalid(
            format!("`{}` cannot be the {what} of a call", shown(given)),
            "use 1 to 128 bytes without control characters",
        )
    })?;
    Ok(Some(text))
}

/// Returns a name as messages show it: printable and short.
pub(crate) fn shown(name: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown: String = name.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if name.chars().count() > LONGEST {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(request: &Request) -> String {
        let pool = "a/b".parse().unwrap();
        request.resolve(&pool, Dialect::Generic, "tests").unwrap_err().to_string()
    }

    #[test]
    fn an_invalid_request_is_rejected_when_it_is_reserved() {
        assert!(wrong(&Request::by("")).contains("name of an agent"));
        assert!(wrong(&Request::by("line\nbreak")).contains("line\\nbreak"));
        assert!(wrong(&Request::by("x".repeat(10_000))).len() < 200);
        assert!(wrong(&Request::new().unit("🚰", 1)).contains("name of a unit"));
        assert!(wrong(&Request::new().unit("usd", 1).unit("usd", 2)).contains("named twice"));
        assert!(wrong(&Request::new().unit("usd", u64::MAX)).contains("above"));
        assert!(wrong(&Request::new().id("")).contains("id of a call"));
        assert!(wrong(&Request::new().ttl(Duration::ZERO)).contains("time to live"));
        let elsewhere = LeaseId::new("c/d".parse().unwrap(), Key { session: 1, number: 1 });
        assert!(wrong(&Request::new().retry_of(elsewhere)).contains("on `c/d`, not on `a/b`"));
    }

    #[test]
    fn what_is_not_set_has_its_default() {
        let pool = "a/b".parse().unwrap();
        let reserve = Request::new().resolve(&pool, Dialect::Generic, "tests").unwrap();
        assert_eq!(reserve.agent.as_str(), "tests");
        assert_eq!(reserve.cost.of(&Unit::Requests), Some(1));
        assert_eq!(reserve.patience, span(DEFAULT_TIMEOUT));
        assert_eq!(reserve.ttl, None);
    }

    #[test]
    fn the_maximum_output_is_reserved_where_it_is_charged_and_a_bound_elsewhere() {
        let pool = "a/b".parse().unwrap();
        let request = Request::new().unit("input_tokens", 100).max_output_tokens(4_000);
        let charged = request.resolve(&pool, Dialect::OpenAi, "tests").unwrap();
        assert_eq!(charged.cost.of(&Unit::OutputTokens), Some(4_000));
        assert_eq!(charged.cost.of(&Unit::Tokens), Some(4_100));
        assert!(charged.at_most.is_empty());
        let counted = request.resolve(&pool, Dialect::Anthropic, "tests").unwrap();
        assert_eq!(counted.cost.of(&Unit::OutputTokens), None);
        assert_eq!(counted.at_most.of(&Unit::OutputTokens), Some(4_000));
    }
}
