//! `reserve`: waits for admission and prints a lease id.
//!
//! Guarantee: until the id is written the lease belongs to this process, so a kill before that
//! leaves nothing behind. After that the lease lives by its ttl.

use std::time::{Duration, SystemTime};

use rustix::process::Pid;
use serde_json::{Map, Value, json};
use standpipe::observe::Timestamp;
use standpipe::{Advice, Amounts, Lease, Pool, PoolName, Request, Span, StoreUrl, Unit};

use super::admission::{admit, listen, report_route, request};
use super::{CommandResult, leases, units};
use crate::args::{Call, Reserve};
use crate::context::{Context, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::duration::remaining;
use crate::show::problem::refusal;

pub(super) fn run(args: &Reserve, context: &Context, printer: &Printer) -> CommandResult {
    if args.ttl == Some(Span::ZERO) {
        return Err(Failure::usage(
            "--ttl must be longer than 0",
            "write for example --ttl 30s, or leave it out for the pool's own",
        ));
    }
    let agent = context.agent(args.call.agent.clone())?;
    let request = with_options(args, request(&args.call, Some(&args.work), &agent)?)?;
    units::check_limits(&args.call, &args.admission)?;
    let tap = context.open()?;
    if context.store(tap.settings()) == StoreUrl::Memory && !args.dry_run {
        let what = "the store `memory` ends with this process, and the lease with it";
        let hint = "use another store (--store file), or hold the lease for a command: standpipe \
                    hold";
        return Err(Failure::new(Exit::Usage, "memory", what, hint));
    }
    if args.dry_run {
        let pool = context.dry_run_pool(&tap, &args.call.pool, &args.admission.limit)?;
        let pool = tap.route(pool, &request).blocking()?;
        return peek(&pool, &args.call, &request, printer);
    }
    let (pool, left) = Context::retry_within(duration(args.admission.timeout), printer, || {
        let limits = &args.admission.limit;
        let pool = Context::pool_to_reserve(&tap, &args.call.pool, limits, &request)?;
        Context::check_others(&tap, &args.call.also)?;
        Ok(tap.route(pool, &request).blocking()?)
    })?;
    let limits = &args.admission.limit;
    // A route may lead to another pool, whose limits these are not.
    let own = limits.iter().filter(|_| *pool.name() == args.call.pool).cloned();
    let request = request.timeout(left).limits(own);
    report_route(&pool, &args.call, printer);
    let before = Context::note_new_pool(&tap, &pool, limits, printer)?;
    Context::note_agent(tap.settings(), agent.as_str(), printer);
    Context::note_task(tap.settings(), args.work.task.as_deref(), printer);
    let signals = listen()?;
    let lease = admit((&tap, &pool), request.clone(), left, printer, &signals);
    Context::note_changed_limits(&pool, &before, limits, lease.as_ref().ok(), printer);
    let lease = lease.map_err(|failure| with_advice(failure, &pool, &request))?;
    Context::note_kept_limits(&tap, &pool, limits, lease.limits_in_force(), printer)?;
    signals.restore_default_action();
    if lease.is_settled() {
        return Err(settled(&lease));
    }
    let described = tap.settings().pools.get(pool.name());
    units::note_uncounted(&args.call, &args.admission, lease.cost(), described, printer);
    units::note_cut_estimate(&args.call, lease.cost(), &pool, printer);
    let ttl = time_to_live(args, &lease, &pool, printer)?;
    let printed = if printer.json {
        printer.object(object(&lease, ttl, advice(&lease, &pool, &request)?))
    } else {
        printer.line(&lease.id().to_string())
    };
    match printed {
        Ok(()) => {
            lease.keep(ttl).blocking()?;
            Ok(Exit::Ok)
        }
        Err(error) => {
            // The caller did not get the id, so the lease must not stay.
            let _reclaimed_anyway = lease.cancel().blocking();
            Err(error.into())
        }
    }
}

/// Returns how long the lease lives from now on: as long as the caller or the pool states, unless
/// the pool's `longest_lease` ends it earlier.
fn time_to_live(
    args: &Reserve,
    lease: &Lease,
    pool: &Pool,
    printer: &Printer,
) -> Result<Duration, Failure> {
    let (own, stated) = match args.ttl {
        Some(ttl) => (duration(ttl), "--ttl"),
        None => (pool.lease_ttl().blocking()?, "`lease_ttl`"),
    };
    let left = lease.expires_at().duration_since(SystemTime::now()).unwrap_or_default();
    // `left` is always a little less than what bounds it. An earlier lease of an --id still has
    // its earlier end.
    if !lease.is_new() || own <= left + Duration::from_secs(1) {
        return Ok(own);
    }
    let in_words = |span: Duration| remaining(u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
    printer.note(&format!(
        "the lease ends in {}, not in {} ({stated}): `longest_lease` of the pool is shorter",
        in_words(left),
        in_words(own)
    ));
    Ok(left)
}

/// The failure for an `--id` whose call has been settled.
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

/// Adds the options that only `reserve` has.
fn with_options(args: &Reserve, request: Request) -> Result<Request, Failure> {
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

/// Rejects an owner that does not run: its end could never be seen.
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

fn peek(pool: &Pool, call: &Call, request: &Request, printer: &Printer) -> CommandResult {
    match pool.peek(request).blocking()?.why() {
        None => {
            let explained = pool.explain(request).blocking()?;
            let charged =
                explained.cost.iter().filter_map(|(name, n)| Some((Unit::named(name)?, *n)));
            let charged = Amounts::cost(charged).unwrap_or_default();
            units::note_cut_estimate(call, &charged, pool, printer);
            if printer.json {
                let mut object = Map::new();
                object.insert("pool".to_owned(), json!(pool.name().as_str()));
                object.insert("admitted".to_owned(), json!(true));
                printer.object(object)?;
            } else {
                printer.line("it would be admitted now; nothing was reserved")?;
            }
            Ok(Exit::Ok)
        }
        Some(refused) => Err(refusal(refused)),
    }
}

/// Returns advice for the next call, with alternatives.
fn advice(lease: &Lease, pool: &Pool, request: &Request) -> Result<Option<Advice>, Failure> {
    match lease.advice() {
        Some(_) => Ok(pool.advise(request).blocking()?),
        None => Ok(None),
    }
}

/// Adds alternatives to a refusal.
fn with_advice(failure: Failure, pool: &Pool, request: &Request) -> Failure {
    let late = failure.exit == Exit::NotInTime;
    let advice = if late { pool.advise(request).blocking().ok().flatten() } else { None };
    match advice {
        Some(advice) if !advice.try_this.is_empty() => {
            let sentence = advice.sentence();
            failure.with("advice", json!(advice)).with_hint(&sentence)
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
    if lease.pools().count() > 1 {
        let pools: Vec<&str> = lease.pools().map(PoolName::as_str).collect();
        object.insert("pools".to_owned(), json!(pools));
    }
    object.insert("agent".to_owned(), json!(lease.agent()));
    object.insert("cost".to_owned(), Value::Object(cost));
    let expires_at = Timestamp::of(SystemTime::now() + ttl);
    object.insert("expires_at".to_owned(), json!(expires_at.to_string()));
    object.insert("ttl_ms".to_owned(), json!(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)));
    if let Some(throttled) = lease.backpressure() {
        object.insert("backpressure".to_owned(), json!(throttled));
    }
    object.insert("zone".to_owned(), json!(lease.zone().as_str()));
    object.insert("advice".to_owned(), json!(advice));
    object
}
