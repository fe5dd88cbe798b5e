//! The limits of a pool: a bar each, how much is used, and when it is free again.

use standpipe::observe::{LimitStatus, ProviderReset, RampStatus};

use crate::show::amount::{amount, percent};
use crate::show::bar::{bar, usage_role};
use crate::show::duration::{period, remaining};
use crate::show::local_time::clock;
use crate::show::style::{Style, TextRole};
use crate::show::table::table;

/// Formats a line per limit; `brief` leaves remarks out.
pub(super) fn lines(style: Style, limits: &[LimitStatus], brief: bool) -> Vec<String> {
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
    let cells = if brief { 4 } else { usize::MAX };
    let rows: Vec<_> =
        rows.into_iter().map(|row| row.into_iter().take(cells).collect::<Vec<_>>()).collect();
    table(2, style.width, &rows)
}

fn row(style: Style, columns: usize, limit: &LimitStatus) -> Vec<String> {
    let unit = &limit.unit;
    let shown = Shown::of(limit);
    let taken = shown.used.saturating_add(shown.held);
    let remarks = remarks(limit).join(style.dot());
    vec![
        unit.clone(),
        // For `parallel` a call in flight is use; for a rate it is only a hold until it settles.
        match limit.kind.as_str() {
            "parallel" => bar(style, columns, taken, 0, shown.usable),
            _ => bar(style, columns, shown.used, shown.held, shown.usable),
        },
        format!("{} of {}{}", amount(unit, taken), amount(unit, shown.usable), per(limit)),
        left(style, limit, taken, shown.usable),
        style.paint(TextRole::Muted, &remarks),
    ]
}

/// What a line shows of a limit: the step of a ramp if that leaves less than the limit.
#[derive(Clone, Copy)]
pub(crate) struct Shown {
    pub(crate) used: u64,
    held: u64,
    pub(crate) usable: u64,
}

impl Shown {
    pub(crate) fn of(limit: &LimitStatus) -> Self {
        match ramp(limit) {
            Some(ramp) => Self { used: ramp.used, held: 0, usable: ramp.usable },
            None => Self { used: limit.used, held: limit.held, usable: limit.effective },
        }
    }
}

/// The step of a ramp that leaves less than the limit itself.
pub(crate) fn ramp(limit: &LimitStatus) -> Option<&RampStatus> {
    let free = limit.effective.saturating_sub(limit.used.saturating_add(limit.held));
    limit.ramp.as_ref().filter(|ramp| ramp.usable.saturating_sub(ramp.used) < free)
}

/// `12 left`, `6 left, kept for release`, `full`
fn left(style: Style, limit: &LimitStatus, taken: u64, usable: u64) -> String {
    if limit.left == 0 && taken < usable {
        // After a loss of the ledger, while calls in flight are unknown.
        return style.paint(TextRole::Error, "none usable now");
    }
    if taken > usable {
        // Calls used more than they reserved, or shadow mode admitted them.
        let over = amount(&limit.unit, taken - usable);
        return style.paint(TextRole::Error, &format!("over by {over}"));
    }
    if limit.left == 0 {
        return style.paint(TextRole::Error, "full");
    }
    let left = amount(&limit.unit, limit.left);
    let text = match kept_text(limit).filter(|_| kept(limit) >= limit.left) {
        Some(kept) => format!("{left} left, {kept}"),
        None => format!("{left} left"),
    };
    style.paint(usage_role(taken, usable), &text)
}

pub(super) fn kept(limit: &LimitStatus) -> u64 {
    limit.kept.iter().fold(0, |sum: u64, kept| sum.saturating_add(kept.units))
}

/// `kept for release and ops`
pub(super) fn kept_text(limit: &LimitStatus) -> Option<String> {
    let owners: Vec<&str> = limit.kept.iter().map(|kept| kept.agent.as_str()).collect();
    let owners = match owners.as_slice() {
        [] => return None,
        [one] => (*one).to_owned(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    };
    Some(format!("kept for {owners}"))
}

fn per(limit: &LimitStatus) -> String {
    if ramp(limit).is_some() {
        return " usable now".to_owned();
    }
    match (limit.kind.as_str(), limit.period_ms) {
        ("bucket", Some(_)) => " charged".to_owned(),
        (_, Some(ms)) => format!(" per {}", period(ms)),
        _ => " in flight".to_owned(),
    }
}

fn remarks(limit: &LimitStatus) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(ramp) = ramp(limit) {
        let whole = limit.refill.unwrap_or(limit.effective);
        let part = percent(u16::try_from(ramp.per_mille).unwrap_or(u16::MAX));
        remarks.push(format!("ramp: {part} of {}", amount(&limit.unit, whole)));
    }
    if limit.kind.as_str() != "parallel" && limit.held > 0 {
        remarks.push(format!("{} held", amount(&limit.unit, limit.held)));
    }
    if let Some(text) = kept_text(limit).filter(|_| kept(limit) < limit.left) {
        remarks.push(format!("{} {text}", amount(&limit.unit, kept(limit))));
    }
    let free = limit.full_again_ms.filter(|ms| *ms > 0);
    remarks.extend(match &limit.reset {
        // Its window begins anew then, whatever is charged.
        Some(reset) => Some(window(reset)),
        None => free.map(|ms| format!("all free in {}", remaining(ms))),
    });
    if let Some(ms) = limit.next_grant_ms.filter(|ms| *ms > 0) {
        remarks.push(format!("next call in {}", remaining(ms)));
    }
    remarks.extend(match (limit.refill, limit.period_ms) {
        (Some(refill), Some(ms)) => Some(refills(limit, refill, ms)),
        _ => stated(limit),
    });
    remarks
}

/// The end of the provider's own window: `resets at 16:59:20 (23 s)`.
fn window(reset: &ProviderReset) -> String {
    let (at, left) = (clock(reset.at), remaining(reset.in_ms));
    match (reset.followed, reset.ended) {
        (true, false) => format!("resets at {at} ({left})"),
        (true, true) => format!("the provider's window ended {at}"),
        (false, true) => format!("the provider's reset at {at} has passed"),
        (false, false) => format!("the provider announced a reset at {at}"),
    }
}

/// `refills 48/min (limit 60/min, margin 20 %)`
fn refills(limit: &LimitStatus, refill: u64, ms: u64) -> String {
    let rate = |units: u64| format!("{}/{}", amount(&limit.unit, units), period(ms));
    let mut about = vec![match limit.learned.filter(|learned| *learned < limit.amount) {
        Some(learned) => {
            format!("limit {} by the provider, {} stated", rate(learned), rate(limit.amount))
        }
        None => format!("limit {}", rate(limit.amount)),
    }];
    if let Some(burst) = limit.burst.filter(|burst| *burst != limit.amount) {
        about.push(format!("burst {}", amount(&limit.unit, burst)));
    }
    if let Some(margin) = limit.margin_per_mille.filter(|margin| *margin > 0) {
        about.push(format!("margin {}", percent(margin)));
    }
    format!("refills {} ({})", rate(refill), about.join(", "))
}

/// `limit 60, usable 48`
fn stated(limit: &LimitStatus) -> Option<String> {
    let learned = limit.learned.filter(|learned| *learned < limit.amount);
    if learned.is_none() && limit.effective >= limit.amount {
        return None;
    }
    let of_unit = |figure: u64| amount(&limit.unit, figure);
    let stated = of_unit(limit.amount);
    let whole = match learned {
        Some(learned) => format!("limit {} by the provider, {stated} stated", of_unit(learned)),
        None => format!("limit {stated}"),
    };
    let others = match limit.by_others {
        0 => String::new(),
        units => format!(", {} used by others", of_unit(units)),
    };
    Some(format!("{whole}{others}, usable {}", of_unit(limit.effective)))
}
