//! `pause`: stops admission for a while.

use serde_json::json;
use standpipe::Span;

use super::CommandResult;
use crate::args::Pause;
use crate::context::{Context, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::duration::length;

pub(super) fn run(args: &Pause, context: &Context, printer: &Printer) -> CommandResult {
    if args.length == Span::ZERO {
        return Err(Failure::usage(
            "a pause must be longer than 0",
            "give --for a length such as 30s, or use `standpipe resume` to end a pause",
        ));
    }
    let tap = context.open()?;
    let pool = context.existing_pool(&tap, &args.pool)?;
    pool.pause(duration(args.length)).blocking()?;
    let (pool, ms) = (args.pool.as_str(), args.length.0.div_ceil(1_000));
    let note = format!("`{pool}` admits no calls for {}", length(ms));
    printer.done(&note, json!({ "pool": pool, "paused_ms": ms }))?;
    Ok(Exit::Ok)
}
