//! `reserve`: asks, waits, prints a lease id, and only then lets the lease live by itself.
//!
//! Until the id is out the lease belongs to this process: killed before that, it leaves nothing.

use std::time::{Duration, SystemTime};

use rustix::process::Pid;
use serde_json::{Map, Value, json};
use standpipe::{Advice, Lease, Moment, Pool, Request, Span};

use super::admission::{admit, listen, request, tell_route};
use super::{Ended, leases, units};
use crate::args::Reserve;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::{Settings, duration};
use crate::show::problem::refusal;

pub(super) fn run(args: Reserve, settings: &Settings, printer: &Printer) -> Ended {
    if args.ttl == Some(Span::ZERO) {
        return Err(Failure::usage(
            "--ttl 0 is a lease that is over",
            "give it some time: --ttl 30s",
        ));
    }
    let request = told(&args, request(&args.call, Some(&args.work), settings)?)?;
    units::check_limits(&args.call, &args.admission)?;
    let tap = settings.open()?;
    if args.dry_run {
        let pool = settings.unchanged(&tap, &args.call.pool, &args.admission.limit)?;
        let pool = tap.route(pool, &request)?;
        return peek(&pool, &request, printer);
    }
    let (pool, left) = Settings::in_time(duration(args.admission.timeout), || {
        let limits = &args.admission.limit;
        let pool = settings.limited(&tap, &args.call.pool, limits, &request, printer)?;
        Ok(tap.route(pool, &request)?)
    })?;
    let request = request.timeout(left);
    tell_route(&pool, &args.call, printer);
    let signals = listen()?;
    let lease = admit(&pool, request.clone(), printer, &signals)
        .map_err(|failure| advised(failure, &pool, &request))?;
    signals.end_us_again();
    if lease.is_settled() {
        return Err(settled(&lease));
    }
    let ttl = match args.ttl {
        Some(ttl) => duration(ttl),
        None => pool.lease_ttl()?,
    };
    let printed = if printer.json {
        printer.object(object(&lease, ttl, advice(&lease, &pool, &request)?))
    } else {
        printer.line(&lease.id().to_string())
    };
    match printed {
        Ok(()) => {
            lease.keep(ttl)?;
            Ok(Exit::Ok)
        }
        Err(error) => {
            // Nobody knows its name: take it back.
            let _reclaimed_anyway = lease.cancel();
            Err(error.into())
        }
    }
}

/// The same id was used before, and its call is over.
fn settled(lease: &Lease) -> Failure {
    Failure::new(
        Exit::NoLease,
        "settled",
        "the call of this --id has been made and settled already",
        "do not make it again; a new call needs a new --id",
    )
    .with("lease", json!(lease.id().to_string()))
    .with("settled", json!(true))
}

/// The same with everything else that was said.
fn told(args: &Reserve, request: Request) -> Result<Request, Failure> {
    let mut request = request.timeout(duration(args.admission.timeout));
    if let Some(pid) = args.owner {
        check_owner(pid)?;
        request = request.owner(pid);
    }
    if let Some(id) = &args.id {
        request = request.id(id.as_str());
    }
    if let Some(lease) = &args.retry_of {
        request = request.retry_of(leases::id(lease)?);
    }
    Ok(request)
}

/// A process that is not there cannot end later.
fn check_owner(pid: u32) -> Result<(), Failure> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    match raw.map(rustix::process::test_kill_process) {
        Some(Ok(()) | Err(rustix::io::Errno::PERM)) => Ok(()),
        _ => Err(Failure::usage(
            &format!("there is no process {pid} to own the lease"),
            "give --owner a living process, for example $$",
        )),
    }
}

fn peek(pool: &Pool, request: &Request, printer: &Printer) -> Ended {
    match pool.peek(request)?.why() {
        None => {
            if printer.json {
                let mut object = Map::new();
                object.insert("pool".to_owned(), json!(pool.name().as_str()));
                object.insert("admitted".to_owned(), json!(true));
                printer.object(object)?;
            } else {
                printer.line("it would be admitted now; nothing was taken")?;
            }
            Ok(Exit::Ok)
        }
        Some(refused) => Err(refusal(refused)),
    }
}

/// What to do before the next call like this, with where else it could go.
fn advice(lease: &Lease, pool: &Pool, request: &Request) -> Result<Option<Advice>, Failure> {
    match lease.advice() {
        Some(_) => Ok(pool.advise(request)?),
        None => Ok(None),
    }
}

/// A refusal with what could be done instead.
fn advised(failure: Failure, pool: &Pool, request: &Request) -> Failure {
    let late = failure.exit == Exit::NotInTime;
    let advice = if late { pool.advise(request).ok().flatten() } else { None };
    match advice {
        Some(advice) if !advice.try_this.is_empty() => {
            let sentence = advice.sentence();
            failure.with("advice", json!(advice)).saying(&sentence)
        }
        _ => failure,
    }
}

fn object(lease: &Lease, ttl: Duration, advice: Option<Advice>) -> Map<String, Value> {
    let cost: Map<String, Value> =
        lease.cost().iter().map(|(unit, figure)| (unit.name().to_owned(), json!(figure))).collect();
    let mut object = Map::new();
    object.insert("lease".to_owned(), json!(lease.id().to_string()));
    object.insert("pool".to_owned(), json!(lease.pool().as_str()));
    object.insert("agent".to_owned(), json!(lease.agent()));
    object.insert("cost".to_owned(), Value::Object(cost));
    let expires_at = Moment::of(SystemTime::now() + ttl);
    object.insert("expires_at".to_owned(), json!(expires_at.to_string()));
    object.insert("ttl_ms".to_owned(), json!(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)));
    if let Some(told) = lease.backpressure() {
        object.insert("backpressure".to_owned(), json!(told));
    }
    object.insert("zone".to_owned(), json!(lease.zone().as_str()));
    object.insert("advice".to_owned(), json!(advice));
    object
}
