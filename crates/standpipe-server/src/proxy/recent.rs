//! The last proxied calls, and totals by model, for the views.
//!
//! Both are bounded and lost with the daemon. Nothing of a call's content is kept.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use serde::Serialize;
use standpipe::observe::Timestamp;
use standpipe::{Amounts, Unit};
use utoipa::ToSchema;

use super::hold::Call;
use crate::state::lock;

/// The calls that are kept of a pool, so that a busy pool displaces no call of another one.
const MAX_CALLS: usize = 100;
/// The calls that are kept of all pools.
const MAX_ALL: usize = 1_000;
/// The most models that are counted apart. Further ones count as `other`.
const MAX_MODELS: usize = 256;

/// A call that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ProxiedCall {
    /// When it ended.
    pub(crate) at: Timestamp,
    /// Whose it was.
    pub(crate) agent: String,
    /// Its session, sub-agent or user, below the agent's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// The pool it was counted in.
    pub(crate) pool: String,
    /// The model it called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// The status of its answer.
    pub(crate) status: u16,
    /// Why Standpipe answered itself and sent no try of the call to the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) not_sent: Option<&'static str>,
    /// The input that counted.
    pub(crate) input_tokens: u64,
    /// The output.
    pub(crate) output_tokens: u64,
    /// What it cost, in millionths of a dollar, if the pool has prices.
    pub(crate) micro_usd: u64,
    /// How long it waited to be admitted.
    pub(crate) waited_ms: u64,
}

/// The totals of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct ModelTotals {
    /// Calls that ended, with whatever answer.
    pub(crate) calls: u64,
    /// Of those, the ones that were answered with an error.
    pub(crate) errors: u64,
    /// The input that counted.
    pub(crate) input_tokens: u64,
    /// The output.
    pub(crate) output_tokens: u64,
    /// What they cost, in millionths of a dollar.
    pub(crate) micro_usd: u64,
}

/// The last calls and the totals by model.
#[derive(Debug, Default)]
pub(crate) struct RecentCalls(Mutex<Ended>);

#[derive(Debug, Default)]
struct Ended {
    /// By pool, the newest first.
    calls: BTreeMap<String, VecDeque<ProxiedCall>>,
    models: BTreeMap<String, ModelTotals>,
}

impl ProxiedCall {
    /// A call that begins; status and usage are filled in when it ends.
    pub(crate) fn of(call: &Call, waited_ms: u64) -> Self {
        Self {
            at: Timestamp::now(),
            agent: call.caller.agent.clone(),
            session: call.caller.session.as_ref().map(|session| session.name.clone()),
            pool: call.pool.name().to_string(),
            model: call.facts.model.as_deref().map(|model| model.chars().take(128).collect()),
            status: 0,
            not_sent: None,
            input_tokens: 0,
            output_tokens: 0,
            micro_usd: 0,
            waited_ms,
        }
    }

    /// The same call with what it used, at the prices of its pool.
    pub(crate) fn used(mut self, used: &Amounts, prices: &Prices) -> Self {
        self.input_tokens = used.of(&Unit::InputTokens).unwrap_or(0);
        self.output_tokens = used.of(&Unit::OutputTokens).unwrap_or(0);
        self.micro_usd = cost(used, prices);
        self
    }
}

/// What a call cost, in millionths of a dollar, rounded up as the ledger does.
pub(crate) fn cost(used: &Amounts, prices: &Prices) -> u64 {
    let cost =
        |(unit, price): (&Unit, &u64)| u128::from(used.of(unit).unwrap_or(0)) * u128::from(*price);
    let sum: u128 = prices.iter().map(cost).sum();
    u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Prices of a million units, in millionths of a dollar.
pub(crate) type Prices = BTreeMap<Unit, u64>;

impl RecentCalls {
    /// Adds a call that ended with this status.
    pub(crate) fn add(&self, call: ProxiedCall, status: u16) {
        let call = ProxiedCall { at: Timestamp::now(), status, ..call };
        let mut ended = lock(&self.0);
        let name = call.model.as_deref().unwrap_or(&call.pool);
        let is_apart = ended.models.len() < MAX_MODELS || ended.models.contains_key(name);
        let name = if is_apart { name.to_owned() } else { "other".to_owned() };
        let totals = ended.models.entry(name).or_default();
        totals.calls += 1;
        totals.errors += u64::from(status >= 400);
        totals.input_tokens += call.input_tokens;
        totals.output_tokens += call.output_tokens;
        totals.micro_usd = totals.micro_usd.saturating_add(call.micro_usd);
        ended.keep(call);
    }

    /// The last calls, the newest first.
    pub(crate) fn calls(&self) -> Vec<ProxiedCall> {
        let mut all: Vec<_> = lock(&self.0).calls.values().flatten().cloned().collect();
        all.sort_by_key(|call| Reverse(call.at));
        all
    }

    /// The totals by model; calls without one count by pool.
    pub(crate) fn models(&self) -> BTreeMap<String, ModelTotals> {
        lock(&self.0).models.clone()
    }
}

impl Ended {
    /// Keeps a call. What is too much goes from the pool that has the most.
    fn keep(&mut self, call: ProxiedCall) {
        let own = self.calls.entry(call.pool.clone()).or_default();
        own.push_front(call);
        own.truncate(MAX_CALLS);
        if self.calls.values().map(VecDeque::len).sum::<usize>() > MAX_ALL {
            let most = self.calls.values_mut().max_by_key(|calls| calls.len());
            most.and_then(VecDeque::pop_back);
            self.calls.retain(|_, calls| !calls.is_empty());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(model: &str) -> ProxiedCall {
        ProxiedCall {
            at: Timestamp::now(),
            agent: "blog".to_owned(),
            session: None,
            pool: "a/b".to_owned(),
            model: Some(model.to_owned()),
            status: 0,
            not_sent: None,
            input_tokens: 0,
            output_tokens: 0,
            micro_usd: 0,
            waited_ms: 0,
        }
    }

    #[test]
    fn money_follows_from_usage_and_prices() {
        let prices =
            Prices::from([(Unit::InputTokens, 3_000_000), (Unit::OutputTokens, 15_000_000)]);
        let used = Amounts::new([(Unit::InputTokens, 1_000), (Unit::OutputTokens, 200)]).unwrap();
        let call = call("m").used(&used, &prices);
        assert_eq!((call.input_tokens, call.output_tokens, call.micro_usd), (1_000, 200, 6_000));
    }

    #[test]
    fn calls_and_models_are_bounded() {
        let recent = RecentCalls::default();
        for number in 0..MAX_MODELS + 10 {
            recent.add(call(&number.to_string()), if number % 2 == 0 { 200 } else { 429 });
        }
        assert_eq!(recent.calls().len(), MAX_CALLS);
        assert_eq!(recent.calls()[0].model.as_deref(), Some("265"), "the newest first");
        let models = recent.models();
        assert_eq!((models.len(), models["other"].calls), (MAX_MODELS + 1, 10));
        assert_eq!(models["other"].errors, 5);
    }

    #[test]
    fn a_busy_pool_displaces_no_call_of_another_one() {
        let recent = RecentCalls::default();
        let add = |pool: String| recent.add(ProxiedCall { pool, ..call("m") }, 200);
        let kept = |pool: &str| recent.calls().iter().filter(|call| call.pool == pool).count();
        add("a/quiet".to_owned());
        for _ in 0..=MAX_CALLS {
            add("b/busy".to_owned());
        }
        assert_eq!((kept("a/quiet"), kept("b/busy")), (1, MAX_CALLS));
        for number in 0..MAX_ALL * 2 {
            add(format!("c/{}", number % MAX_ALL));
        }
        assert_eq!(recent.calls().len(), MAX_ALL);
    }
}
