//! What a rule allows, found from scratch each time by walking everything that ever happened.

use standpipe_sim::{Call, CallId, Options, Output, Rule, Unit, Used};

const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;

/// A rule and all that happened under it.
pub(crate) struct Oracle {
    pub(crate) rule: Rule,
    options: Options,
    past: Vec<(u64, Past)>,
}

enum Past {
    Accepted(CallId, Call),
    /// Whether a bucket that counts it had a unit for it.
    Refused(bool),
    Ended(CallId, Used),
}

impl Oracle {
    pub(crate) fn new(rule: Rule, options: Options) -> Self {
        Self { rule, options, past: Vec::new() }
    }

    pub(crate) fn accepted(&mut self, at: u64, id: CallId, call: Call) {
        self.past.push((at, Past::Accepted(id, call)));
    }

    pub(crate) fn refused(&mut self, at: u64) {
        let took = match self.rule {
            Rule::Bucket { period, .. } => self.content(at) >= i128::from(period),
            _ => true,
        };
        self.past.push((at, Past::Refused(took)));
    }

    pub(crate) fn ended(&mut self, at: u64, id: CallId, used: Used) {
        self.past.push((at, Past::Ended(id, used)));
    }

    /// A call of others: it ends when it comes, and leaves no trace if it is refused.
    pub(crate) fn foreign(&mut self, (at, input, output): (u64, u64, u64)) {
        let call = Call { input, max_output: output, ..Call::default() };
        if self.allows(at, &call) {
            let id = CallId(u64::MAX - self.past.len() as u64);
            self.accepted(at, id, call);
            self.ended(at, id, Used { input, output, ..Used::default() });
        }
    }

    pub(crate) fn allows(&self, now: u64, call: &Call) -> bool {
        match self.rule {
            Rule::Bucket { unit, period, .. } => {
                self.content(now) >= i128::from(self.need(unit, call)) * i128::from(period)
            }
            Rule::Rolling { unit, amount, period } => {
                let need = self.need(unit, call);
                need == 0 || self.counted(unit, |at, _| at + period > now) + need <= amount
            }
            Rule::FixedWindow { unit, amount, period, offset } => {
                let window = |at: u64| (self.options.origin + at - offset) / period;
                let same =
                    |at: u64, back: u64| window(at) == window(now) && window(back) == window(at);
                let need = self.need(unit, call);
                need == 0 || self.counted(unit, same) + need <= amount
            }
            Rule::Concurrency { amount } => {
                let begun = self.count(|past| matches!(past, Past::Accepted(..)));
                let ended = self.count(|past| matches!(past, Past::Ended(..)));
                begun - ended < amount
            }
            Rule::Secondary { points_per_minute, content_per_minute, content_per_hour } => {
                let points = self.sum(now, MINUTE, points) + points(call);
                let content = self.sum(now, MINUTE, |call| u64::from(call.creates));
                let hourly = self.sum(now, 60 * MINUTE, |call| u64::from(call.creates));
                let fits = content < content_per_minute && hourly < content_per_hour;
                points <= points_per_minute && (!call.creates || fits)
            }
            Rule::Acceleration { growth, stretch, free } => {
                let last = self.sum(now, stretch, |_| 1);
                let before = self.sum(now, 2 * stretch, |_| 1) - last;
                last < free || (last + 1) * 1_000 <= before * growth
            }
            Rule::SpendCap { amount, resets, .. } => {
                let same = |at: u64| (at < resets) == (now < resets);
                let cost = |(at, past): &(u64, Past)| match past {
                    Past::Ended(_, used) if same(*at) => used.cost,
                    _ => 0,
                };
                self.past.iter().map(cost).sum::<u64>() < amount
            }
            Rule::Overload { .. } | Rule::Foreign { .. } => true,
        }
    }

    /// Whether there could ever be room for a call, and waiting alone would bring it.
    pub(crate) fn could_ever(&self, call: &Call) -> bool {
        match self.rule {
            Rule::Bucket { unit, burst: most, .. }
            | Rule::Rolling { unit, amount: most, .. }
            | Rule::FixedWindow { unit, amount: most, .. } => self.need(unit, call) <= most,
            _ => true,
        }
    }

    /// What must be left for a call.
    fn need(&self, unit: Unit, call: &Call) -> u64 {
        let charge = self.charge(unit, call);
        let later = self.options.output == Output::Real;
        match unit {
            Unit::Output | Unit::Tokens if later => charge + 1,
            _ => charge,
        }
    }

    /// What a call is charged when it arrives.
    fn charge(&self, unit: Unit, call: &Call) -> u64 {
        let output = if self.options.output == Output::Real { 0 } else { call.max_output };
        match unit {
            Unit::Requests => 1,
            Unit::Input => call.input,
            Unit::Output => output,
            Unit::Tokens if self.options.output == Output::Larger => call.input.max(output),
            Unit::Tokens => call.input + output,
        }
    }

    /// What a call is charged in the end.
    fn real(&self, unit: Unit, used: &Used) -> u64 {
        let cached = if self.options.cached_count { used.cache_read } else { 0 };
        let input = used.input + used.cache_written + cached;
        match unit {
            Unit::Requests => 1,
            Unit::Input => input,
            Unit::Output => used.output,
            Unit::Tokens => input + used.output,
        }
    }

    /// Every charge, in order, with the instant from which it counts, and every refund with the
    /// instant of its charge.
    fn changes(&self, unit: Unit) -> Vec<Change> {
        let mut all = Vec::new();
        for (at, past) in &self.past {
            let at = *at;
            match past {
                Past::Accepted(_, call) => {
                    let units = i128::from(self.charge(unit, call));
                    all.push(Change { at, of: at, units });
                }
                Past::Refused(took) => {
                    let counts = *took && self.options.refused_count && unit == Unit::Requests;
                    all.push(Change { at, of: at, units: i128::from(counts) });
                }
                Past::Ended(id, used) => {
                    let (of, call) = self.accepted_call(*id);
                    let units =
                        i128::from(self.real(unit, used)) - i128::from(self.charge(unit, &call));
                    all.push(Change { at, of: if units < 0 { of } else { at }, units });
                }
            }
        }
        all
    }

    fn accepted_call(&self, id: CallId) -> (u64, Call) {
        let found = self.past.iter().find_map(|(at, past)| match past {
            Past::Accepted(known, call) if *known == id => Some((*at, *call)),
            _ => None,
        });
        found.expect("only accepted calls end")
    }

    /// The sum of all charges that still count, by the instant of the charge and of the change.
    fn counted(&self, unit: Unit, counts: impl Fn(u64, u64) -> bool) -> u64 {
        let changes = self.changes(unit).into_iter();
        let sum: i128 = changes.filter(|it| counts(it.of, it.at)).map(|it| it.units).sum();
        u64::try_from(sum).unwrap()
    }

    /// What is in a bucket, in units × period: from whichever moment it was full last, the refill
    /// since then less the charges since then. That moment gives the least of all.
    fn content(&self, now: u64) -> i128 {
        let Rule::Bucket { unit, amount, period, burst } = self.rule else { panic!() };
        let full = i128::from(burst) * i128::from(period);
        let refill = |from: u64| i128::from(now - from) * i128::from(amount);
        let changes = self.changes(unit);
        let sum_from = |first: usize| {
            changes[first..].iter().map(|it| it.units).sum::<i128>() * i128::from(period)
        };
        let moments = changes.iter().enumerate().flat_map(|(n, it)| {
            [full + refill(it.at) - sum_from(n), full + refill(it.at) - sum_from(n + 1)]
        });
        moments.chain([full, full + refill(0) - sum_from(0)]).min().unwrap()
    }

    fn count(&self, which: fn(&Past) -> bool) -> u64 {
        self.past.iter().filter(|(_, past)| which(past)).count() as u64
    }

    /// Over the accepted calls of the last stretch of time.
    fn sum(&self, now: u64, stretch: u64, worth: fn(&Call) -> u64) -> u64 {
        let worth = |(at, past): &(u64, Past)| match past {
            Past::Accepted(_, call) if at + stretch > now => worth(call),
            _ => 0,
        };
        self.past.iter().map(worth).sum()
    }
}

/// A change of what a rule has counted.
struct Change {
    /// When it came.
    at: u64,
    /// When what it changes was charged.
    of: u64,
    units: i128,
}

fn points(call: &Call) -> u64 {
    if call.writes { 5 } else { 1 }
}

/// When others call after one instant and up to another (from the start, if that is the first),
/// and the tokens of each call.
pub(crate) fn foreign_between(rules: &[Rule], after: u64, until: u64) -> Vec<(u64, u64, u64)> {
    let mut all = Vec::new();
    for rule in rules {
        let Rule::Foreign { per_second, input, output, from, until: end } = *rule else { continue };
        let instants = (0_u64..).map(|n| from + n * SECOND / per_second);
        let instants = instants.take_while(|at| *at < end && *at <= until);
        all.extend(instants.filter(|at| *at > after).map(|at| (at, input, output)));
    }
    all.sort_unstable();
    all
}
