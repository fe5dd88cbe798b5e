//! Reading the configuration again, all of it or nothing: when a signal says so, and when the file
//! has changed and stays so for a moment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use standpipe::{Settings, Standpipe};
use tokio::signal::unix::Signal;
use tokio::time::{MissedTickBehavior, interval};

use crate::daemon::{Options, address, socket};
use crate::failure::Failure;
use crate::house::House;
use crate::token::Token;

/// How often it is looked whether the file has changed.
const EVERY: Duration = Duration::from_secs(1);

/// What tells one version of a file from another.
pub(crate) type Version = Option<(SystemTime, u64, u64)>;

/// Reads it again when it is time, for as long as the daemon lives.
///
/// `read` is the version of the file that counts now.
pub(crate) async fn keep_reading(
    house: Arc<House>,
    options: Options,
    mut hangup: Signal,
    mut read: Version,
) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen = read;
    // What is wrong with it: told once, for as long as it stays so.
    let mut told: Option<String> = None;
    loop {
        let asked = tokio::select! {
            _ = ticks.tick() => false,
            _ = hangup.recv() => true,
            () = house.stops() => return,
        };
        let looked_at = file(&house);
        let now = version(looked_at.as_deref());
        // Whoever is writing it is given the time to finish.
        let changed = (now != read && now == seen) || appeared(&house, &options);
        seen = now;
        if asked || changed {
            let wrong = again(&house, &options, asked).await;
            if let Some(wrong) =
                wrong.as_ref().filter(|wrong| asked || told.as_ref() != Some(wrong))
            {
                house.log.warn(wrong);
            }
            told = wrong;
            // What was written while it was read is read again.
            read = if file(&house) == looked_at { now } else { version(file(&house).as_deref()) };
            seen = read;
        }
    }
}

fn file(house: &House) -> Option<PathBuf> {
    house.tap().settings().origin.clone()
}

/// Whether there is a file now, where there was none: one that can be used, or not.
fn appeared(house: &House, options: &Options) -> bool {
    let none = house.tap().settings().origin.is_none();
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

/// Reads it again. Answers what is wrong with it.
async fn again(house: &Arc<House>, options: &Options, asked: bool) -> Option<String> {
    let (shared, options) = (Arc::clone(house), options.clone());
    let read = tokio::task::spawn_blocking(move || read(&shared, &options)).await;
    let what = match read {
        Ok(Ok(Some(what))) => what,
        Ok(Ok(None)) if asked => "the configuration was read again; nothing has changed".to_owned(),
        Ok(Ok(None)) => return None,
        Ok(Err(failure)) => {
            let kept = "the configuration was not taken over, the one before still counts";
            return Some(format!("{kept}: {failure}"));
        }
        Err(_) => return None,
    };
    house.log.info(&what);
    None
}

/// Takes the whole configuration over, or nothing of it. Answers what changed.
fn read(house: &Arc<House>, options: &Options) -> Result<Option<String>, Failure> {
    let before = house.tap();
    let settings = find(options)?;
    fixed(options, before.settings(), &settings)?;
    let token = settings.server.token_file.as_deref().map(Token::read).transpose();
    let token = token.map_err(|what| Failure::config(what, "mend the file and try again"))?;
    if options.needs_token(&settings) && token.is_none() {
        return Err(crate::daemon::no_token(address(options, &settings)));
    }
    let same = *before.settings() == settings;
    let pools: Vec<_> = settings.pools.keys().cloned().collect();
    let tap = options.builder(settings).open()?;
    house.replace(tap.clone(), token);
    if same {
        return Ok(None);
    }
    let told = pools.iter().filter(|name| tell(house, &tap, name.as_str())).count();
    let file = tap.settings().origin.as_ref().map(|file| file.display().to_string());
    let file = file.unwrap_or_else(|| "no file".to_owned());
    Ok(Some(format!("the configuration was read again ({file}): {told} pools were told")))
}

/// Tells a pool at once what the file says now. One that cannot be told is told when it is used.
pub(crate) fn tell(house: &House, tap: &Standpipe, name: &str) -> bool {
    use standpipe::Configured;
    let told = tap.pool(name).and_then(|pool| pool.configured());
    match told {
        Ok(Some(Configured::Kept)) => {
            let text = format!("`{name}`: another process has a newer configuration, which counts");
            house.log.warn(&text);
            false
        }
        Ok(_) => true,
        Err(error) => {
            house.log.warn(&format!("`{name}`: {error}"));
            false
        }
    }
}

/// What cannot change while the daemon runs.
fn fixed(options: &Options, before: &Settings, after: &Settings) -> Result<(), Failure> {
    let changed = [
        ("store", options.stored(before) != options.stored(after)),
        ("listen", address(options, before) != address(options, after)),
        ("socket", socket(before) != socket(after)),
    ];
    match changed.iter().find(|(_, changed)| *changed) {
        None => Ok(()),
        Some((what, _)) => Err(Failure::config(
            format!("`{what}` has changed, which needs a new daemon"),
            "restart it: standpipe down, then standpipe up",
        )),
    }
}
