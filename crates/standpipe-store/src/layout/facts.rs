//! The layout of the facts of a pool's ledger.
//!
//! Stamps ascend, so they are written as differences: most take one to three bytes.

use standpipe_core::{
    Agent, AgentId, AgentUnitUsage, AutoMargin, Began, Bucket, Calendar, Call, CallId, Cascade,
    Charge, ConstraintId, ConstraintSet, Count, Denied, ExternalUsage, Facts, History,
    HistoryEntry, Id, IdRecord, IdVec, Incident, Instant, Learned, LearnedConcurrency,
    LearnedLimit, Lease, LeaseOwner, LimitId, PauseOrder, Phase, Probe, Promoted, Provenance,
    QueueKey, Ramp, Reason, RecentLow, Reported, Reset, ResetPhase, ResetRange, RetryUsage,
    Returning, Sequential, Session, SizeHistogram, SizeKey, Spending, Terminal, Throttling, Ticket,
    UnitId, UnitUsage, UsageCounter, Zone,
};

use super::Malformed;
use super::wire::{Reader, Wire, wire_enum, wire_struct};

wire_struct! {
    Facts {
        clock, config, provenance, used, arrivals, virtual_time, pause, terminal, throttling,
        returning, cascade, ramp, learned, unanswered, retry_usage, tier_activity, paused_total,
        auto_margins, external, sizes, pre_emptive, spending, state_lost_at, enforced, units,
        counters, agents, sessions, leases, tickets, ids,
    }
    Provenance { file, version, written, changes }
    Terminal { until, next_probe, probe }
    Throttling { pause_began, incident, order, streak, overloads }
    PauseOrder { by, at }
    Returning { newcomers, pause_ended, probe }
    Cascade { throttled, sequential }
    Learned { concurrency, limits, slow_start_exp }
    RetryUsage { admissions, retries }
    Spending { spent, wasted }
    Incident { kind, agent, at }
    Sequential { began, ends, successes }
    Ramp { halvings, since, paced }
    LearnedConcurrency { calls, since }
    LearnedLimit { unit, period, amount, refills }
    IdRecord { first, ended }
    CallId { agent, id, part_of }
    UnitUsage { unit, charged, span, span_before, next_mark, history, held }
    AgentUnitUsage { history, held }
    Agent { name, active, refused, asked, admitted, denied, promoted, tags, units }
    Denied { since, last }
    Promoted { arrival, tag, ticket }
    AutoMargin { limit, per_mille, since, successes, rests, reported }
    ExternalUsage {
        limit, since, last_seen, low, gap, believed, initial, spare, charged, eased, reported,
    }
    Reported { remaining, limit, at, until }
    RecentLow { since, left, before }
    Session { last, last_seen, ended, missed }
    QueueKey { tier, tag, arrival }
    Call { cost, owner, id, model, task, retry_of, bytes, tokens_follow, part_of }
    Ticket {
        key, session, agent, call, start, since, deadline, phase, earmarked, returns, holds, ttl,
    }
    Lease { owner, agent, tier, call, started, progressed, charges, left }
    Charge { unit, when, estimate, charged, mark, known }
    UsageCounter { count, reset, zone, without_floor, spread, calendar }
    Calendar { last, next }
    ResetRange { earliest, latest }
    Began { at, carried }
    Bucket { missing, at, refundable_from }
    Reset { at, phase }
}

wire_enum! {
    Phase {
        0 => Held { reason, until },
        1 => Line(constraint),
        2 => Due(until),
        3 => Lapsed,
        4 => TooLate,
    }
    Probe { 0 => Over, 1 => Wanted, 2 => Sent { lease, at } }
    LeaseOwner { 0 => Session(session), 1 => Ttl { ttl, expires } }
    Count { 0 => Window { began }, 1 => Bucket(bucket), 2 => Slots, 3 => Pace { last } }
    ResetPhase {
        0 => Announced,
        1 => Passed { carried },
        2 => Probing { carried, probe },
        3 => Spent { carried },
    }
    Zone { 0 => Green, 1 => Amber, 2 => Red }
    SizeKey { 0 => Units(unit), 1 => PerBytes(unit) }
    LimitId {
        0 => Window(unit, period),
        1 => Bucket(unit, period),
        2 => Parallel,
        3 => Unanswered,
    }
    Reason {
        0 => Terminal,
        1 => Never,
        2 => Pause,
        3 => Cap,
        4 => Order,
        5 => Limit,
        6 => Floor,
        7 => Pace,
        8 => Learning,
        9 => QueueFull,
        10 => Deadline,
        11 => ReturnWindow,
        12 => Hold,
        13 => Probe,
        14 => Sequential,
        15 => RetryBudget,
        16 => Zone,
        17 => Yield,
        18 => Ramp,
        19 => Spread,
    }
}

/// The layout of an id is that of its number.
macro_rules! wire_id {
    ($($type:ident),*) => {$(
        impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                self.0.put(out);
            }

            fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
                Wire::get(input).map(Self)
            }
        }
    )*};
}

wire_id!(AgentId, ConstraintId, ConstraintSet, UnitId);

impl<I: Id, T: Wire> Wire for IdVec<I, T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|row| row.put(out));
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Vec::get(input).map(Self::from)
    }
}

/// Marks and stamps ascend, so they are written as differences too.
impl Wire for History {
    fn put(&self, out: &mut Vec<u8>) {
        let entries = self.charges();
        self.expired().put(out);
        (entries.len() as u64).put(out);
        let (mut mark, mut stamp) = (0, Instant(0));
        for entry in entries {
            (entry.mark - mark).put(out);
            entry.stamp.since(stamp).put(out);
            entry.units.put(out);
            (mark, stamp) = (entry.mark, entry.stamp);
        }
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let expired = u64::get(input)?;
        let count = input.count()?;
        let mut entries = Vec::new();
        let (mut mark, mut stamp) = (0_u64, 0_u64);
        for _ in 0..count {
            let more = (u64::get(input)?, u64::get(input)?);
            let sums = (mark.checked_add(more.0), stamp.checked_add(more.1));
            let (Some(next_mark), Some(next_stamp)) = sums else {
                return input.malformed("numbers beyond 64 bits");
            };
            (mark, stamp) = (next_mark, next_stamp);
            let units = u64::get(input)?;
            entries.push(HistoryEntry { mark, stamp: Instant(stamp), units });
        }
        match Self::of(expired, entries) {
            Some(history) => Ok(history),
            None => input.malformed("no history has these charges"),
        }
    }
}

impl Wire for SizeHistogram {
    fn put(&self, out: &mut Vec<u8>) {
        let bins = self.bins().iter();
        put_ascending(bins.map(|(bin, count)| (u64::from(*bin), u64::from(*count))), out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let small =
            |(bin, count): (u64, u64)| Some((u16::try_from(bin).ok()?, u16::try_from(count).ok()?));
        let bins: Option<Vec<_>> = get_ascending(input)?.into_iter().map(small).collect();
        match bins.and_then(Self::of) {
            Some(sizes) => Ok(sizes),
            None => input.malformed("no calls have these sizes"),
        }
    }
}

/// Writes pairs whose first numbers ascend, each first number as the difference to the last one.
fn put_ascending(pairs: impl ExactSizeIterator<Item = (u64, u64)>, out: &mut Vec<u8>) {
    (pairs.len() as u64).put(out);
    let mut last = 0;
    for (number, units) in pairs {
        number.saturating_sub(last).put(out);
        units.put(out);
        last = number;
    }
}

fn get_ascending(input: &mut Reader<'_>) -> Result<Vec<(u64, u64)>, Malformed> {
    let count = input.count()?;
    let mut pairs = Vec::new();
    let mut last: u64 = 0;
    for _ in 0..count {
        let (more, units) = <(u64, u64)>::get(input)?;
        let Some(number) = last.checked_add(more) else {
            return input.malformed("numbers beyond 64 bits");
        };
        pairs.push((number, units));
        last = number;
    }
    Ok(pairs)
}
