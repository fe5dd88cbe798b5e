//! `throttle`: reports that the provider refused a call.

use serde_json::json;
use standpipe::observe::Pause;
use standpipe::{Error, Pool, Throttle as Report, ThrottleKind};

use super::{CommandResult, leases};
use crate::args::{Kind, Throttle};
use crate::context::{Context, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
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
    let tap = context.open()?;
    let pool = args.pool.as_str();
    let reported = context.reported_pool(&tap, &args.pool)?;
    match reported.throttle(&report).blocking() {
        Err(Error::LeaseGone { .. }) => return Err(settled_before(pool)),
        result => result?,
    }
    let after = args.retry_after.map(|length| length.0.div_ceil(1_000));
    let what = described(ThrottleKind::from(args.kind).as_str(), after);
    let (text, pause) = effect(&reported, &what);
    printer.done(&text, json!({ "pool": pool, "noted": true, "pause": pause }))?;
    Ok(Exit::Ok)
}

/// A refusal in short: `quota, Retry-After 30s`.
pub(super) fn described(kind: &str, retry_after_ms: Option<u64>) -> String {
    let after = retry_after_ms.map(|ms| format!(", Retry-After {}", length(ms)));
    format!("{kind}{}", after.unwrap_or_default())
}

/// What a refusal did to a pool, for people and for programs.
pub(super) fn effect(pool: &Pool, what: &str) -> (String, Option<Pause>) {
    let name = pool.name();
    // The report was accepted; a status that cannot be read is no failure.
    let Ok(status) = pool.status().blocking() else {
        return (format!("`{name}`: {what} is recorded"), None);
    };
    let text = match (&status.terminal, &status.pause) {
        (Some(_), _) => {
            format!("`{name}` is stopped: {what}; fix the cause, then `standpipe resume {name}`")
        }
        (None, Some(pause)) => {
            let (end, left) = (clock(pause.until), length(pause.for_ms));
            format!("`{name}` is paused until {end} ({left}): {what}")
        }
        (None, None) => format!("`{name}` is not paused: {what} is recorded"),
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
