//! `doctor`: findings about the installation, with remedies.

use serde_json::{Map, json};
use standpipe::observe::{Diagnosis, Level};
use standpipe_server::Log;

use super::CommandResult;
use super::audit::object;
use crate::context::Context;
use crate::daemon::rejected_config;
use crate::exit::Exit;
use crate::failure::{Failure, Message};
use crate::printer::Printer;
use crate::show::findings;
use crate::show::local_time::clock;

pub(super) fn run(context: &Context, printer: &Printer) -> CommandResult {
    let mut diagnosis = context.builder().diagnose();
    let directory = context.daemon(None, Log::default()).directory().ok();
    let running = directory.and_then(|directory| standpipe_server::running(&directory));
    let address = running.as_ref().map(|running| format!("http://{}", running.address));
    let pid = running.map(|running| running.pid);
    diagnosis.add_daemon(address.as_deref().zip(pid));
    if let Some(rejected) = rejected_config(context) {
        diagnosis.add_rejected_config(&rejected, &clock(rejected.at));
    }
    if printer.json {
        printer.object(object(json!(diagnosis))?)?;
    } else {
        printer.data(&findings::by_group(printer.style, &diagnosis.findings))?;
    }
    match failure(&diagnosis) {
        Some(failure) => Err(failure),
        None => Ok(Exit::Ok),
    }
}

/// The failure that ends the command. The findings are printed already, so it has no problem
/// object.
fn failure(diagnosis: &Diagnosis) -> Option<Failure> {
    let (exit, what) = if diagnosis.config_is_broken() {
        (Exit::Config, "the configuration cannot be used")
    } else if diagnosis.store_is_unusable() {
        (Exit::Store, "the store cannot be used")
    } else {
        return None;
    };
    let count = diagnosis.count(Level::Failure);
    let shown = if count == 1 { "failure".to_owned() } else { format!("{count} failures") };
    let message = Message::new(what, &format!("see the {shown} above and what to do"));
    Some(Failure { exit, messages: vec![message], problem: Map::new() })
}
