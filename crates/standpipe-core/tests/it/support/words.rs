//! Short words for the values a scene is written in.

use standpipe_core::{
    AgentName, AgentRule, Amounts, Charged, Limit, LimitSelector, PoolConfig, Portion, Priority,
    Resets, Rule, Share, Span, Text, Unit,
};

pub(crate) const REQUESTS: Unit = Unit::Requests;
pub(crate) const TOKENS: Unit = Unit::Tokens;
pub(crate) const OUTPUT: Unit = Unit::OutputTokens;

pub(crate) const SECOND: Span = Span::secs(1);
pub(crate) const MINUTE: Span = Span::secs(60);
pub(crate) const HOUR: Span = Span::secs(3_600);
pub(crate) const DAY: Span = Span::secs(86_400);

pub(crate) const fn secs(n: u64) -> Span {
    Span::secs(n)
}

pub(crate) const fn millis(n: u64) -> Span {
    Span::millis(n)
}

/// At most so many in any stretch of `period`.
pub(crate) const fn window(unit: Unit, amount: u64, period: Span) -> Limit {
    Limit::new(Rule::Window { unit, amount, period })
}

/// Refilled by `amount` per `period`, up to `burst`.
pub(crate) const fn bucket(unit: Unit, amount: u64, period: Span, burst: u64) -> Limit {
    Limit::new(Rule::Bucket { unit, amount, period, burst })
}

/// At most so many calls in flight.
pub(crate) const fn parallel(amount: u64) -> Limit {
    Limit::new(Rule::Parallel { amount })
}

pub(crate) fn at_end(mut limit: Limit) -> Limit {
    limit.charged = Charged::End;
    limit
}

pub(crate) fn paced(mut limit: Limit, pace: Span) -> Limit {
    limit.pace = Some(pace);
    limit
}

pub(crate) fn provider_resets(mut limit: Limit) -> Limit {
    limit.resets = Resets::Provider;
    limit
}

/// A pool of these limits with no margin and no slack.
pub(crate) fn pool(limits: impl IntoIterator<Item = Limit>) -> PoolConfig {
    PoolConfig::new(limits.into_iter().collect())
}

pub(crate) fn agent(name: &str) -> AgentName {
    AgentName::new(name).expect("a test names its agents well")
}

pub(crate) fn text(words: &str) -> Text {
    Text::new(words).expect("a test writes printable texts")
}

/// The cost of a call; one request unless it says otherwise.
pub(crate) fn cost(figures: &[(Unit, u64)]) -> Amounts {
    Amounts::cost(figures.iter().cloned()).expect("a test's costs are within bounds")
}

/// So many requests and nothing else.
pub(crate) fn requests_of(count: u64) -> Amounts {
    cost(&[(REQUESTS, count)])
}

/// What a call used, exactly as named.
pub(crate) fn used(figures: &[(Unit, u64)]) -> Amounts {
    Amounts::new(figures.iter().cloned()).expect("a test's figures are within bounds")
}

/// A rule for one agent that says nothing.
pub(crate) fn unranked(name: &str) -> AgentRule {
    let (floors, caps) = (Vec::new(), Vec::new());
    AgentRule { name: agent(name), priority: None, floors, caps, weight: 1 }
}

/// A rule for one agent: its tier, and nothing else.
pub(crate) fn ranked(name: &str, priority: Priority) -> AgentRule {
    AgentRule { priority: Some(priority), ..unranked(name) }
}

/// A rule for one standard agent for whom so many thousandths of every limit are kept.
pub(crate) fn floored(name: &str, per_mille: u16) -> AgentRule {
    let share = Share { of: LimitSelector::All, portion: Portion::PerMille(per_mille) };
    AgentRule { floors: vec![share], ..ranked(name, Priority::Standard) }
}

/// A rule for one standard agent that may use so many thousandths of every limit at most.
pub(crate) fn capped(name: &str, per_mille: u16) -> AgentRule {
    let share = Share { of: LimitSelector::All, portion: Portion::PerMille(per_mille) };
    AgentRule { caps: vec![share], ..ranked(name, Priority::Standard) }
}
