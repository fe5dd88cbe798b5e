//! `audit`: calls per agent against the quota, or a run before against one after.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::CommandResult;
use crate::args::Audit;
use crate::context::{Context, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::{audit, compare};

/// The default of `--since`.
const A_DAY: Duration = Duration::from_secs(86_400);

pub(super) fn run(args: &Audit, context: &Context, printer: &Printer) -> CommandResult {
    let back = args.since.map(duration);
    let tap = context.open()?;
    let is_shared = tap.is_remote()?;
    if let Some(name) = &args.pool {
        context.existing_pool(&tap, name)?;
    }
    if args.compare {
        let all = tap.compare(args.pool.as_ref(), back);
        if printer.json {
            printer.object(Map::from_iter([("pools".to_owned(), json!(all))]))?;
        } else {
            printer.data(&compare::text(printer.style, &all, args.pool.as_ref(), is_shared))?;
        }
        return Ok(Exit::Ok);
    }
    let back = back.unwrap_or(A_DAY);
    let found = tap.audit(args.pool.as_ref(), back)?;
    if printer.json {
        printer.object(object(json!(found))?)?;
    } else {
        let back = u64::try_from(back.as_millis()).unwrap_or(u64::MAX);
        printer.data(&audit::text(printer.style, &found, back, is_shared))?;
    }
    Ok(Exit::Ok)
}

/// Unwraps a JSON object.
pub(super) fn object(value: Value) -> Result<Map<String, Value>, Failure> {
    match value {
        Value::Object(object) => Ok(object),
        other => Err(Failure::new(Exit::Internal, "internal", &format!("no object: {other}"), "")),
    }
}
