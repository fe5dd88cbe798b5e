//! `resume`: a pause, or the provider's word that stopped everything, is lifted.

use serde_json::json;

use super::Ended;
use crate::args::Resume;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::show::length::length;

pub(super) fn run(args: &Resume, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    let known = settings.known(&tap, &args.pool)?;
    known.resume()?;
    let pool = args.pool.as_str();
    if let Some(learning) = known.status()?.learning {
        let left = length(learning.for_ms);
        printer.talk(&format!(
            "its ledger was lost; calls that need a slot wait for another {left}, until nothing \
             unknown can be in flight; `standpipe store reset {pool} --yes` forgets that"
        ));
    }
    printer
        .done(&format!("`{pool}` admits calls again"), json!({ "pool": pool, "resumed": true }))?;
    Ok(Exit::Ok)
}
