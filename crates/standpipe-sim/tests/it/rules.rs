//! Each rule against a slow oracle that looks at everything that ever happened: a call is accepted
//! exactly when the rule allows it, and the wait that a refusal tells is exactly long enough.

pub(crate) mod oracle;

use std::collections::BTreeMap;

use oracle::{Oracle, foreign_between};
use standpipe_sim::{
    Arrival, Call, CallId, Cap, Options, Output, Provider, Random, Rule, Shape, Unit, Used, Verdict,
};

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const UNITS: [Unit; 4] = [Unit::Requests, Unit::Tokens, Unit::Input, Unit::Output];
const OUTPUTS: [Output; 3] = [Output::Real, Output::Added, Output::Larger];

/// A random crowd of calls: few enough to be accepted now and then, enough to be refused often.
struct Crowd {
    provider: Provider,
    oracle: Oracle,
    random: Random,
    /// By when they finish: the calls that are open.
    open: BTreeMap<(u64, CallId), Used>,
    now: u64,
    accepted: usize,
    refused: usize,
}

impl Crowd {
    fn new(rules: &[Rule], options: Options, seed: u64) -> Self {
        let provider = Provider::new(Shape::OpenAi, rules.to_vec(), seed).with(options.clone());
        let oracle = Oracle::new(rules[0], options);
        let random = Random::new(seed);
        let open = BTreeMap::new();
        Self { provider, oracle, random, open, now: 0, accepted: 0, refused: 0 }
    }

    /// Some calls, each compared. `gap` is the longest time between two.
    fn play(&mut self, calls: usize, gap: u64, rules: &[Rule]) {
        for _ in 0..calls {
            let then = self.now + self.random.below(gap + 1) * self.random.below(2);
            self.finish_by(then, rules);
            for call in foreign_between(rules, self.now, then) {
                self.oracle.foreign(call);
            }
            self.now = then;
            self.one_call();
        }
    }

    fn one_call(&mut self) {
        let call = self.call();
        let allowed = self.oracle.allows(self.now, &call);
        let before = self.provider.clone();
        let arrival = self.provider.arrive(self.now, &call);
        match arrival {
            Arrival::Accepted(id) => {
                assert!(allowed, "{:?} accepts too much at {}", self.oracle.rule, self.now);
                self.oracle.accepted(self.now, id, call);
                let ends = self.now + self.random.below(5 * SECOND);
                let used = self.used(&call);
                self.open.insert((ends, id), used);
                self.accepted += 1;
            }
            Arrival::Refused(reply) => {
                assert!(!allowed, "{:?} refuses what it allows at {}", self.oracle.rule, self.now);
                assert_eq!(reply.status, 429);
                let hint = reply.header("retry-after-ms").map(|hint| hint.parse::<u64>().unwrap());
                self.check_hint(&before, &call, hint);
                self.oracle.refused(self.now);
                self.refused += 1;
            }
        }
    }

    /// Had it only come so much later, it would have been accepted, and not a moment before.
    fn check_hint(&self, before: &Provider, call: &Call, hint: Option<u64>) {
        // Others may take what comes back.
        let alone = before.rules().len() == 1;
        let Some(hint) = hint.filter(|_| alone && self.oracle.could_ever(call)) else { return };
        let then = self.now + hint * 1_000;
        let accepted = |at: u64| matches!(before.clone().arrive(at, call), Arrival::Accepted(_));
        assert!(accepted(then), "{:?}: {hint} ms are too short", self.oracle.rule);
        assert!(!accepted(then - 1_000), "{:?}: {hint} ms are too long", self.oracle.rule);
    }

    fn finish_by(&mut self, then: u64, rules: &[Rule]) {
        while let Some(first) = self.open.first_entry()
            && first.key().0 <= then
        {
            let ((at, id), used) = first.remove_entry();
            for call in foreign_between(rules, self.now, at) {
                self.oracle.foreign(call);
            }
            self.now = at;
            self.oracle.ended(at, id, used);
            assert_eq!(self.provider.finish(at, id, used).status, 200);
        }
    }

    fn call(&mut self) -> Call {
        let creates = self.random.permille(300);
        Call {
            agent: 0,
            input: self.random.below(400),
            max_output: 1 + self.random.below(400),
            writes: creates || self.random.permille(300),
            creates,
            graphql: false,
        }
    }

    /// Mostly less than was estimated, sometimes more.
    fn used(&mut self, call: &Call) -> Used {
        Used {
            input: self.random.below(call.input * 5 / 4 + 1),
            cache_read: self.random.below(50),
            cache_written: self.random.below(50),
            output: self.random.below(call.max_output + 1),
            cost: self.random.below(1_000),
        }
    }
}

/// Plays a rule, alone or beside other traffic, and answers how many were accepted and refused.
fn play(rules: &[Rule], options: &Options, gap: u64) -> (usize, usize) {
    let mut all = (0, 0);
    for seed in 0..4 {
        let mut crowd = Crowd::new(rules, options.clone(), seed);
        crowd.play(150, gap, rules);
        all = (all.0 + crowd.accepted, all.1 + crowd.refused);
        assert_eq!(crowd.provider.record().refused(), crowd.refused);
        assert_eq!(crowd.provider.record().accepted(), crowd.accepted);
    }
    all
}

fn ways() -> impl Iterator<Item = Options> {
    OUTPUTS.into_iter().flat_map(|output| {
        [false, true].map(|refused_count| {
            let cached_count = output == Output::Larger;
            Options { output, refused_count, cached_count, ..Options::of(Shape::OpenAi) }
        })
    })
}

/// A rule that counts units, with room for a handful of calls.
fn counted(unit: Unit, rule: fn(Unit, u64) -> Rule) -> Rule {
    rule(unit, if unit == Unit::Requests { 6 } else { 1_500 })
}

fn check_counted(rule: fn(Unit, u64) -> Rule) {
    for unit in UNITS {
        for options in ways() {
            let rule = counted(unit, rule);
            let (accepted, refused) = play(&[rule], &options, 2 * SECOND);
            assert!(accepted > 20, "{rule:?} {options:?}: {accepted} accepted");
            assert!(refused > 20, "{rule:?} {options:?}: {refused} refused");
        }
    }
}

#[test]
fn a_bucket_is_exact() {
    check_counted(|unit, amount| Rule::Bucket { unit, amount, period: 10 * SECOND, burst: amount });
    check_counted(|unit, amount| Rule::Bucket {
        unit,
        amount: amount * 7 / 3,
        period: 27_000_001,
        burst: amount / 2,
    });
}

#[test]
fn a_rolling_window_is_exact() {
    check_counted(|unit, amount| Rule::Rolling { unit, amount, period: 10 * SECOND });
}

#[test]
fn a_fixed_window_is_exact() {
    check_counted(|unit, amount| {
        let period = 10 * SECOND;
        Rule::FixedWindow { unit, amount, period, offset: 0 }
    });
    check_counted(|unit, amount| {
        let period = 17 * SECOND;
        Rule::FixedWindow { unit, amount, period, offset: 5 * SECOND }
    });
}

#[test]
fn concurrency_is_exact() {
    for amount in [1, 2, 5] {
        let rule = Rule::Concurrency { amount };
        let (accepted, refused) = play(&[rule], &Options::of(Shape::OpenAi), SECOND);
        assert!(accepted > 20 && refused > 20, "{amount}: {accepted} {refused}");
    }
}

#[test]
fn the_secondary_limit_is_exact() {
    let table = [(30, 1_000, 1_000), (1_000, 5, 1_000), (1_000, 1_000, 20), (40, 4, 12)];
    for (points_per_minute, content_per_minute, content_per_hour) in table {
        let rule = Rule::Secondary { points_per_minute, content_per_minute, content_per_hour };
        let (accepted, refused) = play(&[rule], &Options::of(Shape::OpenAi), 10 * SECOND);
        assert!(accepted > 20 && refused > 20, "{rule:?}: {accepted} {refused}");
    }
}

#[test]
fn acceleration_is_exact() {
    for (growth, free) in [(2_000, 3), (1_500, 8), (500, 5)] {
        let rule = Rule::Acceleration { growth, stretch: 10 * SECOND, free };
        let (accepted, refused) = play(&[rule], &Options::of(Shape::OpenAi), 2 * SECOND);
        assert!(accepted > 20 && refused > 20, "{rule:?}: {accepted} {refused}");
    }
}

#[test]
fn a_cap_on_spending_is_exact() {
    for cap in [Cap::Enforced, Cap::Organization, Cap::Project, Cap::Credits] {
        let rule = Rule::SpendCap { amount: 12_000, resets: MINUTE, cap };
        let (accepted, refused) = play(&[rule], &Options::of(Shape::OpenAi), 2 * SECOND);
        assert!(accepted > 20 && refused > 20, "{rule:?}: {accepted} {refused}");
    }
}

#[test]
fn the_traffic_of_others_takes_its_part() {
    let (from, until) = (20 * SECOND, 200 * SECOND);
    for unit in UNITS {
        let of = |per_second| Rule::Foreign { per_second, input: 60, output: 20, from, until };
        let amount = if unit == Unit::Requests { 20 } else { 3_000 };
        let limit = Rule::Rolling { unit, amount, period: 10 * SECOND };
        let options = Options::of(Shape::OpenAi);
        let (without, _) = play(&[limit], &options, 2 * SECOND);
        let (with, refused) = play(&[limit, of(3)], &options, 2 * SECOND);
        assert!(with < without && refused > 20, "{unit:?}: {with} of {without}, {refused}");
    }
}

#[test]
fn overload_refuses_its_share_and_only_in_its_time() {
    let (from, until) = (10 * SECOND, 20 * SECOND);
    for (share, least, most) in [(0, 0, 0), (300, 2_850, 3_150), (1_000, 10_000, 10_000)] {
        let rule = Rule::Overload { from, until, share, hint: None };
        let mut provider = Provider::new(Shape::Anthropic, vec![rule], 5);
        for n in 0..30_000 {
            let _ = provider.arrive(n * 1_000, &Call::default());
        }
        let record = provider.record();
        assert!(record.refusals().all(|seen| (from..until).contains(&seen.at)));
        let refused = record.refused();
        assert!((least..=most).contains(&refused), "{share}: {refused}");
        assert_eq!(record.over_admissions(), 0);
    }
}

#[test]
fn the_first_rule_that_refuses_is_the_one_recorded() {
    let requests = Rule::Rolling { unit: Unit::Requests, amount: 1, period: MINUTE };
    let mut provider =
        Provider::new(Shape::Plain, vec![Rule::Concurrency { amount: 1 }, requests], 1);
    let Arrival::Accepted(id) = provider.arrive(0, &Call::default()) else { panic!() };
    let _ = provider.arrive(1, &Call::default());
    let _ = provider.finish(2, id, Used::default());
    let _ = provider.arrive(3, &Call::default());
    let verdicts: Vec<_> = provider.record().calls.iter().map(|seen| seen.verdict).collect();
    let expected = [Verdict::Accepted, Verdict::OverQuota(0), Verdict::OverQuota(1)];
    assert_eq!(verdicts, expected);
}

#[test]
fn a_lenient_provider_counts_what_it_would_have_refused() {
    let rule = Rule::Rolling { unit: Unit::Requests, amount: 3, period: MINUTE };
    let options = Options { lenient: true, ..Options::of(Shape::Plain) };
    let mut provider = Provider::new(Shape::Plain, vec![rule], 1).with(options);
    for n in 0..10 {
        assert!(matches!(provider.arrive(n, &Call::default()), Arrival::Accepted(_)));
    }
    assert_eq!(provider.record().over_admissions(), 7);
    assert_eq!(provider.record().used(0), [10]);
}

#[test]
fn the_record_tells_rates_and_use_by_period() {
    let rule = Rule::Rolling { unit: Unit::Input, amount: 1_000, period: MINUTE };
    let mut provider = Provider::new(Shape::Anthropic, vec![rule], 1);
    let call = Call { input: 400, ..Call::default() };
    let Arrival::Accepted(first) = provider.arrive(0, &call) else { panic!() };
    let Arrival::Accepted(second) = provider.arrive(SECOND, &call) else { panic!() };
    let _ = provider.arrive(SECOND + 1, &call);
    let _ = provider.arrive(SECOND * 2 - 1, &call);
    let _ = provider.arrive(SECOND * 2, &call);
    // One used less than it was charged, the other more, and that in the next minute.
    let _ = provider.finish(SECOND * 2, first, Used { input: 300, ..Used::default() });
    let _ = provider.finish(MINUTE + 1, second, Used { input: 450, ..Used::default() });
    let record = provider.record();
    assert_eq!(record.used(0), [700, 50]);
    assert_eq!((record.arrived(), record.accepted(), record.refused()), (5, 2, 3));
    assert_eq!((record.peak(), record.refused_from(SECOND + 2), record.refused_by(0)), (3, 2, 3));
}
