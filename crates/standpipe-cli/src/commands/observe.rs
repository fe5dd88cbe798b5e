//! `observe`: applies a provider's answer to a pool: its limits, and a refusal.

use serde_json::json;

use super::throttle::of_another;
use super::{CommandResult, leases, reply};
use crate::args::Observe;
use crate::context::Context;
use crate::exit::Exit;
use crate::printer::Printer;

pub(super) fn run(args: &Observe, context: &Context, printer: &Printer) -> CommandResult {
    let answer = reply::reply(&args.header, args.stdin.is_some(), args.status)?;
    if let Some(text) = &args.lease {
        let lease = leases::id(text)?;
        if lease.pool() != &args.pool {
            return Err(of_another(lease.pool().as_str(), args.pool.as_str()));
        }
    }
    let agent = context.agent(None)?;
    let tap = context.open()?;
    let pool = context.reported_pool(&tap, &args.pool)?;
    let (meaning, limits) = pool.observe_reply(&answer, Some(agent.as_str())).blocking()?;
    if printer.json {
        let mut object = reply::object(&meaning);
        object.insert("pool".to_owned(), json!(args.pool.as_str()));
        object.insert("limits".to_owned(), json!(limits));
        printer.object(object)?;
        return Ok(Exit::Ok);
    }
    reply::note(&meaning, &pool, printer);
    match limits {
        0 => printer.note("the answer states no limits"),
        1 => printer.note("recorded one limit"),
        n => printer.note(&format!("recorded {n} limits")),
    }
    Ok(Exit::Ok)
}
