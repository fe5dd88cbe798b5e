//! Formatters for durations, amounts, rates and shares.
//!
//! Parsing the result with [`crate::parse`] gives the same value.

use standpipe_core::{Margin, Priority, Span, Unit};

use crate::parse::word::Word;

/// Formats a duration in the largest unit that needs no fraction: `90s`, `10min`, `500ms`. Below a
/// millisecond it is a decimal fraction of one.
///
/// ```
/// use standpipe_config::format;
/// use standpipe_core::Span;
///
/// assert_eq!(format::span(Span::secs(600)), "10min");
/// assert_eq!(format::span(Span::secs(90)), "90s");
/// ```
#[must_use]
pub fn span(span: Span) -> String {
    if span == Span::ZERO {
        return "0s".to_owned();
    }
    for (micros, name) in TIMES {
        if span.0.is_multiple_of(micros) {
            return format!("{}{name}", span.0 / micros);
        }
    }
    format!("{}ms", decimal(span.0, 1_000))
}

/// Formats an amount of a unit, with a suffix where that is exact: `1200`, `400k`, `2M`. Dollars
/// have decimals where they need them.
#[must_use]
pub fn amount(unit: &Unit, amount: u64) -> String {
    if *unit == Unit::Usd {
        return decimal(amount, 1_000_000);
    }
    // 10k reads more easily than 10000, but 5000 more easily than 5k.
    let multiples = [(1_000_000_000, 1, "G"), (1_000_000, 1, "M"), (1_000, 10, "k")];
    for (times, least, name) in multiples {
        if amount >= least * times && amount.is_multiple_of(times) {
            return format!("{}{name}", amount / times);
        }
    }
    amount.to_string()
}

/// Formats a rate: `1000/min`, `2M/min`, `30/2s`.
///
/// ```
/// use standpipe_config::format;
/// use standpipe_core::{Span, Unit};
///
/// assert_eq!(format::rate(&Unit::Tokens, 400_000, Span::secs(60)), "400k/min");
/// ```
#[must_use]
pub fn rate(unit: &Unit, amount: u64, period: Span) -> String {
    let period = span(period);
    let period = match period.strip_prefix('1') {
        Some(alone) if alone.starts_with(|c: char| c.is_ascii_alphabetic()) => alone,
        _ => &period,
    };
    format!("{}/{period}", self::amount(unit, amount))
}

/// Formats thousandths as a percentage: `25%`, `12.5%`.
#[must_use]
pub fn percent(per_mille: u16) -> String {
    format!("{}%", decimal(u64::from(per_mille), 10))
}

/// Formats a margin: `auto` or a percentage.
#[must_use]
pub fn margin(margin: Margin) -> String {
    match margin {
        Margin::Auto => "auto".to_owned(),
        Margin::Fixed(per_mille) => percent(per_mille),
    }
}

/// Returns the name of a priority.
#[must_use]
pub fn priority(priority: Priority) -> &'static str {
    priority.word()
}

/// Formats `value` ÷ `whole`, a power of ten, with the decimals it needs.
pub(crate) fn decimal(value: u64, whole: u64) -> String {
    let rest = value % whole;
    if rest == 0 {
        return (value / whole).to_string();
    }
    let places = usize::try_from(whole.ilog10()).unwrap_or_default();
    let fraction = format!("{rest:0places$}");
    format!("{}.{}", value / whole, fraction.trim_end_matches('0'))
}

const TIMES: [(u64, &str); 5] = [
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "min"),
    (1_000_000, "s"),
    (1_000, "ms"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn parsing_a_formatted_value_returns_it() {
        let numbers = (0..60).map(|bit| 1_u64 << bit).flat_map(|n| [n - 1, n, n / 4 * 15]);
        let round = [10, 1_000, 10_000, 400_000, 2_000_000, 60_000_000, 86_400_000_000];
        for n in numbers.chain(round).map(|n| n % 1_000_000_000_000) {
            assert_eq!(parse::duration(&span(Span(n))), Ok(Span(n)));
            for unit in [Unit::Tokens, Unit::Usd] {
                assert_eq!(parse::amount_of(&unit, &amount(&unit, n)), Ok(n));
                let (some, period) = (n + 1, Span(n + 1));
                let written = rate(&unit, some, period);
                assert_eq!(parse::rate_of(&unit, &written), Ok((some, period)), "{written}");
            }
        }
        for share in 0..=1_000 {
            assert_eq!(parse::percent(&percent(share)), Ok(share));
        }
    }

    #[test]
    fn the_shortest_form_is_chosen() {
        for (micros, text) in [
            (0, "0s"),
            (1, "0.001ms"),
            (500_000, "500ms"),
            (90_000_000, "90s"),
            (3_600_000_000, "1h"),
            (172_800_000_000, "2d"),
        ] {
            assert_eq!(span(Span(micros)), text);
        }
        assert_eq!(amount(&Unit::Tokens, 1_000), "1000");
        assert_eq!(amount(&Unit::Tokens, 2_000_000), "2M");
        assert_eq!(amount(&Unit::Usd, 1_500_000), "1.5");
        assert_eq!(rate(&Unit::Requests, 5_000, Span::secs(3_600)), "5000/h");
        assert_eq!(rate(&Unit::Requests, 30, Span::secs(10)), "30/10s");
        assert_eq!(rate(&Unit::Requests, 1, Span(100)), "1/0.1ms");
        assert_eq!(percent(125), "12.5%");
        assert_eq!(margin(Margin::Fixed(200)), "20%");
    }
}
