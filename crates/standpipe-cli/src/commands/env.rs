//! `env`: prints the variables that send a program's API calls through the proxy.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{CommandResult, up};
use crate::args::{Env, EnvFormat};
use crate::context::{Context, priority};
use crate::exit::Exit;
use crate::printer::Printer;
use crate::process::base_urls;

pub(super) fn run(args: &Env, context: &Context, printer: &Printer) -> CommandResult {
    let running = up::running(context)?;
    let agent = context.agent(args.identity.agent.clone())?;
    let priority = priority(args.identity.priority)?;
    let base = format!("http://{}", running.address_here());
    let settings = context.config()?;
    let all = base_urls::variables(&base, agent.as_str(), priority, &settings);
    if printer.json {
        let variables = all.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
        printer.object(Map::from_iter([("variables".to_owned(), Value::Object(variables))]))?;
        return Ok(Exit::Ok);
    }
    let mut text = String::new();
    for (name, value) in all {
        // Values are URLs, numbers and names: nothing that a shell would expand.
        let _into_memory = match args.format {
            EnvFormat::Shell => writeln!(text, "export {name}='{value}'"),
            EnvFormat::Dotenv => writeln!(text, "{name}={value}"),
        };
    }
    printer.data(&text)?;
    Ok(Exit::Ok)
}
