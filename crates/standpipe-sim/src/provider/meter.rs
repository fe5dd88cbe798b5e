//! How each rule counts: one meter per rule, asked in the rules' order.

mod bucket;
mod fixed;
mod growth;
mod rolling;

use super::call::{Call, Unit, Used};
use super::refusal::{Level, Refusal, Why};
use super::rule::{Cap, Options, Rule};
use crate::calendar::{HOUR, MINUTE, SECOND};
use crate::random::Random;
use bucket::Bucket;
use fixed::Fixed;
use growth::Growth;
use rolling::Rolling;

/// A rule and what it has counted.
#[derive(Clone, Debug)]
pub(super) enum Meter {
    Counted {
        unit: Unit,
        counter: Counter,
    },
    Parallel {
        amount: u64,
        open: u64,
    },
    Secondary {
        points: Rolling,
        content: Rolling,
        hourly: Rolling,
    },
    Growth(Growth),
    Overload {
        from: u64,
        until: u64,
        share: u32,
        hint: Option<u64>,
        random: Random,
    },
    Spend {
        amount: u64,
        resets: u64,
        cap: Cap,
        spent: u64,
        after: u64,
    },
    /// Other traffic refuses nothing itself.
    Nothing,
}

/// A count of units in time.
#[derive(Clone, Debug)]
pub(super) enum Counter {
    Bucket(Bucket),
    Rolling(Rolling),
    Fixed(Fixed),
}

impl Meter {
    pub(super) fn new(rule: Rule, options: &Options, random: Random) -> Self {
        match rule {
            Rule::Bucket { unit, amount, period, burst } => {
                let counter = Counter::Bucket(Bucket::new(amount, period, burst));
                Self::Counted { unit, counter }
            }
            Rule::Rolling { unit, amount, period } => {
                Self::Counted { unit, counter: Counter::Rolling(Rolling::new(amount, period)) }
            }
            Rule::FixedWindow { unit, amount, period, offset } => {
                let start = i128::from(options.origin) + i128::from(options.clock_error);
                let phase = (start - i128::from(offset)).rem_euclid(i128::from(period.max(1)));
                let counter = Counter::Fixed(Fixed::new(amount, period, phase as u64));
                Self::Counted { unit, counter }
            }
            Rule::Concurrency { amount } => Self::Parallel { amount, open: 0 },
            Rule::Secondary { points_per_minute, content_per_minute, content_per_hour } => {
                Self::Secondary {
                    points: Rolling::new(points_per_minute, MINUTE),
                    content: Rolling::new(content_per_minute, MINUTE),
                    hourly: Rolling::new(content_per_hour, HOUR),
                }
            }
            Rule::Acceleration { growth, stretch, free } => {
                Self::Growth(Growth::new(growth, stretch, free))
            }
            Rule::Overload { from, until, share, hint } => {
                Self::Overload { from, until, share, hint, random }
            }
            Rule::SpendCap { amount, resets, cap } => {
                Self::Spend { amount, resets, cap, spent: 0, after: 0 }
            }
            Rule::Foreign { .. } => Self::Nothing,
        }
    }

    /// Why it refuses a call now, if it does, and how long it would go on to.
    pub(super) fn refuses(
        &mut self,
        now: u64,
        call: &Call,
        options: &Options,
    ) -> Option<(Why, Option<u64>)> {
        match self {
            Self::Counted { unit, counter } => {
                let (_, need) = options.at_arrival(*unit, call);
                let wait = counter.lacks(now, need)?;
                let Level { amount, period, left, .. } = counter.level(*unit, now);
                let (unit, used) = (*unit, amount.saturating_sub(left));
                let why = Why::Quota { unit, amount, period, used, requested: need };
                Some((why, Some(wait)))
            }
            Self::Parallel { amount, open } => {
                (open >= amount).then_some((Why::Concurrency { amount: *amount }, None))
            }
            Self::Secondary { points, content, hourly } => {
                let (worth, creates) = (worth(call), u64::from(call.creates));
                let lacks = [points.lacks(now, worth), content.lacks(now, creates)];
                let wait = lacks.into_iter().chain([hourly.lacks(now, creates)]).flatten().max()?;
                Some((Why::Secondary, Some(wait)))
            }
            Self::Growth(growth) => {
                let wait = growth.refuses(now)?;
                Some((Why::Acceleration, Some(wait)))
            }
            Self::Overload { from, until, share, hint, random } => {
                let now_is = (*from..*until).contains(&now) && random.permille(*share);
                now_is.then_some((Why::Overload, hint.map(|seconds| seconds * SECOND)))
            }
            Self::Spend { amount, resets, cap, spent, after } => {
                let counts = if now < *resets { *spent } else { *after };
                (counts >= *amount).then_some((Why::Spent { cap: *cap, resets: *resets }, None))
            }
            Self::Nothing => None,
        }
    }

    /// A call is accepted. Answers what was charged to a count of units.
    pub(super) fn accept(&mut self, now: u64, call: &Call, options: &Options) -> u64 {
        match self {
            Self::Counted { unit, counter } => {
                let (charge, _) = options.at_arrival(*unit, call);
                counter.charge(now, charge);
                return charge;
            }
            Self::Parallel { open, .. } => *open += 1,
            Self::Secondary { points, content, hourly } => {
                points.charge(now, worth(call));
                content.charge(now, u64::from(call.creates));
                hourly.charge(now, u64::from(call.creates));
            }
            Self::Growth(growth) => growth.accept(now),
            Self::Overload { .. } | Self::Spend { .. } | Self::Nothing => {}
        }
        0
    }

    /// A call is refused, by whichever rule, and counts all the same. Answers what was charged.
    pub(super) fn count_refused(&mut self, now: u64) -> u64 {
        match self {
            Self::Counted { unit: Unit::Requests, counter } => counter.charge_refused(now),
            _ => 0,
        }
    }

    /// A call that was charged so much at some instant is over. Answers what it is charged in all.
    pub(super) fn end(
        &mut self,
        now: u64,
        charged: Charged,
        used: &Used,
        options: &Options,
    ) -> u64 {
        match self {
            Self::Counted { unit, counter } => {
                let real = options.at_end(*unit, used);
                counter.settle(now, charged, real);
                return real;
            }
            Self::Parallel { open, .. } => *open = open.saturating_sub(1),
            Self::Spend { resets, spent, after, .. } => {
                let purse = if now < *resets { spent } else { after };
                *purse = purse.saturating_add(used.cost);
            }
            _ => {}
        }
        0
    }

    /// What headers show of it.
    pub(super) fn level(&self, now: u64) -> Option<Level> {
        match self {
            Self::Counted { unit, counter } => Some(counter.level(*unit, now)),
            _ => None,
        }
    }

    /// The number of the period that an instant lies in, counted from the start of the world.
    pub(super) fn slot(&self, now: u64) -> Option<usize> {
        let Self::Counted { counter, .. } = self else { return None };
        let slot = match counter {
            Counter::Bucket(bucket) => now / bucket.period(),
            Counter::Rolling(rolling) => now / rolling.period(),
            Counter::Fixed(fixed) => fixed.window(now),
        };
        usize::try_from(slot).ok()
    }

    /// The refusal by the rule of this number.
    pub(super) const fn refusal(rule: usize, (why, wait): (Why, Option<u64>)) -> Refusal {
        Refusal { rule, why, wait }
    }
}

/// What a call was charged, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charged {
    pub(super) at: u64,
    pub(super) units: u64,
}

impl Counter {
    /// How long so many units are not there, if they are not.
    fn lacks(&mut self, now: u64, need: u64) -> Option<u64> {
        match self {
            Self::Bucket(bucket) => bucket.lacks(now, need),
            Self::Rolling(rolling) => rolling.lacks(now, need),
            Self::Fixed(fixed) => fixed.lacks(now, need),
        }
    }

    fn charge(&mut self, now: u64, units: u64) {
        match self {
            Self::Bucket(bucket) => bucket.charge(now, units),
            Self::Rolling(rolling) => rolling.charge(now, units),
            Self::Fixed(fixed) => fixed.charge(now, units),
        }
    }

    /// A refused call never puts a bucket into debt: it takes a unit if there is one.
    fn charge_refused(&mut self, now: u64) -> u64 {
        if matches!(self, Self::Bucket(_)) && self.lacks(now, 1).is_some() {
            return 0;
        }
        self.charge(now, 1);
        1
    }

    /// What was charged becomes what was really used. More is charged now; less is taken back from
    /// where it was charged, if that still counts.
    fn settle(&mut self, now: u64, charged: Charged, real: u64) {
        if real >= charged.units {
            return self.charge(now, real - charged.units);
        }
        let back = charged.units - real;
        match self {
            Self::Bucket(bucket) => bucket.refund(now, back),
            Self::Rolling(rolling) => rolling.refund(charged.at, back),
            Self::Fixed(fixed) => fixed.refund(now, charged.at, back),
        }
    }

    fn level(&self, unit: Unit, now: u64) -> Level {
        match self {
            Self::Bucket(bucket) => bucket.level(unit, now),
            Self::Rolling(rolling) => rolling.level(unit, now),
            Self::Fixed(fixed) => fixed.level(unit, now),
        }
    }
}

/// The points of a call.
const fn worth(call: &Call) -> u64 {
    if call.writes || call.creates { 5 } else { 1 }
}
