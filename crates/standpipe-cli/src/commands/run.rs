//! `run`: runs a program whose API calls go through the proxy.
//!
//! Guarantee: the exit code of the program is passed through.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use standpipe_server::{Log, Running};

use super::admission::{end_by_signal, listen};
use super::hold::cannot_run;
use super::{CommandResult, up};
use crate::args::Run;
use crate::caller;
use crate::context::{Context, priority};
use crate::daemon::DaemonClient;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::process::signals::child_received_too;
use crate::process::{base_urls, gh_config, lookup, run};
use crate::show::amount::counted;
use crate::show::duration::length;

/// How often the loop that waits for the program looks up without a signal.
const LOOK: Duration = Duration::from_secs(3_600);

pub(super) fn run(args: &Run, context: &Context, printer: &Printer) -> CommandResult {
    let command = args.command.first().map(|word| word.as_os_str()).unwrap_or_default();
    let file = lookup::find(command, std::env::var_os("PATH").as_deref())
        .map_err(|error| cannot_run(command, &error))?;
    let settings = context.config()?;
    let running = up::running_or_start(context, printer)?;
    let started = || caller::started(&args.command);
    let agent = context.agent_or(args.identity.agent.clone(), started)?;
    let priority = priority(args.identity.priority)?;
    let base = format!("http://{}", running.address_here());
    Context::note_agent(&settings, agent.as_str(), printer);
    let mut all = base_urls::variables(&base, agent.as_str(), priority, &settings);
    all.extend(gh(context, &running, printer));
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
    let client = base.parse().ok().map(|address| DaemonClient::with_token_file(address, None));
    let client = client.transpose()?;
    let before = totals(client.as_ref(), agent.as_str());
    let signals = listen()?;
    let ended = run::run_with(&file, &args.command, &all, None, &signals, LOOK, || LOOK);
    let ended = ended.map_err(|error| cannot_run(command, &error))?;
    let after = totals(client.as_ref(), agent.as_str());
    report(agent.as_str(), &base, before.as_ref(), after.as_ref(), printer);
    if let Some(signal) = ended.interrupted.filter(|signal| child_received_too(*signal)) {
        return Err(end_by_signal(signal));
    }
    Ok(Exit::Code(ended.code))
}

/// The variable that sends `gh` through the daemon's socket. Only `gh` misses it if there is none.
fn gh(context: &Context, running: &Running, printer: &Printer) -> Option<(String, String)> {
    let state = context.daemon(None, Log::default()).directory().ok()?;
    let own = gh_config::own(|name| std::env::var_os(name).map(PathBuf::from));
    match gh_config::make(&state, &own, running.socket.as_deref()?) {
        Ok(directory) => Some(("GH_CONFIG_DIR".to_owned(), directory?.display().to_string())),
        Err(error) => {
            printer.note(&format!("calls of `gh` do not go through the proxy: {error}"));
            None
        }
    }
}

/// Notes what the program used through the proxy, or that it used nothing.
fn report(
    agent: &str,
    base: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    printer: &Printer,
) {
    if let Some(text) = summary(before, after) {
        printer.note(&format!("{agent}: {text}"));
        for line in sessions(before, after) {
            printer.note(&line);
        }
    } else if after.is_some() {
        printer.note(&format!(
            "{agent} made no call through the proxy; if it calls an API, its SDK may ignore the \
             base URL variables such as ANTHROPIC_BASE_URL (docs/clients.md)"
        ));
    } else if before.is_some() {
        printer.note(&format!(
            "the daemon on {base} stopped while the program ran, so its calls failed; start one \
             that stays with `standpipe up --detach`"
        ));
    }
}

/// What the agent's proxied calls used since the daemon started; `null` before the first one.
/// Returns `None` if the daemon does not answer.
fn totals(client: Option<&DaemonClient>, agent: &str) -> Option<Value> {
    let all = client?.get("/v1/proxied").ok()?;
    Some(all["agents"].get(agent).cloned().unwrap_or_default())
}

/// The most sessions and sub-agents that are listed.
const MAX_SESSIONS: usize = 20;

/// What was added to the totals of each session, sub-agent and user.
fn sessions(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let all = after.and_then(|after| after["sessions"].as_object());
    let lines = all.into_iter().flatten().filter_map(|(name, totals)| {
        let earlier = before.and_then(|before| before["sessions"].get(name));
        Some(format!("  {name}: {}", summary(earlier, Some(totals))?))
    });
    let mut lines: Vec<String> = lines.collect();
    if lines.len() > MAX_SESSIONS {
        let more = lines.split_off(MAX_SESSIONS).len();
        lines.push(format!("  and {more} more"));
    }
    lines
}

/// What was added to the totals while the program ran.
fn summary(before: Option<&Value>, after: Option<&Value>) -> Option<String> {
    let after = after?;
    let added = |key: &str| {
        let of = |totals: Option<&Value>| totals.and_then(|all| all[key].as_u64()).unwrap_or(0);
        of(Some(after)).saturating_sub(of(before))
    };
    let [calls, refused, failed] = ["calls", "refused", "failed"].map(added);
    let mut parts = Vec::new();
    if calls + refused > 0 {
        parts.push(counted(calls, "call"));
    }
    let tokens = (added("input_tokens"), added("output_tokens"));
    if tokens != (0, 0) {
        parts.push(format!("{} input and {} output tokens", tokens.0, tokens.1));
    }
    if added("waited_ms") > 0 {
        parts.push(format!("waited {}", length(added("waited_ms"))));
    }
    if refused + added("retries") > 0 {
        parts.push(format!("{refused} refused by the provider, {} tried again", added("retries")));
    } else if calls > 0 {
        parts.push("none refused by the provider".to_owned());
    }
    if failed > 0 {
        let last = after["last_failure"].as_str().map(|why| match failed {
            1 => format!(": {why}"),
            _ => format!(", the last: {why}"),
        });
        parts.push(format!("{} failed{}", counted(failed, "call"), last.unwrap_or_default()));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_summary_is_what_was_added() {
        let before = json!({"calls": 2, "input_tokens": 10, "waited_ms": 5});
        let after =
            json!({"calls": 5, "input_tokens": 110, "output_tokens": 7, "waited_ms": 1_505});
        let text = summary(Some(&before), Some(&after)).unwrap();
        assert!(text.starts_with("3 calls, 100 input and 7 output tokens, waited 1.5 s"), "{text}");
        assert!(text.ends_with("none refused by the provider"));
        assert_eq!(summary(Some(&after), Some(&after)), None);
        assert_eq!(
            summary(None, Some(&json!({"calls": 1}))).unwrap(),
            "1 call, none refused by the provider"
        );
        assert_eq!(summary(None, None), None);
    }

    #[test]
    fn calls_that_failed_are_counted_with_the_reason_of_the_last() {
        let all = |failed: u64| json!({"calls": 0, "failed": failed, "last_failure": "no route"});
        let text = |before, after| summary(Some(&all(before)), Some(&all(after)));
        assert_eq!(text(4, 4), None);
        assert_eq!(text(3, 4).unwrap(), "1 call failed: no route");
        assert_eq!(text(0, 3).unwrap(), "3 calls failed, the last: no route");
    }

    #[test]
    fn only_sessions_that_called_are_listed() {
        let one = |count: u64| json!({"calls": count});
        let of = |main, sub| json!({"sessions": {"coder/1": one(main), "coder/1/sub": one(sub)}});
        let lines = sessions(Some(&of(3, 0)), Some(&of(3, 2)));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with("  coder/1/sub: 2 calls, none refused"), "{lines:?}");
        assert_eq!(sessions(None, Some(&json!({"calls": 1}))), [""; 0]);
        let many: serde_json::Map<_, _> =
            (0..30).map(|number| (format!("c/{number}"), json!({"calls": 1}))).collect();
        let lines = sessions(None, Some(&json!({"sessions": many})));
        assert_eq!((lines.len(), lines.last().map(String::as_str)), (21, Some("  and 10 more")));
    }
}
