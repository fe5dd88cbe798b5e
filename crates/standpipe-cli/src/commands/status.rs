//! `status`: one look at pools.

use serde_json::{Map, Value, json};
use standpipe::{Error, Pool, Request, Unreadable};

use super::Ended;
use crate::args::Status;
use crate::exit::Exit;
use crate::failure::{Failure, one_line};
use crate::printer::Printer;
use crate::settings::Settings;
use crate::show::{escaped, status};

pub(super) fn run(args: &Status, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    let pools = settings.pools(&tap, args.pool.as_ref())?;
    let seen = tap.snapshot(&pools)?;
    let room = !args.check || has_room(&pools, settings)?;
    if printer.json {
        let mut object = match json!(seen) {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        if args.check {
            object.insert("room".to_owned(), json!(room));
        }
        printer.object(object)?;
    } else if pools.is_empty() {
        printer.data(status::NO_POOLS)?;
    } else {
        let shown = escaped::snapshot(&seen).map_err(unreadable)?;
        printer.data(&status::pools(printer.style, &shown.pools))?;
        printer.data(&status::upstream(&shown.backpressure))?;
    }
    match unread(&seen.unreadable) {
        Some(failure) => Err(failure),
        None => Ok(if room { Exit::Ok } else { Exit::NotInTime }),
    }
}

/// Whether a call would be admitted now on each of those that can be read.
fn has_room(pools: &[Pool], settings: &Settings) -> Result<bool, Failure> {
    let call = Request::by(settings.agent(None)?.as_str());
    for pool in pools {
        match pool.peek(&call) {
            Ok(verdict) if !verdict.is_admitted() => return Ok(false),
            Ok(_) | Err(Error::Store(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::new(Exit::Internal, "internal", &format!("cannot show the pools: {error}"), "")
}

/// A line for each that cannot be read. To programs they are told with the others.
fn unread(pools: &[Unreadable]) -> Option<Failure> {
    let line =
        |one: &Unreadable| one_line(&format!("`{}` cannot be read: {}", one.pool, one.detail));
    let lines: Vec<String> = pools.iter().map(line).collect();
    let exit = Exit::Store;
    (!lines.is_empty()).then(|| Failure { exit, lines, problem: Map::new() })
}
