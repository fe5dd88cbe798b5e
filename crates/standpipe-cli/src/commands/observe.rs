//! `observe`: what a provider's answer says is believed, and a refusal pauses the pool.

use serde_json::json;

use super::throttle::of_another;
use super::{Ended, leases, reply};
use crate::args::Observe;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) fn run(args: &Observe, settings: &Settings, printer: &Printer) -> Ended {
    let answer = reply::reply(&args.header, args.stdin.is_some(), args.status)?;
    if let Some(text) = &args.lease {
        let lease = leases::id(text)?;
        if lease.pool() != &args.pool {
            return Err(of_another(lease.pool().as_str(), args.pool.as_str()));
        }
    }
    let agent = settings.agent(None)?;
    let tap = settings.open()?;
    let pool = settings.told(&tap, &args.pool)?;
    let (meaning, limits) = pool.heard(&answer, Some(agent.as_str()))?;
    if printer.json {
        let mut object = reply::object(&meaning);
        object.insert("pool".to_owned(), json!(args.pool.as_str()));
        object.insert("limits".to_owned(), json!(limits));
        printer.object(object)?;
        return Ok(Exit::Ok);
    }
    if let Some(sentence) = reply::sentence(&meaning) {
        printer.talk(&sentence);
    }
    match limits {
        0 => printer.talk("it says nothing of limits that can be counted"),
        1 => printer.talk("noted what it says of one limit"),
        n => printer.talk(&format!("noted what it says of {n} limits")),
    }
    Ok(Exit::Ok)
}
