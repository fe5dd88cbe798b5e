//! `resume`: ends a pause, or a stop by the provider.

use serde_json::json;
use standpipe::observe::ThrottleStatus;

use super::CommandResult;
use crate::args::Resume;
use crate::context::Context;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::show::duration::length;

pub(super) fn run(args: &Resume, context: &Context, printer: &Printer) -> CommandResult {
    let tap = context.open_ledger(printer)?;
    let known = context.existing_pool(&tap, &args.pool)?;
    let agent = context.agent(args.agent.clone())?;
    let before = known.status().blocking()?;
    let was_paused = before.pause.is_some() || before.terminal.is_some();
    let ended = returning(&before.trouble);
    known.resume_by(agent.as_str()).blocking()?;
    let pool = args.pool.as_str();
    if let Some(learning) = known.status().blocking()?.learning {
        let left = length(learning.for_ms);
        printer.note(&format!(
            "its ledger was lost; calls that need a slot wait for another {left}, until nothing \
             unknown can be in flight; `standpipe store reset {pool} --yes` forgets that"
        ));
    }
    let note = match (was_paused, ended.as_slice()) {
        (true, _) => format!("`{pool}` admits calls again"),
        (false, []) => format!("`{pool}` was not paused"),
        (false, ended) => format!("`{pool}` was not paused; ended: {}", ended.join(", ")),
    };
    // Retry-After may still run, also behind a longer pause by hand.
    let is_early = before.terminal.is_none() && (was_paused || !ended.is_empty());
    let refused = before.trouble.incident.as_ref().filter(|_| is_early);
    let risk = refused.map(|refused| {
        let who = refused.agent.as_deref().unwrap_or("a call");
        let ago = length(refused.ago_ms);
        format!(", although the provider refused {who} {ago} ago and may refuse again")
    });
    let done = json!({
        "pool": pool,
        "resumed": true,
        "was_paused": was_paused,
        "ended": ended,
        "by": agent.as_str(),
    });
    printer.done(&(note + &risk.unwrap_or_default()), done)?;
    Ok(Exit::Ok)
}

/// What slows calls down after a pause; a resume ends all of it.
fn returning(trouble: &ThrottleStatus) -> Vec<&'static str> {
    let each = [
        (trouble.probe.is_some(), "the probe"),
        (trouble.coming_back.is_some(), "the return by priority"),
        (trouble.one_at_a_time.is_some(), "one call at a time"),
        (trouble.speed_per_mille.is_some(), "the ramp"),
    ];
    each.into_iter().filter(|(holds, _)| *holds).map(|(_, what)| what).collect()
}
