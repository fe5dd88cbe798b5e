//! `explain`: the admission rule, step by step, without taking anything.

use serde_json::{Map, Value, json};

use super::Ended;
use super::admission::request;
use crate::args::Explain;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::show::explain::explanation;

pub(super) fn run(args: &Explain, settings: &Settings, printer: &Printer) -> Ended {
    let request = request(&args.call, None, settings)?;
    let tap = settings.open()?;
    let pool = settings.known(&tap, &args.call.pool)?;
    let told = pool.explain(&request)?;
    if printer.json {
        let object = match json!(told) {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        printer.object(object)?;
    } else {
        printer.data(&explanation(printer.style, &told))?;
    }
    Ok(Exit::Ok)
}
