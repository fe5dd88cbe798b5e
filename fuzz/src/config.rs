//! Configurations: mostly usable ones with one to four small limits, sometimes not usable at all.

use standpipe_core::{
    AgentRule, Backoff, CascadeThreshold, Charged, Configure, Limit, LimitSelector, Margin, Policy,
    PoolConfig, Portion, Resets, RetryBudget, ReturnWindows, Rule, Share, Source, Span, Text,
    Zones,
};

use crate::bytes::Bytes;
use crate::values::{agent, amount, amounts, maybe_span, priority, span, unit};

/// A configuration and where it comes from.
pub(crate) fn configure(bytes: &mut Bytes<'_>) -> Configure {
    let source = match bytes.below(4) {
        0 => Source::Change,
        1 => Source::Code,
        _ => Source::File {
            version: bytes.one_in(2).then(|| u64::from(bytes.below(4))),
            written: u64::from(bytes.below(4)),
        },
    };
    Configure { source, config: pool(bytes) }
}

fn pool(bytes: &mut Bytes<'_>) -> PoolConfig {
    let count = if bytes.one_in(32) { 17 } else { 1 + bytes.below(4) };
    let mut config = PoolConfig::new((0..count).map(|_| limit(bytes)).collect());
    if bytes.one_in(2) {
        config.margin = match bytes.below(3) {
            0 => Margin::Auto,
            1 => Margin::Fixed(500),
            _ => Margin::Fixed(u16::from(bytes.byte()) * 4),
        };
        config.slack = Span::millis(u64::from(bytes.byte()) * 10);
    }
    if bytes.one_in(4) {
        config.claim = span(bytes);
        config.lease_ttl = span(bytes);
        config.longest_lease = maybe_span(bytes);
        config.enforce = !bytes.one_in(4);
    }
    if bytes.one_in(2) {
        config.policy = policy(bytes);
    }
    if bytes.one_in(8) {
        config.prices = amounts(bytes);
    }
    let agents = bytes.below(3);
    config.agents = (0..agents).map(|_| rule(bytes)).collect();
    config
}

/// Each on or off.
fn policy(bytes: &mut Bytes<'_>) -> Policy {
    let flags = bytes.byte();
    let has = |bit: u8| flags & bit == bit;
    let more = bytes.byte();
    Policy {
        backoff: has(1).then(|| Backoff {
            base: span(bytes),
            factor_per_mille: 1_000 + u32::from(bytes.byte()) * 100,
            cap: maybe_span(bytes),
            jitter: has(2),
        }),
        comeback: has(4).then(|| match has(8) {
            true => ReturnWindows::USUAL,
            false => ReturnWindows::smear(span(bytes)),
        }),
        cascade: has(16).then_some(CascadeThreshold::USUAL),
        retries: has(32).then_some(RetryBudget::USUAL),
        learn: has(64),
        terminal_probe: has(128).then(|| span(bytes)),
        zones: [Zones::Off, Zones::Long, Zones::All][usize::from(more % 3)],
        yields: more & 4 == 4,
        spreads: more & 128 == 128,
        promotes: more & 8 == 8,
        breaker: more & 16 == 16,
        reconciles: more & 32 == 32,
        estimates: more & 64 == 64,
    }
}

fn limit(bytes: &mut Bytes<'_>) -> Limit {
    let rule = match bytes.below(4) {
        0 | 1 => Rule::Window { unit: unit(bytes), amount: amount(bytes), period: period(bytes) },
        2 => Rule::Bucket {
            unit: unit(bytes),
            amount: amount(bytes),
            period: period(bytes),
            burst: amount(bytes),
        },
        _ => Rule::Parallel { amount: amount(bytes) },
    };
    let mut limit = Limit::new(rule);
    let extras = bytes.byte();
    limit.pace = (extras & 3 == 3).then(|| span(bytes));
    limit.charged = if extras & 4 == 4 { Charged::End } else { Charged::Start };
    limit.resets = match extras & 24 {
        24 => Resets::Provider,
        16 => Text::new("00:00 UTC").map_or(Resets::Rolling, Resets::Calendar),
        _ => Resets::Rolling,
    };
    limit
}

fn period(bytes: &mut Bytes<'_>) -> Span {
    match bytes.below(8) {
        0..=4 => Span::secs(1),
        5 => Span::secs(60),
        6 => Span(1),
        _ => span(bytes),
    }
}

fn rule(bytes: &mut Bytes<'_>) -> AgentRule {
    let name = agent(bytes);
    let priority = priority(bytes);
    let (floors, caps) = (bytes.below(3), bytes.below(3));
    AgentRule {
        name,
        priority,
        floors: (0..floors).map(|_| share(bytes)).collect(),
        caps: (0..caps).map(|_| share(bytes)).collect(),
    }
}

fn share(bytes: &mut Bytes<'_>) -> Share {
    let of = match bytes.below(3) {
        0 => LimitSelector::All,
        1 => LimitSelector::Unit(unit(bytes)),
        _ => LimitSelector::Parallel,
    };
    let portion = match bytes.below(3) {
        0 => Portion::PerMille(u16::from(bytes.byte()) * 5),
        1 => Portion::Rate { amount: amount(bytes), period: period(bytes) },
        _ => Portion::Slots(amount(bytes)),
    };
    Share { of, portion }
}
