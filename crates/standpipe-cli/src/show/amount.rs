//! Amounts as people read them: `1,200`, `48.3k`, `2M`, and dollars for money.

use standpipe::config::text::KNOWN_UNITS;
use standpipe::observe::grouped;

/// An amount of a unit. Money is kept in millionths of a dollar.
pub(crate) fn amount(unit: &str, figure: u64) -> String {
    if unit == "usd" { dollars(figure) } else { count(figure) }
}

/// What a call takes, in words: `1 request, 1,200 input_tokens`.
pub(crate) fn cost<'a>(figures: impl IntoIterator<Item = (&'a str, u64)>) -> String {
    let all: Vec<_> = figures.into_iter().filter(|(_, figure)| *figure > 0).collect();
    if all.is_empty() {
        return "nothing".to_owned();
    }
    let words = all.iter().map(|(unit, figure)| match (*unit, *figure) {
        ("usd", figure) => dollars(figure),
        ("parallel", 1) => "1 slot".to_owned(),
        // The plural of a unit of the user's own is not known.
        (unit, 1) if KNOWN_UNITS.contains(&unit) => format!("1 {}", unit.trim_end_matches('s')),
        ("parallel", figure) => format!("{} slots", count(figure)),
        (unit, figure) => format!("{} {unit}", count(figure)),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Thousandths as a percentage: `20 %`, `12.5 %`.
pub(crate) fn percent(per_mille: u16) -> String {
    match (per_mille / 10, per_mille % 10) {
        (whole, 0) => format!("{whole} %"),
        (whole, tenth) => format!("{whole}.{tenth} %"),
    }
}

fn count(figure: u64) -> String {
    match figure {
        0..100_000 => grouped(figure),
        // What rounds to 1,000k is 1M.
        100_000..999_995 => short(figure, 1_000, "k"),
        999_995..999_995_000 => short(figure, 1_000_000, "M"),
        _ => short(figure, 1_000_000_000, "G"),
    }
}

/// Rounded to two decimals, without zeros at the end.
fn short(figure: u64, of: u64, letter: &str) -> String {
    let hundredths = figure.saturating_add(of / 200) / (of / 100);
    let whole = grouped(hundredths / 100);
    match hundredths % 100 {
        0 => format!("{whole}{letter}"),
        n if n.is_multiple_of(10) => format!("{whole}.{}{letter}", n / 10),
        n => format!("{whole}.{n:02}{letter}"),
    }
}

/// Two decimals, rounded; less than half a cent is not shown as nothing.
fn dollars(millionths: u64) -> String {
    if (1..5_000).contains(&millionths) {
        return "<$0.01".to_owned();
    }
    let cents = millionths.saturating_add(5_000) / 10_000;
    format!("${}.{:02}", grouped(cents / 100), cents % 100)
}

/// `twice`, `3 times`
pub(crate) fn times(count: u32) -> String {
    match count {
        1 => "once".to_owned(),
        2 => "twice".to_owned(),
        n => format!("{n} times"),
    }
}

/// `1 call`, `2 calls`
pub(crate) fn counted(count: impl TryInto<u64>, what: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_easy_to_read() {
        let cases = [
            (0, "0"),
            (1_200, "1,200"),
            (99_999, "99,999"),
            (400_000, "400k"),
            (999_994, "999.99k"),
            (999_995, "1M"),
            (999_999_999, "1G"),
            (2_048_999, "2.05M"),
            (20_000_000, "20M"),
            (u64::MAX, "18,446,744,073.7G"),
        ];
        for (figure, text) in cases {
            assert_eq!(amount("tokens", figure), text);
        }
        assert_eq!(amount("usd", 1_500_000), "$1.50");
        assert_eq!(amount("usd", 0), "$0.00");
        assert_eq!(amount("usd", 1_500), "<$0.01");
        assert_eq!(amount("usd", 49_500), "$0.05");
        assert_eq!(amount("usd", 1_999_999_999), "$2,000.00");
        assert_eq!([0, 5, 125, 200].map(percent), ["0 %", "0.5 %", "12.5 %", "20 %"]);
    }

    #[test]
    fn a_cost_is_a_list_of_what_is_in_it() {
        let figures = [("requests", 1), ("input_tokens", 1_200), ("usd", 20_000), ("points", 0)];
        assert_eq!(cost(figures), "1 request, 1,200 input_tokens, $0.02");
        assert_eq!(cost([("requests", 0)]), "nothing");
        let ones = ["requests", "tokens", "input_tokens", "points", "content", "parallel", "gas"];
        assert_eq!(
            cost(ones.map(|unit| (unit, 1))),
            "1 request, 1 token, 1 input_token, 1 point, 1 content, 1 slot, 1 gas"
        );
    }
}
