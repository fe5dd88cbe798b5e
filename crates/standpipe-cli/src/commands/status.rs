//! `status`: one look at pools.

use serde_json::{Map, Value, json};
use standpipe::{Error, Pool, Request};

use super::Ended;
use crate::args::Status;
use crate::exit::Exit;
use crate::failure::{Failure, one_line};
use crate::printer::Printer;
use crate::settings::Settings;
use crate::show::status;

pub(super) fn run(args: &Status, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    let pools = settings.pools(&tap, args.pool.as_ref())?;
    let (mut all, mut unreadable) = (Vec::new(), Unreadable::default());
    let mut room = true;
    for pool in &pools {
        match pool.status() {
            Ok(status) => all.push(status),
            Err(error @ Error::Store(_)) => {
                unreadable.note(pool, &error);
                continue;
            }
            Err(error) => return Err(error.into()),
        }
        if args.check && room {
            let call = Request::by(settings.agent(None)?.as_str());
            room = pool.peek(&call)?.is_admitted();
        }
    }
    let pressed = tap.backpressure()?;
    if printer.json {
        let mut object = Map::new();
        object.insert("store".to_owned(), json!(tap.store_place()));
        object.insert("pools".to_owned(), json!(all));
        object.insert("backpressure".to_owned(), json!(pressed));
        if args.check {
            object.insert("room".to_owned(), json!(room));
        }
        if !unreadable.problems.is_empty() {
            object.insert("unreadable".to_owned(), json!(unreadable.problems));
        }
        printer.object(object)?;
    } else if pools.is_empty() {
        printer.data(status::NO_POOLS)?;
    } else {
        printer.data(&status::pools(printer.style, &all))?;
        printer.data(&status::upstream(&pressed))?;
    }
    match unreadable.failure() {
        Some(failure) => Err(failure),
        None => Ok(if room { Exit::Ok } else { Exit::NotInTime }),
    }
}

/// The pools that cannot be read: those that can are shown all the same.
#[derive(Default)]
struct Unreadable {
    lines: Vec<String>,
    problems: Vec<Value>,
}

impl Unreadable {
    fn note(&mut self, pool: &Pool, error: &Error) {
        let (name, why) = (pool.name().as_str(), error.to_string());
        self.lines.push(one_line(&format!("`{name}` cannot be read: {why}")));
        self.problems.push(json!({ "pool": name, "detail": why }));
    }

    /// A line for each. To programs they are told with the others.
    fn failure(self) -> Option<Failure> {
        let Self { lines, .. } = self;
        let exit = Exit::Store;
        (!lines.is_empty()).then(|| Failure { exit, lines, problem: Map::new() })
    }
}
