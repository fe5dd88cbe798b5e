//! `commit`, alias `release`: settles a lease with what the call used.

use serde_json::{Map, json};
use standpipe::{Standpipe, Unit};

use super::{CommandResult, leases, reply};
use crate::args::{Commit, total};
use crate::caller;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::limits_kept;

pub(super) fn run(args: &Commit, context: &Context, printer: &Printer) -> CommandResult {
    let used = total(&args.used)?;
    let given = used.clone();
    let tap = context.open_ledger(printer)?;
    let lease = leases::handle(&tap, &args.lease)?;
    let ended = |error| leases::ended(&tap, error);
    let holder = if args.progress { None } else { lease.holder()? };
    let mut object = Map::new();
    if args.progress {
        lease.progress(used).blocking().map_err(ended)?;
    } else if args.headers.is_some() || args.status.is_some() {
        let answer = reply::reply(&[], args.headers.is_some(), args.status);
        let answer = answer.map_err(|failure| failure.with_hint(&still_open(&args.lease)))?;
        let meaning = lease.answered_using(answer, used).blocking().map_err(ended)?;
        object = reply::object(&meaning);
        let pool = tap.existing_pool(leases::id(&args.lease)?.pool());
        reply::note(&meaning, &pool, printer);
    } else {
        lease.commit(used).blocking().map_err(ended)?;
    }
    if !given.is_empty() {
        note_excess(&tap, &args.lease, &given, printer)?;
    }
    if let Some(holder) = holder {
        lease.note_settled(&caller::user(), None, holder)?;
    }
    if printer.json {
        object.insert("lease".to_owned(), json!(args.lease));
        object.insert("settled".to_owned(), json!(!args.progress));
        printer.object(object)?;
    }
    Ok(Exit::Ok)
}

/// Notes a figure that no limit of the pool allows. It is charged all the same.
fn note_excess(
    tap: &Standpipe,
    lease: &str,
    used: &[(Unit, u64)],
    printer: &Printer,
) -> Result<(), Failure> {
    let id = leases::id(lease)?;
    let config = tap.existing_pool(id.pool()).config().blocking()?;
    let limits = config.map(|config| config.limits).unwrap_or_default();
    if let Some(note) = limits_kept::excess(used, &limits, id.pool().as_str()) {
        printer.note(&note);
    }
    Ok(())
}

/// What to do with a lease that stays open because there is no response.
fn still_open(lease: &str) -> String {
    format!(
        "the lease is still open: `standpipe commit {lease}` settles it at its estimate, \
         `standpipe cancel {lease}` is right only if no request was sent"
    )
}
