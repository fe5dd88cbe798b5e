//! `explain`: walks through the admission rule without reserving.

use serde_json::{Map, Value, json};
use standpipe::config::nearest;
use standpipe::{AgentName, Pool, Standpipe};

use super::CommandResult;
use super::admission::{request, without_limits};
use super::leases;
use crate::args::Explain;
use crate::context::Context;
use crate::daemon;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::explain;

/// Notes an agent that has made no call here and resembles one that has: it may be misspelled.
fn note_unknown_agent(
    tap: &Standpipe,
    pool: &Pool,
    agent: &str,
    printer: &Printer,
) -> Result<(), Failure> {
    let status = pool.status().blocking()?;
    let described = tap.settings().agents.keys().map(AgentName::as_str);
    let known: Vec<&str> =
        status.agents.iter().map(|agent| agent.name.as_str()).chain(described).collect();
    if let Some(near) = nearest(agent, known.iter().copied()).filter(|_| !known.contains(&agent)) {
        let name = pool.name();
        printer.note(&format!("{agent} has not called `{name}` yet; did you mean `{near}`?"));
    }
    Ok(())
}

pub(super) fn run(args: &Explain, context: &Context, printer: &Printer) -> CommandResult {
    let mut request = request(&args.call, None, &context.agent(args.call.agent.clone())?)?;
    if let Some(lease) = &args.retry_of {
        request = request.retry_of(leases::id(lease)?);
    }
    let tap = context.open_ledger(printer)?;
    let pool = context.existing_pool(&tap, &args.call.pool)?;
    let mut explanation =
        pool.explain(&request).blocking().map_err(|error| without_limits(error, &pool))?;
    if let Some(pid) = daemon::pid(context) {
        explanation.mark_daemon(pid);
    }
    if args.call.agent.is_some() {
        note_unknown_agent(&tap, &pool, &explanation.agent, printer)?;
    }
    if printer.json {
        let object = match json!(explanation) {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        printer.object(object)?;
    } else {
        if args.call.agent.is_none() && explanation.waits_ms.is_none() {
            // Who names no agent asks about the calls that wait.
            let status = pool.status().blocking()?;
            printer.data(&explain::others_wait(printer.style, &status))?;
        }
        printer.data(&explain::text(printer.style, &explanation))?;
    }
    Ok(Exit::Ok)
}
