//! `cancel`: the call was never sent.

use serde_json::{Map, json};

use super::{Ended, leases};
use crate::args::Cancel;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) fn run(args: &Cancel, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    leases::handle(&tap, &args.lease)?.cancel()?;
    if printer.json {
        let mut object = Map::new();
        object.insert("lease".to_owned(), json!(args.lease));
        object.insert("cancelled".to_owned(), json!(true));
        printer.object(object)?;
    }
    Ok(Exit::Ok)
}
