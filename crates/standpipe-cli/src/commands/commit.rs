//! `commit`, alias `release`: a call says what it used.

use serde_json::{Map, json};

use super::{Ended, leases};
use crate::args::{Commit, total};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) fn run(args: &Commit, settings: &Settings, printer: &Printer) -> Ended {
    let used = total(&args.used)?;
    let tap = settings.open()?;
    let lease = leases::handle(&tap, &args.lease)?;
    if args.progress {
        lease.progress(used)?;
    } else {
        lease.commit(used)?;
    }
    if printer.json {
        let mut object = Map::new();
        object.insert("lease".to_owned(), json!(args.lease));
        object.insert("settled".to_owned(), json!(!args.progress));
        printer.object(object)?;
    }
    Ok(Exit::Ok)
}
