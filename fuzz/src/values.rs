//! Names, amounts and times: mostly small and from few, now and then at or beyond a bound.

use standpipe_core::{AgentName, Amounts, Priority, Span, Text, Unit, bounds};

use crate::bytes::Bytes;

/// One of four agents, or the one that stands for all others.
pub(crate) fn agent(bytes: &mut Bytes<'_>) -> AgentName {
    let names = ["picard", "data", "ralph", "neelix", AgentName::OTHER];
    let name = bytes.pick(&names).and_then(AgentName::new);
    name.unwrap_or_else(|| unreachable!("these are names"))
}

/// One of five units.
pub(crate) fn unit(bytes: &mut Bytes<'_>) -> Unit {
    let names = ["requests", "tokens", "usd", "gpu_seconds", "parallel"];
    bytes.pick(&names).and_then(Unit::named).unwrap_or(Unit::Requests)
}

/// A tier.
pub(crate) fn priority(bytes: &mut Bytes<'_>) -> Option<Priority> {
    let tiers = [None, Some(Priority::Critical), Some(Priority::Background)];
    bytes.pick(&tiers).flatten()
}

/// A word of the caller's.
pub(crate) fn text(bytes: &mut Bytes<'_>) -> Option<Text> {
    let texts = ["", "a", "b", "c 🚰"];
    bytes.pick(&texts).and_then(Text::new)
}

/// A figure as a limit or a cost has it.
pub(crate) fn amount(bytes: &mut Bytes<'_>) -> u64 {
    match bytes.byte() {
        small @ 0..=239 => u64::from(small % 16),
        240..=247 => u64::from(bytes.byte()) * 1_000,
        248..=251 => bounds::AMOUNT,
        252..=253 => bounds::AMOUNT - 1,
        _ => u64::MAX,
    }
}

/// A cost or a usage; empty when the bytes name a unit twice or too much of one.
pub(crate) fn amounts(bytes: &mut Bytes<'_>) -> Amounts {
    let count = bytes.below(4);
    let figures: Vec<(Unit, u64)> = (0..count).map(|_| (unit(bytes), amount(bytes))).collect();
    let made = if bytes.one_in(4) { Amounts::new(figures) } else { Amounts::cost(figures) };
    made.unwrap_or_default()
}

/// A length of time: a few that matter, small ones, and ones beyond every bound.
pub(crate) fn span(bytes: &mut Bytes<'_>) -> Span {
    match bytes.byte() {
        tenths @ 0..=159 => Span::millis(u64::from(tenths) * 100),
        seconds @ 160..=219 => Span::secs(u64::from(seconds - 160) * 10),
        220..=229 => Span::micros(u64::from(bytes.byte())),
        230..=239 => bounds::SILENCE,
        240..=245 => bounds::SPAN,
        246..=249 => bounds::SPAN + Span(1),
        250..=252 => Span(u64::MAX),
        _ => Span(bytes.word()),
    }
}

/// A length of time or none.
pub(crate) fn maybe_span(bytes: &mut Bytes<'_>) -> Option<Span> {
    bytes.one_in(2).then(|| span(bytes))
}

/// How far the clock goes on between two events: mostly little, never back.
pub(crate) fn step(bytes: &mut Bytes<'_>) -> Span {
    match bytes.byte() {
        0..=127 => Span::ZERO,
        small @ 128..=199 => Span::millis(u64::from(small - 128) * 50),
        200..=219 => Span::micros(1),
        220..=251 => span(bytes).min(bounds::SPAN),
        252..=254 => bounds::SPAN,
        255 => Span(bytes.word()),
    }
}
