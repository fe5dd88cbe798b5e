//! The doctor: what is wrong, or soon will be, and what to do about it.
//!
//! One file per group of checks, one function per check. Each reads the same [`Scene`], which the
//! library gathers, and returns findings; none can stop another. A group without findings returns
//! one `ok`.

mod blocked;
mod bypass;
mod clocks;
mod configuration;
mod file_system;
mod journal;
mod losses;
mod processes;
mod refusals;
mod retries;
mod scene;
mod server;
mod stale;
mod store;

use serde::Serialize;
use standpipe_config::Problem;
use standpipe_store::PoolName;

pub use self::scene::{OpenStore, Pools, RoundTrip, Scene, ServerInfo, Survey};
use crate::finding::{Finding, Level};
use crate::status::ConfigRejected;
use crate::time::Timestamp;

/// A group of checks.
type Group = fn(&Scene) -> Vec<Finding>;

/// The groups that need no open store, in the order of the output. A new group is entered here
/// or in [`INSIDE`].
const OUTSIDE: &[Group] = &[configuration::check, store::check, file_system::check];

/// The groups that need an open store, each with its name. Those that read pools are not run while
/// the pools cannot be listed: that would find nothing wrong, and it is one fault.
const INSIDE: &[(&str, Needs, Group)] = &[
    (server::NAME, Needs::Store, server::check),
    (clocks::NAME, Needs::Pools, clocks::check),
    (blocked::NAME, Needs::Pools, blocked::check),
    (stale::NAME, Needs::Pools, stale::check),
    (losses::NAME, Needs::Store, losses::check),
    (refusals::NAME, Needs::Store, refusals::check),
    (bypass::NAME, Needs::Store, bypass::check),
    (retries::NAME, Needs::Store, retries::check),
    (processes::NAME, Needs::Pools, processes::check),
    (journal::NAME, Needs::Store, journal::check),
];

/// What a group of checks needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// A store that could be opened; its journal is on this machine.
    Store,
    /// Pools that could be listed.
    Pools,
}

/// What the doctor found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Diagnosis {
    /// When.
    pub at: Timestamp,
    /// The configuration file, if one was found that can be used.
    pub config: Option<String>,
    /// The store, if it could be opened.
    pub store: Option<String>,
    /// What was found, group by group.
    pub findings: Vec<Finding>,
}

impl Diagnosis {
    /// Runs all checks.
    #[must_use]
    pub fn of(scene: &Scene) -> Self {
        let inside = INSIDE.iter().flat_map(|(name, needs, group)| {
            match (&scene.store, scene.is_unreachable() && *needs == Needs::Pools) {
                // Only network stores have a server.
                (Err(_), _) if *name == server::NAME => Vec::new(),
                (Err(_), _) | (_, true) => vec![not_checked(name)],
                (Ok(_), false) => with_unreadable(scene, name, group(scene)),
            }
        });
        let outside = OUTSIDE.iter().flat_map(|group| group(scene));
        let file = scene.settings.as_ref().ok().and_then(|settings| settings.origin.as_ref());
        Self {
            at: scene.now,
            config: file.map(|file| file.display().to_string()),
            store: scene.store.as_ref().ok().map(|store| store.place.clone()),
            findings: with_one_note(outside.chain(inside).collect()),
        }
    }

    /// Adds what a daemon makes of the configuration: what keeps it from starting, and what will
    /// fail. The findings come after those of the file itself.
    pub fn add_config(&mut self, errors: &[Problem], warnings: &[Problem]) {
        let own = |finding: &Finding| finding.check == configuration::NAME;
        if !errors.is_empty() {
            // The file is valid and cannot be used all the same.
            self.findings.retain(|finding| !own(finding) || finding.level != Level::Ok);
        }
        let at = self.findings.iter().rposition(own).map_or(0, |at| at + 1);
        let failures = errors.iter().map(|problem| (Level::Failure, problem));
        let all = failures.chain(warnings.iter().map(|problem| (Level::Warning, problem)));
        let added: Vec<Finding> = all
            .map(|(level, problem)| {
                let text = problem.to_string();
                let what = text.strip_suffix(&format!("; {}", problem.remedy)).unwrap_or(&text);
                let finding = match level {
                    Level::Failure => Finding::failure(configuration::NAME, what.to_owned()),
                    _ => Finding::warning(configuration::NAME, what.to_owned()),
                };
                finding.remedy(problem.remedy.as_str())
            })
            .collect();
        self.findings.splice(at..at, added);
    }

    /// Adds whether a daemon runs on this machine, where, and whether it answers.
    pub fn add_daemon(&mut self, running: Option<(&str, u32)>, is_silent: bool) {
        if let Some((address, pid)) = running.filter(|_| is_silent) {
            let what = format!("pid {pid} at {address} does not answer");
            let remedy = format!(
                "if its process is stopped: kill -CONT {pid}; else `standpipe down`, then \
                 `standpipe up`"
            );
            self.findings.push(Finding::warning("daemon", what).remedy(remedy));
            return;
        }
        let what = match running {
            Some((address, pid)) => format!("runs at {address}, pid {pid}"),
            None => "none runs, and none is needed but for `run`, the API and the dashboard; \
                     `standpipe up` starts one"
                .to_owned(),
        };
        self.findings.push(Finding::ok("daemon", what));
    }

    /// Adds a warning about the running daemon.
    pub fn add_daemon_warning(&mut self, what: String, remedy: String) {
        self.findings.push(Finding::warning("daemon", what).remedy(remedy));
    }

    /// Adds that a running daemon rejected its configuration file, at this time of day.
    pub fn add_rejected_config(&mut self, rejected: &ConfigRejected, at: &str) {
        let file = rejected.file.as_deref().unwrap_or("its configuration file");
        let what = format!("rejected {file} at {at}: {}", rejected.errors.join("; "));
        let finding = Finding::warning("daemon", what);
        self.findings.push(finding.remedy(rejected.remedy()));
    }

    /// How many findings there are of a level.
    #[must_use]
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }

    /// Whether the configuration cannot be used as it is.
    #[must_use]
    pub fn config_is_broken(&self) -> bool {
        self.fails(|check| check == configuration::NAME)
    }

    /// Whether the store cannot be used as it is.
    #[must_use]
    pub fn store_is_unusable(&self) -> bool {
        self.fails(|check| ![configuration::NAME, blocked::NAME, losses::NAME].contains(&check))
    }

    /// Whether the store lost a ledger, and no call has made a new one.
    #[must_use]
    pub fn ledger_is_lost(&self) -> bool {
        self.fails(|check| check == losses::NAME)
    }

    /// Whether the provider stopped a pool.
    #[must_use]
    pub fn pool_is_stopped(&self) -> bool {
        self.fails(|check| check == blocked::NAME)
    }

    fn fails(&self, of: impl Fn(&str) -> bool) -> bool {
        self.findings.iter().any(|finding| finding.level == Level::Failure && of(finding.check))
    }
}

/// Pools whose ledger cannot be read are not well: a group that reads ledgers did not check them.
fn with_unreadable(scene: &Scene, name: &'static str, found: Vec<Finding>) -> Vec<Finding> {
    let pools: Vec<&str> = scene.unreadable().map(PoolName::as_str).collect();
    let reads_ledgers = [blocked::NAME, stale::NAME, refusals::NAME, bypass::NAME].contains(&name);
    let Some(pools) = names(&pools).filter(|_| reads_ledgers && !found.is_empty()) else {
        return found;
    };
    let what = format!("not checked for {pools}: the ledger cannot be read");
    let note = Finding::note(name, what).remedy("see the failure of the store");
    found.into_iter().filter(|finding| finding.level != Level::Ok).chain([note]).collect()
}

/// ``a/b`, `c/d` and 3 more``; none if there are none.
fn names(pools: &[&str]) -> Option<String> {
    let some = pools.iter().take(MAX_NAMED).map(|name| format!("`{name}`"));
    let some = some.collect::<Vec<_>>().join(", ");
    match pools.len() {
        0 => None,
        1..=MAX_NAMED => Some(some),
        count => Some(format!("{some} and {} more", count - MAX_NAMED)),
    }
}

/// The most pools that are named in one finding.
const MAX_NAMED: usize = 5;

/// What was found, or that nothing was.
fn or_ok(found: Vec<Finding>, check: &'static str, what: impl FnOnce() -> String) -> Vec<Finding> {
    if found.is_empty() { vec![Finding::ok(check, what())] } else { found }
}

/// Notes that a group could not be checked, which is not a second failure.
fn not_checked(check: &'static str) -> Finding {
    Finding::note(check, NOT_CHECKED)
}

const NOT_CHECKED: &str = "not checked: the store is unreachable";

/// Joins the notes of all that could not be checked: it is one fault, whose finding they follow.
fn with_one_note(all: Vec<Finding>) -> Vec<Finding> {
    let (notes, mut others): (Vec<Finding>, Vec<Finding>) =
        all.into_iter().partition(|finding| finding.what == NOT_CHECKED);
    let name = |note: &Finding| if note.check == store::NAME { "writing" } else { note.check };
    let names: Vec<&str> = notes.iter().map(name).collect();
    if !names.is_empty() {
        let what = format!("not checked while the store is unreachable: {}", names.join(", "));
        let of_store = |finding: &Finding| finding.check == store::NAME;
        let at = others.iter().rposition(of_store).map_or(others.len(), |at| at + 1);
        others.insert(at, Finding::note(store::NAME, what));
    }
    others
}

/// Splits an error's sentence: what is wrong, and behind the semicolon what to do.
fn from_error(
    finding: fn(&'static str, String) -> Finding,
    check: &'static str,
    text: &str,
) -> Finding {
    match text.split_once("; ") {
        Some((what, remedy)) => finding(check, what.to_owned()).remedy(remedy),
        None => finding(check, text.to_owned()),
    }
}

/// Formats milliseconds.
fn length(ms: u64) -> String {
    crate::time::format_ms(ms.min(LONGEST_MS))
}

/// As long as any length that is worth telling apart: 400 days.
const LONGEST_MS: u64 = 400 * DAY_MS;
const DAY_MS: u64 = 86_400_000;

#[cfg(test)]
mod tests;
