//! `explain`: the admission rule, step by step, without taking anything.

use serde_json::{Map, Value, json};
use standpipe::Request;

use super::Ended;
use crate::args::{Explain, total};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::show::explain::explanation;

pub(super) fn run(args: Explain, settings: &Settings, printer: &Printer) -> Ended {
    let agent = settings.agent(args.agent)?;
    let mut request = Request::by(agent.as_str());
    for (unit, figure) in total(&args.cost)? {
        request = request.unit(unit.name(), figure);
    }
    if let Some(priority) = args.priority {
        request = request.priority(priority.into());
    }
    let tap = settings.open()?;
    let pool = settings.known(&tap, &args.pool)?;
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
