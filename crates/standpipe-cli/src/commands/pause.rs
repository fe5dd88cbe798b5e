//! `pause`: nobody is admitted for a while.

use serde_json::json;
use standpipe::Span;

use super::Ended;
use crate::args::Pause;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::{Settings, duration};
use crate::show::length::length;

pub(super) fn run(args: &Pause, settings: &Settings, printer: &Printer) -> Ended {
    if args.length == Span::ZERO {
        return Err(Failure::usage(
            "a pause of no time",
            "give --for a length such as 30s, or use `standpipe resume` to end a pause",
        ));
    }
    let tap = settings.open()?;
    let pool = settings.known(&tap, &args.pool)?;
    pool.pause(duration(args.length))?;
    let (pool, ms) = (args.pool.as_str(), args.length.0.div_ceil(1_000));
    let said = format!("nobody is admitted to `{pool}` for {}", length(ms));
    printer.done(&said, json!({ "pool": pool, "paused_ms": ms }))?;
    Ok(Exit::Ok)
}
