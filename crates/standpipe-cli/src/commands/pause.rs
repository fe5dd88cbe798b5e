//! `pause`: stops admission for a while.

use std::time::SystemTime;

use serde_json::json;
use standpipe::Span;
use standpipe::observe::Timestamp;

use super::CommandResult;
use crate::args::Pause;
use crate::context::{Context, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::duration::length;
use crate::show::local_time::clock;

pub(super) fn run(args: &Pause, context: &Context, printer: &Printer) -> CommandResult {
    if args.length == Span::ZERO {
        return Err(Failure::usage(
            "a pause must be longer than 0",
            "give --for a length such as 30s, or use `standpipe resume` to end a pause",
        ));
    }
    let tap = context.open()?;
    let pool = context.existing_pool(&tap, &args.pool)?;
    let agent = context.agent(args.agent.clone())?;
    pool.pause_by(agent.as_str(), duration(args.length)).blocking()?;
    let (pool, ms) = (args.pool.as_str(), args.length.0.div_ceil(1_000));
    let end = clock(Timestamp::of(SystemTime::now() + duration(args.length)));
    let note = format!(
        "`{pool}` is paused until {end} ({}); `standpipe resume {pool}` ends it",
        length(ms)
    );
    printer.done(&note, json!({ "pool": pool, "paused_ms": ms, "by": agent.as_str() }))?;
    Ok(Exit::Ok)
}
