//! `run`: runs a program whose API calls go through the proxy.
//!
//! Guarantee: the exit code of the program is passed through.

use std::time::{Duration, Instant};

use standpipe::Standpipe;

use super::admission::{end_by_signal, listen};
use super::hold::cannot_run;
use super::{CommandResult, up};
use crate::args::Run;
use crate::context::Context;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::process::signals::child_received_too;
use crate::process::{base_urls, lookup, run};
use crate::show::duration::length;

/// How often the loop that waits for the program looks up without a signal.
const LOOK: Duration = Duration::from_secs(3_600);

pub(super) fn run(args: &Run, context: &Context, printer: &Printer) -> CommandResult {
    let command = args.command.first().map(|word| word.as_os_str()).unwrap_or_default();
    let file = lookup::find(command, std::env::var_os("PATH").as_deref())
        .map_err(|error| cannot_run(command, &error))?;
    let running = up::running_or_start(context, printer)?;
    let agent = context.agent(args.identity.agent.clone())?;
    let base = format!("http://{}", running.address);
    let settings = context.config()?;
    let all = base_urls::variables(&base, agent.as_str(), args.identity.priority, &settings);
    for (name, value) in all.iter().filter(|(_, value)| value.starts_with("http://")) {
        let before = std::env::var(name).ok().filter(|before| before != value);
        if let Some(before) = before.filter(|before| !before.is_empty()) {
            let provider = value.trim_start_matches(&base).split('/').nth(3).unwrap_or_default();
            printer.note(&format!(
                "{name} was set to another address and is replaced; to keep it, set [provider.\
                 {provider}] upstream = {before:?} in standpipe.toml"
            ));
        }
    }
    let signals = listen()?;
    let began = Instant::now();
    let ended = run::run_with(&file, &args.command, &all, None, &signals, LOOK, || {});
    let ended = ended.map_err(|error| cannot_run(command, &error))?;
    if let Ok(tap) = context.open() {
        summarize(&tap, agent.as_str(), began.elapsed(), printer);
    }
    if let Some(signal) = ended.interrupted.filter(|signal| child_received_too(*signal)) {
        return Err(end_by_signal(signal));
    }
    Ok(Exit::Code(ended.code))
}

/// Notes what the agent's calls used and waited for while the program ran.
fn summarize(tap: &Standpipe, agent: &str, took: Duration, printer: &Printer) {
    let Ok(audit) = tap.audit(None, took + Duration::from_secs(1)) else { return };
    for pool in &audit.pools {
        let Some(own) = pool.agents.iter().find(|own| own.agent == agent) else { continue };
        let tokens: u64 =
            ["input_tokens", "output_tokens"].iter().filter_map(|unit| own.units.get(*unit)).sum();
        let mut text = format!("{}: {} calls", pool.pool, own.calls);
        if tokens > 0 {
            text.push_str(&format!(", {tokens} tokens"));
        }
        if own.waited_ms > 0 {
            text.push_str(&format!(", waited {}", length(own.waited_ms)));
        }
        text.push_str(&format!(", {} refused by the provider", own.refused));
        printer.note(&text);
    }
}
