//! The layout of events and of the values in them.
//!
//! Logs outlive processes: a new variant takes a new tag, and a tag is never reused.

use standpipe_core::{
    Action, AgentName, AgentRule, Amounts, Backoff, CalendarReset, CascadeThreshold, Charged,
    Commit, Configure, Event, Hit, Instant, Key, Limit, LimitSelector, Margin, Observed, Order,
    Owner, Policy, PoolConfig, PoolRef, Portion, Priority, Reading, Recovered, Reserve, Resets,
    RetryBudget, ReturnWindows, Rule, Share, Source, Span, Text, ThrottleKind, Throttled,
    TimeRange, Unit, UnitName, Zones, bounds,
};

use super::Malformed;
use super::wire::{Reader, Wire, get_str, put_str, wire_enum, wire_newtype, wire_struct};

wire_newtype!(Instant, Span);

wire_struct! {
    Key { session, number }
    Event { key, action }
    Reserve {
        agent, priority, cost, patience, ttl, owner, id, model, task, retry_of, ticket, hold, bytes,
        at_most, part_of,
    }
    Owner { pid, started }
    Commit { lease, used, progress, refused }
    Throttled { lease, agent, kind, retry_after, hit }
    Hit { unit, period }
    Observed { lease, readings }
    Reading { unit, period, limit, remaining, coarse, reset_in, full_in }
    CalendarReset { limit, since, left }
    Configure { source, config }
    PoolConfig {
        limits, margin, slack, claim, lease_ttl, longest_lease, enforce, order, policy, agents,
        prices, within,
    }
    Policy {
        backoff, comeback, cascade, retries, learn, terminal_probe, zones, yields, spreads,
        promotes, breaker, reconciles, estimates,
    }
    Backoff { base, factor_per_mille, cap, jitter }
    ReturnWindows { critical, standard, background }
    TimeRange { from, to }
    CascadeThreshold { agents, within }
    RetryBudget { per_mille, least }
    Limit { rule, pace, charged, resets }
    AgentRule { name, priority, floors, caps, weight }
    Share { of, portion }
}

wire_enum! {
    Action {
        0 => Reserve(reserve),
        1 => Commit(commit),
        2 => Cancel { lease },
        3 => Throttled(throttled),
        4 => Observed(observed),
        5 => Heartbeat { lease, ttl },
        6 => SessionEnded { session },
        7 => OwnerEnded { lease },
        8 => Configure(configure),
        9 => Pause { length, by },
        10 => Resume { by },
        11 => Recovered(recovered),
        12 => Forgotten,
        13 => Redate { lease },
        14 => Withdraw { lease },
        15 => Calendar { resets },
        16 => Leave { ticket },
    }
    Recovered {
        0 => Reserve { lease, reserve },
        1 => Commit { lease },
        2 => Throttled(throttled),
    }
    ThrottleKind { 0 => Quota, 1 => Concurrency, 2 => SlowDown, 3 => Overload, 4 => Terminal }
    Source { 0 => File { version, written }, 1 => Code, 2 => Change }
    Rule {
        0 => Window { unit, amount, period },
        1 => Bucket { unit, amount, period, burst },
        2 => Parallel { amount },
    }
    Charged { 0 => Start, 1 => End }
    Resets { 0 => Rolling, 1 => Provider, 2 => Calendar(day) }
    Order { 0 => Arrival, 1 => Fair }
    Zones { 0 => Off, 1 => Long, 2 => All }
    Margin { 0 => Auto, 1 => Fixed(per_mille) }
    LimitSelector { 0 => All, 1 => Unit(unit), 2 => Parallel }
    Portion { 0 => PerMille(share), 1 => Rate { amount, period }, 2 => Slots(amount) }
    Priority { 0 => Critical, 1 => Standard, 2 => Background }
    Unit {
        0 => Requests,
        1 => InputTokens,
        2 => OutputTokens,
        3 => Tokens,
        4 => Points,
        5 => Content,
        6 => Usd,
        7 => Other(name),
        8 => Parallel,
    }
}

impl Wire for AgentName {
    fn put(&self, out: &mut Vec<u8>) {
        put_str(self.as_str(), out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        get_str(input, Self::new)
    }
}

impl Wire for PoolRef {
    fn put(&self, out: &mut Vec<u8>) {
        put_str(self.as_str(), out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        get_str(input, Self::new)
    }
}

impl Wire for Text {
    fn put(&self, out: &mut Vec<u8>) {
        put_str(self.as_str(), out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        get_str(input, Self::new)
    }
}

/// A declared unit. The name of a built-in unit is rejected, because it would be a second encoding
/// of that unit.
impl Wire for UnitName {
    fn put(&self, out: &mut Vec<u8>) {
        put_str(self.as_str(), out);
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let declared = |name: &str| match Unit::named(name) {
            Some(Unit::Other(name)) => Some(name),
            _ => None,
        };
        get_str(input, declared)
    }
}

impl Wire for Amounts {
    fn put(&self, out: &mut Vec<u8>) {
        (self.iter().len() as u64).put(out);
        for (unit, amount) in self.iter() {
            unit.put(out);
            amount.put(out);
        }
    }

    fn get(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let count = input.count()?;
        if count > bounds::UNITS {
            return input.malformed("more units than one cost may name");
        }
        let mut amounts: Vec<(Unit, u64)> = Vec::with_capacity(count);
        for _ in 0..count {
            let (unit, amount) = <(Unit, u64)>::get(input)?;
            if amounts.last().is_some_and(|(last, _)| *last >= unit) {
                return input.malformed("units out of order");
            }
            amounts.push((unit, amount));
        }
        match Self::new(amounts) {
            Ok(amounts) => Ok(amounts),
            Err(_) => input.malformed("an amount above the bound"),
        }
    }
}
