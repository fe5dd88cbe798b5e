//! `resume`: ends a pause, or a stop by the provider.

use serde_json::json;

use super::CommandResult;
use crate::args::Resume;
use crate::context::Context;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::show::duration::length;

pub(super) fn run(args: &Resume, context: &Context, printer: &Printer) -> CommandResult {
    let tap = context.open()?;
    let known = context.existing_pool(&tap, &args.pool)?;
    let before = known.status().blocking()?;
    let was_paused = before.pause.is_some() || before.terminal.is_some();
    known.resume().blocking()?;
    let pool = args.pool.as_str();
    if let Some(learning) = known.status().blocking()?.learning {
        let left = length(learning.for_ms);
        printer.note(&format!(
            "its ledger was lost; calls that need a slot wait for another {left}, until nothing \
             unknown can be in flight; `standpipe store reset {pool} --yes` forgets that"
        ));
    }
    // Retry-After may still run, also behind a longer pause by hand.
    let refused = before.trouble.incident.as_ref().filter(|_| before.terminal.is_none());
    let note = match (was_paused, refused) {
        (true, Some(refused)) => {
            let who = refused.agent.as_deref().unwrap_or("a call");
            let ago = length(refused.ago_ms);
            format!(
                "`{pool}` admits calls again, although the provider refused {who} {ago} ago and \
                 may refuse again"
            )
        }
        (true, None) => format!("`{pool}` admits calls again"),
        (false, _) => format!("`{pool}` was not paused"),
    };
    printer.done(&note, json!({ "pool": pool, "resumed": true, "was_paused": was_paused }))?;
    Ok(Exit::Ok)
}
