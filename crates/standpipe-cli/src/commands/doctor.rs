//! `doctor`: findings about the installation, with remedies.

use serde_json::{Map, json};
use standpipe::observe::{Diagnosis, Level};
use standpipe_server::{Checked, Log};

use super::CommandResult;
use super::audit::object;
use crate::context::{Context, files};
use crate::daemon::{self, is_silent, write_journal};
use crate::exit::Exit;
use crate::failure::{Failure, Message};
use crate::printer::Printer;
use crate::show::findings;
use crate::show::local_time::clock;

pub(super) fn run(context: &Context, printer: &Printer) -> CommandResult {
    // What a daemon has not written yet would be missing.
    write_journal(context);
    let mut diagnosis = context.builder().diagnose();
    let options = context.daemon(None, Log::default());
    if let Ok(settings) = context.config() {
        let Checked { errors, mut warnings, .. } = standpipe_server::check(&options, &settings);
        // What the store cannot be opened without is a failure already.
        let is_listed =
            |what: &str| diagnosis.findings.iter().any(|found| found.what.contains(what));
        warnings.retain(|warning| !is_listed(&warning.what));
        warnings.extend(files::unread(settings.origin.as_deref()));
        warnings.extend(files::unread_variables());
        diagnosis.add_config(&errors, &warnings);
    }
    let directory = options.directory().ok();
    let running = directory.and_then(|directory| standpipe_server::running(&directory));
    let address = running.as_ref().map(|running| format!("http://{}", running.address_here()));
    let pid = running.map(|running| running.pid);
    let is_silent = address.is_some() && is_silent(context);
    diagnosis.add_daemon(address.as_deref().zip(pid), is_silent);
    if let Some(running) = Some(context).filter(|_| !is_silent).and_then(daemon::snapshot) {
        if let Some(rejected) = &running.config_rejected {
            diagnosis.add_rejected_config(rejected, &clock(rejected.at));
        }
        let tap = context.open().ok();
        let other =
            tap.and_then(|tap| daemon::other_store(context, &running, &tap.store_location()));
        if let Some((what, remedy)) = other {
            diagnosis.add_daemon_warning(what, remedy);
        }
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
    } else if diagnosis.ledger_is_lost() {
        (Exit::Store, "the store lost a ledger")
    } else if diagnosis.pool_is_stopped() {
        (Exit::Stopped, "the provider stopped a pool")
    } else {
        return None;
    };
    let count = diagnosis.count(Level::Failure);
    let first = diagnosis.findings.iter().find(|finding| finding.level == Level::Failure);
    let remedy = first.and_then(|finding| finding.remedy.as_deref()).filter(|_| count == 1);
    let hint = match (remedy, count) {
        (Some(remedy), _) => remedy.to_owned(),
        (None, 1) => "see the failure above".to_owned(),
        (None, _) => format!("see the {count} failures above and what to do"),
    };
    let message = Message::new(what, &hint);
    Some(Failure { exit, messages: vec![message], problem: Map::new() })
}
