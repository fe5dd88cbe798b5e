//! The limits of a pool: a bar each, how much is used, and when it is free again.

use standpipe::observe::LimitStatus;

use crate::show::amount::amount;
use crate::show::bar::{bar, usage_role};
use crate::show::duration::{length, period};
use crate::show::style::{Style, TextRole};
use crate::show::table::table;

pub(super) fn lines(style: Style, limits: &[LimitStatus]) -> Vec<String> {
    let columns = match style.width {
        0..60 => 8,
        60..80 => 12,
        80..110 => 20,
        _ => 30,
    };
    // Rates first. Calls in flight are not a rate: they return when calls end, not with time.
    let (slots, rates): (Vec<_>, Vec<_>) =
        limits.iter().partition(|limit| limit.kind.as_str() == "parallel");
    let rows: Vec<_> = rates.iter().chain(&slots).map(|l| row(style, columns, l)).collect();
    table(2, style.width, &rows)
}

fn row(style: Style, columns: usize, limit: &LimitStatus) -> Vec<String> {
    let LimitStatus { unit, used, held, effective, .. } = limit;
    let taken = used.saturating_add(*held);
    let remarks = remarks(limit).join(style.dot());
    let left = if limit.left == 0 && taken < *effective {
        // After a loss of the ledger, while calls in flight are unknown.
        style.paint(TextRole::Error, "none usable now")
    } else if limit.left == 0 {
        style.paint(TextRole::Error, "full")
    } else {
        style.paint(usage_role(taken, *effective), &format!("{} left", amount(unit, limit.left)))
    };
    vec![
        unit.clone(),
        // For `parallel` a call in flight is use; for a rate it is only a hold until it settles.
        match limit.kind.as_str() {
            "parallel" => bar(style, columns, taken, 0, *effective),
            _ => bar(style, columns, *used, *held, *effective),
        },
        format!("{} of {}{}", amount(unit, taken), amount(unit, *effective), per(limit)),
        left,
        style.paint(TextRole::Muted, &remarks),
    ]
}

fn per(limit: &LimitStatus) -> String {
    match (limit.kind.as_str(), limit.period_ms) {
        ("bucket", Some(ms)) => {
            format!(", {}/{}", amount(&limit.unit, limit.amount), period(ms))
        }
        (_, Some(ms)) => format!(" per {}", period(ms)),
        _ => " in flight".to_owned(),
    }
}

fn remarks(limit: &LimitStatus) -> Vec<String> {
    let mut remarks = Vec::new();
    if limit.kind.as_str() != "parallel" && limit.held > 0 {
        remarks.push(format!("{} held", amount(&limit.unit, limit.held)));
    }
    if let Some(ms) = limit.full_again_ms.filter(|ms| *ms > 0) {
        remarks.push(format!("all free in {}", length(ms)));
    }
    if let Some(ms) = limit.next_grant_ms.filter(|ms| *ms > 0) {
        remarks.push(format!("next call in {}", length(ms)));
    }
    let stated = limit.burst.unwrap_or(limit.amount);
    let learned = limit.learned.filter(|learned| *learned < stated);
    if learned.is_some() || limit.effective < stated {
        let of_unit = |figure: u64| amount(&limit.unit, figure);
        let whole = match (learned, limit.burst) {
            (Some(learned), _) => {
                format!("limit {} by the provider, {} stated", of_unit(learned), of_unit(stated))
            }
            (None, Some(burst)) => format!("burst {}", of_unit(burst)),
            (None, None) => format!("limit {}", of_unit(stated)),
        };
        let others = match limit.by_others {
            0 => String::new(),
            units => format!(", {} used by others", of_unit(units)),
        };
        remarks.push(format!("{whole}{others}, usable {}", of_unit(limit.effective)));
    }
    remarks
}
