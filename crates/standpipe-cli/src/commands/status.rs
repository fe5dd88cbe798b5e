//! `status`: a snapshot of the pools.

mod check;

use serde_json::{Map, Value, json};
use standpipe::observe::Unreadable;

use super::CommandResult;
use crate::args::Status;
use crate::context::Context;
use crate::daemon;
use crate::exit::Exit;
use crate::failure::{Failure, Message};
use crate::printer::Printer;
use crate::show::{escaped, status};

pub(super) fn run(args: &Status, context: &Context, printer: &Printer) -> CommandResult {
    let tap = context.open_ledger(printer)?;
    let pools = context.pools(&tap, args.pool.as_ref())?;
    let mut snapshot = tap.snapshot(&pools).blocking()?;
    if let Some(running) = daemon::snapshot(context) {
        if let Some((what, remedy)) = daemon::other_store(context, &running, &snapshot.store) {
            printer.note(&format!("{what}; {remedy}"));
        }
        snapshot.config_rejected = running.config_rejected;
    }
    if let Some(pid) = daemon::pid(context) {
        snapshot.mark_daemon(pid);
    }
    if let Some(pool) = args.pool.as_ref().filter(|_| snapshot.is_empty()) {
        return Err(Context::no_pool(pool, None));
    }
    let blocked = match args.check {
        true => check::blocked(&tap, &pools, &snapshot.lost, context)?,
        false => Vec::new(),
    };
    if printer.json {
        let mut object = match json!(snapshot) {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        if args.check {
            object.insert("room".to_owned(), json!(blocked.is_empty()));
        }
        printer.object(object)?;
    } else if snapshot.is_empty() && snapshot.config_rejected.is_none() {
        printer.data(&status::no_pools(printer.style, tap.settings(), &snapshot.store))?;
    } else {
        let shown = escaped::snapshot(&snapshot).map_err(cannot_show)?;
        printer.data(&status::rejected(printer.style, shown.config_rejected.as_ref()))?;
        printer.data(&status::counts(printer.style, &shown))?;
        printer.data(&status::lost(printer.style, &shown.lost))?;
        printer.data(&status::pools(printer.style, &shown.pools))?;
        if let (Some(name), [only]) = (&args.pool, shown.pools.as_slice()) {
            let settings = tap.settings();
            let file = settings.origin.as_deref().filter(|_| settings.pools.contains_key(name));
            printer.data(&status::origin(printer.style, &only.origin, file))?;
        }
        printer.data(&status::backpressure(&shown.backpressure))?;
    }
    if let Some(line) = check::line(&blocked) {
        printer.note(&line);
    }
    match unreadable(&snapshot.unreadable) {
        Some(failure) => Err(failure),
        None => Ok(blocked.first().map_or(Exit::Ok, check::Blocked::exit)),
    }
}

fn cannot_show(error: serde_json::Error) -> Failure {
    Failure::new(Exit::Internal, "internal", &format!("cannot show the pools: {error}"), "")
}

/// The failure with an error per unreadable pool. The JSON output has them already.
fn unreadable(pools: &[Unreadable]) -> Option<Failure> {
    let message = |one: &Unreadable| {
        Message::parse(&format!("`{}` cannot be read: {}", one.pool, one.detail))
    };
    let messages: Vec<Message> = pools.iter().map(message).collect();
    let exit = Exit::Store;
    (!messages.is_empty()).then(|| Failure { exit, messages, problem: Map::new() })
}
