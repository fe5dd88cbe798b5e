//! `status`: a snapshot of the pools.

use serde_json::{Map, Value, json};
use standpipe::observe::Unreadable;
use standpipe::{Error, Pool, Refused, Request};

use super::CommandResult;
use crate::args::Status;
use crate::context::Context;
use crate::daemon::rejected_config;
use crate::exit::Exit;
use crate::failure::{Failure, Message};
use crate::printer::Printer;
use crate::show::{escaped, status, when};

pub(super) fn run(args: &Status, context: &Context, printer: &Printer) -> CommandResult {
    let tap = context.open()?;
    let pools = context.pools(&tap, args.pool.as_ref())?;
    let mut snapshot = tap.snapshot(&pools).blocking()?;
    snapshot.config_rejected = rejected_config(context);
    if let Some(pool) = args.pool.as_ref().filter(|_| snapshot.is_empty()) {
        return Err(Context::no_pool(pool, None));
    }
    let refused = if args.check { without_room(&pools, context)? } else { None };
    let room = refused.is_none();
    if printer.json {
        let mut object = match json!(snapshot) {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        if args.check {
            object.insert("room".to_owned(), json!(room));
        }
        printer.object(object)?;
    } else if snapshot.is_empty() && snapshot.config_rejected.is_none() {
        printer.data(&status::no_pools(printer.style, tap.settings()))?;
    } else {
        let shown = escaped::snapshot(&snapshot).map_err(cannot_show)?;
        printer.data(&status::rejected(printer.style, shown.config_rejected.as_ref()))?;
        printer.data(&status::pools(printer.style, &shown.pools))?;
        printer.data(&status::backpressure(&shown.backpressure))?;
    }
    if let Some(refused) = &refused {
        printer.note(&format!("no room: {}", when::refused(refused)));
    }
    match unreadable(&snapshot.unreadable) {
        Some(failure) => Err(failure),
        None => Ok(if room { Exit::Ok } else { Exit::NotInTime }),
    }
}

/// The first pool on which a call would not be admitted now, and why. Pools that cannot be read are
/// reported otherwise.
fn without_room(pools: &[Pool], context: &Context) -> Result<Option<Refused>, Failure> {
    let call = Request::by(context.agent(None)?.as_str());
    for pool in pools {
        match pool.peek(&call).blocking() {
            Ok(verdict) if !verdict.is_admitted() => return Ok(verdict.why().cloned()),
            Ok(_) | Err(Error::Store(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
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
