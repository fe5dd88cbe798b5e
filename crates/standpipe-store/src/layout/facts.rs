//! The layout of the facts of a pool's ledger.
//!
//! Stamps ascend, so they are written as differences: most take one to three bytes.

use standpipe_core::{
    Agent, AutoMargin, Bucket, BucketCharge, BucketFacts, Call, CallId, Cascade, Charge, Count,
    Denied, ExternalUsage, Facts, Grain, IdRecord, Incident, Instant, Learned, LearnedConcurrency,
    LearnedLimit, Lease, LeaseOwner, LimitId, Phase, Probe, Promoted, Provenance, QueueKey, Ramp,
    Reason, RecentLow, Reset, ResetPhase, RetryUsage, Returning, Sequential, Session,
    SizeHistogram, SizeKey, Spending, Target, Terminal, Throttling, Ticket, UnitHistory,
    UsageCounter, Window, WindowEntry, Zone,
};

use super::Malformed;
use super::wire::{Reader, Wire, wire_enum, wire_struct};

wire_struct! {
    Facts {
        clock, config, provenance, used, arrivals, pause, terminal, throttling, returning, cascade,
        ramp, learned, unanswered, retry_usage, zone, tier_activity, paused_total, auto_margins,
        external, sizes, pre_emptive, spending, state_lost_at, enforced, units, counters, agents,
        sessions, leases, tickets, ids,
    }
    Provenance { file, version, written, changes }
    Terminal { until, next_probe, probe }
    Throttling { pause_began, incident, streak, overloads }
    Returning { newcomers, pause_ended, probe }
    Cascade { throttled, sequential }
    Learned { concurrency, limits, slow_start_exp }
    RetryUsage { admissions, retries }
    Spending { spent, wasted }
    Incident { kind, agent, at }
    Sequential { began, ends, successes }
    Ramp { halvings, since, paced }
    LearnedConcurrency { calls, since }
    LearnedLimit { unit, period, amount }
    IdRecord { first, ended }
    CallId { agent, id }
    UnitHistory { unit, span, span_before, charged, counter }
    Agent { name, active, refused, asked, admitted, denied, promoted, usages, units }
    Denied { since, last }
    Promoted { arrival, ticket }
    AutoMargin { limit, per_mille, since, successes, rests }
    ExternalUsage { limit, since, last_seen, low, gap, believed, initial, spare, charged, eased }
    RecentLow { since, left, before }
    Session { last, last_seen, ended }
    QueueKey { tier, arrival }
    Call { cost, owner, id, model, task, retry_of, bytes, tokens_follow }
    Ticket { key, session, agent, call, since, deadline, phase, earmarked, returns, holds, ttl }
    Lease { owner, agent, tier, call, started, progressed, charges }
    Charge { to, when, estimate, charged, mark, known, left }
    UsageCounter { count, held, reset, learning }
    BucketFacts { credit, at, next }
    Reset { at, phase }
}

wire_enum! {
    Phase {
        0 => Held { reason, until },
        1 => Line(constraint),
        2 => Due(since),
        3 => Lapsed,
        4 => TooLate,
    }
    Probe { 0 => Over, 1 => Wanted, 2 => Sent { lease, at } }
    LeaseOwner { 0 => Session(session), 1 => Ttl { ttl, expires } }
    Target { 0 => Constraint(constraint), 1 => Usage(usage), 2 => Unit(unit), 3 => AgentUnit(unit) }
    Count { 0 => Window(window), 1 => Bucket(bucket), 2 => Slots, 3 => Gate { last } }
    ResetPhase {
        0 => Announced,
        1 => Passed { carried },
        2 => Probing { carried, probe },
        3 => Spent { carried },
    }
    Grain { 0 => Limit, 1 => Agent, 2 => Coarse }
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
    }
}

impl Wire for Window {
    fn put(&self, out: &mut Vec<u8>) {
        self.grain().put(out);
        put_ascending(self.entries().map(|entry| (entry.stamp.0, entry.units)), out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let grain = Grain::get(input)?;
        let entries = get_ascending(input)?.into_iter();
        let entries = entries.map(|(stamp, units)| WindowEntry { stamp: Instant(stamp), units });
        match Self::of(grain, entries) {
            Some(window) => Ok(window),
            None => input.malformed("no window has these entries"),
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

impl Wire for Bucket {
    fn put(&self, out: &mut Vec<u8>) {
        self.facts().put(out);
        put_ascending(self.charges().map(|charge| (charge.mark, charge.units)), out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let facts = BucketFacts::get(input)?;
        let charges = get_ascending(input)?.into_iter();
        let charges = charges.map(|(mark, units)| BucketCharge { mark, units });
        match Self::of(facts, charges) {
            Some(bucket) => Ok(bucket),
            None => input.malformed("no bucket has these charges"),
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
