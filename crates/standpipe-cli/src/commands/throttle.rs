//! `throttle`: reports that the provider refused a call.

use serde_json::json;
use standpipe::{Error, Throttle as Report, ThrottleKind};

use super::{CommandResult, leases};
use crate::args::{Kind, Throttle};
use crate::context::{Context, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;

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
    match context.reported_pool(&tap, &args.pool)?.throttle(&report).blocking() {
        Err(Error::LeaseGone { .. }) => return Err(settled_before(pool)),
        result => result?,
    }
    let note = format!("noted; `standpipe status {pool}` shows the state of the pool");
    printer.done(&note, json!({ "pool": pool, "noted": true }))?;
    Ok(Exit::Ok)
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
