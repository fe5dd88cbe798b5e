//! `throttle`: reports that the provider refused a call.

use serde_json::json;
use standpipe::observe::{Pause, ThrottleStatus};
use standpipe::{Error, Pool, Span, Throttle as Report, ThrottleKind};

use super::{CommandResult, leases};
use crate::args::{Kind, Throttle};
use crate::context::{Context, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::amount::times;
use crate::show::duration::length;
use crate::show::local_time::clock;

impl From<Kind> for ThrottleKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Quota => Self::Quota,
            Kind::Concurrency => Self::Concurrency,
            Kind::SlowDown => Self::SlowDown,
            Kind::Overload => Self::Overload,
            Kind::Terminal => Self::Terminal,
        }
    }
}

pub(super) fn run(args: Throttle, context: &Context, printer: &Printer) -> CommandResult {
    let mut report = Report::new(args.kind.into());
    if let Some(length) = args.retry_after {
        if length > MAX_RETRY_AFTER {
            let what = format!("--retry-after {} is longer than 8 days", plain(length));
            let hint = "give at most 8d; `--kind terminal` stops the pool until it is resumed";
            return Err(Failure::usage(&what, hint));
        }
        report = report.retry_after(duration(length));
    }
    if let Some(text) = &args.lease {
        let lease = leases::id(text)?;
        if lease.pool() != &args.pool {
            return Err(of_another(lease.pool().as_str(), args.pool.as_str()));
        }
        report = report.lease(lease);
    }
    // A lease names its agent.
    if args.lease.is_none() || args.agent.is_some() {
        report = report.agent(context.agent(args.agent)?.as_str());
    }
    let tap = context.open_ledger(printer)?;
    let pool = args.pool.as_str();
    let reported = context.reported_pool(&tap, &args.pool)?;
    match reported.throttle(&report).blocking() {
        Err(Error::LeaseGone { .. }) => return Err(settled_before(pool)),
        result => result?,
    }
    let after = args.retry_after.map(|length| length.0.div_ceil(1_000));
    let (text, pause) = effect(&reported, ThrottleKind::from(args.kind).as_str(), after);
    printer.done(&text, json!({ "pool": pool, "noted": true, "pause": pause }))?;
    Ok(Exit::Ok)
}

/// A longer one is not believed: it would pause the pool for ever.
const MAX_RETRY_AFTER: Span = Span::secs(8 * 86_400);

fn plain(span: Span) -> String {
    length(span.0 / 1_000)
}

/// A refusal in short: `quota, Retry-After 30s`.
fn described(kind: &str, retry_after_ms: Option<u64>) -> String {
    let after = retry_after_ms.map(|ms| format!(", Retry-After {}", length(ms)));
    format!("{kind}{}", after.unwrap_or_default())
}

/// Describes a pause that is longer than the provider's Retry-After; `None` if it is not.
fn why_so_long(
    kind: &str,
    after: Option<u64>,
    pause_ms: u64,
    trouble: &ThrottleStatus,
) -> Option<String> {
    // The shortest pause is a second.
    if after.is_some_and(|after| pause_ms <= after.max(1_000)) {
        return None;
    }
    let in_a_row = if kind == "overload" { trouble.overloads } else { trouble.streak };
    let why = match in_a_row {
        0 | 1 if after.is_none() => return None,
        0 | 1 if kind == "overload" => "the backoff of an overload is longer".to_owned(),
        0 | 1 => "an earlier pause is longer".to_owned(),
        n => format!("refused {} in a row", times(n)),
    };
    let was = after.map(|ms| format!(", Retry-After was {}", length(ms)));
    Some(format!("{kind}, {why}{}", was.unwrap_or_default()))
}

/// A refusal that was recorded within this time is the one that was just reported.
const JUST_NOW_MS: u64 = 1_000;

/// What a refusal did to a pool, for people and for programs.
pub(super) fn effect(pool: &Pool, kind: &str, after: Option<u64>) -> (String, Option<Pause>) {
    let (name, what) = (pool.name(), described(kind, after));
    // The report was accepted; a status that cannot be read is no failure.
    let Ok(status) = pool.status().blocking() else {
        return (format!("`{name}`: {what} is recorded"), None);
    };
    let text = match (&status.terminal, &status.pause) {
        (Some(_), _) => {
            format!("`{name}` is stopped: {what}; fix the cause, then `standpipe resume {name}`")
        }
        (None, Some(pause)) => {
            // Its length counts from the report, not from when the status was read.
            let recent = status.trouble.incident.as_ref().map_or(0, |incident| incident.ago_ms);
            let since = if recent < JUST_NOW_MS { recent } else { 0 };
            let (end, left) = (clock(pause.until), length(pause.for_ms.saturating_add(since)));
            let why = why_so_long(kind, after, pause.for_ms, &status.trouble);
            format!("`{name}` is paused until {end} ({left}): {}", why.unwrap_or(what))
        }
        (None, None) => format!("`{name}` is not paused: {what} is recorded"),
    };
    let text = match status.enforce {
        true => text,
        false => format!("{text}; shadow mode admits calls all the same"),
    };
    (text, status.pause)
}

/// The failure for a lease that has been settled. The refusal itself is recorded.
fn settled_before(pool: &str) -> Failure {
    Failure::new(
        Exit::NoLease,
        "lease_gone",
        &format!("the call was settled before, but the refusal is recorded on `{pool}`"),
        &format!("`standpipe status {pool}` shows the state of the pool"),
    )
}

/// The failure for a lease of another pool than the one named.
pub(super) fn of_another(lease_pool: &str, pool: &str) -> Failure {
    Failure::new(
        Exit::NoLease,
        "no_lease",
        &format!("there is no such lease on `{pool}`: it is on `{lease_pool}`"),
        "name the pool the lease was reserved on",
    )
}
