//! How much input counts of a session's later calls, whose prompt is mostly cached.
//!
//! The first call of a session writes the provider's cache, and all of its input counts. Later ones
//! read it, and only what is new counts where the provider says so. One estimate for both would
//! hold back far too much. The ledger learns the first calls by their size; the later ones are
//! learned here, per pool and agent, and lost with the daemon.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::caller::Caller;
use crate::state::lock;

/// How long a provider keeps a prompt that is not used again.
const CACHE_LIFE: Duration = Duration::from_secs(300);
/// The most sessions that are remembered. The one that was used longest ago is forgotten.
const MAX_SESSIONS: usize = 1_024;
/// The most agents and pools whose later calls are learned.
const MAX_LEARNED: usize = 1_024;
/// How many calls the estimate is based on.
const SAMPLES: usize = 32;
/// The bytes that a ratio refers to.
const RATIO_BYTES: u64 = 4_096;
/// Text that no earlier call sent is not cached: about four bytes of it are a token.
const BYTES_PER_TOKEN: u64 = 4;

/// What is known of prompts that providers have cached.
#[derive(Debug, Default)]
pub(crate) struct PromptCaches(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// By pool and session.
    sessions: BTreeMap<(String, String), Prompt>,
    /// The input that counted, per [`RATIO_BYTES`], by pool and agent.
    later: BTreeMap<(String, String), VecDeque<u64>>,
}

/// The last prompt of a session that was answered.
#[derive(Clone, Copy, Debug)]
struct Prompt {
    at: Instant,
    bytes: u64,
}

/// A call whose input is learned when it is known.
#[derive(Clone, Debug)]
pub(crate) struct SizedCall {
    pool: String,
    agent: String,
    session: String,
    bytes: u64,
    /// An earlier call of the session has left a prompt in the cache.
    pub(crate) is_later: bool,
}

impl PromptCaches {
    /// Looks a call up; `None` if it belongs to no session.
    pub(crate) fn call(&self, pool: &str, caller: &Caller, bytes: u64) -> Option<SizedCall> {
        self.call_at(pool, caller, bytes, Instant::now())
    }

    fn call_at(&self, pool: &str, caller: &Caller, bytes: u64, now: Instant) -> Option<SizedCall> {
        let session = caller.session.as_ref()?.name.clone();
        let (pool, agent) = (pool.to_owned(), caller.agent.clone());
        let known = lock(&self.0);
        let last = known.sessions.get(&(pool.clone(), session.clone()));
        // A prompt that became shorter is another one.
        let is_later = last.is_some_and(|last| {
            now.saturating_duration_since(last.at) < CACHE_LIFE && bytes >= last.bytes
        });
        drop(known);
        Some(SizedCall { pool, agent, session, bytes, is_later })
    }

    /// The input that will count of a later call: what nine of ten such calls needed for their
    /// size, and at least the text that is new.
    pub(crate) fn estimate(&self, call: &SizedCall) -> Option<u64> {
        let known = lock(&self.0);
        let last = known.sessions.get(&(call.pool.clone(), call.session.clone()))?;
        let learned = known.later.get(&(call.pool.clone(), call.agent.clone()))?;
        let mut sorted: Vec<u64> = learned.iter().copied().collect();
        sorted.sort_unstable();
        let ratio = *sorted.get((sorted.len() * 9).div_ceil(10).checked_sub(1)?)?;
        let usual = ratio.saturating_mul(call.bytes).div_ceil(RATIO_BYTES);
        let new = call.bytes.saturating_sub(last.bytes).div_ceil(BYTES_PER_TOKEN);
        Some(usual.max(new).max(1))
    }

    /// Learns the input that counted of a call.
    pub(crate) fn learn(&self, call: &SizedCall, input: u64) {
        self.learn_at(call, input, Instant::now());
    }

    fn learn_at(&self, call: &SizedCall, input: u64, now: Instant) {
        let mut known = lock(&self.0);
        let key = (call.pool.clone(), call.session.clone());
        if known.sessions.len() >= MAX_SESSIONS && !known.sessions.contains_key(&key) {
            let oldest = known.sessions.iter().min_by_key(|(_, last)| last.at);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                known.sessions.remove(&oldest);
            }
        }
        known.sessions.insert(key, Prompt { at: now, bytes: call.bytes });
        if !call.is_later || call.bytes == 0 {
            return;
        }
        let key = (call.pool.clone(), call.agent.clone());
        if known.later.len() >= MAX_LEARNED && !known.later.contains_key(&key) {
            return;
        }
        let ratios = known.later.entry(key).or_default();
        if ratios.len() == SAMPLES {
            ratios.pop_front();
        }
        ratios.push_back(input.saturating_mul(RATIO_BYTES).div_ceil(call.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::caller::Session;

    fn caller(session: &str) -> Caller {
        let session = Session { name: format!("coder/{session}"), parent: None };
        Caller { agent: "coder".to_owned(), session: Some(session) }
    }

    #[test]
    fn later_calls_are_estimated_by_later_calls_only() {
        let caches = PromptCaches::default();
        let now = Instant::now();
        let call = |session: &str, bytes| {
            caches.call_at("anthropic/sonnet", &caller(session), bytes, now).unwrap()
        };
        let first = call("one", 40_960);
        assert!(!first.is_later);
        caches.learn_at(&first, 10_000, now);
        let second = call("one", 40_960);
        assert!(second.is_later);
        assert_eq!(caches.estimate(&second), None, "nothing is learned yet");
        caches.learn_at(&second, 300, now);
        assert_eq!(caches.estimate(&call("one", 40_960)), Some(300));
        assert_eq!(caches.estimate(&call("one", 81_920)), Some(10_240), "new text is not cached");
        assert!(!call("two", 40_960).is_later, "another session begins with all of its prompt");
        assert!(!call("one", 1_000).is_later, "a shorter prompt is another one");
        let later = now + CACHE_LIFE;
        let call = caches.call_at("anthropic/sonnet", &caller("one"), 40_960, later).unwrap();
        assert!(!call.is_later, "the provider has forgotten it");
        assert!(caches.call_at("p", &Caller::default(), 1, now).is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let caches = PromptCaches::default();
        let now = Instant::now();
        for number in 0..MAX_SESSIONS as u64 + 10 {
            let at = now + Duration::from_millis(number);
            let call = caches.call_at("a/b", &caller(&number.to_string()), 10, at).unwrap();
            caches.learn_at(&call, 3, at);
        }
        assert_eq!(lock(&caches.0).sessions.len(), MAX_SESSIONS);
        assert!(!caches.call_at("a/b", &caller("0"), 10, now).unwrap().is_later);
        let mut call = caches.call_at("a/b", &caller("last"), 10, now).unwrap();
        call.is_later = true;
        for _ in 0..SAMPLES * 2 {
            caches.learn_at(&call, 3, now);
        }
        assert_eq!(lock(&caches.0).later.values().next().unwrap().len(), SAMPLES);
    }
}
