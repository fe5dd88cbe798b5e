//! `heartbeat`: a lease lives on, or all leases of an agent on a pool do.

use std::time::SystemTime;

use serde_json::{Map, json};
use standpipe::{AgentName, Moment, PoolName};

use super::{Ended, leases};
use crate::args::Heartbeat;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

pub(super) fn run(args: &Heartbeat, settings: &Settings, printer: &Printer) -> Ended {
    match &args.agent {
        Some(agent) => of_agent(agent, &args.what, settings, printer),
        None => of_lease(&args.what, settings, printer),
    }
}

fn of_lease(text: &str, settings: &Settings, printer: &Printer) -> Ended {
    let is_pool = text.parse::<PoolName>().is_ok();
    leases::id(text).map_err(|failure| if is_pool { a_pool(text) } else { failure })?;
    let tap = settings.open()?;
    let until = leases::handle(&tap, text)?.heartbeat()?;
    if printer.json {
        let mut object = Map::new();
        object.insert("lease".to_owned(), json!(text));
        object.insert("expires_at".to_owned(), json!(said(until)));
        printer.object(object)?;
    }
    Ok(Exit::Ok)
}

fn of_agent(agent: &AgentName, pool: &str, settings: &Settings, printer: &Printer) -> Ended {
    let name: PoolName = pool.parse().map_err(|error: standpipe::InvalidPoolName| {
        Failure::usage(&error.to_string(), "with --as, name a pool")
    })?;
    let tap = settings.open()?;
    let extended = settings.known(&tap, &name)?.heartbeat_agent(agent)?;
    if printer.json {
        let mut object = Map::new();
        object.insert("pool".to_owned(), json!(pool));
        object.insert("agent".to_owned(), json!(agent.as_str()));
        object.insert("leases".to_owned(), json!(extended));
        printer.object(object)?;
    } else if extended == 0 {
        printer.talk(&format!("{agent} holds nothing on `{pool}`"));
    }
    Ok(Exit::Ok)
}

fn a_pool(text: &str) -> Failure {
    Failure::usage(
        &format!("`{text}` is a pool, not a lease"),
        "say whose leases: `standpipe heartbeat --as AGENT POOL`",
    )
}

fn said(until: SystemTime) -> String {
    Moment::of(until).to_string()
}
