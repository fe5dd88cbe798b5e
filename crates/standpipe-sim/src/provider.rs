//! A provider that enforces its limits. It refuses or accepts a call at once; the world finishes an
//! accepted call.

mod call;
mod meter;
mod record;
mod refusal;
mod reply;
mod rule;
mod shape;

use std::collections::BTreeMap;

pub use self::call::{Call, CallId, Unit, Used};
pub(crate) use self::record::peak;
pub use self::record::{Record, Seen, Verdict};
pub use self::reply::Reply;
pub(crate) use self::rule::ORIGIN;
pub use self::rule::{Cap, Options, Output, RetryAfter, Rule};
pub use self::shape::Shape;

use self::meter::{Charged, Meter};
use self::refusal::Refusal;
use self::shape::Scene;
use crate::calendar::{SECOND, Wall};
use crate::random::Random;

/// A provider behind one key. See the [crate] for an example.
#[derive(Clone, Debug)]
pub struct Provider {
    shape: Shape,
    rules: Vec<Rule>,
    seed: u64,
    options: Options,
    /// One for each rule.
    meters: Vec<Meter>,
    open: BTreeMap<CallId, Open>,
    /// Calls seen, for their names.
    seen: u64,
    /// By rule: how many calls of others have come.
    foreign: Vec<u64>,
    now: u64,
    record: Record,
}

/// What became of a call at its arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It runs until `finish`.
    Accepted(CallId),
    /// It is over.
    Refused(Reply),
}

/// An accepted call that is not over yet.
#[derive(Clone, Debug)]
struct Open {
    at: u64,
    call: Call,
    /// What each rule charged.
    charged: Vec<u64>,
}

impl Provider {
    /// One with these rules, and otherwise as a provider of this shape is documented to be.
    #[must_use]
    pub fn new(shape: Shape, rules: Vec<Rule>, seed: u64) -> Self {
        let options = Options::of(shape);
        let meters = meters(&rules, &options, seed);
        Self {
            shape,
            foreign: vec![0; rules.len()],
            rules,
            seed,
            options,
            meters,
            open: BTreeMap::new(),
            seen: 0,
            now: 0,
            record: Record::default(),
        }
    }

    /// The same from its start, with these ways.
    #[must_use]
    pub fn with(self, options: Options) -> Self {
        let meters = meters(&self.rules, &options, self.seed);
        Self { options, meters, ..Self::new(self.shape, self.rules, self.seed) }
    }

    /// A call arrives. An instant before the last one counts as the last one.
    pub fn arrive(&mut self, now: u64, call: &Call) -> Arrival {
        self.advance(now);
        self.seen += 1;
        let refusal = self.judge(call);
        match refusal {
            Some(refusal) if !(self.options.lenient && refusal.why.is_quota()) => {
                Arrival::Refused(self.refuse(call, refusal))
            }
            _ => Arrival::Accepted(self.accept(call, refusal)),
        }
    }

    /// An accepted call is over: the 200, with what it used. A call that is not open gets a 404.
    pub fn finish(&mut self, now: u64, id: CallId, used: Used) -> Reply {
        self.advance(now);
        let Some(open) = self.open.remove(&id) else {
            return Reply { status: 404, headers: Vec::new(), body: Vec::new() };
        };
        for (rule, units) in open.charged.iter().enumerate() {
            let charged = Charged { at: open.at, units: *units };
            let meter = &mut self.meters[rule];
            let real = meter.end(self.now, charged, &used, &self.options);
            let (then, now) = (meter.slot(open.at), meter.slot(self.now));
            self.record.use_less(rule, then, units.saturating_sub(real));
            self.record.use_more(rule, now, real.saturating_sub(*units));
        }
        let took = self.now - open.at;
        let reply = shape::success(self.shape, &self.scene(&open.call, id.0), &used, took);
        reply.forged(&self.options.forged)
    }

    /// What it has seen.
    #[must_use]
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// What it enforces.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// How many accepted calls are not over.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    fn judge(&mut self, call: &Call) -> Option<Refusal> {
        let (now, options) = (self.now, &self.options);
        let mut meters = self.meters.iter_mut().enumerate();
        let refusal = meters.find_map(|(rule, meter)| {
            let found = meter.refuses(now, call, options)?;
            Some(Meter::refusal(rule, found))
        });
        refusal.map(|refusal| Refusal { wait: self.stated_wait(&refusal), ..refusal })
    }

    /// The wait that a refusal states.
    const fn stated_wait(&self, refusal: &Refusal) -> Option<u64> {
        match self.options.retry_after {
            RetryAfter::Real => refusal.wait,
            RetryAfter::Withheld => None,
            RetryAfter::Always(seconds) => Some(seconds.saturating_mul(SECOND)),
        }
    }

    fn accept(&mut self, call: &Call, over: Option<Refusal>) -> CallId {
        let verdict = over.map_or(Verdict::Accepted, |refusal| Verdict::Over(refusal.rule));
        self.record.calls.push(Seen { at: self.now, agent: call.agent, verdict });
        let (now, options) = (self.now, &self.options);
        let charge = |meter: &mut Meter| meter.accept(now, call, options);
        let charged: Vec<_> = self.meters.iter_mut().map(charge).collect();
        for (rule, units) in charged.iter().enumerate() {
            self.record.use_more(rule, self.meters[rule].slot(now), *units);
        }
        let id = CallId(self.seen);
        self.open.insert(id, Open { at: now, call: *call, charged });
        id
    }

    fn refuse(&mut self, call: &Call, refusal: Refusal) -> Reply {
        let rule = refusal.rule;
        let quota = refusal.why.is_quota();
        let verdict = if quota { Verdict::OverQuota(rule) } else { Verdict::Turned(rule) };
        self.record.calls.push(Seen { at: self.now, agent: call.agent, verdict });
        if self.options.refused_count {
            for (rule, meter) in self.meters.iter_mut().enumerate() {
                let units = meter.count_refused(self.now);
                self.record.use_more(rule, meter.slot(self.now), units);
            }
        }
        let reply = shape::refusal(self.shape, &self.scene(call, self.seen), &refusal);
        reply.forged(&self.options.forged)
    }

    fn scene(&self, call: &Call, number: u64) -> Scene<'_> {
        let levels = self.meters.iter().filter_map(|meter| meter.level(self.now)).collect();
        Scene {
            options: &self.options,
            wall: self.wall(self.now),
            started: self.wall(0),
            levels,
            call: *call,
            seed: self.seed,
            number,
        }
    }

    fn wall(&self, now: u64) -> Wall {
        Wall(
            self.options.origin.saturating_add_signed(self.options.clock_error).saturating_add(now),
        )
    }

    /// Brings the traffic of others up to now.
    fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        while let Some((at, rule)) = self.next_foreign()
            && at <= self.now
        {
            self.foreign[rule] += 1;
            if let Rule::Foreign { input, output, .. } = self.rules[rule] {
                self.foreign_call(at, input, output);
            }
        }
    }

    /// When somebody else calls next, and by which rule.
    fn next_foreign(&self) -> Option<(u64, usize)> {
        let next = |(rule, of): (usize, &Rule)| {
            let Rule::Foreign { per_second, from, until, .. } = *of else { return None };
            let later = u128::from(self.foreign[rule]) * u128::from(SECOND);
            let later = later.checked_div(u128::from(per_second))?;
            let at = from.saturating_add(u64::try_from(later).ok()?);
            (at < until).then_some((at, rule))
        };
        self.rules.iter().enumerate().filter_map(next).min()
    }

    fn foreign_call(&mut self, at: u64, input: u64, output: u64) {
        let call = Call { input, max_output: output, ..Call::default() };
        let used = Used { input, output, ..Used::default() };
        let options = &self.options;
        let counted = |meter: &&mut Meter| matches!(meter, Meter::Counted { .. });
        let mut meters: Vec<_> = self.meters.iter_mut().filter(counted).collect();
        if meters.iter_mut().any(|meter| meter.refuses(at, &call, options).is_some()) {
            self.record.foreign_refused += 1;
            return;
        }
        for meter in meters {
            let charged = Charged { at, units: meter.accept(at, &call, options) };
            meter.end(at, charged, &used, options);
        }
        self.record.foreign_accepted += 1;
    }
}

fn meters(rules: &[Rule], options: &Options, seed: u64) -> Vec<Meter> {
    let mut random = Random::new(seed);
    rules.iter().map(|rule| Meter::new(*rule, options, Random::new(random.draw()))).collect()
}
