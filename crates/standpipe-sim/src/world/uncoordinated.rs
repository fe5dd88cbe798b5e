//! The way most agents call today: no limiter, and two independent layers of retries each.

use std::collections::BTreeMap;

use super::strategy::{CallContext, Step, Strategy};
use crate::provider::Reply;
use crate::random::Random;

/// An agent without coordination.
#[derive(Clone, Debug)]
pub struct Uncoordinated {
    /// The retries inside the client library.
    sdk: Retries,
    /// The agent's own loop around it.
    outer: Retries,
    random: Random,
    /// By call: how often each layer has tried again.
    tried: BTreeMap<usize, Tried>,
}

/// How one layer retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// The number of retries.
    pub more: u32,
    /// The first wait; each further one is twice the last.
    pub base: u64,
    /// The longest wait of its own backoff.
    pub most: u64,
    /// By how many thousandths at most jitter shortens its own backoff.
    pub jitter: u32,
    /// The longest Retry-After it obeys. It ignores a longer one.
    pub obeys: u64,
}

impl Retries {
    /// No retries.
    pub const NONE: Self = Self { more: 0, base: 0, most: 0, jitter: 0, obeys: 0 };

    /// The defaults of the SDKs of Anthropic and OpenAI: two retries, a backoff from 0.5 s to 8 s,
    /// and Retry-After up to a minute.
    pub const SDK: Self =
        Self { more: 2, base: 500_000, most: 8_000_000, jitter: 250, obeys: 60_000_000 };

    /// A loop written by hand: 0.5 s, doubled each time, without Retry-After.
    #[must_use]
    pub const fn by_hand(more: u32) -> Self {
        Self { more, base: 500_000, most: u64::MAX, jitter: 0, obeys: 0 }
    }

    /// The same without jitter.
    #[must_use]
    pub const fn exactly(self) -> Self {
        Self { jitter: 0, ..self }
    }

    /// The same, obeying Retry-After up to this long.
    #[must_use]
    pub const fn obeying(self, obeys: u64) -> Self {
        Self { obeys, ..self }
    }

    fn wait(&self, tried: u32, hint: Option<u64>, random: &mut Random) -> u64 {
        if let Some(hint) = hint.filter(|hint| *hint > 0 && *hint <= self.obeys) {
            return hint;
        }
        let factor = 1_u64.checked_shl(tried).unwrap_or(u64::MAX);
        let wait = self.base.saturating_mul(factor).min(self.most);
        let less = u128::from(wait) * u128::from(self.jitter.min(1_000)) / 1_000;
        wait - random.below(u64::try_from(less).unwrap_or(0).saturating_add(1))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    sdk: u32,
    outer: u32,
}

impl Uncoordinated {
    /// Creates an agent with two layers of retries.
    #[must_use]
    pub const fn new(sdk: Retries, outer: Retries, seed: u64) -> Self {
        Self { sdk, outer, random: Random::new(seed), tried: BTreeMap::new() }
    }

    /// The wait before the next retry, if there is one.
    fn again(&mut self, call: usize, hint: Option<u64>) -> Option<u64> {
        let tried = self.tried.entry(call).or_default();
        if tried.sdk < self.sdk.more {
            let wait = self.sdk.wait(tried.sdk, hint, &mut self.random);
            tried.sdk += 1;
            return Some(wait);
        }
        if tried.outer < self.outer.more {
            let wait = self.outer.wait(tried.outer, hint, &mut self.random);
            *tried = Tried { sdk: 0, outer: tried.outer + 1 };
            return Some(wait);
        }
        None
    }
}

impl Strategy for Uncoordinated {
    fn begin(&mut self, _: u64, _: &CallContext) -> Step {
        Step::Send
    }

    fn on_reply(&mut self, now: u64, ask: &CallContext, reply: &Reply) -> Step {
        let again = if is_retried(reply) { self.again(ask.number, hint(reply)) } else { None };
        if let Some(wait) = again {
            return Step::WaitUntil(now.saturating_add(wait));
        }
        self.tried.remove(&ask.number);
        if (200..300).contains(&reply.status) { Step::Done } else { Step::GiveUp }
    }

    fn on_wake(&mut self, _: u64, _: &CallContext) -> Step {
        Step::Send
    }
}

/// What the libraries retry: every 429, even one that no retry can help, and whatever a server
/// does wrong. GitHub's 403 counts if it is about a rate.
fn is_retried(reply: &Reply) -> bool {
    match reply.status {
        408 | 409 | 429 => true,
        403 => reply.text().contains("rate limit"),
        status => status >= 500,
    }
}

/// The wait that a reply recommends.
fn hint(reply: &Reply) -> Option<u64> {
    let number = |name: &str| reply.header(name)?.parse::<u64>().ok();
    let millis = number("retry-after-ms").map(|millis| millis.saturating_mul(1_000));
    millis.or_else(|| number("retry-after").map(|seconds| seconds.saturating_mul(1_000_000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, headers: &[(&str, &str)]) -> Reply {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Reply { status, headers: headers.iter().map(owned).collect(), body: Vec::new() }
    }

    fn ask() -> CallContext {
        CallContext { number: 0, pool: 0, priority: 1, call: crate::Call::default() }
    }

    #[test]
    fn waits_double_layer_by_layer_and_then_it_gives_up() {
        let mut alone = Uncoordinated::new(Retries::SDK.exactly(), Retries::by_hand(1), 1);
        let steps = (0..6).map(|_| alone.on_reply(0, &ask(), &reply(429, &[]))).collect::<Vec<_>>();
        let wait = Step::WaitUntil;
        let sdk = [wait(500_000), wait(1_000_000)];
        let all = [sdk[0], sdk[1], wait(500_000), sdk[0], sdk[1], Step::GiveUp];
        assert_eq!(steps, all);
    }

    #[test]
    fn hints_are_obeyed_to_the_letter_up_to_a_minute() {
        let mut alone = Uncoordinated::new(Retries::SDK, Retries::NONE, 1);
        let refused = |hint| reply(429, &[("retry-after", hint)]);
        assert_eq!(alone.on_reply(0, &ask(), &refused("60")), Step::WaitUntil(60_000_000));
        let Step::WaitUntil(own) = alone.on_reply(0, &ask(), &refused("61")) else { panic!() };
        assert!((750_000..=1_000_000).contains(&own), "{own}");
    }

    #[test]
    fn what_no_retry_helps_is_given_up() {
        let mut alone = Uncoordinated::new(Retries::SDK, Retries::by_hand(3), 1);
        assert_eq!(alone.on_reply(0, &ask(), &reply(400, &[])), Step::GiveUp);
        assert_eq!(alone.on_reply(0, &ask(), &reply(200, &[])), Step::Done);
    }
}
