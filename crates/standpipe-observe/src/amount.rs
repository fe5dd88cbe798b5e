//! Amounts as people read them, the same in every text.

/// Formats a count with thousands separators: `20,152`.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a share in whole percent: `42 %`, and `<1 %` for a little. Only a full limit is at
/// 100 %.
#[must_use]
pub fn share(part: u128, whole: u128) -> String {
    let twice = part.saturating_mul(200).saturating_add(whole);
    let nearest = twice.checked_div(whole.saturating_mul(2)).unwrap_or(0);
    match nearest {
        _ if part > 0 && percent(part, whole) == 0 => "<1 %".to_owned(),
        100 if part < whole => "99 %".to_owned(),
        nearest => format!("{nearest} %"),
    }
}

/// Returns how many whole percent one is of the other, rounded down.
#[must_use]
pub fn percent(part: u128, whole: u128) -> u64 {
    let percent = part.saturating_mul(100).checked_div(whole).unwrap_or(0);
    u64::try_from(percent).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_and_a_little_is_not_nothing() {
        let cases =
            [(0, "0 %"), (9, "<1 %"), (10, "1 %"), (664, "66 %"), (666, "67 %"), (999, "99 %")];
        for (part, text) in cases {
            assert_eq!(share(part, 1_000), text);
        }
        assert_eq!((share(3, 3).as_str(), share(3, 0).as_str()), ("100 %", "<1 %"));
    }

    #[test]
    fn thousands_are_separated() {
        assert_eq!((grouped(999).as_str(), grouped(20_152).as_str()), ("999", "20,152"));
    }
}
