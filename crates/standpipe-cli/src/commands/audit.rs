//! `audit`: who calls how often, whether that is too much together, and before against after.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::Ended;
use crate::args::Audit;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::{Settings, duration};
use crate::show::{audit, compare};

/// How far back a look goes when nobody says.
const A_DAY: Duration = Duration::from_secs(86_400);

pub(super) fn run(args: &Audit, settings: &Settings, printer: &Printer) -> Ended {
    let back = args.since.map(duration);
    let tap = settings.open()?;
    if let Some(name) = &args.pool {
        settings.known(&tap, name)?;
    }
    if args.compare {
        let all = tap.compare(args.pool.as_ref(), back);
        if printer.json {
            printer.object(Map::from_iter([("pools".to_owned(), json!(all))]))?;
        } else {
            printer.data(&compare::comparisons(printer.style, &all, args.pool.as_ref()))?;
        }
        return Ok(Exit::Ok);
    }
    let back = back.unwrap_or(A_DAY);
    let told = tap.audit(args.pool.as_ref(), back)?;
    if printer.json {
        printer.object(object(json!(told))?)?;
    } else {
        let back = u64::try_from(back.as_millis()).unwrap_or(u64::MAX);
        printer.data(&audit::audit(printer.style, &told, back))?;
    }
    Ok(Exit::Ok)
}

/// A value that is an object, as one.
pub(super) fn object(value: Value) -> Result<Map<String, Value>, Failure> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(Failure::new(Exit::Internal, "internal", &format!("no object: {other}"), "")),
    }
}
