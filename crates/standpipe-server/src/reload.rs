//! Reloads the configuration on SIGHUP, when the file has changed, and before a call is refused
//! because its pool is not described.
//!
//! A reload applies the whole file or nothing; on an error the previous configuration stays active.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use standpipe::observe::{ConfigRejected, Timestamp};
use standpipe::{Error, Settings, Standpipe};
use tokio::runtime::Handle;
use tokio::signal::unix::Signal;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::check;
use crate::daemon::{Options, address, socket};
use crate::failure::Failure;
use crate::state::{AppState, lock};

/// How often the file is checked for changes.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// How long a call waits for a check that it asked for.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Lets a call have the file checked at once.
#[derive(Debug, Default)]
pub(crate) struct FileCheck {
    wanted: Notify,
    /// How many checks have ended.
    done: watch::Sender<u64>,
}

impl FileCheck {
    /// Waits until the file is checked. Must not be called on an event loop.
    pub(crate) fn wait(&self) {
        let mut done = self.done.subscribe();
        self.wanted.notify_one();
        // A check that was under way may have read the file before it was edited.
        let two = async {
            for _ in 0..2 {
                drop(done.changed().await);
                self.wanted.notify_one();
            }
        };
        if let Ok(runtime) = Handle::try_current() {
            drop(runtime.block_on(timeout(CHECK_TIMEOUT, two)));
        }
    }
}

/// Identifies one version of a file: modification time, size, inode.
pub(crate) type Version = Option<(SystemTime, u64, u64)>;

/// Reloads until the daemon stops. `read` is the version of the file that is active.
pub(crate) async fn run(
    state: Arc<AppState>,
    options: Options,
    mut hangup: Signal,
    mut read: Version,
) {
    let mut ticks = interval(CHECK_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = read;
    // An error that persists is logged once.
    let mut logged: Vec<String> = Vec::new();
    loop {
        let (signalled, asked) = tokio::select! {
            _ = ticks.tick() => (false, false),
            () = state.file_check.wanted.notified() => (false, true),
            _ = hangup.recv() => (true, false),
            () = state.stopped() => return,
        };
        let checked = file(&state);
        let now = version(checked.as_deref());
        // A version must be stable over two checks, and not empty: an editor may still be writing.
        let is_written = (asked || now == seen) && now.is_none_or(|(_, length, _)| length > 0);
        let changed = (now != read && is_written) || appeared(&state, &options);
        seen = now;
        if signalled || changed {
            let errors = reload(&state, &options, signalled).await;
            if !errors.is_empty() && (signalled || logged != errors) {
                let kept = "configuration not applied, the previous one stays active";
                tracing::warn!("{kept}: {}", errors.join("\n"));
            }
            reject(&state, &options, &errors);
            logged = errors;
            // A file that was replaced meanwhile is read at the next check.
            read = if file(&state) == checked { now } else { version(file(&state).as_deref()) };
            seen = read;
        }
        state.file_check.done.send_modify(|checks| *checks += 1);
    }
}

fn file(state: &AppState) -> Option<PathBuf> {
    state.tap().settings().origin.clone()
}

/// Whether a file, valid or not, exists now where there was none.
fn appeared(state: &AppState, options: &Options) -> bool {
    let none = state.tap().settings().origin.is_none();
    none && find(options).map_or(true, |found| found.origin.is_some())
}

pub(crate) fn version(file: Option<&Path>) -> Version {
    use std::os::unix::fs::MetadataExt;
    let there = fs::metadata(file?).ok()?;
    Some((there.modified().ok()?, there.len(), there.ino()))
}

pub(crate) fn find(options: &Options) -> Result<Settings, Failure> {
    Ok(Settings::find(options.config.as_deref(), &|name| std::env::var(name).ok())?)
}

/// Reloads and logs what changed. Returns the errors, if any.
async fn reload(state: &Arc<AppState>, options: &Options, signalled: bool) -> Vec<String> {
    let (shared, options) = (Arc::clone(state), options.clone());
    let applied = tokio::task::spawn_blocking(move || apply(&shared, &options)).await;
    let what = match applied {
        Ok(Ok(Some(what))) => what,
        Ok(Ok(None)) if signalled => "configuration reloaded: nothing has changed".to_owned(),
        Ok(Ok(None)) => return Vec::new(),
        Ok(Err(Failure::Tap(Error::Config(error)))) => {
            return error.problems.iter().map(ToString::to_string).collect();
        }
        Ok(Err(failure)) => return vec![failure.to_string()],
        Err(_) => return vec!["the reload did not finish".to_owned()],
    };
    tracing::info!("{what}");
    Vec::new()
}

/// Shows in every view that the file is rejected, or no longer. `at` is the first rejection with
/// these errors.
fn reject(state: &AppState, options: &Options, errors: &[String]) {
    let mut shown = lock(&state.config_rejected);
    if errors.is_empty() {
        *shown = None;
    } else if shown.as_ref().is_none_or(|shown| shown.errors != errors) {
        let file = options.config.clone().or_else(|| file(state));
        let file = file.map(|file| file.display().to_string());
        *shown = Some(ConfigRejected { at: Timestamp::now(), file, errors: errors.to_vec() });
    }
}

/// Applies the whole configuration or nothing of it. Returns what changed.
fn apply(state: &Arc<AppState>, options: &Options) -> Result<Option<String>, Failure> {
    let before = state.tap();
    let settings = find(options)?;
    check_fixed(options, before.settings(), &settings)?;
    let (token, warnings) = check::usable(options, &settings)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let same = *before.settings() == settings;
    let pools: Vec<_> = settings.pools.keys().cloned().collect();
    let tap = options.builder(settings).open()?;
    state.replace(tap.clone(), token);
    if same {
        return Ok(None);
    }
    let configured = pools.iter().filter(|name| configure(&tap, name.as_str())).count();
    let file = tap.settings().origin.as_ref().map(|file| file.display().to_string());
    let file = file.unwrap_or_else(|| "no file".to_owned());
    Ok(Some(format!("configuration reloaded from {file}: {configured} pools configured")))
}

/// Sends a pool its configuration now. If that fails, the pool gets it when it is next used.
pub(crate) fn configure(tap: &Standpipe, name: &str) -> bool {
    use standpipe::Configured;
    let sent = tap.pool(name).and_then(|pool| pool.configured().blocking());
    match sent {
        Ok(Some(Configured::Kept)) => {
            let what = "another process has a newer configuration, which stays active";
            tracing::warn!("`{name}`: {what}");
            false
        }
        Ok(_) => true,
        Err(error) => {
            tracing::warn!("`{name}`: {error}");
            false
        }
    }
}

/// Rejects a change of what is fixed while the daemon runs.
fn check_fixed(options: &Options, before: &Settings, after: &Settings) -> Result<(), Failure> {
    let changed = [
        ("store", options.stored(before) != options.stored(after)),
        ("listen", address(options, before) != address(options, after)),
        ("socket", socket(before) != socket(after)),
    ];
    match changed.iter().find(|(_, changed)| *changed) {
        None => Ok(()),
        Some((what, _)) => Err(Failure::config(
            format!("`{what}` has changed, which needs a restart"),
            "restart the daemon: standpipe down, then standpipe up",
        )),
    }
}
