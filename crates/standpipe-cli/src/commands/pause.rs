//! `pause`: stops admission for a while.

use std::time::SystemTime;

use serde_json::json;
use standpipe::Span;
use standpipe::observe::Timestamp;

use super::CommandResult;
use crate::args;
use crate::context::{Context, duration};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::duration::length;
use crate::show::local_time::clock;

pub(super) fn run(args: &args::Pause, context: &Context, printer: &Printer) -> CommandResult {
    if args.length == Span::ZERO {
        return Err(Failure::usage(
            "a pause must be longer than 0",
            "give --for a length such as 30s, or use `standpipe resume` to end a pause",
        ));
    }
    let tap = context.open_ledger(printer)?;
    let pool = context.existing_pool(&tap, &args.pool)?;
    let agent = context.agent(args.agent.clone())?;
    let ends = Timestamp::of(SystemTime::now() + duration(args.length));
    pool.pause_by(agent.as_str(), duration(args.length)).blocking()?;
    // A longer pause stays in force.
    let status = pool.status().blocking().ok();
    let is_shadow = status.as_ref().is_some_and(|status| !status.enforce);
    let in_force = status.and_then(|status| status.pause);
    let longer = in_force.filter(|pause| pause.until.millis > ends.millis + 1_000);
    let (verb, until, ms) = match longer {
        Some(pause) => ("stays", pause.until, pause.for_ms),
        None => ("is", ends, args.length.0.div_ceil(1_000)),
    };
    let (name, end, left) = (args.pool.as_str(), clock(until), length(ms));
    let note =
        format!("`{name}` {verb} paused until {end} ({left}); `standpipe resume {name}` ends it");
    printer.done(
        &note,
        json!({ "pool": name, "paused_ms": ms, "by": agent.as_str(), "enforced": !is_shadow }),
    )?;
    if is_shadow {
        printer.note(&shadow(name));
    }
    Ok(Exit::Ok)
}

/// A pause that pauses nothing must not pass silently.
fn shadow(pool: &str) -> String {
    format!(
        "warning: `{pool}` is in shadow mode: calls are admitted all the same; remove \
         `enforce = false` from standpipe.toml to stop them"
    )
}
