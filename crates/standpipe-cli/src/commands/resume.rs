//! `resume`: a pause, or the provider's word that stopped everything, is lifted.

use serde_json::json;

use super::Ended;
use crate::args::Resume;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) fn run(args: &Resume, settings: &Settings, printer: &Printer) -> Ended {
    let tap = settings.open()?;
    settings.known(&tap, &args.pool)?.resume()?;
    let pool = args.pool.as_str();
    printer
        .done(&format!("`{pool}` admits calls again"), json!({ "pool": pool, "resumed": true }))?;
    Ok(Exit::Ok)
}
