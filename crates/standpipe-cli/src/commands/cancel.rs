//! `cancel`: releases a lease whose call was never sent.

use serde_json::{Map, json};

use super::{CommandResult, leases};
use crate::args::Cancel;
use crate::context::Context;
use crate::exit::Exit;
use crate::printer::Printer;

pub(super) fn run(args: &Cancel, context: &Context, printer: &Printer) -> CommandResult {
    let tap = context.open_ledger(printer)?;
    let cancelled = leases::handle(&tap, &args.lease)?.cancel().blocking();
    cancelled.map_err(|error| leases::ended(&tap, error))?;
    if printer.json {
        let mut object = Map::new();
        object.insert("lease".to_owned(), json!(args.lease));
        object.insert("cancelled".to_owned(), json!(true));
        printer.object(object)?;
    }
    Ok(Exit::Ok)
}
