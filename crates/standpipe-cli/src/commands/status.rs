//! `status`: one look at pools.

use serde_json::{Map, json};
use standpipe::{PoolStatus, Request};

use super::Ended;
use crate::args::Status;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::show::status;

pub(super) fn run(args: &Status, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    let pools = settings.pools(&tap, args.pool.as_ref())?;
    let mut all: Vec<PoolStatus> = Vec::new();
    let mut room = true;
    for pool in &pools {
        all.push(pool.status()?);
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
        printer.object(object)?;
    } else if all.is_empty() {
        printer.data(status::NO_POOLS)?;
    } else {
        printer.data(&status::pools(printer.style, &all))?;
        printer.data(&status::upstream(&pressed))?;
    }
    Ok(if room { Exit::Ok } else { Exit::NotInTime })
}
