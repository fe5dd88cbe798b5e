//! `explain`: walks through the admission rule without reserving.

use serde_json::{Map, Value, json};

use super::CommandResult;
use super::admission::request;
use crate::args::Explain;
use crate::context::Context;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::show::explain;

pub(super) fn run(args: &Explain, context: &Context, printer: &Printer) -> CommandResult {
    let request = request(&args.call, None, context)?;
    let tap = context.open()?;
    let pool = context.existing_pool(&tap, &args.call.pool)?;
    let explanation = pool.explain(&request).blocking()?;
    if printer.json {
        let object = match json!(explanation) {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        printer.object(object)?;
    } else {
        printer.data(&explain::text(printer.style, &explanation))?;
    }
    Ok(Exit::Ok)
}
