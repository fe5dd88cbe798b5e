//! The layout of all that a pool's ledger knows.
//!
//! Stamps and marks ascend, so they are written as differences: most take one to three bytes.

use standpipe_core::{
    Agent, Bears, Bucket, BucketFacts, Call, Charge, Count, Denied, Entry, Facts, Grain, Holder,
    Incident, Instant, Known, Lease, LimitId, Low, Measure, Missing, Outlook, Outside, Phase,
    Place, Probe, Promoted, Provenance, Ramp, Reason, Reset, ResetPhase, Sequential, Session,
    Sizes, Tally, Target, Terminal, Ticket, Told, Trouble, Warmth, Window, Zone,
};

use super::Malformed;
use super::wire::{Reader, Wire, wire_enum, wire_struct};

wire_struct! {
    Facts {
        clock, config, provenance, used, arrivals, pause, terminal, trouble, outlook, forgotten,
        lanes, agents, sessions, leases, tickets, ids,
    }
    Provenance { file, version, written, changes }
    Terminal { until, look, probe }
    Trouble {
        began, incident, streak, overloads, behind, ended, probe, refused, sequential, ramp, bears,
        told, courage, unanswered, admissions, retries,
    }
    Incident { kind, agent, at }
    Sequential { began, ends, successes }
    Ramp { halvings, since, paced }
    Bears { calls, since }
    Told { unit, period, amount }
    Known { first, ended }
    Agent { name, active, refused, admitted, denied, promoted, meters }
    Denied { since, last }
    Promoted { arrival, ticket }
    Outlook { zone, active, paused, warmth, outside, sizes, pre_emptive, spent, wasted }
    Warmth { limit, per_mille, since, successes, rests }
    Outside { limit, since, heard, low, gap, standing, early, spare, charged, eased }
    Low { since, left, before }
    Session { last, heard, ended }
    Place { tier, arrival }
    Call { cost, owner, id, model, task, retry_of, bytes, tokens_follow }
    Ticket { key, session, agent, call, since, deadline, phase, aside, returns, holds, ttl }
    Lease { holder, agent, tier, call, started, progressed, charges }
    Charge { to, when, estimate, charged, mark, known, left }
    Tally { count, held, reset, learning }
    BucketFacts { credit, at, next }
    Reset { at, phase }
}

wire_enum! {
    Phase {
        0 => Held { reason, until },
        1 => Line(lane),
        2 => Due(since),
        3 => Lapsed,
        4 => TooLate,
    }
    Probe { 0 => Over, 1 => Wanted, 2 => Sent { lease, at } }
    Holder { 0 => Session(session), 1 => Ttl { ttl, expires } }
    Target { 0 => Lane(lane), 1 => Meter(meter) }
    Count { 0 => Window(window), 1 => Bucket(bucket), 2 => Slots, 3 => Gate { last } }
    ResetPhase {
        0 => Announced,
        1 => Passed { carried },
        2 => Probing { carried, probe },
        3 => Spent { carried },
    }
    Grain { 0 => Limit, 1 => Meter }
    Zone { 0 => Green, 1 => Amber, 2 => Red }
    Measure { 0 => Of(unit), 1 => PerBytes(unit) }
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
        let entries = entries.map(|(stamp, units)| Entry { stamp: Instant(stamp), units });
        match Self::of(grain, entries) {
            Some(window) => Ok(window),
            None => input.wrong("no window has these entries"),
        }
    }
}

impl Wire for Sizes {
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
            None => input.wrong("no calls have these sizes"),
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
        let charges = charges.map(|(mark, units)| Missing { mark, units });
        match Self::of(facts, charges) {
            Some(bucket) => Ok(bucket),
            None => input.wrong("no bucket has these charges"),
        }
    }
}

/// Pairs whose first figures ascend: each is written as the difference to the one before.
fn put_ascending(pairs: impl ExactSizeIterator<Item = (u64, u64)>, out: &mut Vec<u8>) {
    (pairs.len() as u64).put(out);
    let mut last = 0;
    for (figure, units) in pairs {
        figure.saturating_sub(last).put(out);
        units.put(out);
        last = figure;
    }
}

fn get_ascending(input: &mut Reader<'_>) -> Result<Vec<(u64, u64)>, Malformed> {
    let count = input.count()?;
    let mut pairs = Vec::new();
    let mut last: u64 = 0;
    for _ in 0..count {
        let (more, units) = <(u64, u64)>::get(input)?;
        let Some(figure) = last.checked_add(more) else {
            return input.wrong("figures beyond 64 bits");
        };
        pairs.push((figure, units));
        last = figure;
    }
    Ok(pairs)
}
