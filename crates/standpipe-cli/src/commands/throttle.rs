//! `throttle`: the provider refused a call.

use serde_json::json;
use standpipe::{Error, Throttle as Report, ThrottleKind};

use super::{Ended, leases};
use crate::args::{Kind, Throttle};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::{Settings, duration};

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

pub(super) fn run(args: Throttle, settings: &Settings, printer: &Printer) -> Ended {
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
    // A lease knows whose call it was.
    if args.lease.is_none() || args.agent.is_some() {
        report = report.agent(settings.agent(args.agent)?.as_str());
    }
    let tap = settings.open()?;
    let pool = args.pool.as_str();
    match settings.told(&tap, &args.pool)?.throttle(&report) {
        Err(Error::LeaseGone { .. }) => return Err(settled_before(pool)),
        told => told?,
    }
    let said = format!("noted; `standpipe status {pool}` shows how it stands");
    printer.done(&said, json!({ "pool": pool, "noted": true }))?;
    Ok(Exit::Ok)
}

/// The call was settled already, but what the provider said counts all the same.
fn settled_before(pool: &str) -> Failure {
    Failure::new(
        Exit::NoLease,
        "lease_gone",
        &format!("the call was settled before, but `{pool}` was told of the refusal"),
        &format!("`standpipe status {pool}` shows how it stands"),
    )
}

/// A lease that is on another pool than the one named beside it.
pub(super) fn of_another(lease_pool: &str, pool: &str) -> Failure {
    Failure::new(
        Exit::NoLease,
        "no_lease",
        &format!("there is no such lease on `{pool}`: it is on `{lease_pool}`"),
        "name the pool the lease was reserved on",
    )
}
