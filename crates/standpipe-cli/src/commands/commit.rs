//! `commit`, alias `release`: a call says what it used.

use serde_json::{Map, json};

use super::{Ended, leases, reply};
use crate::args::{Commit, total};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) fn run(args: &Commit, settings: &Settings, printer: &Printer) -> Ended {
    let used = total(&args.used)?;
    let tap = settings.open()?;
    let lease = leases::handle(&tap, &args.lease)?;
    let mut object = Map::new();
    if args.progress {
        lease.progress(used)?;
    } else if args.headers.is_some() || args.status.is_some() {
        let answer = reply::reply(&[], args.headers.is_some(), args.status)?;
        let meaning = lease.answered_using(&answer, used)?;
        object = reply::object(&meaning);
        if let Some(sentence) = reply::sentence(&meaning) {
            printer.talk(&sentence);
        }
    } else {
        lease.commit(used)?;
    }
    if printer.json {
        object.insert("lease".to_owned(), json!(args.lease));
        object.insert("settled".to_owned(), json!(!args.progress));
        printer.object(object)?;
    }
    Ok(Exit::Ok)
}
