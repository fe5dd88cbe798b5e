//! `audit`: calls per agent against the quota, or a run before against one after.

use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};
use standpipe::observe::Comparison;
use standpipe::{PoolName, Standpipe};

use super::CommandResult;
use crate::args::Audit;
use crate::context::{Context, duration};
use crate::daemon;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::{audit, compare};

/// The default of `--since`.
const A_DAY: Duration = Duration::from_secs(86_400);

pub(super) fn run(args: &Audit, context: &Context, printer: &Printer) -> CommandResult {
    let back = args.since.map(duration);
    let tap = context.open_ledger(printer)?;
    let is_shared = tap.is_remote()?;
    if let Some(name) = &args.pool {
        context.existing_pool(&tap, name)?;
    }
    daemon::write_journal(context);
    if args.compare {
        let all = comparison(&tap, args.pool.as_ref(), back);
        if printer.json {
            printer.object(Map::from_iter([("pools".to_owned(), json!(all))]))?;
        } else {
            printer.data(&compare::text(printer.style, &all, args.pool.as_ref(), is_shared))?;
        }
        return Ok(Exit::Ok);
    }
    let back = back.unwrap_or(A_DAY);
    let mut found = tap.audit(args.pool.as_ref(), back)?;
    if is_shared {
        // The latest calls may be those of another machine, which this journal never has.
        found.pools.iter_mut().for_each(|pool| pool.complete_until = None);
    }
    if printer.json {
        printer.object(object(json!(found))?)?;
    } else {
        let back = u64::try_from(back.as_millis()).unwrap_or(u64::MAX);
        printer.data(&audit::text(printer.style, &found, back, is_shared))?;
    }
    Ok(Exit::Ok)
}

/// Compares the runs of a pool, or of each, by the whole journal unless a length is given.
fn comparison(tap: &Standpipe, pool: Option<&PoolName>, back: Option<Duration>) -> Vec<Comparison> {
    let since = back.and_then(|back| SystemTime::now().checked_sub(back));
    let events = |kind| tap.journal().events(since, Some(kind));
    let events = Comparison::KINDS.into_iter().flat_map(events);
    Comparison::of(events.filter(|event| pool.is_none_or(|pool| pool.as_str() == event.pool)))
}

/// Unwraps a JSON object.
pub(super) fn object(value: Value) -> Result<Map<String, Value>, Failure> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(Failure::new(Exit::Internal, "internal", &format!("no object: {other}"), "")),
    }
}
