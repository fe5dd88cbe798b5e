//! `commit`, alias `release`: settles a lease with what the call used.

use serde_json::{Map, json};

use super::{CommandResult, leases, reply};
use crate::args::{Commit, total};
use crate::caller;
use crate::context::Context;
use crate::exit::Exit;
use crate::printer::Printer;

pub(super) fn run(args: &Commit, context: &Context, printer: &Printer) -> CommandResult {
    let used = total(&args.used)?;
    let tap = context.open()?;
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

/// What to do with a lease that stays open because there is no response.
fn still_open(lease: &str) -> String {
    format!(
        "the lease is still open: `standpipe commit {lease}` settles it at its estimate, \
         `standpipe cancel {lease}` is right only if no request was sent"
    )
}
