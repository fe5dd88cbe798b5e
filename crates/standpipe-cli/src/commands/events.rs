//! `events`: the journal.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use standpipe::config::nearest;
use standpipe::observe::journal::{Event, EventData, EventKind};
use standpipe::{PoolName, Standpipe};

use super::CommandResult;
use crate::args::{Events, Since};
use crate::context::{Context, duration};
use crate::daemon;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::show::amount::counted;
use crate::show::duration::length;
use crate::show::events::{SessionOwners, line, session_owners};
use crate::show::local_time::day_and_clock;

/// The default of `--since`.
const A_DAY: Duration = Duration::from_secs(86_400);

/// How often the journal is polled.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 250_000_000 };

pub(super) fn run(args: &Events, context: &Context, printer: &Printer) -> CommandResult {
    let kind = args.kind.as_deref().map(kind).transpose()?;
    let since = args.since.and_then(start);
    let tap = context.open_ledger(printer)?;
    if !args.follow {
        daemon::write_journal(context);
        let mut seen = Seen::default();
        let since = since.or_else(|| SystemTime::now().checked_sub(A_DAY));
        let reclaimed: Vec<Event> = tap.journal().events(since, Some(EventKind::Reclaim)).collect();
        let owners = session_owners(&reclaimed);
        for event in tap.journal().events(since, kind) {
            let is_brief = kind.is_none() && !printer.json && is_brief_wait(&event);
            let shown = if is_brief && is_wanted(&event, args) {
                seen.brief_waits += 1;
                true
            } else {
                show(&event, &owners, args, printer)?
            };
            seen.add(&event, shown);
        }
        if seen.brief_waits > 0 {
            let what = counted(seen.brief_waits, "wait");
            printer.note(&format!("{what} under 1 s left out; `--kind wait` shows all"));
        }
        if !seen.shown {
            check_pool(args.pool.as_ref().filter(|pool| !seen.has(pool)), &tap, context)?;
        }
        if let Some(note) = seen.note(args) {
            printer.note(&note);
        }
        return Ok(Exit::Ok);
    }
    check_pool(args.pool.as_ref(), &tap, context)?;
    let mut follow = tap.journal().follow(since, kind);
    loop {
        // The end of a session and of its leases is one step, and so is written together.
        let events = follow.more();
        let owners = session_owners(&events);
        for event in &events {
            show(event, &owners, args, printer)?;
        }
        if reader_is_gone() {
            return Ok(Exit::Ok);
        }
    }
}

/// Whether an event is a wait too short to matter: among many of them a pause is hard to find.
fn is_brief_wait(event: &Event) -> bool {
    matches!(
        &event.what,
        EventData::Wait { ended, longest_ms, .. }
            if matches!(ended.as_str(), "admitted" | "continued") && *longest_ms < 1_000
    )
}

/// Returns the instant from which events are shown.
fn start(since: Since) -> Option<SystemTime> {
    match since {
        Since::Ago(length) => SystemTime::now().checked_sub(duration(length)),
        Since::At(instant) => Some(instant.system()),
    }
}

/// Rejects a pool that neither the store nor the file has: its name may be misspelled.
fn check_pool(pool: Option<&PoolName>, tap: &Standpipe, context: &Context) -> Result<(), Failure> {
    match pool.filter(|pool| !tap.settings().pools.contains_key(*pool)) {
        Some(pool) => context.existing_pool(tap, pool).map(drop),
        None => Ok(()),
    }
}

fn kind(word: &str) -> Result<EventKind, Failure> {
    word.parse().map_err(|_| {
        let words = EventKind::ALL.map(EventKind::as_str);
        let hint = match nearest(word, words.into_iter()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use one of: {}", words.join(", ")),
        };
        Failure::usage(&format!("there is no kind of event `{word}`"), &hint)
    })
}

/// The names in the events that were read, to suggest one where a filter matches nothing.
#[derive(Default)]
struct Seen {
    shown: bool,
    /// Waits that are left out.
    brief_waits: u64,
    pools: BTreeSet<String>,
    agents: BTreeSet<String>,
}

impl Seen {
    fn has(&self, pool: &PoolName) -> bool {
        self.pools.contains(pool.as_str())
    }

    fn add(&mut self, event: &Event, shown: bool) {
        self.shown |= shown;
        self.pools.insert(event.pool.clone());
        self.agents.extend(json!(event)["agent"].as_str().map(str::to_owned));
    }

    /// The note that the filters match no event.
    fn note(&self, args: &Events) -> Option<String> {
        let pool = args.pool.as_ref().map(|pool| ("pool", pool.as_str(), &self.pools));
        let agent = args.agent.as_deref().map(|agent| ("agent", agent, &self.agents));
        if self.shown {
            return None;
        }
        let unknown = pool.into_iter().chain(agent).find(|(_, name, seen)| !seen.contains(*name));
        let Some((what, name, seen)) = unknown else {
            let kind = args.kind.as_ref().map(|kind| format!(" of kind {kind}"));
            let time = match args.since {
                None => "in the last day".to_owned(),
                Some(Since::Ago(back)) => format!("in the last {}", length(back.0 / 1_000)),
                Some(Since::At(instant)) => format!("since {}", day_and_clock(instant)),
            };
            return Some(format!("no events{} {time}", kind.unwrap_or_default()));
        };
        let near = nearest(name, seen.iter().map(String::as_str));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Some(format!("no event in this time is of {what} `{name}`{near}"))
    }
}

/// Whether an event is of the pool and the agent that are wanted.
fn is_wanted(event: &Event, args: &Events) -> bool {
    let of_pool = match &args.pool {
        Some(pool) => event.pool == pool.as_str(),
        None => !event.is_internal(),
    };
    of_pool && args.agent.as_ref().is_none_or(|agent| json!(event)["agent"] == agent.as_str())
}

/// Prints an event, if it is of the pool and the agent that are wanted. Returns whether it is.
fn show(
    event: &Event,
    owners: &SessionOwners,
    args: &Events,
    printer: &Printer,
) -> Result<bool, Failure> {
    if !is_wanted(event, args) {
        return Ok(false);
    }
    match json!(event) {
        Value::Object(object) if printer.json => printer.object_line(object)?,
        _ => printer.line(&line(event, owners))?,
    }
    Ok(true)
}

/// Waits one interval, and returns early with `true` when the reader has closed our output.
fn reader_is_gone() -> bool {
    let out = std::io::stdout();
    let mut fds = [PollFd::new(&out, PollFlags::empty())];
    let closed = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    poll(&mut fds, Some(&POLL_INTERVAL)).is_ok() && fds[0].revents().intersects(closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_admitted_waits_under_a_second_are_brief() {
        let wait = |ended: &str, longest_ms: u64| {
            let line = json!({
                "at": "2026-01-31T12:00:00.000Z", "pool": "a/b", "kind": "wait", "agent": "blog",
                "reason": "limit", "ended": ended, "count": 1, "waited_ms": longest_ms,
                "longest_ms": longest_ms,
            });
            is_brief_wait(&serde_json::from_value(line).unwrap())
        };
        assert!(wait("admitted", 999) && !wait("admitted", 1_000) && !wait("refused", 5));
    }
}
