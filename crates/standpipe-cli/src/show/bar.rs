//! A limit as a bar: what is used, what calls in flight hold, and what is left.

use crate::show::style::{Style, TextRole};

/// Draws a bar. A used unit is always visible, and only a full limit looks full.
pub(crate) fn bar(style: Style, columns: usize, used: u64, held: u64, whole: u64) -> String {
    let (full, half, empty) = if style.unicode { ('█', '▒', '░') } else { ('#', '=', '.') };
    let taken = part(used.saturating_add(held), whole, columns);
    let held_columns = match part(held, whole, columns) {
        n if used > 0 && n == taken => n.saturating_sub(1),
        n => n.min(taken),
    };
    let repeat = |c: char, n: usize| -> String { std::iter::repeat_n(c, n).collect() };
    let role = usage_role(used.saturating_add(held), whole);
    let solid = style.paint(role, &repeat(full, taken - held_columns));
    let held = style.paint(role, &repeat(half, held_columns));
    let rest = style.paint(TextRole::Muted, &repeat(empty, columns - taken));
    format!("{solid}{held}{rest}")
}

/// Draws the share of one agent, in thousandths. It is no warning by itself, so it has no colour.
pub(crate) fn share_bar(style: Style, columns: usize, per_mille: u64) -> String {
    let plain = Style { colour: false, ..style };
    bar(plain, columns, per_mille.min(1_000), 0, 1_000)
}

/// Returns the colour of a limit: good, warning below 40 % left, error below 15 %.
pub(crate) const fn usage_role(taken: u64, whole: u64) -> TextRole {
    let left = whole.saturating_sub(taken) as u128 * 100;
    if left < whole as u128 * 15 {
        TextRole::Error
    } else if left < whole as u128 * 40 {
        TextRole::Warning
    } else {
        TextRole::Good
    }
}

fn part(some: u64, whole: u64, columns: usize) -> usize {
    if some == 0 {
        return 0;
    }
    if some >= whole {
        return columns;
    }
    let wide = u128::from(some) * columns as u128 / u128::from(whole.max(1));
    usize::try_from(wide).unwrap_or(columns).clamp(1, columns.saturating_sub(1).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { colour: false, unicode: false, width: 80 };

    #[test]
    fn a_bar_shows_used_held_and_left() {
        assert_eq!(bar(PLAIN, 10, 0, 0, 60), "..........");
        assert_eq!(bar(PLAIN, 10, 30, 12, 60), "#####==...");
        assert_eq!(bar(PLAIN, 10, 60, 0, 60), "##########");
        assert_eq!(bar(PLAIN, 10, 90, 0, 60), "##########", "over the limit is full");
    }

    #[test]
    fn a_used_unit_is_always_visible() {
        assert_eq!(bar(PLAIN, 10, 1, 0, 1_000_000), "#.........");
        assert_eq!(bar(PLAIN, 10, 999_999, 0, 1_000_000), "#########.");
        assert_eq!(bar(PLAIN, 10, 0, 3, 3), "==========");
        assert_eq!(bar(PLAIN, 10, 1, 1_000, 1_001), "#=========");
    }

    #[test]
    fn colours_warn() {
        assert_eq!(
            (usage_role(0, 10), usage_role(7, 10), usage_role(9, 10)),
            (TextRole::Good, TextRole::Warning, TextRole::Error)
        );
    }
}
