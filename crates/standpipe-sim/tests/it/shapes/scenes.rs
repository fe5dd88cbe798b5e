//! Scenes from which replies are taken, and how replies are written down.

use standpipe_sim::{Arrival, Call, Cap, Options, Provider, Reply, Rule, Shape, Unit, Used};

pub(crate) const SECOND: u64 = 1_000_000;
pub(crate) const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Replies of one shape, written down one after the other.
pub(crate) struct Scenes {
    shape: Shape,
    options: Options,
    text: String,
}

impl Scenes {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, options: Options::of(shape), text: String::new() }
    }

    /// From here on, with other ways.
    pub(crate) fn with(&mut self, change: fn(&mut Options)) {
        self.options = Options::of(self.shape);
        change(&mut self.options);
    }

    /// A call that takes two seconds and works.
    pub(crate) fn success(&mut self, name: &str, rules: &[Rule], call: Call, used: Used) {
        let provider = Provider::new(self.shape, rules.to_vec(), 7).with(self.options.clone());
        self.write(name, &works(provider, call, used));
    }

    /// A call is refused because of another like it.
    pub(crate) fn refusal(&mut self, name: &str, rules: &[Rule], call: Call) {
        self.refusal_after(name, rules, call, call);
    }

    /// A call is refused at the very moment another arrived.
    pub(crate) fn refusal_after(&mut self, name: &str, rules: &[Rule], first: Call, call: Call) {
        let reply = refused(self.shape, &self.options, rules, first, call);
        self.write(name, &reply);
    }

    pub(crate) fn check(&self, expected: &str) {
        assert!(self.text == expected, "the replies are now:\n\n{}", self.text);
    }

    fn write(&mut self, name: &str, reply: &Reply) {
        let headers = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
        let headers: String = headers.collect();
        let body = reply.text();
        self.text += &format!("=== {name}\n{}\n{headers}\n{body}\n\n", reply.status);
    }
}

pub(crate) fn success(shape: Shape, rules: &[Rule], call: Call, used: Used) -> Reply {
    works(Provider::new(shape, rules.to_vec(), 7), call, used)
}

fn works(mut provider: Provider, call: Call, used: Used) -> Reply {
    let Arrival::Accepted(id) = provider.arrive(0, &call) else { panic!("refused") };
    provider.finish(2 * SECOND, id, used)
}

/// The reply to a call that is refused, at once if it can be, else because of a first one.
pub(crate) fn refused(
    shape: Shape,
    options: &Options,
    rules: &[Rule],
    first: Call,
    call: Call,
) -> Reply {
    let mut provider = Provider::new(shape, rules.to_vec(), 7).with(options.clone());
    match provider.arrive(0, &first) {
        Arrival::Refused(reply) => return reply,
        Arrival::Accepted(id) if matches!(rules.last(), Some(Rule::SpendCap { .. })) => {
            let _ = provider.finish(0, id, Used { cost: 1_000_000, ..Used::default() });
        }
        Arrival::Accepted(_) => {}
    }
    match provider.arrive(0, &call) {
        Arrival::Refused(reply) => reply,
        Arrival::Accepted(_) => panic!("accepted"),
    }
}

/// So many a minute, all of which may come at once.
pub(crate) fn bucket(unit: Unit, amount: u64) -> Rule {
    Rule::Bucket { unit, amount, period: MINUTE, burst: amount }
}

/// So many an hour, on the hour.
pub(crate) fn fixed(amount: u64) -> Rule {
    Rule::FixedWindow { unit: Unit::Requests, amount, period: HOUR, offset: 0 }
}

/// So many a day that begins some hours after midnight, UTC.
pub(crate) fn day(unit: Unit, amount: u64, hours: u64) -> Rule {
    Rule::FixedWindow { unit, amount, period: 24 * HOUR, offset: hours * HOUR }
}

/// A dollar, until the first of September at midnight.
pub(crate) fn spend(cap: Cap) -> Rule {
    let resets = 10 * 24 * HOUR + 11 * HOUR + 19 * MINUTE;
    Rule::SpendCap { amount: 1_000_000, resets, cap }
}
