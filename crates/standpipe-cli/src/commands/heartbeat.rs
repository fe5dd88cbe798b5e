//! `heartbeat`: extends a lease, or all leases of an agent on a pool.

use std::time::SystemTime;

use serde_json::{Map, json};
use standpipe::observe::Timestamp;
use standpipe::{AgentName, PoolName};

use super::{CommandResult, leases};
use crate::args::Heartbeat;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;

pub(super) fn run(args: &Heartbeat, context: &Context, printer: &Printer) -> CommandResult {
    match &args.agent {
        Some(agent) => of_agent(agent, &args.what, context, printer),
        None => of_lease(&args.what, context, printer),
    }
}

fn of_lease(text: &str, context: &Context, printer: &Printer) -> CommandResult {
    let is_pool = text.parse::<PoolName>().is_ok();
    leases::id(text).map_err(|failure| if is_pool { not_a_lease(text) } else { failure })?;
    let tap = context.open_ledger(printer)?;
    let until = leases::handle(&tap, text)?.heartbeat().blocking();
    let until = until.map_err(|error| leases::ended(&tap, error))?;
    if printer.json {
        let mut object = Map::new();
        object.insert("lease".to_owned(), json!(text));
        object.insert("expires_at".to_owned(), json!(time_text(until)));
        printer.object(object)?;
    }
    Ok(Exit::Ok)
}

fn of_agent(agent: &AgentName, pool: &str, context: &Context, printer: &Printer) -> CommandResult {
    let name: PoolName = pool.parse().map_err(|error: standpipe::InvalidPoolName| {
        Failure::usage(&error.to_string(), "with --as, name a pool")
    })?;
    let tap = context.open_ledger(printer)?;
    let extended = context.existing_pool(&tap, &name)?.heartbeat_agent(agent).blocking()?;
    if printer.json {
        let mut object = Map::new();
        object.insert("pool".to_owned(), json!(pool));
        object.insert("agent".to_owned(), json!(agent.as_str()));
        object.insert("leases".to_owned(), json!(extended));
        printer.object(object)?;
    } else if extended == 0 {
        printer.note(&format!("{agent} holds nothing on `{pool}`"));
    }
    Ok(Exit::Ok)
}

fn not_a_lease(text: &str) -> Failure {
    Failure::usage(
        &format!("`{text}` is a pool, not a lease"),
        "to extend an agent's leases: `standpipe heartbeat --as AGENT POOL`",
    )
}

fn time_text(until: SystemTime) -> String {
    Timestamp::of(until).to_string()
}
