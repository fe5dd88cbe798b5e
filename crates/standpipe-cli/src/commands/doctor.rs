//! `doctor`: what is wrong, or soon will be, and what to do.

use serde_json::{Map, json};
use standpipe::{Diagnosis, Level};

use super::Ended;
use super::audit::object;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;
use crate::show::findings;

pub(super) fn run(settings: &Settings, printer: &Printer) -> Ended {
    let told = settings.builder().diagnose();
    if printer.json {
        printer.object(object(json!(told))?)?;
    } else {
        printer.data(&findings::by_group(printer.style, &told.findings))?;
    }
    match failure(&told) {
        Some(failure) => Err(failure),
        None => Ok(Exit::Ok),
    }
}

/// What does not work is told to people and programs above; this is the line for logs.
fn failure(told: &Diagnosis) -> Option<Failure> {
    let (exit, what) = if told.config_is_broken() {
        (Exit::Config, "the configuration cannot be used")
    } else if told.store_is_unusable() {
        (Exit::Store, "the store cannot be used")
    } else {
        return None;
    };
    let count = told.count(Level::Failure);
    let shown = if count == 1 { "failure".to_owned() } else { format!("{count} failures") };
    let line = format!("{what}; see the {shown} above and what to do");
    Some(Failure { exit, lines: vec![line], problem: Map::new() })
}
